"""Makes of the file of an E5 encoder what a session loads: the graph in 8 bits with its weights, the pieces
of words, and the mean of its vectors.

All its vectors point much the same way. Less their mean, which was taken over sentences of many languages
(`python -m tests.retrieval.mean`), unrelated texts are at right angles, whatever their languages.
"""

from importlib import resources
from pathlib import Path

import numpy as np
import numpy.typing as npt

from omegad.embedding import bert_graph, safetensors, unigram
from omegad.embedding.bert_graph import INT8_MAX, LEAST_NORMAL, SCALE, Config
from omegad.embedding.catalogue import DIRECTIONS, E5, ENCODER, GRAPH, MEAN, PIECES
from omegad.embedding.e5_file import E5File
from omegad.embedding.safetensors import FLOAT32, INT8

EMBEDDINGS = {"position_embeddings": "emb.pos", "token_type_embeddings": "emb.type"}
LINEAR = {
    "attention.self.query": "q",
    "attention.self.key": "k",
    "attention.self.value": "v",
    "attention.output.dense": "ao",
    "intermediate.dense": "fi",
    "output.dense": "fo",
}
NORMS = {"attention.output.": "aln", "output.": "oln"}
Tensors = dict[str, tuple[str, tuple[int, ...], bytes]]


def build(folder: Path) -> None:
    """Write into *folder* what is made of the published file in it. Raises `Invalid` where that is none."""
    published = E5File(folder / E5)
    sizes = published.sizes
    config = Config(
        model_type="bert",
        hidden_act="gelu",
        hidden_size=sizes.hidden,
        intermediate_size=sizes.inner,
        num_attention_heads=sizes.heads,
        num_hidden_layers=sizes.layers,
        max_position_embeddings=sizes.positions,
        type_vocab_size=sizes.types,
        vocab_size=sizes.vocabulary,
        layer_norm_eps=sizes.epsilon,
    )
    safetensors.write(folder / ENCODER, _tensors(published, config))
    bert_graph.write(config, folder / ENCODER, folder / GRAPH)
    unigram.write(published.pieces(), folder / PIECES)
    for name in (MEAN, DIRECTIONS):
        (folder / name).write_bytes(resources.files("omegad.embedding").joinpath(name).read_bytes())


def _tensors(published: E5File, config: Config) -> Tensors:
    """Return the encoder's tensors under the names that BERT's have, matrices in 8 bits."""
    size = config.hidden_size
    tensors: Tensors = {}

    def plain(name: str, published_as: str, *shape: int) -> None:
        tensors[name] = (FLOAT32, shape, published.vector(published_as).tobytes())

    for name, place in EMBEDDINGS.items():
        rows = len(published.vector(place)) // size
        plain(f"embeddings.{name}.weight", place, rows, size)
    norms = {"embeddings.": "emb.ln"}
    for layer in range(config.num_hidden_layers):
        prefix, short = f"encoder.layer.{layer}.", f"l{layer}."
        norms |= {prefix + name: short + place for name, place in NORMS.items()}
        for name, place in LINEAR.items():
            inputs = config.intermediate_size if place == "fo" else size
            values, scales = _quantised(published.matrix(f"{short}{place}.w", inputs))
            tensors[f"{prefix}{name}.weight"] = (INT8, values.shape, values.tobytes())
            tensors[f"{prefix}{name}{SCALE}"] = (FLOAT32, scales.shape, scales.tobytes())
            plain(f"{prefix}{name}.bias", f"{short}{place}.b", len(scales))
    for name, place in norms.items():
        plain(f"{name}LayerNorm.weight", f"{place}.w", size)
        plain(f"{name}LayerNorm.bias", f"{place}.b", size)
    return tensors


def _quantised(matrix: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Return a matrix in 8 bits, and for each row what one of its numbers stands for."""
    largest = np.maximum(np.abs(matrix).max(axis=1), np.float32(LEAST_NORMAL * INT8_MAX))
    scales: npt.NDArray[np.float32] = largest / np.float32(INT8_MAX)
    return np.rint(matrix / scales[:, None]).astype(np.int8), scales
