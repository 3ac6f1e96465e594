"""What is near a text: its vectors, the index to search them with, and the memories stored so lately that
no view shows them yet.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import anyio
import anyio.lowlevel
import msgspec
import numpy as np
import structlog

from omegad.embedding.cache import text_hash
from omegad.embedding.embedder import Embedder
from omegad.embedding.passages import Embedded
from omegad.index import VIEWS
from omegad.index.neighbours import RELATED_COSINE, Near
from omegad.index.resident_words import KEPT, ResidentWords
from omegad.index.vector_index import VectorIndex
from omegad.index.vector_indexes import VectorIndexes
from omegad.runtime.errors import ModelFailed, ModelMissing, OmegadError, Overloaded
from omegad.storage.driver import Connection
from omegad.storage.readers import Turn
from omegad.text.languages import language_of
from omegad.views.barrier import Barrier, Snapshot
from omegad.views.current import Views

LATE_MAX, LATE_CHARACTERS_MAX = 256, 8_000
BEGUN_S = 1.0  # for the vector of a text, beyond which a reader is not kept waiting
PAUSE_S = 1.0  # between two times that all words are read
KEEP_EVERY_S = 3_600.0  # at most, in which words that have changed are kept for the next start
RETRY_S, RETRY_MAX_S = 0.1, 60.0  # after which it is tried again where they cannot be

_log = structlog.get_logger(__name__)

# Whether any memory has vectors of a model, and whether any has these alone.
_MET = """
SELECT EXISTS (SELECT 1 FROM memory_vectors WHERE embedder_id = :other), EXISTS (
  SELECT 1 FROM memory_vectors AS v WHERE v.embedder_id = :other AND NOT EXISTS (
    SELECT 1 FROM memory_vectors AS u WHERE u.memory_id = v.memory_id AND u.embedder_id = :usual))
"""


class ServedIndex:
    """Embeds texts, and keeps the indexes of the vectors that are served.

    With a model for all languages beside the usual one, each text is embedded by one of them: English by the
    usual one. Once another language is met, in a text or a question, the backlog embeds all that is English
    by the other as well, so that questions in any language find it.
    """

    def __init__(self, embedder: Embedder, multilingual: Embedder | None = None) -> None:
        """Start without an index; the first text that is embedded makes one."""
        self.embedder = embedder
        self._multilingual = multilingual
        self._index: VectorIndexes | None = None
        self._words: ResidentWords | None = None
        self._want_words: Callable[[], object] = lambda: None
        self._first: anyio.Event | None = None
        self._file: Path | None = None
        self._known_of: Path | None = None
        self._has_others = False
        self.meets_languages = False
        """Whether this home has met a language other than English."""
        self.lags = True
        """Whether there may be memories that questions in other languages cannot be compared with yet."""
        self.is_catching_up = False
        self.catch_up: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint
        """Embeds these."""

    async def run(self) -> None:
        """Embed what is asked for until cancelled."""
        async with anyio.create_task_group() as tasks:
            for embedder in filter(None, (self.embedder, self._multilingual)):
                tasks.start_soon(embedder.run)

    @property
    def multilingual(self) -> Embedder | None:
        """The model for all languages, None where there is none beside the usual one."""
        other = self._multilingual
        if other is None or other.embedder_id in {None, self.embedder.embedder_id}:
            return None
        return other

    @property
    def embedders(self) -> tuple[Embedder, ...]:
        """The models that can be used, the usual one first."""
        there = (self.embedder, self.multilingual)
        return tuple(one for one in there if one is not None and one.embedder_id is not None)

    def index(self, file: Path) -> VectorIndexes | None:
        """Return the index for a file of views, a new one where the file or a model is another; None
        without a model.
        """
        ids = tuple(one.embedder_id for one in self.embedders)
        if not ids:
            return None
        if self._words is None or self._file != file:
            self._words, self._index, self._file = ResidentWords(lambda: self._want_words()), None, file  # noqa: PLW0108  which may be set later
        if self._index is None or self._index.embedder_ids != ids:
            self._index = self.new_index(is_whole=True, words=self._words)
        return self._index

    def new_index(self, *, is_whole: bool, words: ResidentWords | None = None) -> VectorIndexes:
        """Return an index of the models that can be used, of which there is at least one, with the *words* of
        the same file where they are in memory.
        """
        return VectorIndexes(
            *(
                VectorIndex(one.embedder_id or "", is_whole=is_whole, is_multilingual=one.is_multilingual)
                for one in self.embedders
            ),
            words=words,
        )

    async def keep_words(self, views: Views) -> None:
        """Have the index and the words of the served views in memory before anybody asks, and the words again
        whenever they are wanted, for ever.
        """
        loop, wanted = asyncio.get_running_loop(), asyncio.Event()

        def want() -> None:
            with suppress(RuntimeError):  # the loop is over
                loop.call_soon_threadsafe(wanted.set)

        def fill(connection: Connection, snapshot: Snapshot) -> None:
            if (index := self.index(snapshot.file)) is not None:
                if index.words is not None:
                    index.words.fill_from_kept(connection)
                index.sync(connection)
                if index.words is not None:
                    index.words.fill(connection)

        self._want_words, self._first, pause_s = want, anyio.Event(), RETRY_S
        while True:
            try:
                await views.at(Barrier(names=VIEWS), fill, Turn.LONG)
            except OmegadError as error:  # as long as the views are behind the log
                self._first.set()
                _log.debug("index.words_not_read", error=str(error), retry_s=pause_s)
                await anyio.sleep(pause_s)
                pause_s = min(2 * pause_s, RETRY_MAX_S)
                continue
            self._first.set()
            pause_s = RETRY_S
            await anyio.sleep(PAUSE_S)
            await self._keep(views)
            with anyio.move_on_after(KEEP_EVERY_S):
                await wanted.wait()
            wanted.clear()

    async def _keep(self, views: Views) -> None:
        """Keep the words for the next start where what is kept is not of them; later, where the views are
        copied or replayed, or cannot be written.
        """
        with suppress(anyio.WouldBlock, OmegadError):
            views.proving.acquire_nowait()
            try:
                words = self._words  # others, where something was erased since
                if words is not None and self._file == views.file and (found := words.to_keep()):
                    await views.keep(KEPT, *found)
            finally:
                views.proving.release()

    async def begun(self, within_s: float) -> None:
        """Wait until the index was read for the first time, as far as that could be, for so long at most."""
        if self._first is not None:
            with anyio.move_on_after(within_s):
                await self._first.wait()

    @property
    def size(self) -> tuple[int, int]:
        """How many vectors the index holds, and in how many bytes."""
        return (len(self._index), self._index.size_bytes) if self._index else (0, 0)

    def forget_index(self) -> None:
        """Fill the index anew at the next search: vectors have come that were missing."""
        self._index = None

    def forget(self) -> None:
        """Let go of all that is in memory of the views: something was taken out of them."""
        self._index = self._words = None

    def is_known(self, file: Path) -> bool:
        """Say whether it is known which languages the memories in a file of views are in."""
        return self.multilingual is None or self._known_of == file

    def learn(self, connection: Connection, file: Path) -> None:
        """Read from the views which languages their memories are in."""
        if (other := self.multilingual) is not None:
            asked = {"other": other.embedder_id, "usual": self.embedder.embedder_id}
            has_met, has_others = connection.execute(_MET, asked).fetchone()
            self.meets_languages |= bool(has_met)
            self._has_others |= bool(has_others)
        self._known_of = file

    def asked_of(self, question: str) -> tuple[Embedder, ...]:
        """Return the models that a question is embedded by, the one first whose cosines count first."""
        other = self.multilingual
        if other is None or self.embedder.embedder_id is None:
            return self.embedders or (self.embedder,)
        if not language_of(question, is_met=self.meets_languages).is_english:
            self.meets_languages = True
            return (other,)
        return (self.embedder, other) if self._has_others else (self.embedder,)

    def must_catch_up(self, asked: Sequence[Embedder]) -> bool:
        """Say whether a question that is embedded by some models may be compared with too little yet: in
        another language, or where there are no vectors at all, as in a home that was restored.
        """
        is_behind = self.lags or self.is_catching_up
        is_other = self.multilingual is not None and asked[0] is self.multilingual
        return is_behind and (is_other or not self.size[0])

    def embedder_of(self, content: str) -> Embedder:
        """Return the model that a text is embedded by."""
        other = self.multilingual
        if other is None or language_of(content, is_met=self.meets_languages).is_english:
            self.lags = True
            return self.embedder
        self.meets_languages = self._has_others = True
        return other

    def lacking(self, content: str, *, is_embedded: bool) -> list[Embedder]:
        """Return the models that a memory is to be embedded by which one has embedded, or none."""
        other, lacks = self.multilingual, list[Embedder]()
        if not is_embedded:
            lacks.append(self.embedder_of(content))
        if self.meets_languages and other is not None and other not in lacks:
            lacks.append(other)
        return lacks

    async def embed(
        self, content: str, *, is_backlog: bool = False, embedder_id: str | None = None
    ) -> Embedded | None:
        """Return the vectors of a memory's text, by the model of its language or the one that is named; None
        where the model cannot be used now.
        """
        embedder = next(
            (one for one in self.embedders if one.embedder_id == embedder_id), None
        ) or self.embedder_of(content)
        embed = embedder.embed_backlog if is_backlog else embedder.embed_store
        try:
            texts = embedder.passages(content)
            vectors = [await embed(text) for text in texts]
        except (ModelMissing, ModelFailed, Overloaded):
            return None
        assert embedder.embedder_id is not None
        hashes = tuple(text_hash(text) for text in texts)
        return Embedded(
            embedder_id=embedder.embedder_id,
            text_hashes=hashes,
            vector=vectors[0],
            is_whole=len(texts) == 1,
        )

    def begin(self, content: str) -> Callable[[], Embedded] | None:
        """Begin to embed a memory's text, and return what waits for its vector on another thread; None where
        it could take long. Raises then as `Embedder.embed_store`, and TimeoutError.
        """
        embedder = self.embedder_of(content)
        embedder_id = embedder.embedder_id
        texts = () if embedder_id is None else embedder.passages(content)
        job = embedder.begin_store(content) if len(texts) == 1 else None
        if job is None or embedder_id is None:
            return None
        hashes = (text_hash(content),)
        return lambda: Embedded(
            embedder_id=embedder_id, text_hashes=hashes, vector=job.wait(BEGUN_S), is_whole=True
        )

    def hold(self, embedded: Embedded) -> None:
        """Have the vector at hand of a text that was begun to be embedded, and that an event is to name."""
        for one in self.embedders:
            if one.embedder_id == embedded.embedder_id:
                one.hold(embedded.text_hashes[0], embedded.vector)


class Recent(NamedTuple):
    """A memory that was stored lately: what it says, and the key of that; both are empty of one too long to
    be kept.
    """

    near: Near
    content_key: str


class RecentVectors:
    """What the memories stored last say, and their vectors. Written and read on the log's thread, and cheap
    to ask.
    """

    def __init__(self) -> None:
        self._entries: deque[tuple[Recent, str | None, str, bytes]] = deque(maxlen=LATE_MAX)
        self._lock = threading.Lock()

    def add(self, memory: Recent, project: str | None, embedded: Embedded) -> None:
        """Note a memory that is about to be stored, for those that are decided before the views show it;
        whether it was is for the decision state to say.
        """
        if len(memory.near.content) > LATE_CHARACTERS_MAX:
            memory = Recent(msgspec.structs.replace(memory.near, content=""), "")
        with self._lock:
            self._entries.append((memory, project, embedded.embedder_id, embedded.vector))

    def forget(self, memory_ids: Collection[str]) -> None:
        """Let go of memories."""
        with self._lock:
            kept = [entry for entry in self._entries if entry[0].near.memory_id not in memory_ids]
            self._entries.clear()
            self._entries.extend(kept)

    def near(self, project: str | None, embedded: Embedded) -> Sequence[Recent]:
        """Return those of the project that are near enough to be related, with their cosines, nearest
        first.
        """
        with self._lock:
            entries = [entry for entry in self._entries if entry[1:3] == (project, embedded.embedder_id)]
        if not entries:
            return ()
        matrix = np.frombuffer(b"".join(entry[3] for entry in entries), "<f4").reshape(len(entries), -1)
        products = matrix @ np.frombuffer(embedded.vector, "<f4")
        return [
            recent._replace(near=msgspec.structs.replace(recent.near, cosine=float(products[index])))
            for index in np.argsort(-products)
            if products[index] >= RELATED_COSINE
            for recent in (entries[index][0],)
        ]
