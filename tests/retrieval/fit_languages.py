"""`python -m tests.retrieval.fit_languages XQUAD [--aside LANGUAGE …] [--write]`: fit how sure an answer is where
the question is in another language than English, from the files of XQuAD (CC BY-SA 4.0) in a folder.

Questions in each language are asked of paragraphs in English and in their own, by the model for all languages: of
those that answer, and of others, in whole projects and in stores of a few. Printed is, for each language, which share
of either is not answered; `--write` puts the weights in force.
"""

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import msgspec
import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from omegad.embedding.catalogue import E5_SMALL
from omegad.runtime.config import find_paths
from omegad.search import confidence
from omegad.search import model as models
from omegad.search.model import Multilingual, fitted
from tests.retrieval.corpora import FEW, Corpus, Library, Memory, Question, embedder

TARGET = Path(models.__file__).with_name("multilingual.json")
LANGUAGES = ("ar", "de", "es", "hi", "ru", "tr", "vi", "zh")
SIGNS = ("intercept", "log_cosine", "log_ahead", "lead", "by_chance", "lacks_names")
PROJECTS, PARAGRAPHS = 3, 24
SMALL = 9  # questions that stores of each size in `FEW` are asked, of each kind of texts
RIDGE = 1e-4
ANSWERED = 0.975  # share of what is answered in whole projects whose confidence is above the floor
IN_PERIOD = 0.7  # as in English: no question in another language names a time that is understood


class Signs(NamedTuple):
    """What was found for a question in a language, of a store of *size* memories, 0 for a whole project, and
    whether one of the best results answers.
    """

    language: str
    size: int
    found: dict[str, float]
    answers: bool


def paragraphs(folder: Path, asked_in: str, written_in: str) -> Iterator[Corpus]:
    """Yield paragraphs in one language, a few dozen a project, and the questions about them in another."""
    texts, questions = (
        [
            part
            for article in json.loads((folder / f"xquad.{code}.json").read_text(encoding="utf-8"))["data"]
            for part in article["paragraphs"]
        ]
        for code in (written_in, asked_in)
    )
    for number in range(PROJECTS):
        places = range(number, PROJECTS * PARAGRAPHS, PROJECTS)
        yield Corpus(
            domain=asked_in,
            name=f"{asked_in}-{written_in}-{number}",
            memories=[Memory(key=str(place), content=texts[place]["context"]) for place in places],
            questions=[
                Question(
                    text=questions[place]["qas"][0]["question"], kind=asked_in, gold=frozenset([str(place)])
                )
                for place in places
            ],
        )


def found(library: Library, corpora: Sequence[Corpus]) -> Iterator[Signs]:
    """Yield what is found for the questions of some corpora of one kind, in their own and in each other's."""
    model, chance = fitted(), random.Random(1)  # noqa: S311  a sample, not a secret
    for number, corpus in enumerate(corpora):
        strange = [
            msgspec.structs.replace(question, gold=frozenset()) for question in corpora[number - 1].questions
        ]
        asked = [(0, library.ask(corpus, question, model)) for question in (*corpus.questions, *strange)]
        for size, is_answerable in product(FEW, (True, False)):
            some = chance.sample(corpus.questions if is_answerable else strange, SMALL // PROJECTS)
            asked += [
                (size, library.few(corpus, one, model, size, chance, is_answerable=is_answerable))
                for one in some
            ]
        for size, one in asked:
            best = library.rank(one, model)[: confidence.JUDGED]
            yield Signs(corpus.domain, size, library.signs(one, model), not one.gold.isdisjoint(best))


def logistic(signs: Sequence[Signs]) -> dict[str, float]:
    """Return what a unit of each sign adds to the log-odds; each language and size of a store weighs the same,
    and what answers as much as what does not.
    """
    table = np.array([[one.found[name] for name in SIGNS] for one in signs])
    answers = np.array([one.answers for one in signs], np.float64)
    counts = Counter((one.language, one.size, one.answers) for one in signs)
    weight = np.array([1 / counts[one.language, one.size, one.answers] for one in signs])
    weight /= weight.sum()

    def loss(weights: np.typing.NDArray[np.float64]) -> tuple[float, np.typing.NDArray[np.float64]]:
        sure = expit(table @ weights)
        missed = -float(weight @ (answers * np.log(sure + 1e-12) + (1 - answers) * np.log(1 - sure + 1e-12)))
        return missed + RIDGE * float(weights @ weights), table.T @ (
            weight * (sure - answers)
        ) + 2 * RIDGE * weights

    weights = minimize(loss, np.zeros(len(SIGNS)), jac=True, method="L-BFGS-B").x.round(3).tolist()
    return dict(zip(SIGNS, weights, strict=True)) | {"in_period": IN_PERIOD}


def main() -> int:
    """Fit and print; return 0, or 2 where the model is missing."""
    parser = argparse.ArgumentParser(prog="python -m tests.retrieval.fit_languages")
    parser.add_argument("folder", type=Path, help="the folder with the files of XQuAD")
    parser.add_argument(
        "--aside", nargs="*", default=[], metavar="LANGUAGE", help="printed, and not fitted to"
    )
    parser.add_argument("--cache", type=Path, metavar="FILE", help="where vectors are kept for the next run")
    parser.add_argument("--write", action="store_true", help="put the weights in force")
    options = parser.parse_args()
    try:
        embed, save = embedder(find_paths().models, options.cache, E5_SMALL.name)
    except FileNotFoundError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    signs: list[Signs] = []
    for language in LANGUAGES:
        for written_in in ("en", language):
            corpora = list(paragraphs(options.folder, language, written_in))
            signs += found(Library(corpora, embed, is_multilingual=True), corpora)
        save()
    own = [one for one in signs if one.language not in options.aside]
    weights = logistic(own)
    sure = [(one, models.probability(weights, one.found)) for one in signs]
    whole = [p for one, p in sure if one.language not in options.aside and one.answers and not one.size]
    floor = float(np.quantile(whole, 1 - ANSWERED))
    for language, is_small in product(LANGUAGES, (False, True)):
        shares = [
            100
            * fmean(
                p < floor
                for one, p in sure
                if (one.language, one.size > 0, one.answers) == (language, is_small, answers)
            )
            for answers in (True, False)
        ]
        sys.stdout.write(
            f"{language}, {'small' if is_small else 'whole'}: not answered of what has an answer"
            f" {shares[0]:.1f} %, of others {shares[1]:.1f} %\n"
        )
    sys.stdout.write(f"floor {floor:.3f}, {weights}\n")
    if options.write:
        told = Multilingual(
            provenance=f"python -m tests.retrieval.fit_languages; XQuAD in {', '.join(sorted({one.language for one in own}))}",
            confidence=weights,
            floor=round(floor, 3),
        )
        TARGET.write_bytes(msgspec.json.format(msgspec.json.encode(told), indent=2) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
