"""What is near a text: its vectors, the index to search them with, and the memories stored so lately that
no view shows them yet.
"""

import threading
from collections import deque
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from omegad.embedding.cache import text_hash
from omegad.embedding.embedder import Embedder
from omegad.embedding.passages import Embedded, passages
from omegad.index.neighbours import RELATED_COSINE
from omegad.index.vector_index import VectorIndex
from omegad.runtime.errors import ModelFailed, ModelMissing, Overloaded

LATE_MAX = 256


class ServedIndex:
    """Embeds texts, and keeps the index of the vectors that are served."""

    def __init__(self, embedder: Embedder) -> None:
        """Start without a index; the first text that is embedded makes one."""
        self.embedder = embedder
        self._index: VectorIndex | None = None
        self._file: Path | None = None

    def index(self, file: Path) -> VectorIndex | None:
        """Return the index for a file of views, a new one where the file or the embedder is another; None
        without a model.
        """
        embedder_id = self.embedder.embedder_id
        if embedder_id is None:
            return None
        if self._index is None or self._file != file or self._index.embedder_id != embedder_id:
            self._index, self._file = VectorIndex(embedder_id), file
        return self._index

    @property
    def size(self) -> tuple[int, int]:
        """How many vectors the index holds, and in how many bytes."""
        return (len(self._index), self._index.size_bytes) if self._index else (0, 0)

    def forget_index(self) -> None:
        """Fill the index anew at the next search: vectors have come that were missing."""
        self._index = None

    async def embed(self, content: str, *, is_backlog: bool = False) -> Embedded | None:
        """Return the vectors of a memory's text, None where the model cannot be used now."""
        embed = self.embedder.embed_backlog if is_backlog else self.embedder.embed_store
        texts = passages(content)
        try:
            vectors = [await embed(text) for text in texts]
        except (ModelMissing, ModelFailed, Overloaded):
            return None
        embedder_id = self.embedder.embedder_id
        assert embedder_id is not None
        hashes = tuple(text_hash(text) for text in texts)
        return Embedded(
            embedder_id=embedder_id, text_hashes=hashes, vector=vectors[0], is_whole=len(texts) == 1
        )


class RecentVectors:
    """The vectors of the memories stored last. Written and read on the log's thread, and cheap to ask."""

    def __init__(self) -> None:
        self._entries: deque[tuple[str, str | None, bytes]] = deque(maxlen=LATE_MAX)
        self._lock = threading.Lock()

    def add(self, memory_id: str, project: str | None, vector: bytes) -> None:
        """Note a memory that is about to be stored, for those that are decided before the views show it;
        whether it was is for the decision state to say.
        """
        with self._lock:
            self._entries.append((memory_id, project, vector))

    def forget(self, memory_ids: Collection[str]) -> None:
        """Let go of memories."""
        with self._lock:
            kept = [entry for entry in self._entries if entry[0] not in memory_ids]
            self._entries.clear()
            self._entries.extend(kept)

    def near(self, project: str | None, vector: bytes) -> Sequence[str]:
        """Return the ids of those of the project that are near enough to be related."""
        with self._lock:
            entries = [entry for entry in self._entries if entry[1] == project]
        if not entries:
            return ()
        matrix = np.frombuffer(b"".join(entry[2] for entry in entries), "<f4").reshape(len(entries), -1)
        products = matrix @ np.frombuffer(vector, "<f4")
        return [entries[index][0] for index in np.flatnonzero(products >= RELATED_COSINE)]
