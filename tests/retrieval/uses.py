"""`python -m tests.retrieval.uses --sets histories=FILE … --locomo conversations=FILE …`: what a memory's
strength tells of whether it answers.

The questions of each project are asked in chance orders, some a day, after its memories were said one after
another. What is found is used, so that the later questions meet memories of different strength. Printed is
the weight that makes the answers most probable, beside all else that the ranking weighs, and what it changes.
"""

import argparse
import random
import sys
from collections.abc import Mapping
from statistics import fmean

import numpy as np
import numpy.typing as npt

from omegad.memory.strength import DAY_US, Uses, strengths
from omegad.memory.types import MemoryTypes
from omegad.runtime.config import find_paths
from omegad.search.features import COVERAGE, FEATURES
from omegad.search.model import fitted
from tests.retrieval.corpora import Asked, Library, embedder, named, of_files

Array = npt.NDArray[np.float64]

ORDERS = 5
HISTORY_DAYS = 180.0  # in which the memories of a project were said
QUESTIONS_A_DAY = 4
FOUND = 10
PLACE = FEATURES.index("strength")
WEIGHTS = (-0.5, -0.2, 0.0, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
TYPES = {"age and use": "decision", "use alone": "user_preference"}
"""A type that fades, and one that does not, of which the memories are taken to be."""

Met = tuple[Array, Array, Array]
"""What one question met: the scores without strength, the strengths, and which of them answer (0 or 1)."""


def main() -> int:
    """Fit and print; return 0, or 2 where a file or the model is missing."""
    parser = argparse.ArgumentParser(prog="python -m tests.retrieval.uses", description=__doc__)
    of_files(parser)
    options = parser.parse_args()
    try:
        embed, save = embedder(find_paths().models, options.cache)
        corpora = named(options)
    except FileNotFoundError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    library, model = Library(corpora, embed), fitted()
    save()
    asked: dict[str, list[Asked]] = {}
    for corpus in corpora:
        told = [library.ask(corpus, one, model) for one in corpus.questions if one.gold]
        asked[f"{corpus.domain}/{corpus.name}"] = [one for one in told if one.gold & set(one.seen.rows)]
    save()
    for label, event_type in TYPES.items():
        met: dict[str, list[Met]] = {}
        for name, some in asked.items():
            for order in range(ORDERS):
                met.setdefault(name.split("/")[0], []).extend(_met(some, event_type, order))
        for domain, of_domain in met.items():
            _print(f"{label}, {domain}", {domain: of_domain})
        _print(f"{label}, all", met)
    return 0


def _met(asked: list[Asked], event_type: str, order: int) -> list[Met]:
    """Return what the questions of a project meet that are asked in an order, each using what it finds."""
    chance = random.Random(order)  # noqa: S311  an order, not a secret
    rows = sorted({row for one in asked for row in one.seen.rows})
    said = {row: HISTORY_DAYS * place / len(rows) for place, row in enumerate(rows)}
    uses, used = dict.fromkeys(rows, 1), dict(said)
    found = list[Met]()
    for number, one in enumerate(chance.sample(asked, len(asked))):
        day = HISTORY_DAYS + number / QUESTIONS_A_DAY
        known: list[Uses] = [
            (event_type, uses[row], int(said[row] * DAY_US), int(used[row] * DAY_US)) for row in one.seen.rows
        ]
        covered = float(one.seen.features[:, COVERAGE].max(initial=0.0))
        weighed = fitted().contributions(one.seen.features, FEATURES, one.seen.length, covered)
        scores = weighed.sum(axis=1) - weighed[:, PLACE]
        gold = np.isin(one.seen.rows, list(one.gold)).astype(np.float64)
        found.append((scores, strengths(known, MemoryTypes({}), int(day * DAY_US)), gold))
        for place in np.argsort(-scores, kind="stable")[:FOUND].tolist():
            uses[one.seen.rows[place]] += 1
            used[one.seen.rows[place]] = day
    return found


def _likelihood(met: list[Met], weight: float) -> float:
    """Return the mean log probability that the ranking gives to what answers."""
    told = list[float]()
    for scores, strength, gold in met:
        odds = np.exp(scores + weight * strength - (scores + weight * strength).max())
        told.append(float(np.log((odds * gold).sum() / odds.sum())))
    return fmean(told)


def _mrr(met: list[Met], weight: float) -> float:
    first = [
        1 + int(np.argmax(gold[np.argsort(-(scores + weight * strength), kind="stable")]))
        for scores, strength, gold in met
    ]
    return 100 * fmean(1 / place if place <= FOUND else 0.0 for place in first)


def _print(label: str, domains: Mapping[str, list[Met]]) -> None:
    grid = np.arange(-2.0, 4.01, 0.05)
    best = max(grid, key=lambda weight: fmean(_likelihood(met, weight) for met in domains.values()))
    told = ", ".join(
        f"{weight:g}: {fmean(_mrr(met, weight) for met in domains.values()):.2f}" for weight in WEIGHTS
    )
    gained = fmean(_likelihood(met, best) - _likelihood(met, 0.0) for met in domains.values())
    sys.stdout.write(f"{label:32} weight {best:+.2f}, log likelihood {gained:+.4f}; MRR at {told}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
