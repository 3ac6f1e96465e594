"""Makes an ONNX graph for the weights of a BERT encoder without copying them: `python -m omegad.embedding.bert_graph FOLDER`.

The graph's matrices are references into model.safetensors, so model.onnx is small and loading maps the published file.
It takes one text, unpadded: `input_ids` int64[tokens] gives `hidden` float32[tokens, hidden size], the last layer's output.
With one text there is nothing to mask, and pooling outside, in float64, keeps vectors the same to the last bit.
"""

import math
import sys
from pathlib import Path
from typing import Any, Literal

import msgspec
import onnx
from onnx import TensorProto, helper

from omegad.embedding.catalogue import CONFIG, GRAPH, WEIGHTS
from omegad.embedding.safetensors import FLOAT32, FLOAT32_BYTES, Tensor, read_header
from omegad.errors import Invalid

OPSET = 17  # the first with LayerNormalization
IR_VERSION = 8  # what goes with it; newer ones lock older runtimes out
INLINE_BYTES_MAX = 8 * 1024  # biases: a mapping each would cost more than it saves


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a published config.json that shapes the graph. Unsupported architectures fail to decode."""

    model_type: Literal["bert"]
    hidden_act: Literal["gelu"]
    position_embedding_type: Literal["absolute"] = "absolute"
    is_decoder: Literal[False] = False
    hidden_size: int
    intermediate_size: int
    num_attention_heads: int
    num_hidden_layers: int
    max_position_embeddings: int
    type_vocab_size: int
    vocab_size: int
    layer_norm_eps: float


def read_config(path: Path) -> Config:
    """Read config.json; raises `Invalid` for anything but a BERT encoder with absolute positions and exact GELU."""
    try:
        config = msgspec.json.decode(path.read_bytes(), type=Config)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Invalid(f"this model cannot be used: {path.name}: {error}", hint="only BERT encoders with absolute positions are supported") from error
    if config.num_attention_heads < 1 or config.hidden_size % config.num_attention_heads:
        raise Invalid(f"this model cannot be used: {config.hidden_size} is not a multiple of {config.num_attention_heads} heads")
    return config


class _Graph:
    """Nodes and initialisers as they are added. Every value is named for the step that made it."""

    def __init__(self, weights: Path) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self._weights = weights
        self._tensors = read_header(weights)

    def node(self, op: str, inputs: list[str], **attributes: Any) -> str:  # noqa: ANN401  an ONNX attribute is a number, a string or a list
        output = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        return output

    def integers(self, name: str, values: list[int]) -> str:
        self.initializers.append(helper.make_tensor(name, TensorProto.INT64, [len(values)], values))
        return name

    def scalar(self, name: str, value: float) -> str:
        self.initializers.append(helper.make_tensor(name, TensorProto.FLOAT, [], [value]))
        return name

    def weight(self, name: str, *shape: int) -> str:
        """Refer to a published tensor; raises `Invalid` unless it is float32 of exactly that shape."""
        tensor = self._tensors.get(name)
        if tensor is None:
            raise Invalid(f"this model cannot be used: {self._weights.name} has no {name}")
        if tensor.dtype != FLOAT32:
            raise Invalid(f"this model cannot be used: {name} is {tensor.dtype}", hint="use the model's float32 weights")
        if tensor.shape != shape or tensor.length != math.prod(shape) * FLOAT32_BYTES:
            raise Invalid(f"this model cannot be used: {name} is {list(tensor.shape)}, not {list(shape)} as its config.json says")
        self.initializers.append(self._inline(name, tensor) if tensor.length <= INLINE_BYTES_MAX else _external(name, tensor))
        return name

    def _inline(self, name: str, tensor: Tensor) -> onnx.TensorProto:
        with self._weights.open("rb") as file:
            file.seek(tensor.offset)
            return TensorProto(name=name, data_type=TensorProto.FLOAT, dims=tensor.shape, raw_data=file.read(tensor.length))


def _external(name: str, tensor: Tensor) -> onnx.TensorProto:
    initializer = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=tensor.shape, data_location=TensorProto.EXTERNAL)
    for key, value in (("location", WEIGHTS), ("offset", tensor.offset), ("length", tensor.length)):
        entry = initializer.external_data.add()
        entry.key, entry.value = key, str(value)
    return initializer


def build(folder: Path) -> None:
    """Write model.onnx into *folder* from its config.json and model.safetensors.

    Raises `Invalid` where these are not float32 weights of a supported encoder.
    """
    config = read_config(folder / CONFIG)
    graph = _Graph(folder / WEIGHTS)
    graph.scalar("one", 1.0)
    graph.scalar("half", 0.5)
    graph.scalar("sqrt_two", math.sqrt(2))
    graph.scalar("attention_scale", 1 / math.sqrt(config.hidden_size // config.num_attention_heads))
    graph.integers("split_heads", [0, config.num_attention_heads, -1])
    graph.integers("join_heads", [0, -1])
    hidden = _embeddings(graph, config)
    for layer in range(config.num_hidden_layers):
        hidden = _layer(graph, config, f"encoder.layer.{layer}.", hidden)
    graph.nodes.append(helper.make_node("Identity", [hidden], ["hidden"], name="hidden"))
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "bert",
            [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["tokens"])],
            [helper.make_tensor_value_info("hidden", TensorProto.FLOAT, ["tokens", config.hidden_size])],
            graph.initializers,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="omegad",
    )
    (folder / GRAPH).write_bytes(model.SerializeToString())


def _embeddings(graph: _Graph, config: Config) -> str:
    """Word plus position plus the type of a single sentence (row 0), normalised."""
    size = config.hidden_size
    words = graph.node("Gather", [graph.weight("embeddings.word_embeddings.weight", config.vocab_size, size), "input_ids"], axis=0)
    types = graph.weight("embeddings.token_type_embeddings.weight", config.type_vocab_size, size)
    first_type = graph.node("Gather", [types, graph.integers("first", [0])], axis=0)
    length = graph.node("Shape", ["input_ids"])
    positions = graph.weight("embeddings.position_embeddings.weight", config.max_position_embeddings, size)
    placed = graph.node("Slice", [positions, "first", length])
    summed = graph.node("Add", [graph.node("Add", [words, first_type]), placed])
    return _norm(graph, config, "embeddings.", summed)


def _layer(graph: _Graph, config: Config, prefix: str, hidden: str) -> str:
    size, inner = config.hidden_size, config.intermediate_size
    context = _attention(graph, size, prefix + "attention.self.", hidden)
    attended = _linear(graph, prefix + "attention.output.dense", context, size, size)
    middle = _norm(graph, config, prefix + "attention.output.", graph.node("Add", [attended, hidden]))
    wide = _gelu(graph, _linear(graph, prefix + "intermediate.dense", middle, size, inner))
    narrow = _linear(graph, prefix + "output.dense", wide, inner, size)
    return _norm(graph, config, prefix + "output.", graph.node("Add", [narrow, middle]))


def _attention(graph: _Graph, size: int, prefix: str, hidden: str) -> str:
    """Every token looks at every other: softmax(q kᵀ / √d) v, head by head."""
    heads = {
        part: graph.node("Reshape", [_linear(graph, prefix + part, hidden, size, size), "split_heads"])  # [tokens, heads, d]
        for part in ("query", "key", "value")
    }
    query = graph.node("Transpose", [heads["query"]], perm=[1, 0, 2])
    key = graph.node("Transpose", [heads["key"]], perm=[1, 2, 0])
    value = graph.node("Transpose", [heads["value"]], perm=[1, 0, 2])
    scores = graph.node("Mul", [graph.node("MatMul", [query, key]), "attention_scale"])
    mixed = graph.node("MatMul", [graph.node("Softmax", [scores], axis=-1), value])
    return graph.node("Reshape", [graph.node("Transpose", [mixed], perm=[1, 0, 2]), "join_heads"])


def _linear(graph: _Graph, name: str, value: str, inputs: int, outputs: int) -> str:
    """Weights are published as [outputs, inputs]; transposing inside the product spares a copy of them."""
    return graph.node("Gemm", [value, graph.weight(name + ".weight", outputs, inputs), graph.weight(name + ".bias", outputs)], transB=1)


def _norm(graph: _Graph, config: Config, prefix: str, value: str) -> str:
    size = config.hidden_size
    scale, shift = graph.weight(prefix + "LayerNorm.weight", size), graph.weight(prefix + "LayerNorm.bias", size)
    return graph.node("LayerNormalization", [value, scale, shift], axis=-1, epsilon=config.layer_norm_eps)


def _gelu(graph: _Graph, value: str) -> str:
    """GELU: x (1 + erf(x / √2)) / 2, written in the order that runtimes recognise as one operation."""
    bell = graph.node("Add", [graph.node("Erf", [graph.node("Div", [value, "sqrt_two"])]), "one"])
    return graph.node("Mul", [graph.node("Mul", [value, bell]), "half"])


def main(arguments: list[str]) -> int:
    """Build in the folder named; say what is wrong on standard error and return 2 where it cannot be done."""
    try:
        build(Path(arguments[0]))
    except Invalid as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
