"""`python -m tests.retrieval.fit_languages XQUAD [--aside LANGUAGE …] [--write]`: fit what ranks, and how sure
an answer is, where the question is in another language than English, from the files of XQuAD (CC BY-SA 4.0)
in a folder and notes of our own.

Homes of 1 to a few hundred memories in one language and in several, each a sentence, a paragraph or several,
are asked in the language of a memory, in others, and what none of them answers; and so are short notes in
English, by themselves and among such sentences, and English texts of a sentence and more. It is fitted to
some of the articles, and printed is how it does on the others, by language; `--write` puts the weights in
force. Nothing of it depends on the weights that are, but on those for English. `--form` makes from the same
articles what a question's vector is moved by, which the others are fitted to.
"""

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple
from unittest.mock import patch

import msgspec
import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from omegad.embedding.catalogue import E5_SMALL
from omegad.embedding.passages import SENTENCE_END
from omegad.runtime.config import find_paths
from omegad.search import confidence, pipeline
from omegad.search import form as forms
from omegad.search import model as models
from omegad.search.features import FEATURES
from omegad.search.form import Form
from omegad.search.model import Array, Multilingual, Weight, fitted
from tests.retrieval import abroad
from tests.retrieval.corpora import Corpus, Embed, Library, Memory, Question, embedder

TARGET = Path(models.__file__).with_name("multilingual.json")
FORM = Path(forms.__file__).with_name("form.json")
PLACES = 4
ARTICLES = "articles"
LANGUAGES = ("ar", "de", "el", "en", "es", "hi", "ro", "ru", "th", "tr", "vi", "zh")
FITTED = 28  # articles of 48 that are fitted to
SIZES = {1: 12, 3: 8, 5: 8, 10: 6, 20: 5, 40: 2, 100: 1, 200: 1}
"""Of how many memories the homes are, and how many of them."""
ALONE = (8, 20, 12)
"""Of how many memories homes in one language are."""
ASKED_MAX = 40  # memories of a home that are asked for
ENGLISH, SAME_ARTICLE = (
    0.25,
    0.3,
)  # of the memories, and of the homes: whose memories are of half as many matters
SENTENCE, PARAGRAPH, SEVERAL = 0.5, 0.3, 0.2
TOGETHER = 3  # paragraphs of an article in one memory, of which the middle one is asked about
SIGNS = (
    "intercept",
    "ahead",
    "log_cosine",
    "language",
    "length",
    "by_chance",
)
BY_WORD, BY_PASSAGES = "word_by_word", "cosine"
"""What is read as well where the model can compare a passage word by word, and where it cannot."""
RANKED = ("meaning", "words", "rare_words", "coverage", "in_a_row")
UNRANKED = "long"  # a long memory has short passages here, of which the best one counts
RIDGE, TO_ENGLISH = 1e-4, 1e-2  # the latter to the weights for English, where nothing speaks against them
OF_NOTES = 0.4  # what each home of own notes weighs beside one of articles
ANSWERED = 0.98
"""Share of what is answered whose confidence is above the floor; articles, notes and both weigh the same."""
SEED, ASIDE_SEED = 1, 2  # of the homes that are fitted to, and of the others
IN_PERIOD = 1.5  # set, since no memory here is of a time that is asked for
HOLDS_ALL = 3.0  # set, since no question here is a name or a word that is looked up


class Part(NamedTuple):
    """A paragraph, and the first, the middle and the last question that it answers, with where the answers
    begin.
    """

    text: str
    asked: list[tuple[str, int]]

    def sentence(self, number: int) -> str:
        """Return the sentence that answers a question."""
        start = 0
        for end in [match.end() for match in SENTENCE_END.finditer(self.text)] + [len(self.text)]:
            if self.asked[number][1] < end:
                return self.text[start:end].strip()
            start = end
        return self.text


Articles = dict[str, list[list[Part]]]


class Found(NamedTuple):
    """What was found for a question: its signs, whether one of the best results answers, and what each
    candidate shows, with the place of the one that answers, None where none does.
    """

    kind: str
    domain: str
    signs: dict[str, float]
    answers: bool
    features: Array
    place: int | None
    is_first: bool

    @property
    def language(self) -> str:
        """The question's."""
        return self.kind.split()[0]

    @property
    def texts(self) -> str:
        """The kind of texts it was asked of."""
        return self.domain.split()[0]


def read(folder: Path, language: str) -> list[list[Part]]:
    """Return the paragraphs of each article in a language."""
    data = json.loads((folder / f"xquad.{language}.json").read_text(encoding="utf-8"))["data"]
    return [
        [
            Part(
                one["context"],
                [
                    (qa["question"], qa["answers"][0]["answer_start"])
                    for qa in (one["qas"][0], one["qas"][len(one["qas"]) // 2], one["qas"][-1])
                ],
            )
            for one in article["paragraphs"]
        ]
        for article in data
    ]


def home(name: str, articles: Articles, among: Sequence[int], size: int, chance: random.Random) -> Corpus:
    """Return a home of so many memories of some articles, as far as there are so many, and what it is asked;
    in the one language that there is, or in several.
    """
    others = [language for language in articles if language != "en"]
    is_alone = len(articles) == 1
    spoken = others if is_alone else chance.sample(others, chance.choice((1, 2, 3, 5)))
    matters = max(1, size // (2 if chance.random() < SAME_ARTICLE else 1))
    chosen = chance.sample(among, min(len(among) - 3, matters))
    memories, questions = list[Memory](), list[Question]()
    left = {article: [(place, number) for place in range(5) for number in range(3)] for article in chosen}
    for key in map(str, range(size)):
        article = chosen[int(key) % len(chosen)]
        if not left[article]:
            continue
        language = "en" if chance.random() < ENGLISH and not is_alone else chance.choice(spoken)
        form = chance.choices(("sentence", "paragraph", "several"), (SENTENCE, PARAGRAPH, SEVERAL))[0]
        place, number = chance.choice(left[article])
        taken = {(place, number)}
        if form != "sentence":
            taken = {(place, one) for one in range(3)}
        if form == "several" and len(left[article]) == 5 * 3:
            place, taken = 1, {(one, other) for one in range(TOGETHER) for other in range(3)}
        elif not taken.issubset(left[article]):
            form, taken = "sentence", {(place, number)}
        left[article] = [one for one in left[article] if one not in taken]
        parts = articles[language][article]
        text = parts[place].sentence(number) if form == "sentence" else parts[place].text
        if len(taken) > 3:
            text = "\n\n".join(part.text for part in parts[:TOGETHER])
        memories.append(Memory(key=key, content=text))
        if len(questions) >= 2 * ASKED_MAX:
            continue
        foreign = [] if is_alone else [chance.choice([one for one in others if one != language])]
        for asked_in in foreign if language == "en" else (language, *foreign):
            how = "own" if asked_in == language else "long" if len(taken) > 3 else "other"
            questions.append(
                Question(
                    text=articles[asked_in][article][place].asked[number][0],
                    kind=f"{asked_in} {how}",
                    gold=frozenset([key]),
                )
            )
    for _ in range(min(ASKED_MAX, size // 2 + 2)):
        asked_in, part = chance.choice(spoken), chance.randrange(5)
        article = chance.choice([one for one in among if one not in chosen])
        text = chance.choice(articles[asked_in][article][part].asked)[0]
        questions.append(Question(text=text, kind=f"{asked_in} none", gold=frozenset()))
    return Corpus(domain=f"{ARTICLES} {size}", name=name, memories=memories, questions=questions)


def homes(articles: Articles, among: Sequence[int], seed: int) -> Iterator[Corpus]:
    """Yield homes of all sizes in several languages, and such of some sizes in each alone."""
    chance = random.Random(seed)  # noqa: S311  a sample, not a secret
    for size, count in SIZES.items():
        for number in range(count):
            yield home(f"{seed} {size} {number}", articles, among, size, chance)
    for number, language in enumerate(sorted({*articles} - {"en"})):
        size = ALONE[number % len(ALONE)]
        alone = home(f"{seed} {language}", {language: articles[language]}, among, size, chance)
        yield msgspec.structs.replace(alone, domain=f"{ARTICLES} alone {size}")


def found(corpora: Iterable[Corpus], library: Library) -> Iterator[Found]:
    """Yield what is found for the questions of some homes that are in a library."""
    model = fitted()
    for corpus in corpora:
        for question in corpus.questions:
            asked = library.ask(corpus, question, model)
            if not asked.seen.sought.is_multilingual or asked.seen.question.asks_whatever:
                continue
            ranked = library.rank(asked, model)
            gold = next(iter(asked.gold & {*asked.seen.rows}), None)
            yield Found(
                question.kind,
                corpus.domain,
                library.signs(asked, model),
                not asked.gold.isdisjoint(ranked[: confidence.JUDGED]),
                asked.seen.features,
                None if gold is None else asked.seen.rows.index(gold),
                ranked[:1] == [gold],
            )


def ranking(seen: Sequence[Found]) -> dict[str, Weight]:
    """Return what a unit of some features adds to the log-odds of being what answers; each language, and way
    of asking, weighs the same.
    """
    places, english = [FEATURES.index(name) for name in RANKED], fitted().ranking
    usual = np.array([(english[name].short + english[name].long) / 2 for name in RANKED])
    tables = [(one.features[:, places], one.place) for one in seen if one.place is not None]
    counts = Counter(one.kind for one in seen if one.place is not None)
    weights = [1 / counts[one.kind] / len(counts) for one in seen if one.place is not None]

    def loss(by: Array) -> tuple[float, Array]:
        off = by - usual
        missed, slope = TO_ENGLISH * float(off @ off), 2 * TO_ENGLISH * off
        for (table, place), weight in zip(tables, weights, strict=True):
            odds = table @ by
            shares = np.exp(odds - odds.max())
            shares /= shares.sum()
            missed -= weight * float(np.log(shares[place] + 1e-12))
            slope = slope + weight * (shares @ table - table[place])
        return missed, slope

    by = [*minimize(loss, usual, jac=True, method="L-BFGS-B").x.round(2).tolist(), 0.0]
    return {
        name: Weight(short=one, long=one, least=0.0, most=1.0)
        for name, one in zip((*RANKED, UNRANKED), by, strict=True)
    }


def logistic(seen: Sequence[Found], signs: Sequence[str]) -> dict[str, float]:
    """Return what a unit of each of some signs adds to the log-odds beside what is set; each kind and size of
    a home weighs the same, but for notes, which are few, and what answers as much as what does not.
    """
    beside = np.array(
        [HOLDS_ALL * one.signs["holds_all"] + IN_PERIOD * one.signs["in_period"] for one in seen]
    )
    table = np.array([[one.signs[name] for name in signs] for one in seen])
    answers = np.array([one.answers for one in seen], np.float64)
    counts = Counter((one.domain, one.answers) for one in seen)
    weight = np.array(
        [(1.0 if one.texts == ARTICLES else OF_NOTES) / counts[one.domain, one.answers] for one in seen]
    )
    weight /= weight.sum()

    def loss(weights: Array) -> tuple[float, Array]:
        sure = expit(table @ weights + beside)
        missed = -float(weight @ (answers * np.log(sure + 1e-12) + (1 - answers) * np.log(1 - sure + 1e-12)))
        return missed + RIDGE * float(weights @ weights), table.T @ (
            weight * (sure - answers)
        ) + 2 * RIDGE * weights

    weights = minimize(loss, np.zeros(len(signs)), jac=True, method="L-BFGS-B").x.round(3).tolist()
    return dict(zip(signs, weights, strict=True)) | {
        "in_period": IN_PERIOD,
        "holds_all": HOLDS_ALL,
    }


def sureness(weights: Mapping[str, float], one: Found) -> float:
    """Return the confidence in what was found by some weights, which may leave signs out."""
    return models.probability(weights, {name: one.signs[name] for name in weights})


def floor_of(seen: Sequence[Found], weights: Mapping[str, float]) -> float:
    """Return the confidence above which `ANSWERED` of what is answered is, each kind of texts weighing the
    same.
    """
    counts = Counter(one.texts for one in seen if one.answers)
    sure = sorted(
        (sureness(weights, one), 1 / counts[one.texts] / len(counts)) for one in seen if one.answers
    )
    below = np.cumsum([share for _, share in sure])
    return sure[int(np.searchsorted(below, 1 - ANSWERED))][0]


def form(articles: Articles, embed: Embed) -> Form:
    """Return how questions and the sentences that answer them differ, each language weighing the same."""
    asked, said = list[Array](), list[Array]()
    for parts in articles.values():
        some = [part for article in parts[:FITTED] for part in article]
        for means, texts in (
            (asked, [part.asked[1][0] for part in some]),
            (said, [part.sentence(1) for part in some]),
        ):
            means.append(np.mean([np.frombuffer(embed(text), "<f4") for text in texts], axis=0))
    apart = np.mean(asked, axis=0) - np.mean(said, axis=0)
    along = apart / np.linalg.norm(apart)
    made_of = f"{FITTED} articles of XQuAD in {', '.join(articles)}"
    return Form(
        provenance=f"python -m tests.retrieval.fit_languages --form; {made_of}",
        statements=round(float(np.mean(said, axis=0) @ along), PLACES),
        direction=tuple(along.astype(np.float64).round(PLACES).tolist()),
    )


def told(name: str, seen: Sequence[Found], sure: Sequence[float], floor: float) -> str:
    """Return how it does on some questions, in percent."""
    both = list(zip(seen, sure, strict=True))

    def share(what: Iterator[bool]) -> str:
        values = [*what]
        return f"{100 * fmean(values):.1f}" if values else "-"

    first = [
        f"{how} {share(one.is_first for one in seen if one.kind.endswith(how))}"
        for how in ("own", "other", "long")
    ]
    return (
        f"{name}: first {', '.join(first)}; not answered of what has an answer"
        f" {share(p < floor for one, p in both if not one.kind.endswith('none'))}, asked in its own language"
        f" {share(p < floor for one, p in both if one.kind.endswith('own'))}, of others"
        f" {share(p < floor for one, p in both if one.kind.endswith('none'))}; others above .8"
        f" {share(p > 0.8 for one, p in both if one.kind.endswith('none'))} ({len(both)})\n"
    )


def groups(seen: Sequence[Found]) -> Iterator[tuple[str, Sequence[Found]]]:
    """Yield all, then by language, then by kind and size of the home, each with its name."""
    yield "all", seen
    for language in sorted({one.language for one in seen}):
        yield language, [one for one in seen if one.language == language]
    for domain in sorted({one.domain for one in seen}):
        yield domain, [one for one in seen if one.domain == domain]


def fit(
    homes_: Sequence[Corpus], beside: Sequence[Corpus], library: Library
) -> tuple[Multilingual, list[Found]]:
    """Return the weights, and what they were fitted to: the ranking to homes of articles, and how sure it is
    to what ranks first by that, there and *beside*.
    """
    by = ranking([*found(homes_, library)])
    fitting = msgspec.structs.replace(models.multilingual(), ranking=by)
    with patch.object(pipeline, "multilingual", return_value=fitting):
        known = [*found([*homes_, *beside], library)]
    weights, by_passages = (logistic(known, (*SIGNS, one)) for one in (BY_WORD, BY_PASSAGES))
    languages = ", ".join(sorted({one.language for one in known}))
    made_of = f"{FITTED} articles of XQuAD and own notes, asked in {languages}"
    return Multilingual(
        provenance=f"python -m tests.retrieval.fit_languages; {made_of}",
        ranking=by,
        confidence=weights,
        floor=round(floor_of(known, weights), 3),
        confidence_by_passages=by_passages,
        floor_by_passages=round(floor_of(known, by_passages), 3),
    ), known


def main() -> int:
    """Fit and print; return 0, or 2 where the model is missing."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.retrieval.fit_languages",
        description="Fit what ranks, and how sure an answer is, for questions in other languages than English."
        " It takes the model for all languages (`omegad model install`), scipy (`pip install -e '.[fit]'`),"
        " the files of XQuAD, and some ten minutes of a processor; it uses 2 GB of memory.",
    )
    parser.add_argument(
        "folder",
        type=Path,
        help=f"the folder with xquad.LANGUAGE.json, as github.com/google-deepmind/xquad has them, of each of"
        f" {', '.join(LANGUAGES)}",
    )
    parser.add_argument(
        "--aside", nargs="*", default=[], metavar="LANGUAGE", help="printed, and not fitted to"
    )
    parser.add_argument("--cache", type=Path, metavar="FILE", help="where vectors are kept for the next run")
    parser.add_argument("--write", action="store_true", help="put the weights in force")
    parser.add_argument("--form", action="store_true", help="make what questions have in common, and no more")
    options = parser.parse_args()
    try:
        embed, save = embedder(find_paths().models, options.cache, E5_SMALL.name)
        library = abroad.ComparedByWord(embed, abroad.comparing(find_paths().models))
    except FileNotFoundError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    every = {language: read(options.folder, language) for language in LANGUAGES}
    own = {language: parts for language, parts in every.items() if language not in options.aside}
    if options.form:
        FORM.write_bytes(msgspec.json.encode(form(own, embed)) + b"\n")
        return 0
    some, left = range(FITTED), range(FITTED, len(every["en"]))
    to, beside = [*homes(own, some, SEED)], [*abroad.notes(), *abroad.mixed(own, some)]
    beside += abroad.long(own, some, SEED)
    aside = [*homes(every, left, ASIDE_SEED), *abroad.long(every, left, ASIDE_SEED)]
    for corpus in (*to, *beside, *aside):
        library.put(corpus)
    made, known = fit(to, beside, library)
    with patch.object(pipeline, "multilingual", return_value=made):
        others = [*found(aside, library)]
    save()
    for title, seen in (("fitted to", known), ("articles aside", others)):
        for name, among in groups(seen):
            sure = [sureness(made.confidence, one) for one in among]
            sys.stdout.write(told(f"{title}, {name}", among, sure, made.floor))
        sure = [sureness(made.confidence_by_passages, one) for one in seen]
        sys.stdout.write(told(f"{title}, all, by passages", seen, sure, made.floor_by_passages))
    written = msgspec.json.format(msgspec.json.encode(made), indent=2) + b"\n"
    sys.stdout.write(written.decode())
    if options.write:
        TARGET.write_bytes(written)
    return 0


if __name__ == "__main__":
    sys.exit(main())
