"""Makes an ONNX graph for the weights of a BERT encoder, in 8 bits: `python -m omegad.embedding.bert_graph FOLDER`.

It takes one text, unpadded: `input_ids` int64[tokens] gives `hidden` float32[tokens, hidden size], the last layer's output.
With one text there is nothing to mask, and pooling outside, in float64, keeps vectors the same to the last bit.
Matrices are int8 with a scale for each output; what they are multiplied with is quantised as it comes (dynamic quantisation), so a vector
depends on its text alone only as long as texts are not batched or padded.
"""

import math
import sys
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from omegad.embedding.catalogue import CONFIG, GRAPH, WEIGHTS
from omegad.embedding.safetensors import FLOAT32, FLOAT32_BYTES, read_header
from omegad.runtime.errors import Invalid

OPSET = 17  # the first with LayerNormalization
IR_VERSION = 8  # what goes with it; newer ones lock older runtimes out
RUNTIME = "com.microsoft"  # the domain of onnxruntime's own operations
INT8_MAX = 127


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

    def constant(self, name: str, value: NDArray[Any]) -> str:
        self.initializers.append(numpy_helper.from_array(value, name))
        return name

    def scalar(self, name: str, value: float) -> str:
        return self.constant(name, np.array(value, np.float32))

    def integers(self, name: str, values: list[int]) -> str:
        return self.constant(name, np.array(values, np.int64))

    def weight(self, name: str, *shape: int) -> str:
        return self.constant(name, self.tensor(name, *shape))

    def tensor(self, name: str, *shape: int) -> NDArray[np.float32]:
        """Read a published tensor; raises `Invalid` unless it is float32 of exactly that shape."""
        tensor = self._tensors.get(name)
        if tensor is None:
            raise Invalid(f"this model cannot be used: {self._weights.name} has no {name}")
        if tensor.dtype != FLOAT32:
            raise Invalid(f"this model cannot be used: {name} is {tensor.dtype}", hint="use the model's float32 weights")
        if tensor.shape != shape or tensor.length != math.prod(shape) * FLOAT32_BYTES:
            raise Invalid(f"this model cannot be used: {name} is {list(tensor.shape)}, not {list(shape)} as its config.json says")
        return np.fromfile(self._weights, "<f4", math.prod(shape), offset=tensor.offset).reshape(shape)


def quantized(matrix: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return int8 values and, for each row, what one of them stands for: row i is about values[i] * scales[i]."""
    scales = np.maximum(np.abs(matrix).max(1), np.finfo(np.float32).tiny * INT8_MAX) / np.float32(INT8_MAX)
    return np.rint(matrix / scales[:, None]).astype(np.int8), scales


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
    graph.integers("three_parts", [config.hidden_size] * 3)
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
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(RUNTIME, 1)],
        ir_version=IR_VERSION,
        producer_name="omegad",
    )
    (folder / GRAPH).write_bytes(model.SerializeToString())


def _embeddings(graph: _Graph, config: Config) -> str:
    """Word plus position plus the type of a single sentence (row 0), normalised."""
    size = config.hidden_size
    values, scales = quantized(graph.tensor("embeddings.word_embeddings.weight", config.vocab_size, size))
    rows = graph.node("Cast", [graph.node("Gather", [graph.constant("words", values), "input_ids"], axis=0)], to=TensorProto.FLOAT)
    words = graph.node("Mul", [rows, graph.node("Gather", [graph.constant("word_scales", scales[:, None]), "input_ids"], axis=0)])
    positions = graph.tensor("embeddings.position_embeddings.weight", config.max_position_embeddings, size)
    types = graph.tensor("embeddings.token_type_embeddings.weight", config.type_vocab_size, size)
    placed = graph.node("Slice", [graph.constant("places", positions + types[0]), graph.integers("first", [0]), graph.node("Shape", ["input_ids"])])
    return _norm(graph, config, "embeddings.", graph.node("Add", [words, placed]))


def _layer(graph: _Graph, config: Config, prefix: str, hidden: str) -> str:
    size, inner = config.hidden_size, config.intermediate_size
    context = _attention(graph, size, prefix + "attention.self.", hidden)
    attended = _linear(graph, [prefix + "attention.output.dense"], context, size, size)
    middle = _norm(graph, config, prefix + "attention.output.", graph.node("Add", [attended, hidden]))
    wide = _gelu(graph, _linear_by_token(graph, prefix + "intermediate.dense", middle, size, inner))
    narrow = _linear_by_token(graph, prefix + "output.dense", wide, inner, size)
    return _norm(graph, config, prefix + "output.", graph.node("Add", [narrow, middle]))


def _attention(graph: _Graph, size: int, prefix: str, hidden: str) -> str:
    """Every token looks at every other: softmax(q kᵀ / √d) v, head by head."""
    together = _linear(graph, [prefix + part for part in ("query", "key", "value")], hidden, size, size)
    parts = [prefix + part for part in ("q", "k", "v")]
    graph.nodes.append(helper.make_node("Split", [together, "three_parts"], parts, name=prefix + "split", axis=-1))
    heads = [graph.node("Reshape", [part, "split_heads"]) for part in parts]  # [tokens, heads, d] each
    query, key, value = (graph.node("Transpose", [part], perm=perm) for part, perm in zip(heads, ([1, 0, 2], [1, 2, 0], [1, 0, 2]), strict=True))
    scores = graph.node("Mul", [graph.node("MatMul", [query, key]), "attention_scale"])
    mixed = graph.node("MatMul", [graph.node("Softmax", [scores], axis=-1), value])
    return graph.node("Reshape", [graph.node("Transpose", [mixed], perm=[1, 0, 2]), "join_heads"])


def _linear(graph: _Graph, names: list[str], value: str, inputs: int, outputs: int) -> str:
    """Layers that share an input, side by side; *value* is quantised as a whole. Weights are published as [outputs, inputs]."""
    bias = np.concatenate([graph.tensor(name + ".bias", outputs) for name in names])
    return _product(graph, names, value, (outputs, inputs), graph.constant(names[0] + ".bias", bias))


def _linear_by_token(graph: _Graph, name: str, value: str, inputs: int, outputs: int) -> str:
    """A layer whose inputs differ much in size from token to token: each is brought to at most 1 before quantising."""
    largest = graph.node("ReduceMax", [graph.node("Abs", [value])], axes=[-1], keepdims=1)
    product = _product(graph, [name], graph.node("Div", [value, largest]), (outputs, inputs))
    return graph.node("Add", [graph.node("Mul", [product, largest]), graph.weight(name + ".bias", outputs)])


def _product(graph: _Graph, names: list[str], value: str, shape: tuple[int, int], *bias: str) -> str:
    values, scales = quantized(np.concatenate([graph.tensor(name + ".weight", *shape) for name in names]))
    matrix = graph.constant(names[0] + ".weight", np.ascontiguousarray(values.T))
    inputs = [value, matrix, graph.constant(names[0] + ".scales", scales), *(["", *bias] if bias else [])]
    return graph.node("DynamicQuantizeMatMul", inputs, domain=RUNTIME)


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
