"""What notes of several sentences deny of older ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.evidence.changes import SENTENCES_MAX, read
from omegad.evidence.contradiction import STRENGTH_MIN, contradiction
from omegad.evidence.measures import Quantity, quantities, versions
from omegad.evidence.prose import prose, without_aside
from tests.evidence.notes import DENIED, KEPT, OUTRIGHT

SIMILARITY = 0.6

PIECES = st.lists(st.sampled_from([*(text for pair in (*DENIED, *KEPT) for text in pair)]), min_size=1, max_size=3).map("\n".join)


@pytest.mark.parametrize(("new", "old"), DENIED)
def test_a_sentence_among_others_denies_one_of_the_older_note(new: str, old: str) -> None:
    found = contradiction(new, old, SIMILARITY)
    assert found is not None
    assert STRENGTH_MIN <= found.strength <= 1


@pytest.mark.parametrize(("new", "old"), KEPT)
def test_notes_of_other_things_of_plans_and_of_the_past_deny_nothing(new: str, old: str) -> None:
    assert contradiction(new, old, 0.8) is None


@pytest.mark.parametrize(("new", "old"), OUTRIGHT)
def test_a_thing_that_is_gone_altogether_is_denied_explicitly_where_the_older_note_is_about_it(new: str, old: str) -> None:
    found = contradiction(new, old, SIMILARITY)
    assert found is not None
    assert found.is_explicit
    far = contradiction(new, old, 0.1)
    assert far is None or not far.is_explicit or far.strength < found.strength


def test_notes_that_are_not_near_enough_are_denied_less() -> None:
    new, old = OUTRIGHT[-1]
    assert [(found := contradiction(new, old, near)) and found.is_explicit for near in (0.0, 0.3, 0.5)] == [None, False, True]
    moved = ("Image builds have moved to Buildah.", "Image builds: Kaniko in the cluster.")
    assert [contradiction(*moved, near) is not None for near in (0.0, 0.45, 0.55)] == [False, False, True]


def test_what_is_gone_from_elsewhere_or_is_a_small_part_of_the_older_note_is_not_denied_explicitly() -> None:
    for new, old in (
        ("The landing page is plain HTML. Alpine has been dropped.", "The admin uses Alpine."),
        (
            "Alpine has been dropped.",
            "The admin uses Alpine. Forms post to the same page, errors come back as fragments, and tables sort on the server.",
        ),
        ("The admin uses Stimulus instead of Alpine.", "Widgets of the admin and of the shop are all driven with Alpine."),
    ):
        found = contradiction(new, old, SIMILARITY)
        assert found is None or not found.is_explicit


@pytest.mark.parametrize(("new", "old"), [*DENIED, *KEPT])
def test_no_note_denies_itself_or_a_note_that_says_it_too(new: str, old: str) -> None:
    assert contradiction(new, new, 1.0) is None
    assert contradiction(old, f"{old}\n{new}", 1.0) is None


@pytest.mark.parametrize(("new", "old"), DENIED)
def test_far_notes_deny_less_or_nothing(new: str, old: str) -> None:
    near, far = contradiction(new, old, 0.9), contradiction(new, old, -1.0)
    assert near is not None
    assert far is None or far.strength < near.strength


def test_without_a_similarity_the_words_that_notes_share_tell_how_near_they_are() -> None:
    new = "Catalogue search has been moved to Typesense."
    assert contradiction(new, "Catalogue search runs on Solr.", None) is not None
    assert contradiction(new, "The shop window of the bakery runs on Solr.", None) is None


def test_only_the_first_sentences_of_a_note_are_read() -> None:
    filling = "".join(f"Step {chr(97 + number) * 3} is done by hand. " for number in range(SENTENCES_MAX))
    new, old = "Crashlytics has been switched off.", "Crash reports: Crashlytics with symbol upload."
    assert contradiction(f"{new} {filling}", old, SIMILARITY) is not None
    assert contradiction(filling + new, old, SIMILARITY) is None
    assert len(read(filling + new)) == SENTENCES_MAX


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("wait 30 s", [("30", "second", "")]),
        ("wait 30s", [("30", "second", "")]),
        ("wait thirty seconds", [("30", "second", "")]),
        ("every 30 minutes rather than 15", [("30", "minute", "15")]),
        ("30 minutes rather than 15 minutes", [("30", "minute", "15")]),
        ("every 20 seconds instead of every 5, as before", [("20", "second", "5")]),
        ("250 MB for 2 hours", [("250", "mb", ""), ("2", "hour", "")]),
        ("release 4.1 of the shop", []),
    ],
)
def test_quantities_are_numbers_with_a_unit(text: str, expected: list[tuple[str, str, str]]) -> None:
    assert list(quantities(text)) == [Quantity(*one) for one in expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The warehouse runs on ClickHouse 23", [("clickhouse", "23")]),
        ("Moved to PostgreSQL 16.2 in May", [("postgresql", "16.2")]),
        ("Minimum iOS version is 15.1", [("ios", "15.1")]),
        ("Fixed in Django 4.1", []),
        ("We moved to Paris 20 days later", []),
        ("Job 18 runs on runner-4", []),
    ],
)
def test_versions_are_those_that_are_used_or_needed(text: str, expected: list[tuple[str, str]]) -> None:
    assert list(versions(text)) == expected


def test_prose_is_without_code_front_matter_and_roles() -> None:
    assert prose("Run it.\n```\nport = 80\n```\nThen wait.").split() == ["Run", "it.", "Then", "wait."]
    assert prose("---\ntitle: A\n---\nText").strip() == "Text"
    assert prose("User: it works\nAssistant: good").splitlines() == ["it works", "good"]
    assert prose("  - a list item (nested)\nOwner: Tom") == "  - a list item (nested)\nOwner: Tom"
    assert prose("So:\n    for x in y: z(x)\ndef run(self):").strip() == "So:"
    assert without_aside("Maria: No worries, John.") == "Maria: John."
    assert without_aside("No cache is used") == "No cache is used"


@given(PIECES, PIECES)
def test_any_notes_can_be_compared(new: str, old: str) -> None:
    found = contradiction(new, old, SIMILARITY)
    assert found is None or (STRENGTH_MIN <= found.strength <= 1 and found.reason)
    assert contradiction(new, new, SIMILARITY) is None


@given(st.text(max_size=400))
def test_any_text_can_be_read(text: str) -> None:
    assert len(read(text)) <= SENTENCES_MAX


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("Mei maintains the tooltip; she answers within 19 hours.", "Priya maintains the annotation layer; she answers within 52 hours."),
        ("The users table has 12 columns", "The orders table has 31 columns"),
        ("Wrote the parser. Coverage is at 81 %.", "Wrote the printer. Coverage is at 84 %."),
    ],
)
def test_what_is_said_of_another_thing_denies_nothing(new: str, old: str) -> None:
    assert [contradiction(new, old, near) for near in (None, 0.5, 0.9)] == [None, None, None]


def test_what_names_itself_is_the_same_whatever_stands_beside_it() -> None:
    assert contradiction("The API listens on port 8080. TLS ends at nginx.", "The API listens on port 9090. It is written in Go.", 0.7)
    assert contradiction("The users table has 12 columns", "The users table has 31 columns", 0.7)
