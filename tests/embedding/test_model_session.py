"""The installed model, as a daemon uses it: what is alike is near, and no text harms it."""

import os
from pathlib import Path

import anyio
import numpy as np
import pytest
from numpy.typing import NDArray

from omegad.embedding import cache
from omegad.embedding.catalogue import MINILM, VECTOR_BYTES, Manifest, folder_of, installed
from omegad.embedding.embedder import Embedder
from omegad.embedding.session import Session
from omegad.runtime.config import find_paths
from tests.builders import PATIENCE_S, until

pytestmark = pytest.mark.model

MODELS = Path(os.environ.get("OMEGAD_TEST_MODELS") or find_paths().models)


@pytest.fixture(scope="module")
def manifest() -> Manifest:
    found = installed(MODELS, MINILM.name)
    if found is None:
        pytest.skip(
            f"{MINILM.name} is not installed in {MODELS}: run `omegad model install`, or set"
            " OMEGAD_TEST_MODELS"
        )
    return found


@pytest.fixture(scope="module")
def session(manifest: Manifest) -> Session:
    return Session(folder_of(MODELS, manifest.name), manifest)


def vector(session: Session, text: str) -> NDArray[np.float32]:
    return np.frombuffer(session.embed(text), "<f4")


def cosine(session: Session, one: str, other: str) -> float:
    return float(vector(session, one) @ vector(session, other))


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        (
            "The build fails because the disk is full.",
            "Compilation stopped: no space left on device.",
            "Our team lunch is on Friday.",
        ),
        (
            "Use tabs, not spaces, in Go files.",
            "Indentation in golang code is done with tabs.",
            "The database migration took an hour.",
        ),
        (
            "How do I restart the server?",
            "Restart the service with systemctl restart.",
            "The cat sleeps on the sofa.",
        ),
    ],
)
def test_what_means_the_same_is_nearer(session: Session, text: str, near: str, far: str) -> None:
    assert cosine(session, text, near) > cosine(session, text, far) + 0.2


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\0",
        "\x00\x01\x1b[31m",
        "🎉👩‍👩‍👧‍👦",
        "磁盘已满构建失败",
        "ディスクが一杯です",
        "مرحبا بالعالم",
        "x" * 262_144,
        "word " * 50_000,
        "🎉" * 65_536,
        "\n" * 262_144,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_every_text_has_a_finite_unit_vector(session: Session, text: str) -> None:
    found = vector(session, text)
    assert found.shape == (384,)
    assert np.isfinite(found).all()
    assert np.linalg.norm(found.astype(np.float64)) == pytest.approx(1.0, abs=1e-6)


def test_a_vector_depends_on_its_text_alone(session: Session, manifest: Manifest) -> None:
    texts = ["short", "a somewhat longer text about disks", "word " * 300, ""]
    first = [session.embed(text) for text in texts]
    assert [session.embed(text) for text in reversed(texts)] == first[::-1]
    assert [Session(folder_of(MODELS, manifest.name), manifest).embed(text) for text in texts] == first


def test_256_tokens_are_seen_and_no_more(session: Session) -> None:
    whole = "disk " * 254  # and the two tokens that mark the ends
    assert session.embed(whole) == session.embed(whole + "cat " * 100)
    assert session.embed(whole) != session.embed("disk " * 253 + "cat")


def test_a_known_text_has_its_known_vector(session: Session) -> None:
    # Computed with the reference implementation in float64 from the same published files; 8 bits come within
    # a few thousandths.
    found = vector(session, "The deployment failed because the disk was full.")
    np.testing.assert_allclose(found[:4], [0.04506127, -0.04043593, 0.01936163, -0.09206064], atol=0.01)


async def test_the_embedder_serves_the_installed_model(manifest: Manifest, tmp_path: Path) -> None:
    async with cache.opened(tmp_path / "embeddings.db") as vectors, anyio.create_task_group() as tasks:
        embedder = Embedder(vectors, models_dir=MODELS, choice=MINILM.name, idle_unload_s=PATIENCE_S)
        tasks.start_soon(embedder.run)
        query = await embedder.embed_query("the disk is full")
        assert len(query) == VECTOR_BYTES
        assert query == await embedder.embed_store("the disk is full")
        assert embedder.embedder_id == manifest.embedder_id
        assert embedder.status().state == "ready"
        embedder._idle_unload_s = 0.0  # after the next text
        await embedder.embed_query("the disk is full")
        await until(lambda: embedder.status().state == "unloaded")
        assert await embedder.embed_query("the disk is full") == query
        tasks.cancel_scope.cancel()
