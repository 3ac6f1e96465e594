"""Notes in English that are asked in other languages: by themselves, and among sentences of articles in
several languages and what people say in passing. Half of the questions have no answer.
"""

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

from tests.retrieval.corpora import Corpus, Memory, Question
from tests.retrieval.dataset import FOLDER

NOTES, MIXED = "notes", "mixed"
SIZES = (8, 14, 20)
"""Of how many notes homes are."""
BESIDE = (("de", "es", "ru", "tr", "ar", "zh", "hi"), ("de", "zh", "ru", "el", "vi", "th"), ("de",), ("zh",))
"""In which languages there is something beside them."""
SENTENCES, UNANSWERED = 14, 20


def notes() -> Iterator[Corpus]:
    """Yield homes of notes alone; what has lost its note has no answer."""
    for number, said in enumerate(_sets()):
        for size in SIZES:
            chance = random.Random(size)  # noqa: S311  a sample, not a secret
            kept = {*chance.sample(range(len(said["memories"])), size)}
            memories = [Memory(key=str(key), content=said["memories"][key]) for key in sorted(kept)]
            yield Corpus(
                domain=f"{NOTES} {size}",
                name=f"{NOTES} {number} {size}",
                memories=memories,
                questions=_asked(said, kept),
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
