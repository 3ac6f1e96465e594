"""The weights of the ranking and of its confidence, fitted by `python -m tests.retrieval.fit`, and what
they make of features. Pure.
"""

import math
from collections.abc import Mapping
from functools import cache
from importlib import resources

import msgspec
import numpy as np
import numpy.typing as npt

from omegad.runtime.errors import Invalid

Array = npt.NDArray[np.float64]

WEIGHT_MAX = 1e6
EXPONENT_MAX = 700.0  # of what a float holds


class Newness(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far a newer memory is lifted: above older ones that are at most `reach` ahead of it, where they are
    the same matter.

    `same` says from where on two memories are not at all, and entirely, of the same matter: as a share of the
    way from the median cosine of the candidates to 1. Where that median is `blind` or more and most of them
    are not in English, the model does not tell such texts apart, and nothing is lifted.
    """

    reach: float
    same: tuple[float, float]
    blind: float


class Weight(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a unit of a feature adds to the log-odds of being the answer.

    It is interpolated between candidates that are short texts and such that are long, and `covered` is added
    to it by the share of the question that the candidate holds which holds most of it: words say less where
    nobody has them. Less than `least`, and more than `most`, the fit did not see, and does not count.
    """

    short: float
    long: float
    least: float
    most: float
    covered: float = 0.0


class RankingModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A linear model of each thing, and in `provenance` what they were fitted to.

    `ranking` weighs each feature; `lengths` are the least and the most of how long the candidates' texts were
    in the fit. `confidence`, and `confidence_by_words` where there are no vectors, have for each sign what a
    unit of it adds to the log-odds that the best results answer; `floor` is the confidence below which
    nothing is answered. For a sole memory its odds are `caution` times as high, since those of its answers
    are as well: whoever has stored little asks for that, whatever the signs say. What is more than `beside`
    behind the first result is not shown beside it: a unit is an e-fold of how likely it is to be the answer.
    """

    provenance: str
    ranking: Mapping[str, Weight]
    lengths: tuple[float, float]
    newness: Newness
    confidence: Mapping[str, float]
    confidence_by_words: Mapping[str, float]
    floor: float
    caution: float
    beside: float

    def floor_of(self, memories: int) -> float:
        """Return the confidence below which nothing is answered from so many memories: `caution` goes down to
        its root of that degree.
        """
        odds = self.floor * math.pow(self.caution, 1 / max(1, memories))  # to 1 - floor
        return odds / (odds + 1 - self.floor)

    def contributions(self, features: Array, names: tuple[str, ...], length: float, covered: float) -> Array:
        """Return what each feature adds to each score; *features* has the shape (candidates, names),
        *length* goes from 0 for short texts to 1, *covered* is the greatest share of the question that a
        candidate holds.
        """
        weights = [self.ranking[name] for name in names]
        share = min(self.lengths[1], max(self.lengths[0], length))
        least, most = (
            np.array([weight.least for weight in weights]),
            np.array([weight.most for weight in weights]),
        )
        by = np.array(
            [
                weight.short + share * (weight.long - weight.short) + covered * weight.covered
                for weight in weights
            ]
        )
        found: Array = np.minimum(np.maximum(features, least), most) * by
        return found


def written() -> bytes:
    """Return the model in force as JSON, as `model.json` holds it."""
    return resources.files("omegad.search").joinpath("model.json").read_bytes()


@cache
def fitted() -> RankingModel:
    """Return the model in force."""
    return msgspec.json.decode(written(), type=RankingModel)


class Multilingual(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is otherwise for a question in another language than English: `ranking` weighs some features
    differently, `confidence` has for each sign what a unit of it adds to the log-odds that the best results
    answer, `floor` is the confidence below which nothing is answered, and both `by_passages` are the same
    where the question could not be compared word by word; `provenance` says what they were fitted to.
    """

    provenance: str
    ranking: Mapping[str, Weight]
    confidence: Mapping[str, float]
    floor: float
    confidence_by_passages: Mapping[str, float]
    floor_by_passages: float

    def weighing(self, model: RankingModel) -> RankingModel:
        """Return a model that ranks what is found for such a question."""
        return msgspec.structs.replace(model, ranking={**model.ranking, **self.ranking})


@cache
def multilingual() -> Multilingual:
    """Return what is in force, fitted by `python -m tests.retrieval.fit_languages`."""
    said = resources.files("omegad.search").joinpath("multilingual.json").read_bytes()
    return msgspec.json.decode(said, type=Multilingual)


def read(said: bytes) -> RankingModel:
    """Read a model that somebody wrote, in the form of the one in force. Raises `Invalid`, saying what is
    wrong, for one that could not be ranked with.
    """
    hint = "`omegad replay --weights-out FILE` writes the ones in force, to be changed"
    try:
        model = msgspec.json.decode(said, type=RankingModel)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Invalid(f"these are no weights: {error}", hint=hint) from error
    known = fitted()
    for part in ("ranking", "confidence", "confidence_by_words"):
        if wrong := getattr(model, part).keys() ^ getattr(known, part).keys():
            lacks = "lacks" if min(wrong) in getattr(known, part) else "does not know"
            raise Invalid(f"weights: {part} {lacks} {min(wrong)!r}", hint=hint)
    bounds = [(f"ranking.{name}", weight.least, weight.most) for name, weight in model.ranking.items()]
    bounds += [("lengths", *model.lengths), ("newness.same", *model.newness.same)]
    for name, low, high in bounds:
        if low > high or (low == high and name == "newness.same"):
            raise Invalid(f"weights: {name}: {low:g} is not below {high:g}", hint=hint)
    numbers = [number for weight in model.ranking.values() for number in msgspec.structs.astuple(weight)]
    numbers += [
        model.caution,
        model.beside,
        *model.confidence.values(),
        *model.confidence_by_words.values(),
        model.newness.reach,
        model.newness.blind,
    ]
    if (most := max(map(abs, numbers))) > WEIGHT_MAX:
        raise Invalid(f"weights: {most:g} is larger than {WEIGHT_MAX:g}", hint=hint)
    if model.caution < 1:
        raise Invalid(f"weights: caution: {model.caution:g} is less than once the floor", hint=hint)
    if not 0 <= model.floor <= 1:
        raise Invalid(f"weights: floor: {model.floor:g} is no probability", hint=hint)
    return model


def probability(weights: Mapping[str, float], signs: Mapping[str, float]) -> float:
    """Return the probability, 0 to 1, that a logistic regression gives."""
    odds = sum(weights[name] * value for name, value in signs.items())
    return 1 / (1 + math.exp(min(EXPONENT_MAX, -odds)))
