"""Memories that read like a team's notes to a machine: words by Zipf's law, in topics; vectors that follow from the words.

Everything here follows from its seed, so that two runs measure the same texts.
"""

import itertools
import random
from functools import cache
from hashlib import blake2b

import msgspec
import numpy as np
import numpy.typing as npt

from omegad.embedding.cache import text_hash

DIMENSIONS = 384
PROJECTS = ("atlas", "borealis", "caravel", "dynamo", "ember")
EVENT_TYPES = ("memory", "decision", "lesson_learned", "error_pattern", "constraint")
VOCABULARY = 4_000
TOPICS = 400
TOPIC_WORDS = 40

_FILLERS = """the a of to in and is for that on with as it was be by this are or from at which when not we has have but will should can""".split()  # noqa: SIM905
_SYLLABLES = "ba cor den fi gra hol in jo ka len mo nar op pri qua res sta tor ul ver win yo zen cle dra".split()  # noqa: SIM905


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A memory to be: its text, where it belongs, and a question that it answers."""

    memory_id: str
    content: str
    project: str
    event_type: str
    session_id: str
    question: str


def notes(count: int, seed: str) -> list[Note]:
    """Return *count* different notes of about 30 to 60 words each."""
    choose = random.Random(seed)  # noqa: S311  nothing is secret
    return [_note(f"{seed}-{number}", choose) for number in range(count)]


def _note(name: str, choose: random.Random) -> Note:
    words, weights = _vocabulary()
    topic = choose.choice(_topics())
    length = choose.randint(20, 38)
    telling = choose.choices(topic, k=length // 2) + choose.choices(words, cum_weights=weights, k=length - length // 2)
    choose.shuffle(telling)
    rest = choose.choices(_FILLERS, k=length * 2 // 3)
    text = [word for pair in itertools.zip_longest(telling, rest) for word in pair if word]
    return Note(
        memory_id=f"mem-{name}",
        content=" ".join(text).capitalize() + ".",
        project=choose.choice(PROJECTS),
        event_type=choose.choice(EVENT_TYPES),
        session_id=f"session-{choose.randrange(50)}",
        question="what did we say about " + " and the ".join(choose.sample(telling, 4)) + "?",
    )


@cache
def _vocabulary() -> tuple[list[str], list[float]]:
    made = itertools.islice(("".join(parts) for length in (2, 3) for parts in itertools.product(_SYLLABLES, repeat=length)), 0, None, 3)
    words = list(itertools.islice(made, VOCABULARY))
    random.Random("vocabulary").shuffle(words)  # noqa: S311
    return words, list(itertools.accumulate(1 / (rank + 10) for rank in range(len(words))))


@cache
def _topics() -> list[list[str]]:
    choose = random.Random("topics")  # noqa: S311
    words, weights = _vocabulary()
    return [choose.choices(words, cum_weights=weights, k=TOPIC_WORDS) for _ in range(TOPICS)]


def vector(text: str) -> bytes:
    """Return the unit vector of a text: the sum of directions that follow from its words, so that texts of like words are near."""
    summed = np.sum([_direction(word) for word in set(text.lower().replace(".", " ").replace("?", " ").split())], axis=0)
    unit: npt.NDArray[np.float32] = (summed / np.linalg.norm(summed)).astype("<f4")
    return unit.tobytes()


@cache
def _direction(word: str) -> npt.NDArray[np.float64]:
    seed = int.from_bytes(blake2b(word.encode(), digest_size=8).digest())
    scale = 0.1 if word in _FILLERS else 1.0
    return np.random.default_rng(seed).normal(0, scale, DIMENSIONS)


class InstantModel:
    """A model that has computed its answers beforehand."""

    def __init__(self) -> None:
        self._known: dict[str, bytes] = {}

    def learn(self, *texts: str) -> None:
        """Compute the vectors of *texts* now rather than while something is measured."""
        self._known.update((text, vector(text)) for text in texts)

    def embed(self, text: str) -> bytes:
        """Return the unit vector of *text*."""
        return self._known.get(text) or vector(text)

    def by_hash(self, contents: list[str]) -> dict[str, bytes]:
        """Return the vectors of *contents* as the cache keeps them."""
        return {text_hash(content): self.embed(content) for content in contents}
