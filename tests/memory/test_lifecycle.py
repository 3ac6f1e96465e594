"""Decisions on memories that are there: edit, delete, supersede, restore, rate, promote, let expire."""

from collections.abc import Callable
from typing import Any

import pytest

from omegad.embedding.passages import Embedded
from omegad.log.decision import Decision
from omegad.memory import lifecycle
from omegad.memory.content import content_key
from omegad.memory.events import (
    MemoryDeleted,
    MemoryDemoted,
    MemoryEdited,
    MemoryEmbedded,
    MemoryExpired,
    MemoryPromoted,
    MemoryRated,
    MemoryRestored,
    MemorySuperseded,
    Rating,
)
from omegad.memory.lifecycle import (
    DeleteMemory,
    DemoteMemory,
    EditMemory,
    PreparedEdit,
    PromoteMemory,
    RateMemory,
    RestoreMemory,
    SupersedeMemory,
)
from omegad.memory.state import MemoryState
from omegad.memory.upkeep.expiry import ExpireMemories, expire
from omegad.runtime.errors import Conflict, NotFound, Refused
from tests.memory.deciding import FUTURE_US, NOW_US, PAST_US, answer, facts, guard, guards

HIDDEN: list[dict[str, Any]] = [
    {"state": "deleted"},
    {"state": "superseded"},
    {"state": "expired", "expires_at": PAST_US},
    {"expires_at": NOW_US},
]


def edit(*known: MemoryState, reason: str | None = None, **changes: Any) -> Decision:
    embedded = Embedded(embedder_id="paper-1", text_hashes=("hash",), vector=b"", is_whole=True)
    fields: dict[str, Any] = {"content": "d", "embedded": embedded}
    ready = PreparedEdit(**fields | changes)
    return lifecycle.edit(
        EditMemory(memory_id="m", content="d", reason=reason), ready, guards(*known), NOW_US
    )


def delete(*known: MemoryState) -> Decision:
    return lifecycle.delete(DeleteMemory(memory_id="m", reason="old"), ("n",), guards(*known), NOW_US)


def supersede(*known: MemoryState, by: str = "n", reason: str | None = None) -> Decision:
    return lifecycle.supersede(
        SupersedeMemory(memory_id="m", superseded_by=by, reason=reason), guards(*known), NOW_US
    )


def restore(*known: MemoryState) -> Decision:
    return lifecycle.restore(RestoreMemory(memory_id="m", reason="right after all"), guards(*known), NOW_US)


def rate(rating: Rating, *known: MemoryState) -> Decision:
    return lifecycle.rate(RateMemory(memory_id="m", rating=rating, reason="why"), guards(*known), NOW_US)


def promote(*known: MemoryState) -> Decision:
    return lifecycle.promote(PromoteMemory(memory_id="m"), guards(*known), NOW_US)


def demote(*known: MemoryState) -> Decision:
    return lifecycle.demote(DemoteMemory(memory_id="m"), guards(*known), NOW_US)


@pytest.mark.parametrize(
    "ask", [edit, delete, supersede, restore, promote, demote, lambda *known: rate("helpful", *known)]
)
def test_nothing_can_be_done_with_a_memory_that_was_never_stored(ask: Callable[..., Decision]) -> None:
    with pytest.raises(NotFound, match="no memory m"):
        ask(guard("n"))


@pytest.mark.parametrize("ask", [edit, supersede, promote, demote])
@pytest.mark.parametrize("hidden", HIDDEN, ids=str)
def test_a_hidden_memory_is_not_changed_and_the_refusal_says_what_helps(
    ask: Callable[..., Decision], hidden: dict[str, Any]
) -> None:
    with pytest.raises(Refused, match=str(hidden.get("state", "expired"))) as error:
        ask(guard("m", **hidden), guard("n"))
    assert "memory.restore" in error.value.hint


def test_an_edit_replaces_the_content_in_its_scope_with_its_vectors() -> None:
    key = content_key("d", "decision", "p", "e")
    decision = edit(guard("m", event_type="decision", project="p", entity_id="e"), reason="a slip")
    assert facts(decision) == [
        MemoryEdited(memory_id="m", content="d", content_key=key, reason="a slip"),
        MemoryEmbedded(memory_id="m", embedder_id="paper-1", text_hashes=("hash",)),
    ]
    assert [(new.project, new.follows) for new in decision.events] == [("p", False), ("p", True)]
    assert [type(fact) for fact in facts(edit(guard("m"), embedded=None))] == [MemoryEdited]


def test_an_edit_that_changes_nothing_is_no_event() -> None:
    decision = edit(guard("m", content_key=content_key("d", "memory", None, None), changed_at=7))
    assert (facts(decision), answer(decision)["position"]) == ([], 7)


@pytest.mark.parametrize("ask", [edit, restore])
def test_no_two_memories_come_to_say_exactly_the_same(ask: Callable[..., Decision]) -> None:
    key = content_key("d", "memory", None, None)
    mine = guard("m") if ask is edit else guard("m", content_key=key, state="superseded")
    with pytest.raises(Conflict, match="memory n says exactly that") as error:
        ask(mine, guard("n", content_key=key))
    assert "delete or edit" in error.value.hint
    for hidden in HIDDEN:
        assert facts(ask(mine, guard("n", content_key=key, **hidden)))


def test_a_deletion_hides_whatever_is_not_deleted_yet() -> None:
    for state in ("active", "superseded", "expired"):
        decision = delete(guard("m", state=state, project="p"))
        assert facts(decision) == [MemoryDeleted(memory_id="m", reason="old")]
        assert decision.events[0].project == "p"
    with pytest.raises(Refused, match="deleted already"):
        delete(guard("m", state="deleted"))


def test_a_memory_takes_the_place_of_another() -> None:
    known = (guard("m"), guard("n"))
    assert facts(supersede(*known)) == [
        MemorySuperseded(memory_id="m", superseded_by="n", reason="asked for")
    ]
    assert facts(supersede(*known, reason="moved")) == [
        MemorySuperseded(memory_id="m", superseded_by="n", reason="moved")
    ]


def test_no_memory_gives_way_to_itself_to_nothing_or_to_one_that_is_hidden() -> None:
    with pytest.raises(Refused, match="itself"):
        supersede(guard("m"), by="m")
    with pytest.raises(NotFound, match="no memory n"):
        supersede(guard("m"))
    for hidden in HIDDEN:
        with pytest.raises(Refused, match="memory n is"):
            supersede(guard("m"), guard("n", **hidden))


@pytest.mark.parametrize(
    ("hidden", "is_permanent"),
    [
        ({"state": "deleted"}, False),
        ({"state": "superseded"}, False),
        ({"state": "deleted", "expires_at": FUTURE_US}, False),
        ({"state": "deleted", "expires_at": NOW_US}, True),
        ({"state": "expired", "expires_at": PAST_US}, True),
        ({"expires_at": PAST_US}, True),
        ({"expires_at": NOW_US}, True),
    ],
    ids=str,
)
def test_what_is_hidden_can_be_brought_back_for_ever_where_its_time_is_over(
    hidden: dict[str, Any], *, is_permanent: bool
) -> None:
    decision = restore(guard("m", project="p", **hidden))
    assert facts(decision) == [
        MemoryRestored(memory_id="m", reason="right after all", is_permanent=is_permanent)
    ]
    assert decision.events[0].project == "p"


@pytest.mark.parametrize("found", [{}, {"expires_at": FUTURE_US}], ids=str)
def test_what_is_not_hidden_needs_no_restoring(found: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="not deleted, superseded or expired"):
        restore(guard("m", **found))


@pytest.mark.parametrize(("rating", "points"), [("helpful", 1), ("unhelpful", -1), ("outdated", -2)])
@pytest.mark.parametrize("state", ["active", "superseded", "deleted", "expired"])
def test_a_rating_adds_its_points_whatever_has_become_of_the_memory(
    rating: Rating, points: int, state: str
) -> None:
    decision = rate(rating, guard("m", rating=5, state=state))
    assert facts(decision) == [MemoryRated(memory_id="m", rating=rating, points=points, reason="why")]
    assert answer(decision) == {"score": 5 + points, "position": 0}


@pytest.mark.parametrize(("rating", "ends"), [("helpful", True), ("unhelpful", False), ("outdated", False)])
def test_what_has_helped_is_on_probation_no_more(rating: Rating, *, ends: bool) -> None:
    promotions = facts(rate(rating, guard("m", probation=True)))[1:]
    assert promotions == ([MemoryPromoted(memory_id="m", evidence="use")] if ends else [])
    assert len(facts(rate(rating, guard("m")))) == 1


def test_a_promotion_ends_probation_and_one_that_is_not_needed_is_no_event() -> None:
    decision = promote(guard("m", probation=True))
    assert facts(decision) == [MemoryPromoted(memory_id="m", evidence="explicit")]
    assert answer(decision) == {"status": "active", "position": 0}
    again = promote(guard("m", changed_at=4))
    assert (facts(again), answer(again)) == ([], {"status": "active", "position": 4})


def test_a_promotion_is_taken_back_and_what_is_on_probation_already_needs_nothing() -> None:
    decision = demote(guard("m"))
    assert facts(decision) == [MemoryDemoted(memory_id="m", reason="by hand")]
    again = demote(guard("m", probation=True, changed_at=4))
    assert (facts(again), answer(again)) == ([], {"position": 4})


def test_of_the_memories_named_those_expire_whose_time_is_over() -> None:
    known = (
        guard("over", expires_at=PAST_US),
        guard("just over", expires_at=NOW_US),
        guard("not yet", expires_at=FUTURE_US),
        guard("permanent"),
        guard("deleted", state="deleted", expires_at=PAST_US),
        guard("recorded", state="expired", expires_at=PAST_US),
        guard("not named", expires_at=PAST_US),
    )
    names = ("over", "just over", "not yet", "permanent", "deleted", "recorded", "never stored")
    decision = expire(ExpireMemories(memory_ids=names), guards(*known), NOW_US)
    assert facts(decision) == [
        MemoryExpired(memory_id="over", expired_at=PAST_US),
        MemoryExpired(memory_id="just over", expired_at=NOW_US),
    ]
