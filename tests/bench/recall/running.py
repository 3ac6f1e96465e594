"""One benchmark: its stores put into homes of their own, its questions asked, its answers measured."""

import random
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import fmean

import msgspec

from tests.bench import homes
from tests.bench.recall.asked import Omegad
from tests.bench.recall.plain import Embed, Plain
from tests.bench.recall.sets import Benchmark, Missing, Store

SEED = "recall"
ASIDE = "kept aside"
"""The figures of the homes that nobody looks at while the ranking is worked on, like those of a kind."""

Values = defaultdict[tuple[str, str], defaultdict[str, list[float]]]
"""What each question added, by measure and kind (empty: any), and by who was asked."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of all questions, of those kept aside, or of those of a kind, for everybody who was asked."""

    measure: str
    kind: str
    out_of: int
    questions: int
    values: dict[str, float]
    published: str


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What one benchmark came to. `refused` and `merged` texts are no memories of their own in omegad; it
    said nothing to `silent` questions; to `degraded` ones it answered without a model.
    """

    name: str
    stores: int
    stores_all: int
    texts: int
    questions: int
    refused: int
    merged: int
    silent: int
    degraded: int
    took_s: float
    rows: list[Row]

    def conditions(self) -> str:
        """Say what was asked, and what to know of it."""
        part = (
            f"{self.stores:,} of {self.stores_all:,}" if self.stores < self.stores_all else f"{self.stores:,}"
        )
        told = {"merged": self.merged, "refused": self.refused, "met with silence": self.silent}
        told |= {"answered without a model": self.degraded}
        notes = [f"{count:,} {what}" for what, count in told.items() if count]
        kept = "home" if self.stores_all == 1 else "homes"
        return f"{part} {kept}, {self.texts:,} texts, {self.questions:,} questions" + "".join(
            f"; {note}" for note in notes
        )


def chosen(benchmark: Benchmark, folder: Path, part: str, sample: int | None) -> tuple[list[Store], int]:
    """Return the stores to ask, and of how many; raises `Missing`."""
    try:
        stores = list(benchmark.load(folder))
    except Missing:
        raise
    except Exception as error:  # a file may hold anything, as what Git LFS has in its place
        raise Missing(f"the data is not what it was published as ({error!r})") from error
    if not any(store.questions for store in stores):
        raise Missing("the data is not what it was published as: it asks nothing")
    stores = [store for store in stores if store.is_dev or part == "all"]
    if not stores:
        raise Missing("all of it is kept aside: `--part all` asks it")
    few = sample is not None and sample < len(stores)
    places = sorted(random.Random(SEED).sample(range(len(stores)), sample)) if few and sample else ()  # noqa: S311  which, not a secret
    return ([stores[place] for place in places] if few else stores), len(stores)


def run(
    benchmark: Benchmark, stores: Sequence[Store], of: int, embed: Embed, tell: Callable[[str], None]
) -> Result:
    """Ask a benchmark's stores, one after the other; *tell* hears how far it is."""
    started_s, asked = time.perf_counter(), list[Omegad]()
    values: Values = defaultdict(lambda: defaultdict(list))
    for number, store in enumerate(stores, 1):
        asked.append(ask(benchmark, store, embed, values))
        took_s = time.perf_counter() - started_s
        tell(f"{benchmark.name}: {number} of {len(stores)}, {store.name}, {took_s:.0f} s")
    return Result(
        name=benchmark.name,
        stores=len(stores),
        stores_all=of,
        texts=sum(len(store.texts) for store in stores),
        questions=sum(len(store.questions) for store in stores),
        refused=sum(one.refused for one in asked),
        merged=sum(one.merged for one in asked),
        silent=sum(one.silent for one in asked),
        degraded=sum(one.degraded for one in asked),
        took_s=time.perf_counter() - started_s,
        rows=rows(benchmark, values),
    )


def ask(benchmark: Benchmark, store: Store, embed: Embed, values: Values) -> Omegad:
    """Put a store into a home of its own and into the plain methods, ask its questions as soon as what is
    before them was said, and add what the answers are worth to *values*.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(homes.directory())
        running = stack.enter_context(homes.served(folder / "home", "auto"))
        client = stack.enter_context(homes.connected(running))
        omegad, plain = Omegad(client.call, is_served=benchmark.is_served), Plain(embed)
        told = iter(store.texts)
        said = 0
        for question in store.questions:
            after = len(store.texts) if question.after is None else question.after
            while said < after:
                text, said = next(told), said + 1
                omegad.put(text)
                plain.put(text)
            limit = question.limit or benchmark.limit
            is_asked = bool(question.text.strip())
            found = {**omegad.ask(question, limit), **plain.ask(question, limit)} if is_asked else {}
            for measure in benchmark.measures:
                for name in ("omegad", "BM25", "cosine", "blend"):
                    value = measure.of(store, question, found.get(name, ()))
                    if value is not None:
                        for kind in {"", question.kind, "" if store.is_dev else ASIDE}:
                            values[measure.name, kind][name].append(value)
    return omegad


def rows(benchmark: Benchmark, values: Values) -> list[Row]:
    """Return the figures: of all questions first, of those kept aside next, then by kind."""
    out_of = {measure.name: measure.out_of for measure in benchmark.measures}
    names = list(out_of)
    return [
        Row(
            measure=measure,
            kind=kind,
            out_of=out_of[measure],
            questions=len(by_name["omegad"]),
            values={name: out_of[measure] * fmean(added) for name, added in by_name.items()},
            published=benchmark.published.get(f"{measure}, {kind}" if kind else measure, ""),
        )
        for (measure, kind), by_name in sorted(values.items(), key=lambda one: _place(names, *one[0]))
    ]


def _place(names: Sequence[str], measure: str, kind: str) -> tuple[bool, bool, str, int]:
    return kind != "", kind != ASIDE, kind, names.index(measure)
