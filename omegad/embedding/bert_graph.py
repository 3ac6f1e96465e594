"""Writes the ONNX graph of a BERT encoder, in 8 bits, over its weights in another file.

It takes one text, unpadded: `input_ids` int64[tokens] gives `hidden` float32[tokens, hidden size], the last
layer's output. With one text there is nothing to mask, and pooling outside, in float64, keeps vectors the
same to the last bit. Its constants are places in the file of the weights, which the runtime maps. Matrices
are int8 with a scale for each output, which the runtime computes once, when it loads the graph; what they
are multiplied with is quantised as it comes (dynamic quantisation), so a vector depends on its text alone
only as long as texts are not batched or padded.
"""

import math
import struct
from pathlib import Path
from typing import Literal

import msgspec

from omegad.embedding import onnx_file
from omegad.embedding.catalogue import CONFIG, GRAPH, WEIGHTS
from omegad.embedding.onnx_file import FLOAT, INT64, RUNTIME, Attribute
from omegad.embedding.safetensors import FLOAT32, FLOAT32_BYTES, INT8, read_header
from omegad.runtime.errors import Invalid

INT8_MAX = 127
LEAST_NORMAL = 2.0**-126  # of float32
WIDTHS = {FLOAT32: (onnx_file.FLOAT, FLOAT32_BYTES), INT8: (onnx_file.INT8, 1)}
"""Of each type of tensor its number in a graph, and the bytes of an element."""
WORDS = "embeddings.word_embeddings.weight"
SCALE = ".scale"  # what the name of a matrix in 8 bits is followed by in that of its scales


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
    """Read config.json; raises `Invalid` for anything but a BERT encoder with absolute positions and exact
    GELU.
    """
    try:
        config = msgspec.json.decode(path.read_bytes(), type=Config)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Invalid(
            f"this model cannot be used: {path.name}: {error}",
            hint="only BERT encoders with absolute positions are supported",
        ) from error
    if config.num_attention_heads < 1 or config.hidden_size % config.num_attention_heads:
        raise Invalid(
            f"this model cannot be used: {config.hidden_size} is not a multiple of"
            f" {config.num_attention_heads} heads"
        )
    return config


class _Graph:
    """Nodes and constants as they are added. Every value is named for the step that made it."""

    def __init__(self, weights: Path) -> None:
        self.nodes: list[bytes] = []
        self.constants: dict[str, bytes] = {}
        self._weights = weights
        self._tensors = read_header(weights)

    def node(
        self, op: str, *inputs: str, domain: str = "", outputs: tuple[str, ...] = (), **attributes: Attribute
    ) -> str:
        """Add an operation; return the name of its first output."""
        names = outputs or (f"{op.lower()}_{len(self.nodes)}",)
        self.nodes.append(onnx_file.node(op, inputs, names, domain, attributes))
        return names[0]

    def number(self, name: str, value: float) -> None:
        self.constants[name] = onnx_file.tensor(name, FLOAT, (), struct.pack("<f", value))

    def integers(self, name: str, *values: int) -> None:
        content = struct.pack(f"<{len(values)}q", *values)
        self.constants[name] = onnx_file.tensor(name, INT64, (len(values),), content)

    def has(self, name: str) -> bool:
        """Say whether the weights have a tensor of that name."""
        return name in self._tensors

    def is_quantised(self, name: str) -> bool:
        """Say whether a tensor is in 8 bits already; what its rows stand for is beside it then."""
        return name in self._tensors and self._tensors[name].dtype == INT8

    def weight(self, name: str, *shape: int, dtype: str = FLOAT32) -> str:
        """Point at a tensor of the file; raises `Invalid` unless it is of that type and shape."""
        tensor = self._tensors.get(name)
        if tensor is None:
            raise Invalid(f"this model cannot be used: {self._weights.name} has no {name}")
        if tensor.dtype != dtype:
            raise Invalid(
                f"this model cannot be used: {name} is {tensor.dtype}", hint="use the model's float32 weights"
            )
        if tensor.shape != shape or tensor.length != math.prod(shape) * WIDTHS[dtype][1]:
            raise Invalid(
                f"this model cannot be used: {name} is {list(tensor.shape)}, not {list(shape)} as its"
                " config.json says"
            )
        place = onnx_file.Place(self._weights.name, tensor.offset, tensor.length)
        self.constants[name] = onnx_file.tensor_in(place, name, WIDTHS[dtype][0], shape)
        return name


def build(folder: Path) -> None:
    """Write model.onnx into *folder* from its config.json and the header of its model.safetensors.

    Raises `Invalid` where these are not float32 weights of a supported encoder.
    """
    write(read_config(folder / CONFIG), folder / WEIGHTS, folder / GRAPH)


def write(config: Config, weights: Path, path: Path) -> None:
    """Write the graph of an encoder, over its weights in the same folder; raises `Invalid` where these do
    not fit.

    Without a table of words among them the graph takes `rows` float32[tokens, hidden size] of it instead of
    `input_ids`. Matrices may be in 8 bits already, each with its scales.
    """
    graph = _Graph(weights)
    graph.number("one", 1.0)
    graph.number("half", 0.5)
    graph.number("sqrt_two", math.sqrt(2))
    graph.number("attention_scale", 1 / math.sqrt(config.hidden_size // config.num_attention_heads))
    graph.number("int8_max", INT8_MAX)
    graph.number("least", LEAST_NORMAL * INT8_MAX)  # taken for the largest number of a row of zeros
    graph.integers("zero", 0)
    graph.integers("split_heads", 0, config.num_attention_heads, -1)
    graph.integers("three_parts", *[config.hidden_size] * 3)
    graph.integers("join_heads", 0, -1)
    given = (
        onnx_file.value("input_ids", INT64, ("tokens",))
        if graph.has(WORDS)
        else onnx_file.value("rows", FLOAT, ("tokens", config.hidden_size))
    )
    hidden = _embeddings(graph, config)
    for layer in range(config.num_hidden_layers):
        hidden = _layer(graph, config, f"encoder.layer.{layer}.", hidden)
    graph.node("Identity", hidden, outputs=("hidden",))
    path.write_bytes(
        onnx_file.model(
            graph.nodes,
            graph.constants.values(),
            given,
            onnx_file.value("hidden", FLOAT, ("tokens", config.hidden_size)),
        )
    )


def _embeddings(graph: _Graph, config: Config) -> str:
    """Word plus position plus the type of a single sentence (row 0), normalised.

    Words are brought to what 8 bits hold of them as a text needs them: of the table, which is half of the
    weights, nothing else is read.
    """
    size, is_whole = config.hidden_size, graph.has(WORDS)
    if is_whole:
        exact = graph.node("Gather", graph.weight(WORDS, config.vocab_size, size), "input_ids", axis=0)
        largest = graph.node("ReduceMax", graph.node("Abs", exact), axes=[-1], keepdims=1)
        scales = graph.node("Div", graph.node("Max", largest, "least"), "int8_max")
        words = graph.node("Mul", graph.node("Round", graph.node("Div", exact, scales)), scales)
    else:
        words = "rows"
    positions = graph.weight("embeddings.position_embeddings.weight", config.max_position_embeddings, size)
    types = graph.weight("embeddings.token_type_embeddings.weight", config.type_vocab_size, size)
    placed = graph.node("Add", positions, graph.node("Gather", types, "zero", axis=0))
    count = graph.node("Shape", "input_ids") if is_whole else graph.node("Shape", "rows", end=1)
    placed = graph.node("Slice", placed, "zero", count)
    return _norm(graph, config, "embeddings.", graph.node("Add", words, placed))


def _layer(graph: _Graph, config: Config, prefix: str, hidden: str) -> str:
    size, inner = config.hidden_size, config.intermediate_size
    # Every token looks at every other: softmax(q kᵀ / √d) v, head by head.
    attention = prefix + "attention.self."
    together = _linear(graph, [attention + part for part in ("query", "key", "value")], hidden, size, size)
    parts = tuple(attention + part for part in ("q", "k", "v"))
    graph.node("Split", together, "three_parts", outputs=parts, axis=-1)
    query, key, value = (
        graph.node(
            "Transpose", graph.node("Reshape", part, "split_heads"), perm=perm
        )  # of [tokens, heads, d]
        for part, perm in zip(parts, ([1, 0, 2], [1, 2, 0], [1, 0, 2]), strict=True)
    )
    scores = graph.node("Mul", graph.node("MatMul", query, key), "attention_scale")
    mixed = graph.node("MatMul", graph.node("Softmax", scores, axis=-1), value)
    context = graph.node("Reshape", graph.node("Transpose", mixed, perm=[1, 0, 2]), "join_heads")
    attended = _linear(graph, [prefix + "attention.output.dense"], context, size, size)
    middle = _norm(graph, config, prefix + "attention.output.", graph.node("Add", attended, hidden))
    wide = _linear_by_token(graph, prefix + "intermediate.dense", middle, size, inner)
    # GELU: x (1 + erf(x / √2)) / 2, written in the order that runtimes recognise as one operation.
    bell = graph.node("Add", graph.node("Erf", graph.node("Div", wide, "sqrt_two")), "one")
    wide = graph.node("Mul", graph.node("Mul", wide, bell), "half")
    narrow = _linear_by_token(graph, prefix + "output.dense", wide, inner, size)
    return _norm(graph, config, prefix + "output.", graph.node("Add", narrow, middle))


def _linear(graph: _Graph, names: list[str], value: str, inputs: int, outputs: int) -> str:
    """Layers that share an input, side by side; *value* is quantised as a whole."""
    bias = _joined(graph, [graph.weight(name + ".bias", outputs) for name in names])
    return _product(graph, names, value, (outputs, inputs), bias)


def _linear_by_token(graph: _Graph, name: str, value: str, inputs: int, outputs: int) -> str:
    """A layer whose inputs differ much in size from token to token: each is brought to at most 1 before
    quantising.
    """
    largest = graph.node("ReduceMax", graph.node("Abs", value), axes=[-1], keepdims=1)
    product = _product(graph, [name], graph.node("Div", value, largest), (outputs, inputs))
    return graph.node("Add", graph.node("Mul", product, largest), graph.weight(name + ".bias", outputs))


def _product(graph: _Graph, names: list[str], value: str, shape: tuple[int, int], *bias: str) -> str:
    """Multiply with matrices, side by side, in int8. They are published as [outputs, inputs], and each row
    has a scale: what one of its numbers stands for.
    """
    values, scales = [], []
    zeros = f"zeros_{shape[0]}"
    for name in names:
        if graph.is_quantised(name + ".weight"):
            values.append(graph.weight(name + ".weight", *shape, dtype=INT8))
            scales.append(graph.weight(name + SCALE, shape[0]))
            continue
        matrix = graph.weight(name + ".weight", *shape)
        graph.constants[zeros] = onnx_file.tensor(zeros, onnx_file.INT8, (shape[0],), bytes(shape[0]))
        high = graph.node("ReduceMax", matrix, axes=[-1], keepdims=0)
        low = graph.node("Neg", graph.node("ReduceMin", matrix, axes=[-1], keepdims=0))
        scale = graph.node("Div", graph.node("Max", high, low, "least"), "int8_max")
        values.append(graph.node("QuantizeLinear", matrix, scale, zeros, axis=0))
        scales.append(scale)
    matrix = graph.node("Transpose", _joined(graph, values), perm=[1, 0])
    inputs = [value, matrix, _joined(graph, scales), *(["", *bias] if bias else [])]
    return graph.node("DynamicQuantizeMatMul", *inputs, domain=RUNTIME)


def _joined(graph: _Graph, parts: list[str]) -> str:
    return graph.node("Concat", *parts, axis=0) if len(parts) > 1 else parts[0]


def _norm(graph: _Graph, config: Config, prefix: str, value: str) -> str:
    scale, shift = (
        graph.weight(f"{prefix}LayerNorm.{part}", config.hidden_size) for part in ("weight", "bias")
    )
    return graph.node("LayerNormalization", value, scale, shift, axis=-1, epsilon=config.layer_norm_eps)
