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

Array = npt.NDArray[np.float64]


class Newness(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far a newer memory is lifted: above older ones that are at most `reach` ahead of it, where they are
    the same matter.

    `same` are the cosines from which two memories are not at all, and entirely, of the same matter.
    """

    reach: float
    same: tuple[float, float]


class Weight(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a unit of a feature adds to the log-odds of being the answer.

    It is interpolated between candidates that are short texts and such that are long. Less than `least`, and
    more than `most`, the fit did not see, and does not count.
    """

    short: float
    long: float
    least: float
    most: float


class RankingModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A linear model of each thing, and in `provenance` what they were fitted to.

    `ranking` weighs each feature; `lengths` are the least and the most of how long the candidates' texts were
    in the fit. `confidence`, and `confidence_by_words` where there are no vectors, have for each sign what a
    unit of it adds to the log-odds that the best results answer; `floor` is the confidence below which
    nothing is answered.
    """

    provenance: str
    ranking: Mapping[str, Weight]
    lengths: tuple[float, float]
    newness: Newness
    confidence: Mapping[str, float]
    confidence_by_words: Mapping[str, float]
    floor: float

    def contributions(self, features: Array, names: tuple[str, ...], length: float) -> Array:
        """Return what each feature adds to each score; *features* has the shape (candidates, names),
        *length* goes from 0 for short texts to 1.
        """
        weights = [self.ranking[name] for name in names]
        share = min(self.lengths[1], max(self.lengths[0], length))
        least, most = (
            np.array([weight.least for weight in weights]),
            np.array([weight.most for weight in weights]),
        )
        by = np.array([weight.short + share * (weight.long - weight.short) for weight in weights])
        found: Array = np.minimum(np.maximum(features, least), most) * by
        return found


@cache
def fitted() -> RankingModel:
    """Return the model in force, which `model.json` holds."""
    return msgspec.json.decode(
        resources.files("omegad.search").joinpath("model.json").read_bytes(), type=RankingModel
    )


def probability(weights: Mapping[str, float], signs: Mapping[str, float]) -> float:
    """Return the probability, 0 to 1, that a logistic regression gives."""
    return 1 / (1 + math.exp(-sum(weights[name] * value for name, value in signs.items())))
