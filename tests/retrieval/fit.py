"""`python -m tests.retrieval.fit --sets histories=FILE … --locomo conversations=FILE … [--write]`: fit the
ranking and its confidence.

Each kind of texts (a domain) weighs the same. Printed are the figures of every domain by a model that was
fitted without it, and by the one that is fitted to all; `--write` makes that the model in force, with its
provenance. The project's own set is one of the domains.
"""

import argparse
import math
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit

from omegad.runtime.config import find_paths
from omegad.search import confidence
from omegad.search import model as models
from omegad.search.features import FEATURES, MATCHING, PRIOR, TOLD
from omegad.search.model import Newness, RankingModel, Weight
from tests.retrieval.corpora import (
    FEW,
    FIRST_DAY,
    NOTES,
    Asked,
    Library,
    embedder,
    first_day,
    named,
    of_files,
    precision,
)

Array = npt.NDArray[np.float64]

TARGET = Path(models.__file__).with_name("model.json")
BY_COVERAGE = ("meaning", "coverage")
"""The features whose weight depends on how much of the question the candidate holds that holds most."""
PRIOR_MOST = 16.0  # either way
NEWEST = 0.05  # of a point of MRR is what a point of the newest above the stale is worth
BLIND = 0.54  # the median cosine of candidates in Chinese, by the model for English, from which on it tells nothing
PRIORS = {"type": 0.1, "priority": 0.05, "rating": 0.5, "strength": 0.05, "probation": -0.7}
"""Set, not fitted: the data has no ratings, and its types follow its domains. What `uses.py` finds of strength
is next to nothing.
"""
STATED = {"period": 6.0, "wishes": 1.5}
"""Set as well: few questions name a time, and from 3 to 6 the figures are the same on each kind of texts; of
what is fitted to few ask for advice, and from 1 to 2 they are the same.
"""
SIGNS = (
    "intercept",
    "log_cosine",
    "covered",
    "unknown_words",
    "unknown_names",
    "lacks_names",
    "in_period",
    "by_chance",
    "few",
    "lead",
)
OF_VECTORS = frozenset({"log_cosine", "lead"})
"""Signs that there are where the question has a vector."""
RIDGE, RIDGE_OF_CONFIDENCE = 0.01, 1e-4
ROUNDS = 2
LOST = 2.0  # how much more an answer that is not shown costs than one that is none and is
SOLE_ODDS = 40.0
"""The odds that what a sole memory is asked for it holds, beside what the signs say: whoever has stored little
knows what, and asks for that. Among so many they are their root of that degree.
"""
FOREIGN = 1  # questions of other projects of the domain that each project is asked, for each one of its own
# Questions that stores of each size in `FEW` are asked in each domain: half have an answer there, a quarter
# are of other projects
SMALL = 200
ANSWERED = 0.99  # share of what is answered whose confidence is above the floor, in the mean of all kinds
FITTED = tuple(name for name in FEATURES if name not in PRIOR)
TURNS = ("asks", "answers", "first_person", "dated")
"""The features of turns, which are fitted by themselves as well; of long texts they say nothing."""
BY_LENGTH = tuple(name for name in FITTED if name not in STATED)
"""The features whose weight depends on how long the texts are."""

Domains = dict[str, list[Asked]]


class Signs(NamedTuple):
    """What was found for a question in a store of *size* memories, 0 for a whole project, and whether one
    of the best results answers.
    """

    domain: str
    size: int
    found: dict[str, float]
    answers: bool


class Shortlist(NamedTuple):
    """What was looked at for a question: the features to be weighed, what the others give, the share that
    each is of the answers, and how much the question weighs.
    """

    features: Array
    given: Array
    wanted: Array
    weight: float


def main() -> int:
    """Fit and print; return 0, or 2 where a file or the model is missing."""
    options = _options()
    try:
        embed, save = embedder(find_paths().models, options.cache)
        corpora = named(options)
    except FileNotFoundError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if options.turns:
        library = Library(corpora, embed)
        _fit_turns(library, options)
        save()
        return 0
    if options.confidence:
        _fit_confidence(Library([*corpora, *first_day()], embed), options)
        save()
        return 0
    judgements = [*first_day(), *(one for folder in options.precision for one in precision(folder))]
    library = Library([*corpora, *judgements], embed)
    start = _model(
        {name: Weight(1.0, 1.0, 0.0, 1.0) for name in MATCHING}
        | {name: Weight(0.0, 0.0, 0.0, 1.0) for name in TOLD}
    )
    asked, fitted_to = Domains(), Domains()
    for _ in range(ROUNDS):  # the shortlist is chosen by the weights that are fitted to it
        asked = _by_domain(
            library.ask(corpus, question, start)
            for corpus in corpora
            for question in corpus.questions
            if question.gold
        )
        fitted_to = {domain: some for domain, some in asked.items() if domain not in options.aside}
        start = _ranking(fitted_to)
    for domain in fitted_to:
        others = {name: some for name, some in fitted_to.items() if name != domain}
        _print(f"without {domain}", domain, asked[domain], partial(library.rank, model=_ranking(others)))
    newness = _newness(library, fitted_to, start)
    fitted = msgspec.structs.replace(start, newness=newness, provenance=_provenance(fitted_to))
    fitted = _confidence(library, fitted, asked, options.aside)
    judged = [library.ask(corpus, question, fitted) for corpus in judgements for question in corpus.questions]
    fitted = _beside(library, fitted, fitted_to | _by_domain(judged))
    for domain, some in asked.items():
        _print(
            "fitted to all" if domain in fitted_to else "kept aside",
            domain,
            some,
            partial(library.rank, model=fitted),
        )
    save()
    if options.write:
        _write(fitted)
    return 0


def _fit_turns(library: Library, options: argparse.Namespace) -> None:
    start = models.fitted()
    asked = _by_domain(
        library.ask(corpus, question, start)
        for corpus in library.corpora
        for question in corpus.questions
        if question.gold
    )
    fitted_to = {domain: some for domain, some in asked.items() if domain not in options.aside}
    for domain, some in asked.items():
        others = {name: those for name, those in fitted_to.items() if name != domain}
        _print("in force", domain, some, partial(library.rank, model=start))
        _print(f"without {domain}", domain, some, partial(library.rank, model=_turns(others, start)))
    fitted = _turns(fitted_to, start)
    for domain, some in asked.items():
        _print("fitted to all", domain, some, partial(library.rank, model=fitted))
    if options.write:
        _write(_telling(fitted, "turns", fitted_to))


def _fit_confidence(library: Library, options: argparse.Namespace) -> None:
    start = models.fitted()
    asked = _by_domain(
        library.ask(corpus, question, start)
        for corpus in library.corpora
        for question in corpus.questions
        if question.gold and corpus.domain != FIRST_DAY
    )
    fitted = _confidence(library, start, asked, options.aside)
    if options.write:
        fitted_to = {domain: some for domain, some in asked.items() if domain not in options.aside}
        _write(_telling(fitted, "confidence", fitted_to))


def _telling(model: RankingModel, part: str, domains: Domains) -> RankingModel:
    """Return the model with what a part of it was fitted to, beside the others, in its provenance."""
    before = [said for said in model.provenance.split("; ") if not said.startswith(part)]
    told = "; ".join([*before, f"{part} beside these: {_counts(domains)}"])
    return msgspec.structs.replace(model, provenance=told)


def _by_domain(asked: Iterable[Asked]) -> Domains:
    found: Domains = defaultdict(list)
    for one in asked:
        found[one.corpus.domain].append(one)
    return dict(found)


def _ranking(domains: Domains) -> RankingModel:
    """Return the model of the ranking alone: of a softmax over each question's shortlist, that of the
    greatest likelihood of its answers.
    """
    tables, lengths = list[Shortlist](), list[float]()
    by_length, by_coverage = ([FITTED.index(name) for name in names] for names in (BY_LENGTH, BY_COVERAGE))
    for some in domains.values():
        for one in some:
            gold = np.isin(one.seen.rows, list(one.gold))
            if gold.any():
                features = one.seen.features[:, : len(FITTED)]
                longer = one.seen.length * features[:, by_length]
                covered = features[:, FITTED.index("coverage")].max() * features[:, by_coverage]
                given = one.seen.features[:, len(FITTED) :] @ np.array([PRIORS[name] for name in PRIOR])
                table = np.hstack([features, longer, covered])
                tables.append(Shortlist(table, given, gold / gold.sum(), 1 / len(some)))
                lengths.append(one.seen.length)
    found = _likeliest(tables)
    whole = np.concatenate([one.features for one in tables])
    slopes = found[len(FITTED) :].tolist()
    by_length_slope: dict[str, float] = dict(zip(BY_LENGTH, slopes, strict=False))
    by_coverage_slope: dict[str, float] = dict(zip(BY_COVERAGE, slopes[len(BY_LENGTH) :], strict=True))
    weights = {
        name: Weight(
            value,
            value + by_length_slope.get(name, 0.0),
            float(seen.min()),
            float(seen.max()),
            by_coverage_slope.get(name, 0.0),
        )
        for name, value, seen in zip(FITTED, found[: len(FITTED)].tolist(), whole.T, strict=False)
    }
    stated = {name: Weight(value, value, 0.0, 1.0) for name, value in STATED.items()}
    return _model(weights | stated, (float(min(lengths)), float(max(lengths))))


def _turns(domains: Domains, model: RankingModel) -> RankingModel:
    """Return a model with the weights of `TURNS` of the greatest likelihood beside its others."""
    tables, places = list[Shortlist](), [FEATURES.index(name) for name in TURNS]
    none = {name: Weight(0.0, 0.0, 0.0, 1.0) for name in TURNS}
    others = msgspec.structs.replace(model, ranking={**model.ranking, **none})
    for some in domains.values():
        for one in some:
            gold = np.isin(one.seen.rows, list(one.gold))
            if gold.any():
                covered = float(one.seen.features[:, FEATURES.index("coverage")].max())
                given = others.contributions(one.seen.features, FEATURES, one.seen.length, covered)
                told = (1 - one.seen.length) * one.seen.features[:, places]
                tables.append(Shortlist(told, given.sum(axis=1), gold / gold.sum(), 1 / len(some)))
    found = zip(TURNS, _likeliest(tables).tolist(), strict=True)
    fitted_anew = {name: Weight(value, 0.0, 0.0, 1.0) for name, value in found}
    return msgspec.structs.replace(model, ranking={**model.ranking, **fitted_anew})


def _likeliest(shortlists: Sequence[Shortlist]) -> Array:
    """Return what a unit of each feature adds, in the softmax of the greatest likelihood."""
    whole, offset, wanted = (
        np.concatenate(part) for part in list(zip(*shortlists, strict=True))[: len(Shortlist._fields) - 1]
    )
    starts = np.cumsum([0, *(len(one.given) for one in shortlists)])[:-1]
    which = np.repeat(np.arange(len(shortlists)), [len(one.given) for one in shortlists])
    weight, spread = np.array([one.weight for one in shortlists]), whole.std(axis=0) + 1e-6
    scaled = whole / spread

    def loss(weights: Array) -> tuple[float, Array]:
        scores = scaled @ weights + offset
        scores -= np.maximum.reduceat(scores, starts)[which]
        odds = np.exp(scores)
        total = np.add.reduceat(odds, starts)
        missed = -float(weight @ np.add.reduceat(wanted * (scores - np.log(total)[which]), starts))
        slope = scaled.T @ (weight[which] * (odds / total[which] - wanted))
        return missed + RIDGE * float(weights @ weights), slope + 2 * RIDGE * weights

    found = minimize(loss, np.zeros(whole.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 1_000})
    best: Array = found.x / spread
    return best


def _newness(library: Library, domains: Domains, start: RankingModel) -> Newness:
    """Return the reach and likeness that put the answers first, and the newest of them, in the domains
    whose answers become outdated.
    """
    some = [one for asked in domains.values() if any(one.stale for one in asked) for one in asked]
    found: list[tuple[float, Newness]] = []
    # Less likeness than 0.3 gains on these, and loses on histories that are kept aside.
    for reach, low in product((0.0, 4.0, 5.0, 6.0, 7.0), (0.3, 0.35)):
        newness = Newness(reach=reach, same=(low, low + 0.3), blind=BLIND)
        model = msgspec.structs.replace(start, newness=newness)
        figures = _figures(some, partial(library.rank, model=model))
        found.append((figures["MRR"] + NEWEST * figures["newest above stale"], newness))
        sys.stdout.write(f"newness {reach} from {low}: {_told(figures)}\n")
    return max(found, key=lambda pair: pair[0])[1]


def _confidence(
    library: Library, model: RankingModel, domains: Domains, aside: Sequence[str]
) -> RankingModel:
    """Return the model with logistic regressions of whether one of the best results answers, fitted to the
    domains that are not kept aside, and with the floor.
    """
    everything = list(_signs(library, model, domains))
    signs = [one for one in everything if one.domain not in aside]
    by_meaning = _logistic(signs, SIGNS)
    for left_out in sorted({one.domain for one in signs}):
        others = _logistic([one for one in signs if one.domain != left_out], SIGNS)
        some = [one for one in signs if one.domain == left_out and "log_cosine" in one.found]
        losses = [
            -math.log(sure if one.answers else 1 - sure)
            for one in some
            for sure in [models.probability(others, one.found)]
        ]
        sys.stdout.write(
            f"confidence without {left_out}: log loss {np.average(losses, weights=_weights(some)):.4f}\n"
        )
    by_words = _logistic(signs, tuple(name for name in SIGNS if name not in OF_VECTORS))
    sure = defaultdict[tuple[str, bool, bool], list[float]](list)
    for one in everything:
        if "log_cosine" in one.found:
            sure[one.domain, one.size > 0, one.answers].append(models.probability(by_meaning, one.found))
    floor = _floor(
        [values for (domain, _, answers), values in sure.items() if answers and domain not in aside]
    )
    for (domain, is_small, answers), values in sorted(sure.items()):
        told = f"{domain}, {'small' if is_small else 'whole'}, {'answered' if answers else 'not answered'}"
        below = fmean(value < floor for value in values)
        sys.stdout.write(f"below the floor of {floor:.3f}, {told}: {100 * below:.1f} %\n")
    for weights in (by_meaning, by_words):
        weights["few"] += math.log(SOLE_ODDS)
    return msgspec.structs.replace(
        model, confidence=by_meaning, confidence_by_words=by_words, floor=floor, caution=SOLE_ODDS
    )


def _floor(answered: Sequence[Sequence[float]]) -> float:
    """Return the highest confidence that so many of the answers of each kind have, in the mean."""
    tried: list[float] = sorted(value for some in answered for value in some)
    return max(
        value
        for value in tried
        if fmean(fmean(sure >= value for sure in some) for some in answered) >= ANSWERED
    )


def _beside(library: Library, model: RankingModel, domains: Domains) -> RankingModel:
    """Return the model with how far behind the first a result may be: where what is shown holds most of what
    answers, and least beside it, by the F measure in which an answer lost costs as much as two that are none.
    """
    found: list[tuple[float, float]] = []
    for most in np.arange(0.5, 5.1, 0.25).tolist():
        shares = {
            domain: fmean(_measure(library, model, one, most) for one in some if one.gold)
            for domain, some in domains.items()
        }
        found.append((fmean(shares.values()), most))
        told = ", ".join(f"{domain} {100 * share:.1f}" for domain, share in shares.items())
        sys.stdout.write(f"at most {most:.2f} behind the first: {told}\n")
    return msgspec.structs.replace(model, beside=max(found)[1])


def _measure(library: Library, model: RankingModel, asked: Asked, most: float) -> float:
    """Return the F measure of the results of a question that are at most so far behind the first; what is
    shown anyhow does not count.
    """
    rows = [row for row in library.shown(asked, model, most) if row not in asked.stale or row in asked.gold]
    right = len(asked.gold.intersection(rows))
    weight = LOST**2
    return (1 + weight) * right / (len(rows) + weight * len(asked.gold))


def _signs(library: Library, model: RankingModel, domains: Domains) -> Iterator[Signs]:
    """Yield what is found for each domain's questions: asked of their own projects, of others, and of
    small stores. Homes of the first day are small stores of notes.
    """
    chance = random.Random(1)  # noqa: S311  a sample, not a secret
    for domain, some in domains.items():
        corpora = [corpus for corpus in library.corpora if corpus.domain == domain]
        everyone = [(corpus, question) for corpus in corpora for question in corpus.questions]
        answerable = [(corpus, question) for corpus, question in everyone if question.gold]
        # The keys of another project's answers may be keys of this one as well.
        strange = {
            corpus.name: [
                msgspec.structs.replace(question, gold=frozenset())
                for other, question in everyone
                if other is not corpus
            ]
            for corpus in corpora
        }
        asked = [(0, one) for one in some]
        asked += [
            (0, library.ask(corpus, question, model)) for corpus, question in everyone if not question.gold
        ]
        for corpus in corpora:
            strangers = strange[corpus.name]
            chosen = chance.sample(strangers, min(len(strangers), FOREIGN * len(corpus.questions)))
            asked += [(0, library.ask(corpus, question, model)) for question in chosen]
        for size, number in product(FEW, range(SMALL)):
            corpus, question = chance.choice(answerable)
            if number % 4 == 0:
                question = chance.choice(strange[corpus.name])
            asked.append(
                (size, library.few(corpus, question, model, size, chance, is_answerable=number % 2 == 1))
            )
        for size, one in asked:
            best = library.rank(one, model)[: confidence.JUDGED]
            yield Signs(
                domain=domain,
                size=size,
                found=library.signs(one, model),
                answers=not one.gold.isdisjoint(best),
            )
    for corpus in library.corpora:
        for question in corpus.questions if corpus.domain == FIRST_DAY else ():
            one = library.ask(corpus, question, model)
            yield Signs(
                domain=NOTES,
                size=len(corpus.memories),
                found=library.signs(one, model),
                answers=not one.gold.isdisjoint(library.rank(one, model)[: confidence.JUDGED]),
            )


def _weights(signs: Sequence[Signs]) -> Array:
    """Return the weight of each: whole projects and small stores of each domain weigh the same, and in these
    what answers and what does not.
    """
    kinds = [(one.domain, one.size > 0, one.answers) for one in signs]
    counts = Counter(kinds)
    return np.array([1 / len(counts) / counts[kind] for kind in kinds])


def _logistic(signs: Sequence[Signs], names: tuple[str, ...]) -> dict[str, float]:
    known = [one for one in signs if "log_cosine" in one.found or "log_cosine" not in names]
    table = np.array([[one.found[name] for name in names] for one in known])
    answers, weight = np.array([one.answers for one in known], np.float64), _weights(known)

    def loss(weights: Array) -> tuple[float, Array]:
        sure = expit(table @ weights)
        missed = -float(weight @ (answers * np.log(sure + 1e-12) + (1 - answers) * np.log(1 - sure + 1e-12)))
        slope = table.T @ (weight * (sure - answers))
        return (
            missed + RIDGE_OF_CONFIDENCE * float(weights @ weights),
            slope + 2 * RIDGE_OF_CONFIDENCE * weights,
        )

    found = minimize(loss, np.zeros(len(names)), jac=True, method="L-BFGS-B", options={"maxiter": 1_000}).x
    return {name: float(value) for name, value in zip(names, found, strict=True)}


def _model(weights: dict[str, Weight], lengths: tuple[float, float] = (0.0, 0.0)) -> RankingModel:
    priors = {name: Weight(value, value, -PRIOR_MOST, PRIOR_MOST) for name, value in PRIORS.items()}
    none = Newness(reach=0.0, same=(0.3, 0.6), blind=BLIND)
    return RankingModel(
        provenance="",
        ranking=weights | priors,
        lengths=lengths,
        newness=none,
        confidence={},
        confidence_by_words={},
        floor=0.0,
        caution=1.0,
        beside=0.0,
    )


def _figures(asked: Sequence[Asked], rank: Callable[[Asked], list[int]]) -> dict[str, float]:
    rows = defaultdict[str, list[float]](list)
    for one in asked:
        order = rank(one)
        places = sorted(order.index(row) if row in order else len(order) + 100 for row in one.gold)
        rows["R@5"].append(sum(place < 5 for place in places) / len(places))
        rows["R@10"].append(sum(place < 10 for place in places) / len(places))
        rows["MRR"].append(1 / (places[0] + 1) if places[0] < 10 else 0.0)
        if one.stale:
            rows["newest above stale"].append(
                places[0] < min(order.index(row) if row in order else 100 for row in one.stale)
            )
    return {name: 100 * fmean(values) for name, values in rows.items()}


def _told(figures: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.1f}" for name, value in figures.items())


def _print(label: str, domain: str, some: Sequence[Asked], rank: Callable[[Asked], list[int]]) -> None:
    sys.stdout.write(f"{label:24} {domain:14} {len(some):5} questions: {_told(_figures(some, rank))}\n")
    sys.stdout.flush()


def _provenance(domains: Domains) -> str:
    return f"python -m tests.retrieval.fit; all-MiniLM-L6-v2; domains of equal weight: {_counts(domains)}"


def _counts(domains: Domains) -> str:
    return ", ".join(
        f"{domain} ({len({one.corpus.name for one in some})} projects, {len(some)} questions)"
        for domain, some in domains.items()
    )


def _write(fitted: RankingModel) -> None:
    TARGET.write_bytes(msgspec.json.format(msgspec.json.encode(_rounded(fitted)), indent=2) + b"\n")


def _rounded(fitted: RankingModel) -> RankingModel:
    return msgspec.structs.replace(
        fitted,
        ranking={
            name: Weight(*(round(value, 3) for value in msgspec.structs.astuple(weight)))
            for name, weight in fitted.ranking.items()
        },
        lengths=(round(fitted.lengths[0], 3), round(fitted.lengths[1], 3)),
        confidence={name: round(value, 3) for name, value in fitted.confidence.items()},
        confidence_by_words={name: round(value, 3) for name, value in fitted.confidence_by_words.items()},
        floor=math.floor(fitted.floor * 1_000) / 1_000,  # at which an answer stands
        caution=round(fitted.caution, 3),
        beside=round(fitted.beside, 3),
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.retrieval.fit", description=(__doc__ or "").split("\n\n", 1)[1]
    )
    of_files(parser)
    parser.add_argument(
        "--aside",
        nargs="*",
        default=[],
        metavar="DOMAIN",
        help="domains to print figures of, and not to fit to",
    )
    parser.add_argument(
        "--precision",
        nargs="*",
        default=[],
        type=Path,
        metavar="FOLDER",
        help="folders of fixtures in the form of PrecisionMemBench, to fit to them what is shown beside the first",
    )
    parser.add_argument(
        "--turns", action="store_true", help="fit what turns show alone, beside the other weights in force"
    )
    parser.add_argument(
        "--confidence", action="store_true", help="fit the confidence alone, beside the ranking in force"
    )
    parser.add_argument("--write", action="store_true", help="make the fitted model the one in force")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
