"""Which sentences of a message are worth remembering, and as what: a linear model over cues, fitted by
`python -m tests.capture.fit`. What a person announces is taken whatever the model thinks. Pure.
"""

import math
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Literal

import msgspec

from omegad.text.ingestion.announced import ANNOUNCED_CHARACTERS_MAX, announced, is_errand
from omegad.text.ingestion.prose import SENTENCE_CHARACTERS, WORDS_MIN, own_words, said_words, sentences

Role = Literal["user", "assistant"]

PLAIN = "memory"
"""The type of what is announced as nothing in particular, and left to the model where that is sure."""
SHORTEST, WORDS_SHORTEST = 12, 2
"""How many characters and words an announcement has at least, which needs no more to be clear."""

_QUOTED = re.compile(r"[\"“][^\"“”]{12,300}[\"”]")


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence, the type that it has as a memory, and how probable that is, 0 to 1: 1 where it is
    announced.
    """

    text: str
    event_type: str
    probability: float
    is_announced: bool = False


class StatementModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A multinomial logistic regression, and in `provenance` what it was fitted to.

    `cues` are patterns by name; `pairs` are two of them that count once more where both are found. `weights`
    have for each feature what a unit of it adds to the log-odds of each of `types`, against being none.
    `floors` are how probable a type must be, above 1 for one that is only told from the others and never
    taken. What is of a type shows one at least of the cues that the type `needs`, if it needs any, and none
    that `spoils` it, whatever its probability.
    """

    provenance: str
    types: tuple[str, ...]
    floors: tuple[float, ...]
    needs: Mapping[str, frozenset[str]]
    spoils: Mapping[str, frozenset[str]]
    cues: Mapping[str, str]
    pairs: tuple[tuple[str, str], ...]
    weights: Mapping[str, tuple[float, ...]]


@cache
def fitted() -> StatementModel:
    """Return the model in force, which `statements.json` holds."""
    return msgspec.json.decode(
        resources.files("omegad.text.ingestion").joinpath("statements.json").read_bytes(), type=StatementModel
    )


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    return {name: re.compile(pattern) for name, pattern in fitted().cues.items()}


def features(sentence: str, role: Role, count: int) -> dict[str, float]:
    """Return what a sentence shows of itself, one of *count* in its message. A person's sentences have
    each feature twice, once as theirs.
    """
    spoken = _QUOTED.sub('""', sentence)
    found = {"bias": 1.0, "words": math.log(len(sentence.split()) / 12), "sentences": math.log(1 + count) / 3}
    found |= {name: 1.0 for name, pattern in _patterns().items() if pattern.search(spoken)}
    found |= {f"{one}+{other}": 1.0 for one, other in fitted().pairs if one in found and other in found}
    return found | {f"user:{name}": value for name, value in found.items()} if role == "user" else found


def judged(found: Mapping[str, float], model: StatementModel) -> tuple[float, ...]:
    """Return how probable each of the model's types is for a sentence with these features; what is left to
    1 is that it is none.
    """
    known = [(model.weights[name], value) for name, value in found.items() if name in model.weights]
    scores = [sum(weights[place] * value for weights, value in known) for place in range(len(model.types))]
    highest = max(0.0, *scores)
    odds = [math.exp(score - highest) for score in scores]
    total = math.exp(-highest) + sum(odds)
    return tuple(each / total for each in odds)


def statements(text: str, role: Role) -> Iterator[Statement]:
    """Yield what a message of a person or an agent states that is worth remembering, in its order."""
    model = fitted()
    text = own_words(text) if role == "user" else text
    spoken = dict.fromkeys(sentences(text, range(SHORTEST, ANNOUNCED_CHARACTERS_MAX + 1), WORDS_SHORTEST))
    said = [one for one in spoken if len(one) in SENTENCE_CHARACTERS and said_words(one) >= WORDS_MIN]
    judgeable = frozenset(said)
    for sentence in spoken:
        told = announced(sentence) if role == "user" else None
        if told is None and (sentence not in judgeable or (role == "user" and is_errand(sentence))):
            continue
        found = features(sentence, role, len(said))
        likely = judged(found, model)
        best = max(range(len(likely)), key=likely.__getitem__)
        named = model.types[best]
        needed, spoiling = model.needs.get(named), model.spoils.get(named, frozenset())
        is_clear = (not needed or not needed.isdisjoint(found)) and spoiling.isdisjoint(found)
        is_likely = likely[best] >= model.floors[best] and is_clear
        if told:
            event_type = named if told[0] == PLAIN and is_likely else told[0]
            yield Statement(text=told[1], event_type=event_type, probability=1.0, is_announced=True)
        elif is_likely:
            yield Statement(text=sentence, event_type=named, probability=round(likely[best], 3))
