"""What is near a text: its vectors, the index to search them with, and the memories stored so lately that
no view shows them yet.
"""

import threading
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path

import anyio
import anyio.lowlevel
import numpy as np

from omegad.embedding.cache import text_hash
from omegad.embedding.embedder import Embedder
from omegad.embedding.passages import Embedded
from omegad.index.neighbours import RELATED_COSINE
from omegad.index.vector_index import VectorIndex
from omegad.index.vector_indexes import VectorIndexes
from omegad.runtime.errors import ModelFailed, ModelMissing, Overloaded
from omegad.storage.driver import Connection
from omegad.text.languages import language_of

LATE_MAX = 256

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
        if self._index is None or self._file != file or self._index.embedder_ids != ids:
            self._index, self._file = self.new_index(is_whole=True), file
        return self._index

    def new_index(self, *, is_whole: bool) -> VectorIndexes:
        """Return an index of the models that can be used, of which there is at least one."""
        return VectorIndexes(
            *(
                VectorIndex(one.embedder_id or "", is_whole=is_whole, is_multilingual=one.is_multilingual)
                for one in self.embedders
            )
        )

    @property
    def size(self) -> tuple[int, int]:
        """How many vectors the index holds, and in how many bytes."""
        return (len(self._index), self._index.size_bytes) if self._index else (0, 0)

    def forget_index(self) -> None:
        """Fill the index anew at the next search: vectors have come that were missing."""
        self._index = None

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
        """Say whether a question that is embedded by some models may be compared with too little yet."""
        is_behind = self.lags or self.is_catching_up
        return is_behind and self.multilingual is not None and asked[0] is self.multilingual

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


class RecentVectors:
    """The vectors of the memories stored last. Written and read on the log's thread, and cheap to ask."""

    def __init__(self) -> None:
        self._entries: deque[tuple[str, str | None, str, bytes]] = deque(maxlen=LATE_MAX)
        self._lock = threading.Lock()

    def add(self, memory_id: str, project: str | None, embedded: Embedded) -> None:
        """Note a memory that is about to be stored, for those that are decided before the views show it;
        whether it was is for the decision state to say.
        """
        with self._lock:
            self._entries.append((memory_id, project, embedded.embedder_id, embedded.vector))

    def forget(self, memory_ids: Collection[str]) -> None:
        """Let go of memories."""
        with self._lock:
            kept = [entry for entry in self._entries if entry[0] not in memory_ids]
            self._entries.clear()
            self._entries.extend(kept)

    def near(self, project: str | None, embedded: Embedded) -> Sequence[str]:
        """Return the ids of those of the project that are near enough to be related."""
        with self._lock:
            entries = [entry for entry in self._entries if entry[1:3] == (project, embedded.embedder_id)]
        if not entries:
            return ()
        matrix = np.frombuffer(b"".join(entry[3] for entry in entries), "<f4").reshape(len(entries), -1)
        products = matrix @ np.frombuffer(embedded.vector, "<f4")
        return [entries[index][0] for index in np.flatnonzero(products >= RELATED_COSINE)]
