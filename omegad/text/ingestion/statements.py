"""Which sentences of a message are worth remembering, and as what: a linear model over cues, fitted by `python -m tests.capture.fit`. Pure."""

import math
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Literal

import msgspec

from omegad.text.ingestion.prose import sentences

Role = Literal["user", "assistant"]

_QUOTED = re.compile(r"[\"“][^\"“”]{12,300}[\"”]")


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence, the type that it has as a memory, and how probable that is, 0 to 1."""

    text: str
    event_type: str
    probability: float


class Model(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A multinomial logistic regression, and in `provenance` what it was fitted to.

    `cues` are patterns by name; `pairs` are two of them that count once more where both are found. `weights` have for each feature what a unit
    of it adds to the log-odds of each of `types`, against being none. `floors` are how probable a type must be, above 1 for one that is
    only told from the others and never taken. What is of a type shows one at least of the cues that the type `needs`, if it needs any,
    and none that `spoils` it, whatever its probability.
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
def fitted() -> Model:
    """Return the model in force, which `statements.json` holds."""
    return msgspec.json.decode(resources.files("omegad.text.ingestion").joinpath("statements.json").read_bytes(), type=Model)


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    return {name: re.compile(pattern) for name, pattern in fitted().cues.items()}


def features(sentence: str, role: Role, count: int) -> dict[str, float]:
    """Return what a sentence shows of itself, one of *count* in its message. A person's sentences have each feature twice, once as theirs."""
    spoken = _QUOTED.sub('""', sentence)
    found = {"bias": 1.0, "words": math.log(len(sentence.split()) / 12), "sentences": math.log(1 + count) / 3}
    found |= {name: 1.0 for name, pattern in _patterns().items() if pattern.search(spoken)}
    found |= {f"{one}+{other}": 1.0 for one, other in fitted().pairs if one in found and other in found}
    return found | {f"user:{name}": value for name, value in found.items()} if role == "user" else found


def judged(found: Mapping[str, float], model: Model) -> tuple[float, ...]:
    """Return how probable each of the model's types is for a sentence with these features; what is left to 1 is that it is none."""
    known = [(model.weights[name], value) for name, value in found.items() if name in model.weights]
    scores = [sum(weights[place] * value for weights, value in known) for place in range(len(model.types))]
    highest = max(0.0, *scores)
    odds = [math.exp(score - highest) for score in scores]
    total = math.exp(-highest) + sum(odds)
    return tuple(each / total for each in odds)


def statements(text: str, role: Role) -> Iterator[Statement]:
    """Yield what a message of a person or an agent states that is worth remembering, in its order."""
    model, said = fitted(), list(dict.fromkeys(sentences(text)))
    for sentence in said:
        found = features(sentence, role, len(said))
        likely = judged(found, model)
        best = max(range(len(likely)), key=likely.__getitem__)
        if likely[best] >= model.floors[best] and _is_clear(found, model, model.types[best]):
            yield Statement(text=sentence, event_type=model.types[best], probability=round(likely[best], 3))


def _is_clear(found: Mapping[str, float], model: Model, event_type: str) -> bool:
    needed = model.needs.get(event_type)
    return (not needed or not needed.isdisjoint(found)) and model.spoils.get(event_type, frozenset()).isdisjoint(found)
