"""Which model a setting selects, and what makes two embedders the same."""

import typing
from pathlib import Path

import msgspec
import pytest

from omegad.embedding import catalogue
from omegad.embedding.catalogue import (
    ALL,
    BGE,
    BUILDER_VERSION,
    CONFIG,
    MANIFEST,
    MINILM,
    TOKENIZER,
    WEIGHTS,
    FileRecord,
    Folder,
    Manifest,
    Model,
    embedder_id,
    installed,
)
from omegad.runtime.config import Config

FILES = {name: FileRecord(name, 3) for name in (WEIGHTS, TOKENIZER, CONFIG)}


def put(models_dir: Path, model: Model) -> Path:
    folder = catalogue.folder_of(models_dir, model.name)
    folder.mkdir(parents=True)
    for name in FILES:
        (folder / name).write_bytes(b"abc")
    manifest = Manifest(
        name=model.name,
        embedder_id=embedder_id(model, FILES),
        pooling=model.pooling,
        tokens_max=model.tokens_max,
        query_prefix=model.query_prefix,
        dimensions=384,
        precision="int8",
        builder_version=BUILDER_VERSION,
        files=FILES,
        source=model.source,
        verified=True,
    )
    (folder / MANIFEST).write_bytes(msgspec.json.encode(manifest))
    return folder


def selected(models_dir: Path, choice: str) -> str | None:
    manifest = installed(models_dir, choice)
    return manifest.name if manifest else None


def test_auto_takes_the_best_model_that_is_there(tmp_path: Path) -> None:
    assert selected(tmp_path, "auto") is None
    put(tmp_path, MINILM)
    assert selected(tmp_path, "auto") == MINILM.name
    put(tmp_path, BGE)
    assert selected(tmp_path, "auto") == BGE.name


def test_a_name_takes_that_model_and_none_takes_none(tmp_path: Path) -> None:
    put(tmp_path, BGE)
    assert selected(tmp_path, MINILM.name) is None
    put(tmp_path, MINILM)
    assert selected(tmp_path, MINILM.name) == MINILM.name
    assert selected(tmp_path, "none") is None


@pytest.mark.parametrize("damage", ["missing", "short", "manifest", "renamed"])
def test_what_is_not_whole_is_not_there(tmp_path: Path, damage: str) -> None:
    folder = put(tmp_path, MINILM)
    match damage:
        case "missing":
            (folder / WEIGHTS).unlink()
        case "short":
            (folder / WEIGHTS).write_bytes(b"ab")
        case "manifest":
            (folder / MANIFEST).write_bytes(b'{"name": "\xff')
        case _:
            folder.rename(tmp_path / BGE.name)
    assert selected(tmp_path, "auto") is None


def test_every_setting_is_a_model_of_the_catalogue() -> None:
    settings = typing.get_args(typing.get_type_hints(Config)["model"])
    assert {model.name for model in ALL} == set(settings) - {"auto", "none"}


def test_whatever_shapes_a_vector_is_in_the_embedder_id(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [embedder_id(MINILM, FILES)]
    ids += [embedder_id(MINILM, FILES | {name: FileRecord("other", 3)}) for name in FILES]
    ids += [
        embedder_id(msgspec.structs.replace(MINILM, **change), FILES)
        for change in ({"pooling": "cls"}, {"tokens_max": 5}, {"query_prefix": "q"})
    ]
    monkeypatch.setattr(catalogue, "BUILDER_VERSION", BUILDER_VERSION + 1)
    ids.append(embedder_id(MINILM, FILES))
    assert len(set(ids)) == len(ids)


def test_where_a_model_came_from_is_not_in_the_embedder_id() -> None:
    assert embedder_id(MINILM, FILES) == embedder_id(
        msgspec.structs.replace(MINILM, source=Folder("/x"), name="y"), FILES
    )
