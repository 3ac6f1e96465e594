"""A BERT of random weights, small enough to be written for each test, in the files that a publisher
provides.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from omegad.embedding.catalogue import CONFIG, TOKENIZER, WEIGHTS

Weights = dict[str, NDArray[np.float32]]
WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "disk", "was", "full", "a", "cat", "sat", "on", "mat")


class TinyShape(msgspec.Struct, frozen=True, kw_only=True):
    hidden: int = 24
    heads: int = 3
    inner: int = 40
    layers: int = 2
    positions: int = 16


class TinyModel(msgspec.Struct, frozen=True):
    folder: Path
    shape: TinyShape
    weights: Weights


def write_safetensors(path: Path, tensors: Mapping[str, NDArray[Any]]) -> None:
    names = {"float32": "F32", "float16": "F16", "int64": "I64"}
    header, offset = {}, 0
    for name, tensor in tensors.items():
        header[name] = {
            "dtype": names[tensor.dtype.name],
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + tensor.nbytes],
        }
        offset += tensor.nbytes
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(
        len(text).to_bytes(8, "little") + text + b"".join(tensor.tobytes() for tensor in tensors.values())
    )


def random_weights(shape: TinyShape, seed: int) -> Weights:
    random = np.random.default_rng(seed)
    size = shape.hidden
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(WORDS), size),
        "embeddings.position_embeddings.weight": (shape.positions, size),
        "embeddings.token_type_embeddings.weight": (2, size),
        "embeddings.LayerNorm.weight": (size,),
        "embeddings.LayerNorm.bias": (size,),
    }
    for layer in range(shape.layers):
        prefix = f"encoder.layer.{layer}."
        square = (
            "attention.self.query",
            "attention.self.key",
            "attention.self.value",
            "attention.output.dense",
        )
        linear = {
            **dict.fromkeys(square, (size, size)),
            "intermediate.dense": (shape.inner, size),
            "output.dense": (size, shape.inner),
        }
        for name, (outputs, inputs) in linear.items():
            shapes |= {f"{prefix}{name}.weight": (outputs, inputs), f"{prefix}{name}.bias": (outputs,)}
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes |= {f"{prefix}{name}.weight": (size,), f"{prefix}{name}.bias": (size,)}
    return {name: random.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}


def write_tokenizer(path: Path) -> None:
    """As publishers do, with padding and a truncation that omegad must not follow."""
    tokenizer = Tokenizer(
        models.WordPiece({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]")  # noqa: S106
    )
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.enable_padding(length=8)
    tokenizer.enable_truncation(8)
    tokenizer.save(str(path))


def write_model(folder: Path, shape: TinyShape | None = None, prefix: str = "", seed: int = 7) -> TinyModel:
    shape = shape or TinyShape()
    folder.mkdir(parents=True, exist_ok=True)
    weights = random_weights(shape, seed)
    extra: dict[str, NDArray[Any]] = {
        "embeddings.position_ids": np.arange(shape.positions)[None],
        "pooler.dense.bias": np.zeros(3, np.float32),
    }
    write_safetensors(folder / WEIGHTS, {prefix + name: tensor for name, tensor in (extra | weights).items()})
    write_tokenizer(folder / TOKENIZER)
    config = {
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": shape.hidden,
        "intermediate_size": shape.inner,
        "num_attention_heads": shape.heads,
        "num_hidden_layers": shape.layers,
        "max_position_embeddings": shape.positions,
        "type_vocab_size": 2,
        "vocab_size": len(WORDS),
        "layer_norm_eps": 1e-12,
    }
    (folder / CONFIG).write_text(json.dumps(config), encoding="utf-8")
    return TinyModel(folder, shape, weights)


@pytest.fixture
def tiny_model() -> Callable[..., TinyModel]:
    """Write a model into a folder; the arguments of `write_model`."""
    return write_model


@pytest.fixture
def full_size(tmp_path: Path) -> TinyModel:
    """The published files of a model with omegad's 384 dimensions and room for long texts."""
    return write_model(
        tmp_path / "published", TinyShape(hidden=384, heads=12, inner=16, layers=1, positions=512)
    )
