"""The graph computes what a BERT encoder is defined to compute, for whichever way of pooling."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from omegad.embedding import bert_graph
from omegad.embedding.catalogue import BUILDER_VERSION, CONFIG, GRAPH, WEIGHTS, Folder, Manifest, Pooling
from omegad.embedding.safetensors import read_header
from omegad.embedding.session import Session
from omegad.runtime.errors import Invalid
from tests.embedding.conftest import WORDS

Float64 = NDArray[np.float64]
erf = np.vectorize(math.erf)


def layer_norm(value: Float64, scale: Float64, shift: Float64) -> Float64:
    centred = value - value.mean(-1, keepdims=True)
    normed: Float64 = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12) * scale + shift
    return normed


def in_8_bits(value: Float64) -> Float64:
    """What is left of a matrix when one scale and one offset for all of it turn it into 8 bits."""
    low, high = min(value.min(), 0.0), max(value.max(), 0.0)
    step = (high - low) / 255
    zero = np.rint(-low / step)
    return np.asarray((np.clip(np.rint(value / step) + zero, 0, 255) - zero) * step)


def by_row_in_8_bits(matrix: Float64) -> Float64:
    step = np.abs(matrix).max(1, keepdims=True) / 127
    return np.asarray(np.rint(matrix / step) * step)


def reference(
    weights: dict[str, Float64], layers: int, heads: int, ids: list[int], *, is_quantised: bool
) -> Float64:
    """BERT's encoder as its paper has it, in float64, and where asked for with matrix products in 8 bits:
    float64[tokens, hidden].
    """

    def linear(name: str, value: Float64) -> Float64:
        matrix = weights[name + ".weight"]
        if is_quantised:
            matrix = by_row_in_8_bits(matrix)
            largest = np.abs(value).max(-1, keepdims=True) if "attention" not in name else np.ones(1)
            value = in_8_bits(value / largest) * largest
        product: Float64 = value @ matrix.T + weights[name + ".bias"]
        return product

    def norm(name: str, value: Float64) -> Float64:
        return layer_norm(value, weights[name + ".LayerNorm.weight"], weights[name + ".LayerNorm.bias"])

    words, positions, types = (
        weights[f"embeddings.{kind}_embeddings.weight"] for kind in ("word", "position", "token_type")
    )
    words = by_row_in_8_bits(words) if is_quantised else words
    hidden = norm("embeddings", words[ids] + positions[: len(ids)] + types[0])
    for number in range(layers):
        layer = f"encoder.layer.{number}."
        query, key, value = (
            linear(f"{layer}attention.self.{part}", hidden) for part in ("query", "key", "value")
        )
        size = query.shape[1] // heads
        mixed = np.zeros_like(query)
        for head in range(heads):
            own = slice(head * size, (head + 1) * size)
            scores = query[:, own] @ key[:, own].T / math.sqrt(size)
            likelihood = np.exp(scores - scores.max(-1, keepdims=True))
            mixed[:, own] = likelihood / likelihood.sum(-1, keepdims=True) @ value[:, own]
        middle = norm(f"{layer}attention.output", linear(f"{layer}attention.output.dense", mixed) + hidden)
        wide = linear(f"{layer}intermediate.dense", middle)
        narrow = linear(f"{layer}output.dense", wide * (1 + erf(wide / math.sqrt(2))) / 2)
        hidden = norm(f"{layer}output", narrow + middle)
    return hidden


def manifest(pooling: Pooling, tokens_max: int = 12) -> Manifest:
    return Manifest(
        name="tiny",
        embedder_id="tiny",
        pooling=pooling,
        tokens_max=tokens_max,
        query_prefix="",
        dimensions=24,
        precision="int8",
        builder_version=BUILDER_VERSION,
        files={},
        source=Folder(""),
        verified=False,
    )


TEXTS = {
    "": [2, 3],
    "the disk was full": [2, 4, 5, 6, 7, 3],
    "a cat sat on the mat": [2, 8, 9, 10, 11, 4, 12, 3],
    "the " * 50: [2, *[4] * 10, 3],
    "zebra 🎉": [2, 1, 1, 3],
}


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("prefix", ["", "bert."])
def test_a_built_graph_agrees_with_a_float64_forward_pass(
    tmp_path: Path, tiny_model: Callable[..., Any], pooling: Pooling, prefix: str
) -> None:
    tiny = tiny_model(tmp_path, prefix=prefix)
    bert_graph.build(tmp_path)
    session = Session(tmp_path, manifest(pooling))
    weights = {name: tensor.astype(np.float64) for name, tensor in tiny.weights.items()}
    differences = []
    for text, ids in TEXTS.items():
        found = np.frombuffer(session.embed(text), "<f4")
        assert found.shape == (24,)
        for is_quantised, tolerance in ((False, 0.03), (True, 0.01)):
            hidden = reference(weights, tiny.shape.layers, tiny.shape.heads, ids, is_quantised=is_quantised)
            pooled = hidden[0] if pooling == "cls" else hidden.mean(0)
            difference = np.abs(found - pooled / np.linalg.norm(pooled)).max()
            assert difference < tolerance
        differences.append(difference)
    # Where float32 rounds a value to the next step, the difference is a whole step; elsewhere it is the last
    # bit.
    assert min(differences) < 2e-6


def test_one_text_gives_the_same_bytes_every_time(tmp_path: Path, tiny_model: Callable[..., Any]) -> None:
    tiny_model(tmp_path)
    bert_graph.build(tmp_path)
    first, second = Session(tmp_path, manifest("mean")), Session(tmp_path, manifest("mean"))
    alone = first.embed("a cat sat on the mat")
    first.embed("the disk was full")
    assert alone == first.embed("a cat sat on the mat") == second.embed("a cat sat on the mat")


def test_the_graph_is_small_and_points_into_the_weights(
    tmp_path: Path, tiny_model: Callable[..., Any]
) -> None:
    shape = tiny_model(tmp_path).shape
    large = tmp_path / "large"
    tiny_model(large, type(shape)(hidden=240, inner=960))
    bert_graph.build(large)
    assert (large / GRAPH).stat().st_size * 100 < (large / WEIGHTS).stat().st_size
    before = Session(large, manifest("mean")).embed("a cat")
    content = bytearray((large / WEIGHTS).read_bytes())
    word = read_header(large / WEIGHTS)["embeddings.word_embeddings.weight"].offset + WORDS.index("cat") * 960
    content[word : word + 960] = content[word + 960 : word + 1920]
    (large / WEIGHTS).write_bytes(content)
    assert Session(large, manifest("mean")).embed("a cat") != before


def test_what_a_row_of_zeros_stands_for_is_nothing(tmp_path: Path, tiny_model: Callable[..., Any]) -> None:
    tiny = tiny_model(tmp_path)
    content = bytearray((tmp_path / WEIGHTS).read_bytes())
    for name in ("embeddings.word_embeddings.weight", "encoder.layer.0.output.dense.weight"):
        tensor = read_header(tmp_path / WEIGHTS)[name]
        content[tensor.offset : tensor.offset + tensor.length] = bytes(tensor.length)
        tiny.weights[name][:] = 0
    (tmp_path / WEIGHTS).write_bytes(content)
    bert_graph.build(tmp_path)
    hidden = reference(
        {name: tensor.astype(np.float64) for name, tensor in tiny.weights.items()},
        tiny.shape.layers,
        tiny.shape.heads,
        TEXTS["the disk was full"],
        is_quantised=False,
    ).mean(0)
    found = np.frombuffer(Session(tmp_path, manifest("mean")).embed("the disk was full"), "<f4")
    assert np.abs(found - hidden / np.linalg.norm(hidden)).max() < 0.03


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model_type", "roberta"),
        ("hidden_act", "relu"),
        ("position_embedding_type", "relative_key"),
        ("is_decoder", True),
        ("num_attention_heads", 5),
    ],
)
def test_another_architecture_is_refused(
    tmp_path: Path, tiny_model: Callable[..., Any], key: str, value: object
) -> None:
    tiny_model(tmp_path)
    config = json.loads((tmp_path / CONFIG).read_text(encoding="utf-8"))
    (tmp_path / CONFIG).write_text(json.dumps(config | {key: value}), encoding="utf-8")
    with pytest.raises(Invalid, match="cannot be used"):
        bert_graph.build(tmp_path)


def test_half_precision_weights_are_refused_by_name(tmp_path: Path, tiny_model: Callable[..., Any]) -> None:
    tiny_model(tmp_path)
    text = (tmp_path / WEIGHTS).read_bytes()
    (tmp_path / WEIGHTS).write_bytes(text.replace(b'"F32"', b'"F16"'))
    with pytest.raises(Invalid, match=r"word_embeddings\.weight is F16"):
        bert_graph.build(tmp_path)


def test_weights_of_another_shape_than_the_configuration_says_are_refused(
    tmp_path: Path, tiny_model: Callable[..., Any]
) -> None:
    tiny_model(tmp_path)
    config = json.loads((tmp_path / CONFIG).read_text(encoding="utf-8"))
    (tmp_path / CONFIG).write_text(json.dumps(config | {"vocab_size": 99}), encoding="utf-8")
    with pytest.raises(Invalid, match=r"is \[13, 24\], not \[99, 24\]"):
        bert_graph.build(tmp_path)


@pytest.mark.parametrize("bytes_kept", [0, 4, 40, -100])
def test_weights_cut_short_are_refused(
    tmp_path: Path, tiny_model: Callable[..., Any], bytes_kept: int
) -> None:
    tiny_model(tmp_path)
    text = (tmp_path / WEIGHTS).read_bytes()
    (tmp_path / WEIGHTS).write_bytes(text[:bytes_kept])
    with pytest.raises(Invalid, match="not a complete safetensors file"):
        read_header(tmp_path / WEIGHTS)


def test_weights_whose_header_is_not_aligned_work_all_the_same(
    tmp_path: Path, tiny_model: Callable[..., Any]
) -> None:
    tiny_model(tmp_path)
    bert_graph.build(tmp_path)
    expected = Session(tmp_path, manifest("cls")).embed("a cat")
    text = (tmp_path / WEIGHTS).read_bytes()
    length = int.from_bytes(text[:8], "little") + 3
    (tmp_path / WEIGHTS).write_bytes(
        length.to_bytes(8, "little") + text[8 : length + 5] + b"   " + text[length + 5 :]
    )
    bert_graph.build(tmp_path)
    assert Session(tmp_path, manifest("cls")).embed("a cat") == expected


def test_a_configuration_that_says_nothing_is_refused(tmp_path: Path, tiny_model: Callable[..., Any]) -> None:
    tiny_model(tmp_path)
    (tmp_path / CONFIG).write_text("{}", encoding="utf-8")
    with pytest.raises(Invalid, match="model_type"):
        bert_graph.build(tmp_path)
