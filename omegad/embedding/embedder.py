"""Text in, unit vector out, for the rest of omegad: one text at a time, in order of urgency, on one worker
thread.

A model is loaded when a text needs it and dropped when none has for a while. No request ever waits for the
network.
"""

import asyncio
import struct
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

import anyio
import anyio.to_thread
import msgspec
import structlog

from omegad.embedding.breaker import Breaker
from omegad.embedding.cache import VectorCache, canonical, text_hash
from omegad.embedding.catalogue import VECTOR_BYTES, Manifest, folder_of, installed
from omegad.embedding.jobs import Job, JobQueue, Urgency
from omegad.runtime import allocator
from omegad.runtime.errors import ModelFailed, ModelMissing, OmegadError, Overloaded, ShuttingDown

TRIM_EVERY = 250  # texts
LOOK_AGAIN_S = 1.0  # how often the disk is asked whether a model has been installed
PROBE = "Can anything be embedded at all?"

State = Literal["absent", "unloaded", "ready", "failed"]

log = structlog.get_logger(__name__)


class TextFailed(ModelFailed):
    """The embedding model fails on this text, though not on others."""

    hint = "what it says is kept, and found by its words"


class LoadedModel(Protocol):
    """What the embedder needs of `session.Session`."""

    def embed(self, text: str) -> bytes:
        """Return the unit vector of *text* as little-endian float32."""
        ...


@runtime_checkable
class ComparesWords(LoadedModel, Protocol):
    """A model that also tells how near two texts are word by word."""

    def nearness(self, asked: str, said: str) -> float:
        """Return the mean of their greatest cosines."""
        ...


class EmbedderStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How the embedder is doing. *failure* is the latest one, where nothing has worked since."""

    state: State
    model: str | None
    embedder_id: str | None
    waiting: int
    failure: str | None


class Embedder:
    """The embedding service. `run` must be running for texts to be embedded.

    It keeps to the first model it finds, so an `embedder_id` read after a vector came is that vector's;
    another model is taken up at the next start.
    """

    def __init__(
        self,
        cache: VectorCache,
        *,
        models_dir: Path,
        choice: str,
        idle_unload_s: float,
        load: Callable[[Path, Manifest], LoadedModel] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Use the model that the setting *choice* selects in *models_dir*; *load* and *monotonic* are for
        tests to replace.
        """
        self._cache = cache
        self._models_dir = models_dir
        self._choice = choice
        self._idle_unload_s = idle_unload_s
        self._load = load or _load_session
        self._monotonic = monotonic
        self._manifest: Manifest | None = None
        self._look_again_at = -float("inf")
        self._looking = threading.Lock()
        self._is_renewed = False
        self._breaker = Breaker(monotonic)
        self._queue = JobQueue()
        self._session: LoadedModel | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._embedded = 0
        self._closed = False

    @property
    def is_wanted(self) -> bool:
        """Whether the settings ask for a model at all."""
        return self._choice != "none"

    @property
    def embedder_id(self) -> str | None:
        """The id of the model in use; None as long as there is none. Once it is known it stays."""
        manifest = self._find()
        return manifest.embedder_id if manifest else None

    @property
    def is_multilingual(self) -> bool:
        """Whether the model in use is the one for all languages."""
        manifest = self._find()
        return manifest is not None and manifest.is_multilingual

    def passages(self, content: str) -> tuple[str, ...]:
        """Return the texts that the model in use embeds for such a memory; raises `ModelMissing`."""
        return self._require().passages(content)

    def status(self) -> EmbedderStatus:
        """Say how things stand, without waiting for anything."""
        manifest = self._find()
        if manifest is None:
            state: State = "absent"
        elif self._breaker.is_open:
            state = "failed"
        else:
            state = "ready" if self._session else "unloaded"
        return EmbedderStatus(
            state=state,
            model=manifest.name if manifest else None,
            embedder_id=manifest.embedder_id if manifest else None,
            waiting=len(self._queue),
            failure=self._breaker.last_error,
        )

    async def embed_query(self, text: str, urgency: Urgency = Urgency.QUERY) -> bytes:
        """Return the vector to search with: `VECTOR_BYTES` of little-endian float32, of length 1.

        Raises `ModelMissing`, `ModelFailed` (`TextFailed` where only this text is to blame), `Overloaded` or
        `ShuttingDown`; the first two at once where that is known beforehand.
        """
        job = Job(canonical(self._require().query_prefix + text))
        if refusal := self._breaker.refusal():
            raise refusal
        return await self._settled(job, urgency)

    def begin_query(self, text: str) -> Job | None:
        """Begin what `embed_query` does, for a thread to wait for; None where the model is not loaded, or
        has other texts to embed first.
        """
        return self._begun(lambda: Job(canonical(self._require().query_prefix + text)), Urgency.QUERY)

    def nearness(self, asked: str, said: str, within_s: float) -> float | None:
        """Return how near a question and a passage are word by word, to a thread that waits; None where the
        model is not loaded, or cannot tell within so long.
        """
        if self._loop is None or self._closed or not isinstance(self._session, ComparesWords):
            return None
        prefix = self._require().query_prefix
        job = Job(canonical(prefix + asked), beside=canonical(said))
        try:
            self._loop.call_soon_threadsafe(self._put, job)
            (found,) = struct.unpack("<d", job.wait(within_s))
        except (TimeoutError, OmegadError):
            return None
        return float(found)

    def _put(self, job: Job) -> None:
        try:
            self._queue.put(job, Urgency.QUERY)
        except Overloaded as error:
            job.finish(error)

    def begin_store(self, text: str) -> Job | None:
        """Begin what `embed_store` does, as `begin_query`; `hold` is for who waited to call."""
        known = partial(self._cache.lookup.find, self._require().embedder_id, text_hash(text))
        return self._begun(lambda: Job(canonical(text), known), Urgency.STORE)

    def hold(self, digest: str, vector: bytes) -> None:
        """Have the vector of a text, by its hash, at hand for the event that is to name it."""
        self._cache.hold(self._require().embedder_id, {digest: vector})

    def _begun(self, made: Callable[[], Job], urgency: Urgency) -> Job | None:
        if self._session is None or self._closed or len(self._queue) or self._breaker.refusal():
            return None
        job = made()
        self._queue.put(job, urgency)
        return job

    async def embed_store(self, text: str, urgency: Urgency = Urgency.STORE) -> bytes:
        """Return the vector to store, from the cache where it is known; form and errors as of `embed_query`.

        It is written to the cache's file once an event names it.
        """
        embedder_id, digest = self._require().embedder_id, text_hash(text)
        if held := self._cache.unwritten.get((embedder_id, digest)):
            return held
        known = partial(self._cache.lookup.find, embedder_id, digest)
        vector = await self._settled(Job(canonical(text), known), urgency)
        self._cache.hold(embedder_id, {digest: vector})
        return vector

    async def embed_backlog(self, text: str) -> bytes:
        """As `embed_store`, when nothing else is waiting."""
        return await self.embed_store(text, Urgency.BACKLOG)

    async def keep(self, text: str) -> None:
        """Have the vector of a text, which an event names, written to the cache's file."""
        await self._cache.keep([(self._require().embedder_id, text_hash(text))])

    async def run(self) -> None:
        """Embed what is asked for until cancelled; who still waits then gets `ShuttingDown`."""
        limiter = anyio.CapacityLimiter(1)
        self._loop = asyncio.get_running_loop()
        try:
            # A model that hangs must not keep the daemon from its end.
            on_thread = partial(anyio.to_thread.run_sync, limiter=limiter, abandon_on_cancel=True)
            await on_thread(self._renew)
            while True:
                job = await self._next_job()
                try:
                    # Only this task waits for the thread, so that no cancelled request can leave it alone
                    # with the session.
                    job.finish(await on_thread(self._settle, job))
                finally:
                    job.finish(ShuttingDown())  # unless it is
        finally:
            self._closed = True
            self._session = None
            while job_left := self._queue.pop():
                job_left.finish(ShuttingDown())

    async def _settled(self, job: Job, urgency: Urgency) -> bytes:
        if self._closed:
            raise ShuttingDown
        with self._queue.waiting(job, urgency):
            return await job.result()

    async def _next_job(self) -> Job:
        if self._session is None:
            return await self._queue.next()
        idle = asyncio.get_running_loop().call_later(self._idle_unload_s, self._unload)
        try:
            return await self._queue.next()
        finally:
            idle.cancel()

    def _unload(self) -> None:
        """Let go of the model, which no thread is at while the next text is waited for."""
        self._session = None
        threading.Thread(target=allocator.give_back, daemon=True).start()
        log.info("embedding.unloaded")

    def _settle(self, job: Job) -> bytes | OmegadError:
        """Embed on the worker thread; another thread that waits need not wait for the event loop as well."""
        thread, embedded = threading.current_thread(), self._embedded
        before, thread.name = thread.name, "embedding"  # by which is told what is not waited for
        try:
            outcome = job.known() or self._attempt(job.text, job.beside)
            job.settle(outcome)
            # Loading the model leaves much behind, and texts of many lengths leave gaps.
            if self._embedded > embedded and embedded % TRIM_EVERY == 0:
                allocator.give_back()  # which takes longer than most texts
            return outcome
        finally:
            thread.name = before

    def _attempt(self, text: str, beside: str | None) -> bytes | OmegadError:
        """Embed on the worker thread, loading the model if need be.

        A failure is that of the text where the same session embeds `PROBE`, and then nobody else's. Any other
        counts against the model, and costs the session, which may be its cause.
        """
        if refusal := self._breaker.refusal():
            return refusal
        try:
            vector = self._embed(text, beside)
        except ModelMissing as error:
            return error
        # The runtime and the tokenizer raise bare Exceptions; this is where they enter
        except Exception as error:  # noqa: BLE001
            if self._can_embed():
                self._breaker.succeeded()
                log.warning(
                    "embedding.text_failed", error=str(error), kind=type(error).__name__, characters=len(text)
                )
                return TextFailed(f"the embedding model fails on this text, though not on others: {error}")
            self._session = None
            self._breaker.failed(error)
            log.warning("embedding.failed", error=str(error), kind=type(error).__name__)
            return (
                error
                if isinstance(error, ModelFailed)
                else ModelFailed(f"the embedding model failed: {error}")
            )
        self._breaker.succeeded()
        return vector

    def _embed(self, text: str, beside: str | None) -> bytes:
        self._session = self._session or self._loaded()
        if beside is not None:
            assert isinstance(self._session, ComparesWords)
            return struct.pack("<d", self._session.nearness(text, beside))
        vector = self._session.embed(text)
        self._embedded += 1
        if len(vector) != VECTOR_BYTES:
            raise ModelFailed(f"the embedding model gave {len(vector)} bytes instead of {VECTOR_BYTES}")
        return vector

    def _can_embed(self) -> bool:
        """Say whether the session that has just failed embeds a text that every model can."""
        if self._session is None:
            return False
        try:
            return len(self._session.embed(PROBE)) == VECTOR_BYTES
        except Exception:  # noqa: BLE001  whatever it is, it is not the text's
            return False

    def _loaded(self) -> LoadedModel:
        """Load the model in use; raises `ModelMissing` where it is gone, `ModelFailed` where another has
        taken its place.
        """
        wanted = self._require()
        manifest = installed(self._models_dir, wanted.name)
        if manifest is None:
            raise ModelMissing(f"the model {wanted.name} is no longer there, or not whole")
        if manifest.embedder_id != wanted.embedder_id:
            raise ModelFailed(
                f"another {wanted.name} was installed", hint="`omegad stop`, then `omegad start`, takes it up"
            )
        started = time.perf_counter()
        with allocator.roomy():
            session = self._load(folder_of(self._models_dir, manifest.name), manifest)
        log.info("embedding.loaded", model=manifest.name, ms=round((time.perf_counter() - started) * 1000))
        return session

    def _require(self) -> Manifest:
        if manifest := self._find():
            return manifest
        if self._choice == "none":
            raise ModelMissing(
                "the setting `model` is none; search works on full text alone",
                hint="set it to auto and restart",
            )
        raise ModelMissing

    def _find(self) -> Manifest | None:
        """Look for a model, on disk at most once in `LOOK_AGAIN_S`, so that a running daemon notices an
        installation.

        One that an earlier version installed is passed over until it is renewed, or cannot be and serves as
        it is.
        """
        if self._manifest is None:
            with self._looking:  # who comes while another thread looks waits for what it finds
                if self._manifest is None and self._monotonic() >= self._look_again_at:
                    manifest = installed(self._models_dir, self._choice)
                    if manifest and (self._is_renewed or not manifest.is_outdated):
                        self._manifest = manifest
                    self._look_again_at = self._monotonic() + LOOK_AGAIN_S
        return self._manifest

    def _renew(self) -> None:
        manifest = installed(self._models_dir, self._choice)
        if manifest and manifest.is_outdated:
            from omegad.embedding.install import (  # noqa: PLC0415
                renew,
            )

            try:
                renew(manifest, self._models_dir)
            except OmegadError as error:
                log.warning("embedding.not_renewed", model=manifest.name, error=str(error))
        self._is_renewed = True


def _load_session(folder: Path, manifest: Manifest) -> LoadedModel:
    from omegad.embedding.session import (  # noqa: PLC0415
        Session,
    )

    return Session(folder, manifest)
