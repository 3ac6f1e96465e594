"""What a store comes to, of the command, what was prepared, and the guards: a new memory, a duplicate, an
addition to an older one.
"""

from contextlib import nullcontext
from typing import Any, cast

import msgspec
import pytest

from omegad.catalog import service
from omegad.embedding.passages import Embedded
from omegad.index.neighbours import Near
from omegad.index.served import Recent
from omegad.log.decision import Decision, DecisionState
from omegad.memory import embedding, store
from omegad.memory.content import content_key
from omegad.memory.embedding import EmbedMemory
from omegad.memory.events import (
    MemoryContradicted,
    MemoryEmbedded,
    MemoryEvolved,
    MemoryPromoted,
    MemoryRelated,
    MemoryRepeated,
    MemoryStored,
    MemorySuperseded,
)
from omegad.memory.relating import Neighbour
from omegad.memory.state import MemoryState
from omegad.memory.store import PreparedStore, StoreMemory
from omegad.memory.types import BUILT_IN, DAY_SECONDS, MemoryType
from omegad.memory.upsert import UpsertMemory
from omegad.requests.method import Outdated
from omegad.runtime.errors import Invalid, NotFound, Refused
from tests.builders import START_US
from tests.memory.deciding import FUTURE_US, NOW_US, PAST_US, FakeGuards, answer, facts, guard, guards

PLAIN = MemoryType()
VECTORS = MemoryEmbedded(memory_id="mem-new", embedder_id="paper-1", text_hashes=("hash",))
KEY = content_key("c", "memory", None, None)


def prepared(content: str = "c", *neighbours: Neighbour, **changes: Any) -> PreparedStore:
    fields: dict[str, Any] = {
        "memory_id": "mem-new",
        "read_position": 10,
        "embedded": Embedded(embedder_id="paper-1", text_hashes=("hash",), vector=b"", is_whole=True),
        "shown": frozenset(),
    }
    return PreparedStore(content=content, neighbours=neighbours, **fields | changes)


def arrival(memory_id: str) -> Recent:
    near = Near(
        memory_id=memory_id,
        content=memory_id,
        event_type="memory",
        entity_id=None,
        session_id=None,
        cosine=0.97,
    )
    return Recent(near, memory_id)


def decide(
    command: StoreMemory, ready: PreparedStore, *known: MemoryState, kind: MemoryType = PLAIN
) -> Decision:
    """Decide a store where the neighbours are as they were read, but for those whose guards are given."""
    named = {one.memory_id for one in known}
    neighbours = (guard(one.memory_id) for one in ready.neighbours if one.memory_id not in named)
    return store.store(
        command, msgspec.structs.replace(ready, kind=kind), guards(*known, *neighbours), NOW_US
    )


def plain(content: str = "c", **changes: Any) -> StoreMemory:
    return StoreMemory(content=content, **changes)


def upsert(timestamp: str = "2024-02-03T04:05:06Z", **changes: Any) -> UpsertMemory:
    fields: dict[str, Any] = {"content": "c", "source": "import", "timestamp": timestamp, "confidence": 0.75}
    return UpsertMemory(**fields | changes)


def the_memory(decision: Decision) -> MemoryStored:
    first = facts(decision)[0]
    assert isinstance(first, MemoryStored)
    return first


def test_a_new_memory_is_stored_with_its_vectors_and_its_relations() -> None:
    command = plain(
        session_id="s",
        project="p",
        entity_id="e",
        tags=("b", "a", "b"),
        metadata={"k": 1},
        referenced_date="2026-01-01",
    )
    decision = decide(
        command,
        prepared("c", Neighbour(memory_id="mem-1", cosine=0.7), redacted=("jwt",), auto_tags=("python",)),
    )
    first = the_memory(decision)
    assert (first.memory_id, first.content, first.tags, first.metadata, first.referenced_at) == (
        "mem-new",
        "c",
        ("b", "a"),
        {"k": 1},
        START_US,
    )
    assert (first.auto_tags, first.redacted, first.entity_id, first.pending) == (
        ("python",),
        ("jwt",),
        "e",
        False,
    )
    assert first.content_key == content_key("c", "memory", "p", "e")
    assert [(edge.memory_id, edge.similarity) for edge in first.related] == [("mem-1", 0.7)]
    assert facts(decision)[1:] == [VECTORS]
    assert [(new.session_id, new.project, new.occurred_at, new.follows) for new in decision.events] == [
        ("s", "p", None, False),
        ("s", "p", None, True),
    ]
    assert answer(decision) == {
        "memory_id": "mem-new",
        "outcome": "stored",
        "position": 0,
        "related": [{"memory_id": "mem-1", "similarity": 0.7, "edge_type": "related"}],
        "contradicts": [],
        "superseded": [],
        "may_replace": [],
        "may_contradict": [],
        "redacted": ["jwt"],
        "auto_tags": ["python"],
        "ignored": [],
        "unfound": [],
        "degraded": None,
        "note": None,
        "status": "active",
    }


def test_without_a_model_a_memory_is_stored_as_pending() -> None:
    decision = decide(plain(), prepared(embedded=None, pending=True, degraded="embedding"))
    assert len(facts(decision)) == 1
    assert the_memory(decision).pending
    assert answer(decision)["degraded"] == "embedding"


def test_the_same_content_in_the_same_scope_is_a_repetition() -> None:
    command = plain(session_id="s")
    decision = decide(command, prepared(), guard("mem-old", content_key=KEY))
    assert facts(decision) == [MemoryRepeated(memory_id="mem-old", likeness="exact", similarity=1.0)]
    assert (answer(decision)["outcome"], answer(decision)["memory_id"], answer(decision)["status"]) == (
        "duplicate",
        "mem-old",
        "active",
    )


@pytest.mark.parametrize("other", [{"event_type": "decision"}, {"project": "p"}, {"entity_id": "e"}], ids=str)
def test_the_same_content_in_another_scope_is_another_memory(other: dict[str, Any]) -> None:
    assert (
        answer(decide(plain(**other), prepared(), guard("mem-old", content_key=KEY)))["outcome"] == "stored"
    )


@pytest.mark.parametrize(
    "hidden",
    [{"state": "deleted"}, {"state": "superseded"}, {"state": "expired"}, {"expires_at": NOW_US}],
    ids=str,
)
def test_content_of_a_memory_that_is_hidden_may_be_stored_again(hidden: dict[str, Any]) -> None:
    assert (
        answer(decide(plain(), prepared(), guard("mem-old", content_key=KEY, **hidden)))["outcome"]
        == "stored"
    )


def test_a_near_duplicate_keeps_the_new_wording_with_the_survivor() -> None:
    decision = decide(
        plain("c!"),
        prepared("c!", Neighbour(memory_id="n", duplicate=("cosine", 0.9712345678)), redacted=("jwt",)),
    )
    assert facts(decision) == [
        MemoryRepeated(memory_id="n", likeness="cosine", similarity=0.971235, content="c!")
    ]
    assert (answer(decision)["outcome"], answer(decision)["memory_id"], answer(decision)["redacted"]) == (
        "duplicate",
        "n",
        ["jwt"],
    )
    assert "taken out" in answer(decision)["note"]  # of two secrets nobody can tell whether they are one
    plainly = decide(plain("c!"), prepared("c!", Neighbour(memory_id="n", duplicate=("cosine", 0.97))))
    assert (answer(plainly)["outcome"], answer(plainly)["note"]) == ("duplicate", None)


def test_what_is_the_same_to_the_letter_wins_over_what_is_nearly_so() -> None:
    ready = prepared("c", Neighbour(memory_id="n", duplicate=("cosine", 0.99)))
    assert facts(decide(plain(), ready, guard("mem-old", content_key=KEY), guard("n")))[0] == MemoryRepeated(
        memory_id="mem-old", likeness="exact", similarity=1.0
    )


def evolving(*neighbours: Neighbour, **changes: Any) -> PreparedStore:
    return prepared(
        "c and d", *(neighbours or (Neighbour(memory_id="n", cosine=0.9, evolution=0.61234567),)), **changes
    )


def test_what_restates_a_memory_and_adds_to_it_is_what_it_says_from_then_on_in_its_own_scope() -> None:
    known = guard("n", event_type="decision", project="p", entity_id="e")
    decision = decide(plain("c and d", event_type="decision"), evolving(), known)
    key = content_key("c and d", "decision", "p", "e")
    assert facts(decision) == [
        MemoryEvolved(
            memory_id="n", content="c and d", content_key=key, wording="c and d", similarity=0.612346
        ),
        MemoryEmbedded(memory_id="n", embedder_id="paper-1", text_hashes=("hash",)),
    ]
    assert [new.follows for new in decision.events] == [False, True]
    assert (answer(decision)["outcome"], answer(decision)["memory_id"], answer(decision)["related"]) == (
        "evolved",
        "n",
        [],
    )


def test_an_addition_without_vectors_leaves_them_to_follow() -> None:
    ready = evolving(embedded=None, degraded="embedding")
    assert [type(fact) for fact in facts(decide(plain("c and d"), ready))] == [MemoryEvolved]


def test_a_duplicate_is_one_before_anything_can_grow() -> None:
    same = Neighbour(memory_id="same", duplicate=("jaccard", 0.95))
    decision = decide(plain("c and d"), evolving(Neighbour(memory_id="n", evolution=0.6), same))
    assert (answer(decision)["outcome"], answer(decision)["memory_id"]) == ("duplicate", "same")


def test_a_memory_that_has_changed_meanwhile_does_not_grow() -> None:
    changed = guard("n", changed_at=11)
    with pytest.raises(Outdated):
        decide(plain("c and d"), evolving(), changed)
    last = msgspec.structs.replace(evolving(), is_last_try=True)
    assert answer(decide(plain("c and d"), last, changed))["outcome"] == "stored"


@pytest.mark.parametrize(
    ("again", "ends"),
    [
        ({}, True),
        ({"session_id": "t"}, True),
        ({"source": "hook:stop", "session_id": "t"}, True),
        ({"source": "hook:stop", "session_id": "s"}, False),
        ({"source": "auto", "session_id": "s"}, False),
        ({"probation": True, "session_id": "s"}, False),
        ({"source": "auto", "probation": False, "session_id": "s"}, True),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "ready",
    [prepared(), prepared("c!", Neighbour(memory_id="n", duplicate=("cosine", 0.97))), evolving()],
    ids=["exact", "near", "grown"],
)
def test_probation_ends_when_somebody_else_or_another_session_says_it_too(
    ready: PreparedStore, again: dict[str, Any], *, ends: bool
) -> None:
    key = KEY if ready.content == "c" else ""
    decision = decide(
        plain(ready.content, **again), ready, guard("n", content_key=key, probation=True, session_id="s")
    )
    promotions = [fact for fact in facts(decision) if isinstance(fact, MemoryPromoted)]
    assert promotions == ([MemoryPromoted(memory_id="n", evidence="corroboration")] if ends else [])
    assert answer(decision)["status"] == ("active" if ends else "probation")


def test_what_is_not_on_probation_needs_no_promotion() -> None:
    assert len(facts(decide(plain(), prepared(), guard("n", content_key=KEY)))) == 1


HELD = {
    "new": ("mem-new", prepared("c")),
    "exact": ("a", prepared("c")),
    "near": ("a", prepared("c!", Neighbour(memory_id="a", duplicate=("cosine", 0.97)))),
    "grown": ("a", evolving(Neighbour(memory_id="a", evolution=0.6))),
}


@pytest.mark.parametrize("how", HELD)
def test_what_a_store_reverts_is_flagged_and_what_it_is_to_supersede_is_by_whoever_holds_the_content(
    how: str,
) -> None:
    holder, ready = HELD[how]
    denied = Neighbour(memory_id="b", contradiction="reverted")
    ready = msgspec.structs.replace(ready, neighbours=(denied, *ready.neighbours))
    known = (
        guard("a", content_key=KEY if how == "exact" else ""),
        guard("b"),
        guard("old", project="elsewhere"),
    )
    decision = decide(plain(ready.content, session_id="s", supersedes=("old", "old")), ready, *known)
    assert facts(decision)[-2:] == [
        MemoryContradicted(memory_id="b", contradicted_by=holder, strength=1.0, reason="reverted"),
        MemorySuperseded(memory_id="old", superseded_by=holder, reason="asked for"),
    ]
    assert [(new.project, new.session_id, new.follows) for new in decision.events[-2:]] == [
        (None, "s", True),
        ("elsewhere", "s", True),
    ]
    told = answer(decision)
    assert (told["memory_id"], told["contradicts"], told["superseded"]) == (holder, ["b"], ["old"])


def test_what_is_named_is_neither_a_near_duplicate_nor_grown_and_nothing_supersedes_itself() -> None:
    for near in (
        Neighbour(memory_id="a", duplicate=("cosine", 0.97)),
        Neighbour(memory_id="a", evolution=0.6),
    ):
        told = answer(decide(plain("c!", supersedes=("a",)), prepared("c!", near)))
        assert (told["outcome"], told["memory_id"], told["superseded"]) == ("stored", "mem-new", ["a"])
    told = answer(decide(plain(supersedes=("a",)), prepared(), guard("a", content_key=KEY)))
    assert (told["outcome"], told["memory_id"], told["superseded"]) == ("duplicate", "a", [])


def test_nothing_is_stored_that_is_to_supersede_what_is_unknown_or_hidden() -> None:
    with pytest.raises(NotFound, match="there is no memory nobody"):
        decide(plain(supersedes=("nobody",)), prepared())
    with pytest.raises(Refused, match="memory a is deleted"):
        decide(plain(supersedes=("a",)), prepared(), guard("a", state="deleted"))


def offered(decision: Decision) -> list[str]:
    return [one["memory_id"] for one in answer(decision)["may_replace"]]


def test_the_three_nearest_that_may_be_replaced_are_offered_but_for_the_holder_and_the_settled() -> None:
    found = [
        Neighbour(memory_id=name, cosine=cosine, replaceable=f"says {name}")
        for name, cosine in zip("edcba", (0.7, 0.8, 0.81, 0.9, 0.9), strict=True)
    ]
    decision = decide(plain(), prepared("c", *found, Neighbour(memory_id="far", cosine=0.95)))
    assert answer(decision)["may_replace"][0] == {"memory_id": "a", "content": "says a", "cosine": 0.9}
    assert offered(decision) == ["a", "b", "c"]
    assert offered(decide(plain(supersedes=("a",)), prepared("c", *found), guard("b", content_key=KEY))) == [
        "c",
        "d",
        "e",
    ]
    assert offered(decide(plain(), prepared("c", *found), guard("a", said_at=FUTURE_US))) == [
        "b",
        "c",
        "d",
    ]  # was said later


@pytest.mark.parametrize(
    "hidden",
    [
        {"state": "deleted"},
        {"state": "superseded"},
        {"state": "expired"},
        {"expires_at": PAST_US},
        {"changed_at": 11},
        None,
    ],
)
def test_neighbours_that_have_changed_ask_for_another_look(hidden: dict[str, Any] | None) -> None:
    ready = prepared(
        "c",
        Neighbour(
            memory_id="gone",
            cosine=0.99,
            duplicate=("cosine", 0.99),
            contradiction="reverted",
            replaceable="x",
        ),
    )
    known = () if hidden is None else (guard("gone", **hidden),)
    with pytest.raises(Outdated):
        store.store(plain(), ready, guards(*known), NOW_US)
    last = msgspec.structs.replace(ready, is_last_try=True)
    decision = store.store(plain(), last, guards(*known), NOW_US)
    assert (answer(decision)["outcome"], answer(decision)["related"], answer(decision)["contradicts"]) == (
        "stored",
        [],
        [],
    )


def test_a_neighbour_whose_time_is_not_over_is_as_it_was() -> None:
    ready = prepared("c", Neighbour(memory_id="n", cosine=0.7))
    assert (
        len(answer(decide(plain(), ready, guard("n", expires_at=FUTURE_US, changed_at=10)))["related"]) == 1
    )


def test_near_arrivals_ask_for_another_look_but_what_was_seen_does_not() -> None:
    ready = prepared("c", arrived=lambda: [arrival("new"), arrival("never stored")])
    with pytest.raises(Outdated):
        decide(plain(), ready, guard("new", at=11))
    assert answer(decide(plain(), ready, guard("new", at=10)))["outcome"] == "stored"


def test_who_may_have_arrived_is_asked_only_where_something_was_appended_since() -> None:
    ready = prepared("c", arrived=lambda: [arrival("new")])
    for head in (10, 11):
        state = cast("DecisionState", FakeGuards(guard("new", at=11), head=head))
        with pytest.raises(Outdated) if head > ready.read_position else nullcontext():
            assert answer(store.store(plain(), ready, state, NOW_US))["outcome"] == "stored"


@pytest.mark.parametrize("has_grown", [False, True])
def test_at_the_last_try_a_store_is_compared_with_what_has_come_meanwhile(*, has_grown: bool) -> None:
    ready = prepared(
        "c",
        Neighbour(memory_id="old", cosine=0.6),
        arrived=lambda: [arrival("new"), arrival("never stored"), arrival("seen")],
        compared=lambda near: tuple(
            Neighbour(memory_id=one.memory_id, cosine=one.cosine, duplicate=("cosine", 0.97)) for one in near
        ),
        is_last_try=True,
    )
    holder = "old" if has_grown else "new"
    known = (guard(holder, at=11, content_key="new"), guard("seen", at=10, content_key="seen"))
    found = answer(decide(plain(), ready, *known))
    assert (found["outcome"], found["memory_id"]) == ("duplicate", holder)
    others = answer(decide(plain(), ready, known[1]))
    assert (others["outcome"], [one["memory_id"] for one in others["related"]]) == ("stored", ["old"])


def test_types_have_their_time_to_live_and_priority_unless_others_are_given() -> None:
    def given(event_type: str, **changes: Any) -> tuple[int | None, int]:
        first = the_memory(
            decide(plain(event_type=event_type, **changes), prepared(), kind=BUILT_IN[event_type])
        )
        return first.ttl_seconds, first.priority

    assert given("memory") == (None, 3)
    assert given("session_summary") == (DAY_SECONDS, 2)
    assert given("checkpoint") == (7 * DAY_SECONDS, 3)
    assert given("constraint") == (None, 5)
    assert given("session_summary", ttl_seconds=5, priority=1) == (5, 1)
    assert (
        the_memory(decide(plain(), prepared(), kind=MemoryType(ttl_seconds=9, priority=2))).ttl_seconds == 9
    )


@pytest.mark.parametrize(
    ("given", "is_automatic"),
    [
        ({}, False),
        ({"source": "cli"}, False),
        ({"source": "auto_capture"}, True),
        ({"source": "Hook:SessionEnd"}, True),
        ({"source": "capture"}, True),
        ({"source": "the hook"}, False),
        ({"source": "autonomous-agent"}, False),
        ({"source": "automated capture"}, True),
        ({"source": "Autodesk manual"}, False),
        ({"source": "auto", "probation": False}, False),
        ({"probation": True}, True),
    ],
    ids=str,
)
def test_what_nobody_asked_for_is_on_probation_and_trusted_half(
    given: dict[str, Any], *, is_automatic: bool
) -> None:
    decision = decide(plain(**given), prepared())
    assert (the_memory(decision).on_probation, the_memory(decision).confidence) == (
        is_automatic,
        0.5 if is_automatic else 1.0,
    )
    assert answer(decision)["status"] == ("probation" if is_automatic else "active")
    assert the_memory(decide(plain(confidence=0.0, **given), prepared())).confidence == 0.0


def test_every_memory_says_who_it_is_from() -> None:
    assert the_memory(decide(plain(source="me"), prepared(client="cli"))).source == "me"
    assert the_memory(decide(plain(), prepared(client="cli"))).source == "cli"
    assert the_memory(decide(plain(), prepared())).source == "unnamed client"


def test_an_upsert_has_its_provenance_and_is_as_old_as_it_says() -> None:
    known = guard("n", said_at=1_706_933_106_000_000)
    decision = decide(
        upsert(tags=("a",)), prepared("c", Neighbour(memory_id="n", contradiction="reverted")), known
    )
    first = the_memory(decision)
    assert (first.source, first.confidence, first.tags) == ("import", 0.75, ("a",))
    assert {new.occurred_at for new in decision.events} == {1_706_933_106_000_000}
    assert len(decision.events) == 3
    assert the_memory(decide(upsert(source="hook:import", confidence=0.9), prepared())).on_probation
    again = decide(upsert(), prepared(), guard("mem-old", content_key=KEY))
    assert [(type(new.event), new.occurred_at) for new in again.events] == [
        (MemoryRepeated, 1_706_933_106_000_000)
    ]


def embed(
    ready: PreparedStore, *known: MemoryState, key: str = "", embedded: tuple[str, ...] = ()
) -> Decision:
    command = EmbedMemory(memory_id=ready.memory_id, content_key=key, said=plain(ready.content))
    return embedding.embed(command, ready, guards(*known, embedded=embedded), NOW_US)


PENDING = guard("mem-new", at=3, pending=True)


def test_a_memory_embedded_later_gets_its_vectors_and_its_relations_from_the_event_that_stored_it() -> None:
    decision = embed(prepared("c", Neighbour(memory_id="n", cosine=0.6)), PENDING, guard("n"))
    vectors, relations = facts(decision)
    assert vectors == VECTORS
    assert isinstance(relations, MemoryRelated)
    assert [edge.memory_id for edge in relations.related] == ["n"]
    assert [(new.cause, new.follows) for new in decision.events] == [(3, False), (3, False)]


def test_a_memory_embedded_by_another_model_gets_its_vectors_alone() -> None:
    ready = prepared("c", Neighbour(memory_id="n", cosine=0.6, contradiction="reverted", replaceable="x"))
    assert facts(embed(ready, guard("mem-new"), guard("n"))) == [VECTORS]


def test_embedding_twice_records_once() -> None:
    assert facts(embed(prepared(), PENDING, embedded=("mem-new",))) == []
    assert facts(embed(prepared())) == []


def test_vectors_of_what_a_memory_said_before_are_not_recorded() -> None:
    changed = guard("mem-new", content_key="what it says now", at=3, pending=True)
    assert facts(embed(prepared(), changed, key="what it said")) == []
    assert facts(embed(prepared(), changed, key="what it says now"))[0] == VECTORS


def test_a_memory_that_proves_to_be_a_duplicate_gives_way_to_the_one_there_is() -> None:
    ready = prepared("c", Neighbour(memory_id="n", cosine=0.99, duplicate=("cosine", 0.99)))
    assert facts(embed(ready, PENDING, guard("n", at=1))) == [
        VECTORS,
        MemoryRelated(memory_id="mem-new", related=()),
        MemorySuperseded(memory_id="mem-new", superseded_by="n", reason="says the same"),
    ]


@pytest.mark.parametrize("is_last_try", [True, False])
def test_no_memory_gives_way_to_one_that_is_gone(*, is_last_try: bool) -> None:
    """Else two that say the same would give way to each other, and neither were found again."""
    ready = prepared("c", Neighbour(memory_id="n", duplicate=("cosine", 0.99)), is_last_try=is_last_try)
    known = (PENDING, guard("n", at=1, state="superseded"))
    if is_last_try:
        assert facts(embed(ready, *known)) == [VECTORS, MemoryRelated(memory_id="mem-new", related=())]
    else:
        with pytest.raises(Outdated):
            embed(ready, *known)


def test_the_older_of_two_that_say_the_same_is_kept() -> None:
    """What was acknowledged first is what others have linked to; the docstring of `embed` promises it."""
    ready = prepared("c", Neighbour(memory_id="younger", duplicate=("cosine", 0.99)))
    found = facts(embed(ready, PENDING, guard("younger", at=9, pending=True)))
    assert [type(fact) for fact in found] == [MemoryEmbedded, MemoryRelated]


@pytest.mark.parametrize("state", ["deleted", "superseded", "expired"])
def test_a_hidden_memory_that_is_embedded_stays_as_it_is(state: str) -> None:
    same = Neighbour(memory_id="n", duplicate=("cosine", 0.99))
    denied = Neighbour(memory_id="o", contradiction="reverted", replaceable="x")
    for neighbour in (same, denied):
        found = facts(
            embed(
                prepared("c", neighbour),
                guard("mem-new", at=3, pending=True, state=state),
                guard(neighbour.memory_id),
            )
        )
        assert [type(fact) for fact in found] == [MemoryEmbedded, MemoryRelated]


def test_a_memory_embedded_later_denies_only_what_is_older_than_itself() -> None:
    ready = prepared(
        "c",
        Neighbour(memory_id="old", contradiction="reverted", replaceable="x"),
        Neighbour(memory_id="young", contradiction="reverted"),
    )
    assert facts(embed(ready, PENDING, guard("old", at=1), guard("young", at=9)))[2:] == [
        MemoryContradicted(memory_id="old", contradicted_by="mem-new", strength=1.0, reason="reverted")
    ]


@pytest.mark.parametrize(
    "params",
    [
        b'{"content": ""}',
        b'{"content": "c", "priority": 6}',
        b'{"content": "c", "priority": 0}',
        b'{"content": "c", "confidence": 1.1}',
        b'{"content": "c", "ttl_seconds": 0}',
        b'{"content": "c", "ttl_seconds": 9223372036854775808}',
        b'{"content": "c", "ttl_seconds": 9223372036854775807}',
        b'{"content": "c", "tags": [""]}',
        b'{"content": "c", "tags": ["' + b"x" * 65 + b'"]}',
        b'{"content": "c", "tags": [' + b",".join(b'"%d"' % n for n in range(33)) + b"]}",
        b'{"content": "c", "project": ""}',
        b'{"content": "c", "contents": "c"}',
        b'{"content": "c", "metadata": []}',
        b'{"content": "\\ud800"}',
        b'{"content": 1}',
        b"{}",
        b"[]",
        b"{",
    ],
)
def test_parameters_out_of_bounds_are_refused(params: bytes) -> None:
    with pytest.raises(Invalid):
        service.parse("memory.store", params)


@pytest.mark.parametrize("missing", ["source", "timestamp", "confidence", "content"])
def test_an_upsert_without_its_provenance_is_refused(missing: str) -> None:
    params = {"content": "c", "source": "import", "timestamp": "2024-01-01", "confidence": 0.5}
    assert service.parse("memory.upsert", msgspec.json.encode(params))
    with pytest.raises(Invalid, match=missing):
        service.parse(
            "memory.upsert",
            msgspec.json.encode({name: value for name, value in params.items() if name != missing}),
        )


def test_what_was_denied_when_it_was_stored_is_not_denied_again_when_it_is_embedded() -> None:
    """Between the two somebody may have restored the older one."""
    ready = prepared("c", Neighbour(memory_id="n", contradiction="reverted", replaceable="x"))
    restored = guard("n", at=1, denied_by="mem-new")
    assert [type(fact) for fact in facts(embed(ready, PENDING, restored))] == [MemoryEmbedded, MemoryRelated]
    assert MemoryContradicted in [type(fact) for fact in facts(embed(ready, PENDING, guard("n", at=1)))]


def test_to_be_embedded_is_not_to_be_said_again() -> None:
    older = guard("mem-new", at=3, pending=True, denied_by="n")
    assert [type(fact) for fact in facts(embed(prepared("c"), older, guard("n", at=5)))] == [
        MemoryEmbedded,
        MemoryRelated,
    ]


def test_what_is_given_with_a_duplicate_and_not_kept_is_told() -> None:
    given: dict[str, Any] = {
        "tags": ("a",),
        "metadata": {"b": 1},
        "priority": 5,
        "source": "me",
        "confidence": 0.5,
        "referenced_date": "2026-01-01",
    }
    known = guard("mem-old", content_key=KEY)
    assert answer(decide(plain(**given), prepared(), known))["ignored"] == [
        "metadata",
        "priority",
        "referenced_date",
        "source",
        "confidence",
    ]
    assert answer(decide(plain(tags=("a",)), prepared(), known))["ignored"] == []
    captured = decide(plain(tags=("a",), source="auto"), prepared(), known)
    assert answer(captured)["ignored"] == ["source", "tags"]
    (repeated,) = (new.event for new in captured.events)
    assert isinstance(repeated, MemoryRepeated)
    assert repeated.tags == ()


def test_what_was_captured_lengthens_no_life_that_a_person_gave() -> None:
    known = guard("mem-old", content_key=KEY, ttl_seconds=60, expires_at=FUTURE_US)
    for source, lasts in (("auto", False), ("me", True)):
        (repeated,) = (new.event for new in decide(plain(source=source), prepared(), known).events)
        assert isinstance(repeated, MemoryRepeated)
        assert repeated.is_permanent is lasts
