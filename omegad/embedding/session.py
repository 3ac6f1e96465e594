"""A loaded model: one text in, one unit vector out.

Importing this module loads numpy and onnxruntime, so only the embedder's worker thread does it, when there is
a text to embed.
"""

import os
import weakref
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np
import onnxruntime
from numpy.typing import NDArray

from omegad.embedding.catalogue import DIRECTIONS, E5, GRAPH, MEAN, PIECES, TOKENIZER, Manifest
from omegad.embedding.e5_file import Q4, WORDS, E5File, unpacked
from omegad.embedding.unigram import Unigram
from omegad.embedding.wordpiece import WordPiece
from omegad.runtime.errors import ModelFailed

LOG_ERRORS_ONLY = 3
PAIRS = 3  # of parts of words, whose cosines tell how near two texts are word by word
TEXTS_KEPT = 4  # whose parts of words are at hand: a question is embedded before it is compared so
CHARACTERS_PER_TOKEN_MAX = (
    64  # no prose or code comes near; the tokenizer would read all of a long text only to cut it
)


class Session:
    """One installed model in memory. Not for two threads at once."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        """Load the model; raises whatever the runtime or the tokenizer raises for damaged files."""
        self._pooling, self._prefix = manifest.pooling, manifest.prefix
        self._characters_max = manifest.tokens_max * CHARACTERS_PER_TOKEN_MAX
        self._given: Callable[[str], dict[str, NDArray[np.generic]]]
        self._shared: Shared | None = None
        self._kept = dict[str, NDArray[np.float32]]()
        if manifest.format == "e5s1":
            self._given = QuantisedWords(folder, manifest.tokens_max).given
            self._shared = Shared(folder)
        else:
            encode = _encoder(folder / TOKENIZER, manifest.tokens_max)
            self._given = lambda text: {"input_ids": np.array(encode(text), np.int64)}
        # The caller's thread alone: a second one takes half as much processor time again, and saves less
        # than what stands beside it then loses. The runtime's arena stays on: where freed memory goes back to
        # the system at once, as in the daemon, half the time would go into getting it again.
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.enable_mem_pattern = False  # it would keep a plan for each length of text
        options.log_severity_level = LOG_ERRORS_ONLY
        # An x86 that is not known to add up products of 8 bits in more than 16 needs a slower way for the
        # same vectors.
        cpuinfo = Path("/proc/cpuinfo")
        is_exact = cpuinfo.exists() and "vnni" in cpuinfo.read_text(encoding="utf-8")
        options.add_session_config_entry("session.x64quantprecision", "0" if is_exact else "1")
        self._session = onnxruntime.InferenceSession(
            str(folder / GRAPH), options, providers=["CPUExecutionProvider"]
        )

    def embed(self, text: str) -> bytes:
        """Return the unit vector of *text* as little-endian float32; what exceeds the model's length is
        not seen.
        """
        unit = self.uncentred(text)
        own = unit if self._shared is None else _unit(self._shared.taken_from(unit))
        return own.astype(np.dtype("<f4")).tobytes()

    def uncentred(self, text: str) -> NDArray[np.float64]:
        """Return the unit vector of *text* from which nothing is taken."""
        hidden = self._hidden(text)
        pooled = (
            hidden[0].astype(np.float64) if self._pooling == "cls" else hidden.mean(axis=0, dtype=np.float64)
        )
        return _unit(pooled)

    def nearness(self, asked: str, said: str) -> float:
        """Return how near two texts are word by word: the mean of the `PAIRS` greatest cosines that a part of
        a word of the one has with any of the other, as they are understood where they stand.
        """
        nearest = np.sort((self._parts(asked) @ self._parts(said).T).max(axis=1))
        return float(nearest[-PAIRS:].mean())

    def _hidden(self, text: str) -> NDArray[np.float32]:
        """Return what the model makes of each part of a text's words."""
        found = self._kept.pop(text, None)
        if found is None:
            given = self._given((self._prefix + text)[: self._characters_max])
            found = np.asarray(self._session.run(["hidden"], given)[0])
        self._kept[text] = found
        if len(self._kept) > TEXTS_KEPT:
            del self._kept[next(iter(self._kept))]
        return found

    def _parts(self, text: str) -> NDArray[np.float64]:
        """Return the unit vectors of the parts of a text's words, less what all have in common."""
        hidden = self._hidden(text)
        own = [_unit(one) for one in hidden[self._begins_at : -1] if len(hidden) > self._begins_at + 1]
        own = own or [_unit(one) for one in hidden]
        return np.array([one if self._shared is None else _unit(self._shared.taken_from(one)) for one in own])

    @cached_property
    def _begins_at(self) -> int:
        """How many marks and parts of words stand before those of a text."""
        (given,) = self._given(self._prefix.strip()).values()
        return len(given) - 1


class Shared:
    """What vectors of the model for all languages have in common, whatever the texts say: the mean of all,
    and what the texts of each language have beside it. Where that stays, what is in the question's language
    is nearer than what answers.
    """

    def __init__(self, folder: Path) -> None:
        """Read it; raises `msgspec.MsgspecError` or `ValueError` for damaged files. A model that an earlier
        version made has the mean alone.
        """
        self._mean = np.array(msgspec.json.decode((folder / MEAN).read_bytes(), type=list[float]))
        file = folder / DIRECTIONS
        said = file.read_bytes() if file.exists() else b"[]"
        directions = msgspec.json.decode(said, type=list[list[float]])
        self._directions = np.array(directions).reshape(-1, len(self._mean))

    def taken_from(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a vector without it; the directions are at right angles to each other, and of length 1."""
        own = vector - self._mean
        return np.asarray(own - (self._directions @ own) @ self._directions)


class QuantisedWords:
    """What the encoder of an E5 file is given of a text: the rows of its table of words, which stays in the
    file, in 4 bits. Mapped it would count as memory; each text needs little of it.
    """

    def __init__(self, folder: Path, tokens_max: int) -> None:
        """Open the files in *folder*; raises `Invalid` for damaged ones."""
        published = E5File(folder / E5)
        place = published.place(WORDS, Q4)
        self._offset, self._row = place.offset, place.length // published.sizes.vocabulary
        self._file = os.open(folder / E5, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._file)
        self._encode = Unigram(folder / PIECES, tokens_max).encode

    def given(self, text: str) -> dict[str, NDArray[np.generic]]:
        """Return the rows of a text's words: float32[tokens, hidden size]."""
        row = self._row
        read = [os.pread(self._file, row, self._offset + row * number) for number in self._encode(text)]
        return {"rows": unpacked(np.frombuffer(b"".join(read), np.uint8)).reshape(len(read), -1)}


def _encoder(path: Path, tokens_max: int) -> Callable[[str], list[int]]:
    """Return what makes numbers of a text. Of a tokenizer of another kind than BERT's it is the package
    `tokenizers`; raises `ModelFailed` where that is not installed.
    """
    try:
        return WordPiece(path, tokens_max).encode
    except msgspec.ValidationError as other_kind:
        try:
            from tokenizers import Tokenizer  # noqa: PLC0415
        except ImportError:
            raise ModelFailed(
                f"{path.name} is of a kind that takes the package tokenizers ({other_kind});"
                " `pip install 'omegad[tokenizers]'` brings it"
            ) from other_kind
    tokenizer = Tokenizer.from_file(str(path))
    # Published tokenizers pad every text to a fixed length and cut it where some other program wanted it cut.
    tokenizer.no_padding()
    tokenizer.enable_truncation(tokens_max)
    return lambda text: tokenizer.encode(text).ids


def _unit(pooled: NDArray[np.float64]) -> NDArray[np.float64]:
    """Raises ValueError for what has no direction: a vector of zeros or NaN would poison every comparison."""
    length = np.linalg.norm(pooled)
    if not (np.isfinite(length) and length > 0):
        raise ValueError(f"the model's output has length {length}")
    unit: NDArray[np.float64] = pooled / length
    return unit
