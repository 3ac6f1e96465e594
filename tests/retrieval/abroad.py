"""Texts in English that are asked in other languages: notes by themselves, and among sentences of articles in
several languages and what people say in passing; and longer ones. Half of the questions have no answer.
"""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from omegad.embedding.catalogue import E5_SMALL, installed
from omegad.embedding.session import Session
from omegad.search.model import RankingModel
from omegad.search.question import compared
from tests.retrieval.corpora import Asked, Corpus, Embed, Library, Memory, Question
from tests.retrieval.dataset import FOLDER

NOTES, MIXED, LONG = "notes", "mixed", "long"
SIZES = {1: 20, 3: 6, 8: 1, 14: 1, 20: 1}
"""Of how many notes homes are, and how many there are of each set: what has no answer is shared among them."""
BESIDE = (("de", "es", "ru", "tr", "ar", "zh", "hi"), ("de", "zh", "ru", "el", "vi", "th"), ("de",), ("zh",))
"""In which languages there is something beside them."""
SENTENCES, UNANSWERED = 14, 20
LONG_SIZES = {1: 40, 3: 12, 8: 5, 20: 2}
"""Of how many longer texts homes are, and how many there are of each form."""
FORMS = ("sentence", "paragraph", "three", "among others")
OTHERS = 6  # sentences of other articles beside the one that answers


class ComparedByWord(Library):
    """Homes whose questions are compared with what is found word by word, as a daemon does."""

    def __init__(self, embed: Embed, nearness: Callable[[str, str], float]) -> None:
        """Begin without any; by the model for all languages."""
        super().__init__((), embed, is_multilingual=True)
        self._nearness = nearness

    def ask(
        self, corpus: Corpus, question: Question, model: RankingModel, project: str | None = None
    ) -> Asked:
        """Ask a question of all of a corpus, or of what a *project* holds of it."""
        asked = super().ask(corpus, question, model, project)
        near = partial(self._nearness, compared(question.text))
        sought = msgspec.structs.replace(asked.seen.sought, nearness=near)
        return msgspec.structs.replace(asked, seen=asked.seen._replace(sought=sought))


def comparing(models: Path) -> Callable[[str, str], float]:
    """Return what tells how near two texts are word by word; raises `FileNotFoundError` without a model."""
    if (manifest := installed(models, E5_SMALL.name)) is None:
        raise FileNotFoundError(f"no {E5_SMALL.name} in {models}; `omegad model install` fetches it")
    return cache(Session(models / manifest.name, manifest).nearness)


def notes() -> Iterator[Corpus]:
    """Yield homes of notes alone; what has lost its note has no answer."""
    for number, said in enumerate(_sets()):
        for size, count in SIZES.items():
            for place in range(count):
                chance = random.Random(f"{number} {size} {place}")  # noqa: S311  a sample, not a secret
                kept = {*chance.sample(range(len(said["memories"])), size)}
                asked = _asked(said, kept)
                unanswered = [one for one in asked if not one.gold]
                yield Corpus(
                    domain=f"{NOTES} {size}",
                    name=f"{NOTES} {number} {size} {place}",
                    memories=[Memory(key=str(key), content=said["memories"][key]) for key in sorted(kept)],
                    questions=[
                        *(one for one in asked if one.gold),
                        *chance.sample(unanswered, len(unanswered) // count),
                    ],
                )


def mixed(articles: dict[str, list[list[Any]]], among: Sequence[int]) -> Iterator[Corpus]:
    """Yield homes of all notes of a set, sentences of some articles in a few languages, and turns; asked is
    about both, in the sentence's language and another.
    """
    for number, said in enumerate(_sets()):
        for place, spoken in enumerate(BESIDE):
            chance = random.Random(f"{number} {place}")  # noqa: S311  a sample, not a secret
            known = [language for language in spoken if language in articles]
            others = [language for language in articles if language != "en"]
            chosen = chance.sample(list(among), SENTENCES // 2)
            memories = [Memory(key=str(key), content=text) for key, text in enumerate(said["memories"])]
            memories += [
                Memory(key=f"turn {key}", content=text, session_id="chat")
                for key, text in enumerate(said["turns"])
            ]
            questions = _asked(said, {*range(len(said["memories"]))})
            for article in chosen:
                language, part = chance.choice(known), chance.randrange(5)
                sentence = chance.randrange(3)
                key = f"article {article}"
                text = articles[language][article][part].sentence(sentence)
                memories.append(Memory(key=key, content=text))
                foreign = chance.choice([one for one in others if one != language])
                for asked_in, how in ((language, "own"), (foreign, "other")):
                    asked = articles[asked_in][article][part].asked[sentence][0]
                    questions.append(Question(text=asked, kind=f"{asked_in} {how}", gold=frozenset([key])))
            left = [one for one in among if one not in chosen]
            for article in chance.choices(left, k=UNANSWERED):
                asked_in, part = chance.choice(others), chance.randrange(5)
                asked = chance.choice(articles[asked_in][article][part].asked)[0]
                questions.append(Question(text=asked, kind=f"{asked_in} none", gold=frozenset()))
            yield Corpus(
                domain=f"{MIXED} {len(known) > 1}",
                name=f"{MIXED} {number} {place}",
                memories=memories,
                questions=questions,
            )


def long(articles: dict[str, list[list[Any]]], among: Sequence[int], seed: int) -> Iterator[Corpus]:
    """Yield homes of English texts of one form each: a sentence, a paragraph, three, or a sentence between such
    of other articles; asked in other languages.
    """
    chance = random.Random(seed)  # noqa: S311  a sample, not a secret
    spoken = [language for language in articles if language != "en"]
    for form, (size, count) in product(FORMS, LONG_SIZES.items()):
        for number in range(count):
            chosen = chance.sample(list(among), min(size, len(among) - 4))
            left = [one for one in among if one not in chosen]
            memories, questions = list[Memory](), list[Question]()
            for article in chosen:
                part, sentence = 1 if form == "three" else chance.randrange(5), chance.randrange(3)
                parts, asked_in = articles["en"][article], chance.choice(spoken)
                text = parts[part].sentence(sentence) if form in FORMS[::3] else parts[part].text
                if form == "three":
                    text = "\n\n".join(one.text for one in parts[:3])
                elif form == "among others":
                    beside = [
                        articles["en"][one][chance.randrange(5)].sentence(chance.randrange(3))
                        for one in chance.sample([one for one in among if one != article], OTHERS)
                    ]
                    beside.insert(chance.randrange(OTHERS + 1), text)
                    text = " ".join(beside)
                memories.append(Memory(key=str(article), content=text))
                asked = articles[asked_in][article][part].asked[sentence][0]
                questions.append(
                    Question(text=asked, kind=f"{asked_in} other", gold=frozenset([str(article)]))
                )
            for _ in range(0 if form == "among others" else min(UNANSWERED, size + 1)):
                asked_in, article = chance.choice(spoken), chance.choice(left)
                asked = chance.choice(articles[asked_in][article][chance.randrange(5)].asked)[0]
                questions.append(Question(text=asked, kind=f"{asked_in} none", gold=frozenset()))
            name = f"{LONG} {seed} {form} {size} {number}"
            yield Corpus(domain=f"{LONG} {form} {size}", name=name, memories=memories, questions=questions)


def _sets() -> Iterator[Any]:
    return map(json.loads, (FOLDER / "abroad.jsonl").read_text(encoding="utf-8").splitlines())


def _asked(said: Any, kept: set[int]) -> list[Question]:
    return [
        Question(
            text=text,
            kind=f"{language} {'none' if key is None or int(key) not in kept else 'other'}",
            gold=frozenset() if key is None or int(key) not in kept else frozenset([str(key)]),
        )
        for asked, key in said["questions"]
        for language, text in asked.items()
    ]
