"""A running embedder with a model of paper, for tests to hold, hurry and break."""

import threading
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec
from anyio import to_thread

from omegad.embedding import cache, catalogue
from omegad.embedding.catalogue import BUILDER_VERSION, MINILM, VECTOR_BYTES, FileRecord, Manifest, Model
from omegad.embedding.embedder import Embedder
from tests.builders import PATIENCE_S


class FakeSession:
    """Remembers what it was asked, waits while told to, fails when told to: on everything, or on some
    texts.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.loads = 0
        self.failing = False
        self.unfit: set[str] = set()
        self.bytes = VECTOR_BYTES
        self.at_once = 0
        self.at_once_max = 0
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def load(self, _folder: Path, _manifest: Manifest) -> "FakeSession":
        self.loads += 1
        return self

    def embed(self, text: str) -> bytes:
        self.at_once += 1
        self.at_once_max = max(self.at_once_max, self.at_once)
        self.texts.append(text)
        assert self.may_go_on.wait(PATIENCE_S)
        self.at_once -= 1
        if self.failing or text in self.unfit:
            raise RuntimeError("out of luck")
        return text.encode()[:1].ljust(self.bytes, b"\0")


class SteppingTime:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def put_model(
    models_dir: Path, model: Model = MINILM, embedder_id: str = "abc", builder_version: int = BUILDER_VERSION
) -> None:
    folder = catalogue.folder_of(models_dir, model.name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / catalogue.GRAPH).write_bytes(b"graph")
    manifest = Manifest(
        name=model.name,
        embedder_id=embedder_id,
        pooling=model.pooling,
        tokens_max=model.tokens_max,
        query_prefix=model.query_prefix,
        dimensions=384,
        precision="int8",
        builder_version=builder_version,
        files={catalogue.GRAPH: FileRecord("", 5)},
        source=model.source,
        verified=True,
    )
    (folder / catalogue.MANIFEST).write_bytes(msgspec.json.encode(manifest))


class Bench:
    """A running embedder and all that it touches."""

    def __init__(
        self, embedder: Embedder, session: FakeSession, time: SteppingTime, vectors: cache.VectorCache
    ) -> None:
        self.embedder = embedder
        self.session = session
        self.time = time
        self.vectors = vectors


@asynccontextmanager
async def bench(
    home: Path, *, choice: str = "auto", idle_unload_s: float = 60.0, session: FakeSession | None = None
) -> AsyncIterator[Bench]:
    session, time = session or FakeSession(), SteppingTime()
    async with cache.opened(home / "embeddings.db") as vectors, anyio.create_task_group() as tasks:
        embedder = Embedder(
            vectors,
            models_dir=home / "models",
            choice=choice,
            idle_unload_s=idle_unload_s,
            load=session.load,
            monotonic=time,
        )
        tasks.start_soon(embedder.run)
        try:
            yield Bench(embedder, session, time, vectors)
        finally:
            session.may_go_on.set()
            tasks.cancel_scope.cancel()


async def put_many(vectors: cache.VectorCache, embedder_id: str, given: Mapping[str, bytes]) -> None:
    """Have vectors, by text hash, kept as those of texts that an event names."""
    left = list(given.items())
    while left:
        part, left = dict(left[: cache.UNWRITTEN_MAX]), left[cache.UNWRITTEN_MAX :]
        vectors.hold(embedder_id, part)
        await vectors.keep([(embedder_id, digest) for digest in part])


async def get_many(vectors: cache.VectorCache, embedder_id: str, hashes: Iterable[str]) -> dict[str, bytes]:
    """Return, by text hash, those vectors that are there, as a thread finds them."""

    def find() -> dict[str, bytes]:
        return {one: found for one in hashes if (found := vectors.lookup.find(embedder_id, one))}

    return await to_thread.run_sync(find)
