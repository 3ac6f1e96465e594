"""A home in several languages, with a model for English and one for all languages: which texts each is asked
for, and what questions find.
"""

from pathlib import Path
from typing import Any

import pytest

from omegad.embedding.catalogue import E5_SMALL, Manifest
from omegad.runtime.config import Paths
from tests.builders import FakeClock, FakeModel, Served, put_model, served, until, vector_of

ENGLISH = "The database listens on the port"
OTHER_ENGLISH = "Bread is baked in the oven"
GERMAN = "Der Mietvertrag endet im Winter"
SAME = {
    "datenbank": "database",
    "lauscht": "listens",
    "welchem": "",
    "port": "port",
    "mietvertrag": "lease",
    "endet": "ends",
    "winter": "winter",
    **dict.fromkeys(
        [
            "der",
            "die",
            "das",
            "ist",
            "im",
            "auf",
            "an",
            "und",
            "the",
            "does",
            "is",
            "in",
            "on",
            "a",
            "what",
            "when",
        ],
        "",
    ),
}


class Polyglot(FakeModel):
    """Takes a word for the same as its translation."""

    def embed(self, text: str) -> bytes:
        self.texts.append(text)
        words = [SAME.get(word, word) for word in text.casefold().replace("?", "").split()]
        return vector_of(" ".join(filter(None, words)))


class Both:
    """The model for English and that for all languages."""

    def __init__(self) -> None:
        self.english, self.polyglot = FakeModel(), Polyglot()

    def load(self, _folder: Path, manifest: Manifest) -> FakeModel:
        return self.polyglot if manifest.name == E5_SMALL.name else self.english


@pytest.fixture
def models(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> Both:
    both = Both()
    put_model(paths.models)
    put_model(paths.models, "polyglot", E5_SMALL)
    monkeypatch.setattr("omegad.embedding.embedder._load_session", both.load)
    return both


async def store(it: Served, content: str) -> str:
    answer = await it.caller.call("memory.store", content=content, event_type="memory", project="p")
    return str(answer["memory_id"])


async def ask(it: Served, text: str) -> dict[str, Any]:
    answer: dict[str, Any] = await it.caller.call("memory.query", text=text, project="p", limit=3)
    return answer


async def test_a_home_in_english_never_asks_the_other_model(
    paths: Paths, clock: FakeClock, models: Both
) -> None:
    async with served(paths, clock) as it:
        one = await store(it, ENGLISH)
        await ask(it, "On what port does the database listen?")
        await it.worked_off()
        assert (await ask(it, ENGLISH))["results"][0]["memory_id"] == one
    assert models.polyglot.texts == []


async def test_what_is_not_english_is_embedded_by_the_other_model_alone(
    paths: Paths, clock: FakeClock, models: Both
) -> None:
    async with served(paths, clock) as it:
        await store(it, GERMAN)
        await it.worked_off()
    assert models.polyglot.texts == [GERMAN]
    assert models.english.texts == []


async def test_a_question_in_another_language_finds_what_was_stored_before(
    paths: Paths, clock: FakeClock, models: Both
) -> None:
    async with served(paths, clock) as it:
        one, _ = await store(it, ENGLISH), await store(it, OTHER_ENGLISH)
        answer = await ask(it, "Auf welchem Port lauscht die Datenbank?")
        assert answer["results"][0]["memory_id"] == one
        assert answer["unembedded"] == 0
        assert not answer["degraded"]
    assert set(models.polyglot.texts) > {ENGLISH, OTHER_ENGLISH}


async def test_an_english_question_finds_what_is_in_another_language_and_english_as_before(
    paths: Paths, clock: FakeClock, models: Both
) -> None:
    question = "What port does the database listen on?"
    async with served(paths, clock) as it:
        await store(it, ENGLISH)
        await store(it, OTHER_ENGLISH)
        before = (await ask(it, question))["results"]
        other = await store(it, GERMAN)
        await until(lambda: {ENGLISH, OTHER_ENGLISH} <= set(models.polyglot.texts))
        await it.worked_off()
        after = (await ask(it, question))["results"]
        assert [one["memory_id"] for one in after if one["memory_id"] != other] == [
            one["memory_id"] for one in before
        ]
        assert (await ask(it, "When ends the lease in winter?"))["results"][0]["memory_id"] == other
