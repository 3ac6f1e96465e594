"""What a text makes of a memory near to it."""

from typing import Any

import pytest

from omegad.index.neighbours import RELATED_COSINE, Near
from omegad.memory.relating import (
    ALIKE_COSINE,
    EXCERPT_CHARACTERS,
    OVERRIDDEN_COSINE,
    REPLACEABLE_COSINE,
    UNDONE_TYPE,
    Neighbour,
    Scope,
    compare,
    relations,
)
from omegad.memory.types import EPISODIC_TYPES
from omegad.text.evidence.statements import COMPARED_CHARACTERS

BLUE_GREEN = "deploys go through blue-green"


def near(content: str, cosine: float | None = 0.9, **changes: Any) -> Near:
    fields: dict[str, Any] = {
        "memory_id": "n",
        "event_type": "memory",
        "entity_id": None,
        "session_id": None,
    } | changes
    return Near(content=content, cosine=cosine, **fields)


def compared(content: str, found: Near, event_type: str = "memory", jaccard_min: float = 0.9) -> Neighbour:
    (neighbour,) = compare(content, Scope(event_type=event_type), [found], jaccard_min)
    return neighbour


@pytest.mark.parametrize(
    ("content", "found", "likeness"),
    [
        (BLUE_GREEN, near("Deploys go via blue-green", 0.96), "cosine"),
        (BLUE_GREEN, near("Deploys go via blue-green", 0.95), "cosine"),
        (BLUE_GREEN, near("Deploys go via blue-green", 0.9499), None),
        (BLUE_GREEN, near("deploys go through blue-green in the cloud", 0.99), None),
        (BLUE_GREEN, near(f"{BLUE_GREEN}\nrollbacks take an hour", 0.3), "jaccard"),
        (BLUE_GREEN, near(f"{BLUE_GREEN}, and rollbacks take an hour", 0.95), "cosine"),
        ("rollbacks take an hour", near(f"{BLUE_GREEN}\nrollbacks take an hour", None), "jaccard"),
        ("rollbacks take an hour", near(f"{BLUE_GREEN}\nrollbacks take 2 hours", 0.99), None),
        ("Our API is slow", near("Their API is slow", 0.99), None),
        ("deploys go through blue-green in the cloud", near(BLUE_GREEN, 0.99), None),
        (BLUE_GREEN, near("deploys go through canaries", 0.99), None),
        (BLUE_GREEN, near("deploys go through Blue-green!", 0.3), "jaccard"),
        (BLUE_GREEN, near("deploys go through Blue-green!", None), "jaccard"),
        ("the timeout is 30 s", near("the timeout is 60 s", 0.999), None),
        ("the cache is enabled", near("the cache is disabled", 0.999), None),
        (BLUE_GREEN, near("Deploys go via blue-green", 0.99, event_type="decision"), None),
        (BLUE_GREEN, near("Deploys go via blue-green", 0.99, entity_id="shop"), None),
        (BLUE_GREEN, near("Deploys go via blue-green", 0.99, is_comparable=False), None),
        (BLUE_GREEN, near("deploys go through Blue-green!", 0.99, is_comparable=False), "jaccard"),
    ],
)
def test_a_near_duplicate_is_one_only_when_kind_and_details_agree(
    content: str, found: Near, likeness: str | None
) -> None:
    neighbour = compared(content, found)
    assert (neighbour.memory_id, neighbour.cosine) == ("n", found.cosine)
    assert (neighbour.duplicate and neighbour.duplicate[0]) == likeness


def test_what_is_given_up_by_its_name_is_denied_however_far_the_meanings_are() -> None:
    old = near("Nous utilisons Sentry pour suivre les erreurs.", RELATED_COSINE - 0.2)
    assert compared("Nous n'utilisons plus Sentry.", old).contradiction == "given up"
    assert compared("Nous ne suivons plus les erreurs de Kafka.", old).contradiction is None


@pytest.mark.parametrize("is_other", [True, False])
def test_texts_too_long_to_compare_are_just_near(*, is_other: bool) -> None:
    long = "deploys go through blue-green. " * (COMPARED_CHARACTERS // 31 + 1)
    content, other = (BLUE_GREEN, long) if is_other else (long, BLUE_GREEN)
    found = compared(content, near(other, 0.97))
    assert (found.cosine, found.duplicate, found.evolution, found.contradiction) == (0.97, None, None, None)
    assert found.replaceable == (f"{long[: EXCERPT_CHARACTERS - 1].rstrip()}…" if is_other else BLUE_GREEN)


def test_how_alike_words_must_be_depends_on_the_type() -> None:
    one, other = "retry the upload with the jitter", "please retry the upload with the jitter"
    overlap = 5 / 6
    assert compared(one, near(other, 0.9), jaccard_min=overlap).duplicate == ("jaccard", overlap)
    assert compared(one, near(other, 0.9), jaccard_min=overlap + 0.01).duplicate is None


def test_a_text_that_restates_a_memory_and_adds_to_it_makes_it_grow() -> None:
    grown = compared(
        "deploys go through blue-green in the cloud; rollbacks too",
        near("deploys go through blue-green in the cloud", 0.8),
    )
    assert (grown.evolution, grown.duplicate) == (0.8, None)
    more = "; and rollbacks take an hour or so"
    for added in (more, f",{more[1:]}", f". {more[2:]}", ", behind a flag", " and a flag"):
        assert compared(f"deploys go through blue-green{added}", near(BLUE_GREEN)).evolution is not None


@pytest.mark.parametrize(
    ("content", "found", "event_type"),
    [
        (
            "deploys go through blue-green in the cloud; rollbacks too",
            near("deploys go through blue-green in the cloud", event_type="decision"),
            "memory",
        ),
        (
            "deploys go through blue-green in the cloud; rollbacks too",
            near("deploys go through blue-green in the cloud", entity_id="shop"),
            "memory",
        ),
        (
            "deploys go through blue-green on 3 hosts; rollbacks too",
            near("deploys go through blue-green on 2 hosts"),
            "memory",
        ),
        (
            "deploys never go through blue-green in the cloud; rollbacks too",
            near("deploys go through blue-green in the cloud"),
            "memory",
        ),
        (
            f"{BLUE_GREEN}; and here is a great deal more of what was found out of the hosts",
            near(BLUE_GREEN),
            "memory",
        ),
        ("deploys go through blue-green, but not on Fridays", near(BLUE_GREEN), "memory"),
        ("deploys go through blue-green on Fridays", near(BLUE_GREEN), "memory"),
        ("thanks, the export works now", near("thanks!"), "memory"),
        *(
            (
                "deploys go through blue-green in the cloud; rollbacks too",
                near("deploys go through blue-green in the cloud", event_type=name),
                name,
            )
            for name in sorted(EPISODIC_TYPES)
        ),
    ],
)
def test_a_memory_does_not_grow_by_what_is_of_another_kind_differs_or_may_narrow_it(
    content: str, found: Near, event_type: str
) -> None:
    assert compared(content, found, event_type).evolution is None


TITLE = "Cache the rendered pages for an hour (#12)"
REVERT = f'Revert "{TITLE}" (#15)\nThis reverts commit 575938d.'


def test_a_revert_denies_what_it_names_across_types_but_not_across_entities() -> None:
    for event_type in ("memory", "decision", UNDONE_TYPE):
        assert (
            compared(REVERT, near(f"{TITLE}\nSaves a second.", None, event_type=event_type)).contradiction
            == "reverted"
        )
    assert compared(REVERT, near(TITLE, 0.95, entity_id="shop")).contradiction is None


@pytest.mark.parametrize("event_type", sorted(EPISODIC_TYPES))
def test_what_happened_neither_denies_nor_is_replaced(event_type: str) -> None:
    changed, before = "the billing service runs on port 9090", "the billing service runs on port 8080"
    for found in (
        compared(changed, near(before, 0.95, event_type=event_type)),
        compared(changed, near(before, 0.95), event_type),
    ):
        assert (found.contradiction, found.replaceable) == (None, None)
    assert compared(REVERT, near(TITLE, 0.95), event_type).contradiction is None
    undone = compared(REVERT, near(TITLE, 0.95, event_type=event_type))
    assert (undone.contradiction is not None, undone.replaceable is not None) == (
        event_type == UNDONE_TYPE,
        event_type == UNDONE_TYPE,
    )
    same = compared(
        BLUE_GREEN, near("deploys go through Blue-green!", 0.9, event_type=event_type), event_type
    )
    assert same.duplicate == ("jaccard", 1.0)


@pytest.mark.parametrize(
    ("content", "least"),
    [
        ("requests are answered on 9090", REPLACEABLE_COSINE),
        ("requests are no longer answered there", OVERRIDDEN_COSINE),
        ("the api listens on port 9090", ALIKE_COSINE),
        ("the api listens wherever its host says", ALIKE_COSINE),
        ("the api listens wherever its own host says", REPLACEABLE_COSINE),
    ],
)
def test_a_memory_may_be_replaced_from_a_likeness_on_that_depends_on_the_words(
    content: str, least: float
) -> None:
    old = "the api listens on port 8080"
    assert compared(content, near(old, least)).replaceable == old
    assert compared(content, near(old, least - 0.01)).replaceable is None
    assert compared(content, near(old, None)).replaceable is None
    assert compared(content, near(old, least, entity_id="shop")).replaceable is None


def test_relations_are_the_three_nearest_from_045_on() -> None:
    cosines = {"a": 0.5, "b": 0.449999, "c": 0.91234567, "d": RELATED_COSINE, "f": 0.7, "e": 0.7, "g": None}
    found = relations(Neighbour(memory_id=name, cosine=cosine) for name, cosine in cosines.items())
    assert [(edge.memory_id, edge.similarity, edge.edge_type) for edge in found[0]] == [
        ("c", 0.912346, "related"),
        ("e", 0.7, "related"),
        ("f", 0.7, "related"),
    ]
    assert [
        edge.memory_id
        for edge in relations(
            [Neighbour(memory_id="d", cosine=0.45), Neighbour(memory_id="b", cosine=0.449999)]
        )[0]
    ] == ["d"]
    assert found[1] == ()


def test_what_is_said_may_speak_for_the_five_nearest_above_080() -> None:
    cosines = {"a": 0.95, "b": 0.93, "c": 0.91, "d": 0.9, "e": 0.81, "f": 0.805}
    edges, also_near = relations(Neighbour(memory_id=name, cosine=near) for name, near in cosines.items())
    assert ([one.memory_id for one in edges], [one.memory_id for one in also_near]) == (
        ["a", "b", "c"],
        ["d", "e"],
    )
    assert relations(Neighbour(memory_id=name, cosine=0.8) for name in cosines)[1] == ()
