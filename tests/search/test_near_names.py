"""Names that nobody holds are found in another spelling, and are then less sure; others stay unknown."""

import pytest

from omegad.search import near_names
from omegad.search.model import fitted
from tests.builders import START_US
from tests.searching import MODES, Searched


@pytest.mark.parametrize(
    "names",
    [
        "muhammad Muhhamed",
        "mohammed Muhhamed",
        "kate Katie",
        "sofia Sophia",
        "catherine Katherine",
        "akim Akib",
    ],
)
def test_names_are_near_that_sound_alike_or_differ_in_a_letter(names: str) -> None:
    name, other = names.split()
    assert 0 < near_names.likeness(name, other) <= 1
    assert near_names.likeness(other, name) == near_names.likeness(name, other)


@pytest.mark.parametrize(
    "names",
    ["paris Prussia", "park Percy", "jon Jan", "kate Nate", "redis Kafka", "maria Mario", "paula Paul"],
)
def test_other_names_are_not(names: str) -> None:
    assert near_names.likeness(*names.split()) == 0


def test_the_more_alike_a_spelling_is_the_less_it_is_doubted() -> None:
    alike = [near_names.likeness(name, "Sophie") for name in ("sofie", "sophis", "sophia", "susan")]
    assert alike == sorted(alike, reverse=True)
    assert alike[0] == 1
    assert alike[-1] == 0


def test_what_is_mostly_written_in_lower_case_is_no_name() -> None:
    texts = ["Noble gases are rare", "a noble deed", "the noble gases"]
    assert near_names.spellings({"nobel"}, texts) == {}
    assert near_names.spellings({"nobel"}, texts[:1]) == {"nobel": near_names.Spelling("Noble", 0.6)}


@pytest.mark.parametrize(
    ("word", "text", "written"),
    [
        ("kuberntes", "the Kubernetes cluster", "kubernetes"),
        ("migartion", "a migration, the migration, no Migrations", "migration"),
        ("deploys", "whoever deployed it", None),
        ("servers", "the server is up", None),
        ("hosted", "it was posted", None),
        ("prot", "the port", None),
        ("production", "a prediction", None),
        ("broker", "the broken lockfile", None),
        ("public", "a pubic bone", None),
        ("depoly", "each deploy", "deploy"),
    ],
)
def test_a_word_is_taken_for_one_that_is_a_letter_away_and_no_other_form_of_it(
    word: str, text: str, written: str | None
) -> None:
    found = near_names.corrections([word], [text])
    assert found.keys() == ({word} if written else set())
    assert [one.written for one in found.values()] == ([written] if written else [])


def test_a_word_that_is_misspelt_finds_what_holds_it(views: Searched) -> None:
    for number in range(12):
        views.put(f"m{number}", f"the deploy of service{number} runs at noon", at=START_US)
    views.put("told", "one of many things that is done by hand at each deploy is the migration", at=START_US)
    views.model = fitted()
    as_said, otherwise = (views.matches(f"the deploy runs at {word}") for word in ("migration", "migartion"))
    assert otherwise.results[0].memory_id == as_said.results[0].memory_id == "told"
    assert otherwise.results[0].score < as_said.results[0].score
    assert views.found("migartion", mode="keyword") == []


def put_friends(views: Searched) -> None:
    for number in range(60):
        views.put(f"m{number}", f"the deploy of service{number} runs at noon", at=START_US)
    views.put("told", "Muhhamed eats dates after the deploy", at=START_US)


def test_a_name_that_is_spelled_otherwise_finds_what_holds_it(views: Searched) -> None:
    put_friends(views)
    views.model = fitted()
    as_said, otherwise, other = (
        views.matches(f"what does the friend {name} eat?") for name in ("Muhhamed", "Muhammad", "Zacharias")
    )
    assert [found.results[0].memory_id for found in (as_said, otherwise)] == ["told", "told"]
    assert other.results == []
    assert as_said.confidence > otherwise.confidence > 2 * other.confidence


def test_words_that_are_looked_for_as_they_stand_are_not_spelled_otherwise(views: Searched) -> None:
    put_friends(views)
    assert "told" in views.found("what does the friend Muhammad", mode=MODES[0])
    assert "told" not in views.found("what does the friend Muhammad", mode="keyword")
