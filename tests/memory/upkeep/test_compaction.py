"""What a compaction and a consolidation come to, given what was prepared and what the guards say by then."""

from typing import Any

import msgspec
import pytest

from omegad.catalog import service
from omegad.embedding.passages import Embedded
from omegad.log.decision import Decision
from omegad.log.sanitise import TAGS_MAX
from omegad.memory.content import content_key
from omegad.memory.events import (
    MemoryEmbedded,
    MemoryExpired,
    MemoryPromoted,
    MemoryStored,
    MemorySuperseded,
    UpkeepCompleted,
)
from omegad.memory.state import MemoryState
from omegad.memory.types import BUILT_IN
from omegad.memory.upkeep import compaction, consolidation
from omegad.memory.upkeep.clusters import Member
from omegad.memory.upkeep.compaction import (
    COMPACTED_TYPES,
    CompactMemories,
    Draft,
    PreparedCompaction,
    compact,
)
from omegad.memory.upkeep.consolidation import ConsolidateMemories, PreparedConsolidation
from omegad.runtime.errors import Invalid
from tests.memory.deciding import FUTURE_US, NOW_US, PAST_US, answer, facts, guard, guards

COMMON = "The nightly exporter of the billing service is slow on every weekday between spring and autumn"
NOTES = (
    f"{COMMON}. It fetches rows alone.",
    f"{COMMON}. Its batches are small.",
    f"{COMMON}. It logs a lot.",
)
IDS = ("m0", "m1", "m2")


def member(memory_id: str, content: str = NOTES[0], **changes: Any) -> Member:
    fields: dict[str, Any] = {"event_type": "advisor_insight", "project": "shop"}
    return Member(memory_id=memory_id, content=content, **fields | changes)


MEMBERS = tuple(member(memory_id, content) for memory_id, content in zip(IDS, NOTES, strict=True))
KNOWN = tuple(guard(memory_id, at=5) for memory_id in IDS)


def prepared(*members: Member, **changes: Any) -> PreparedCompaction:
    fields: dict[str, Any] = {
        "content": "what all say",
        "memory_id": "mem-sum",
        "embedded": Embedded(embedder_id="paper", text_hashes=("hash",), vector=b"", is_whole=True),
    }
    return PreparedCompaction(
        drafts=(Draft(members=members or MEMBERS, **fields | changes),), size_min=3, read_position=10
    )


def decide(ready: PreparedCompaction, *known: MemoryState, **changes: Any) -> Decision:
    return compact(CompactMemories(**changes), ready, guards(*known), NOW_US)


def summary_of(decision: Decision) -> MemoryStored:
    first = facts(decision)[0]
    assert isinstance(first, MemoryStored)
    return first


def test_a_summary_is_stored_and_takes_the_place_of_the_originals_in_one_append() -> None:
    decision = decide(prepared(), *KNOWN)
    stored, vectors, *gone = facts(decision)
    assert isinstance(stored, MemoryStored)
    assert (stored.memory_id, stored.content, stored.event_type, stored.source) == (
        "mem-sum",
        "what all say",
        "advisor_insight",
        "compaction",
    )
    assert stored.content_key == content_key("what all say", "advisor_insight", "shop", None)
    assert stored.metadata == {"compacted": list(IDS)}
    assert vectors == MemoryEmbedded(memory_id="mem-sum", embedder_id="paper", text_hashes=("hash",))
    assert gone == [
        MemorySuperseded(memory_id=memory_id, superseded_by="mem-sum", reason="compacted")
        for memory_id in IDS
    ]
    assert {new.project for new in decision.events} == {"shop"}
    assert [new.follows for new in decision.events] == [False, True, True, True, True]
    cluster = {
        "memory_id": "mem-sum",
        "originals": list(IDS),
        "event_type": "advisor_insight",
        "project": "shop",
        "content": "what all say",
        "week": None,
    }
    assert answer(decision) == {"dry_run": False, "clusters": [cluster], "superseded": 3, "position": 0}


def test_a_dry_run_tells_the_same_and_writes_nothing() -> None:
    decision = decide(prepared(), *KNOWN, dry_run=True)
    assert decision.events == ()
    told, done = answer(decision), answer(decide(prepared(), *KNOWN))
    assert told["clusters"] == [done["clusters"][0] | {"memory_id": None}]
    assert (told["dry_run"], told["superseded"], told["position"]) == (True, 3, 10)


def test_where_there_is_nothing_to_compact_the_answer_says_as_of_when() -> None:
    decision = decide(PreparedCompaction(read_position=10))
    assert decision.events == ()
    assert answer(decision) == {"dry_run": False, "clusters": [], "superseded": 0, "position": 10}


@pytest.mark.parametrize(
    "changed",
    [
        guard("m3", at=5, state="deleted"),
        guard("m3", at=5, state="superseded"),
        guard("m3", at=5, expires_at=PAST_US, ttl_seconds=1),
        guard("m3", at=11),
        guard("m3", at=5, rating=1),
        None,
    ],
)
def test_what_has_changed_meanwhile_is_left_out_and_the_text_is_that_of_the_rest(
    changed: MemoryState | None,
) -> None:
    ready = prepared(*MEMBERS, member("m3", f"{COMMON}. Its disk is full."))
    known = (*KNOWN, changed) if changed else KNOWN
    decision = decide(ready, *known)
    stored, *gone = facts(decision)
    assert isinstance(stored, MemoryStored)
    assert "disk" not in stored.content
    assert all(
        sentence in stored.content
        for sentence in ("It fetches rows alone.", "Its batches are small.", "It logs a lot.")
    )
    assert stored.content_key == content_key(stored.content, "advisor_insight", "shop", None)
    assert [type(fact) for fact in gone] == [MemorySuperseded] * 3  # and no vectors of another text
    assert answer(decision)["clusters"][0]["originals"] == list(IDS)


def test_a_cluster_of_which_too_few_are_left_is_skipped_and_others_are_not() -> None:
    ready = msgspec.structs.replace(
        prepared(),
        drafts=(*prepared().drafts, Draft(members=tuple(member(f"x{n}") for n in range(3)), content="x")),
    )
    known = (*KNOWN[:2], guard("m2", at=11), *(guard(f"x{n}") for n in range(3)))
    assert [cluster["content"] for cluster in answer(decide(ready, *known))["clusters"]] == ["x"]


def test_a_rating_of_nought_or_less_is_no_reason_to_keep_a_memory_apart() -> None:
    assert answer(decide(prepared(), *KNOWN[:2], guard("m2", rating=-2)))["superseded"] == 3


def test_a_summary_that_another_memory_says_already_is_not_stored_twice() -> None:
    key = content_key("what all say", "advisor_insight", "shop", None)
    assert facts(decide(prepared(), *KNOWN, guard("other", content_key=key))) == []
    assert facts(decide(prepared(), *KNOWN, guard("other", content_key=key, state="deleted")))


def test_a_summary_keeps_the_best_of_what_the_originals_have() -> None:
    members = (
        member(
            "m0",
            tags=("a", "b"),
            auto_tags=("x",),
            priority=2,
            confidence=0.9,
            referenced_at=7,
            session_id="s",
        ),
        member("m1", tags=("b", "c"), auto_tags=("a", "y"), priority=4, referenced_at=7, session_id="s"),
        member("m2", priority=1, confidence=0.4, referenced_at=7, session_id="s"),
    )
    decision = decide(prepared(*members), *KNOWN)
    stored = summary_of(decision)
    assert (stored.tags, stored.auto_tags) == (("a", "b", "c"), ("x", "y"))
    assert (stored.priority, stored.confidence, stored.referenced_at) == (4, 0.4, 7)
    assert {new.session_id for new in decision.events} == {"s"}
    other = decide(prepared(*members[:2], member("m2", referenced_at=8, session_id="t")), *KNOWN)
    assert summary_of(other).referenced_at is None
    assert {new.session_id for new in other.events} == {None}


def test_tags_are_bounded() -> None:
    members = tuple(
        member(memory_id, tags=tuple(f"{memory_id}-{n}" for n in range(20)), auto_tags=("auto",))
        for memory_id in IDS
    )
    stored = summary_of(decide(prepared(*members), *KNOWN))
    assert (len(stored.tags), stored.auto_tags) == (TAGS_MAX, ())


@pytest.mark.parametrize(
    ("ttls", "expected"), [((60, 3600, 5), 3600), ((60, None, 5), None), ((None, None, None), None)]
)
def test_a_summary_lives_as_long_as_the_longest_lived_original(
    ttls: tuple[int | None, ...], expected: int | None
) -> None:
    expires_at = {ttl: None if ttl is None else FUTURE_US for ttl in ttls}
    known = [
        guard(memory_id, ttl_seconds=ttl, expires_at=expires_at[ttl])
        for memory_id, ttl in zip(IDS, ttls, strict=True)
    ]
    assert summary_of(decide(prepared(), *known)).ttl_seconds == expected


@pytest.mark.parametrize(
    ("probation", "expected"), [((True, True, True), True), ((True, False, True), False)]
)
def test_a_summary_is_on_probation_where_all_originals_are(
    probation: tuple[bool, ...],
    expected: bool,  # noqa: FBT001
) -> None:
    known = [guard(memory_id, probation=is_on) for memory_id, is_on in zip(IDS, probation, strict=True)]
    assert summary_of(decide(prepared(), *known)).on_probation is expected


def test_only_what_accumulates_by_itself_is_compacted_unasked() -> None:
    kept = {
        "decision",
        "lesson_learned",
        "user_preference",
        "error_pattern",
        "task_completion",
        "constraint",
        "memory",
        "checkpoint",
        "handoff",
    }
    assert not kept & set(COMPACTED_TYPES)
    assert set(COMPACTED_TYPES) < set(BUILT_IN)
    assert CompactMemories().event_types == COMPACTED_TYPES


@pytest.mark.parametrize(
    "params",
    [
        b'{"threshold": 0.39}',
        b'{"threshold": 1.01}',
        b'{"min_cluster": 1}',
        b'{"limit": 51}',
        b'{"limit": 0}',
        b'{"event_types": []}',
    ],
)
def test_parameters_out_of_bounds_are_refused(params: bytes) -> None:
    with pytest.raises(Invalid):
        service.parse("memory.compact", params)


def consolidate(ready: PreparedConsolidation, *known: MemoryState, dry_run: bool = False) -> Decision:
    return consolidation.consolidate(ConsolidateMemories(dry_run=dry_run), ready, guards(*known), NOW_US)


READY = PreparedConsolidation(
    due=("over", "renewed"),
    proven=(("good", "rated helpful"), ("known", "rated helpful")),
    flagged=("bad", "forgiven"),
    compaction=prepared(),
)
STANDING = (
    *KNOWN,
    guard("over", expires_at=PAST_US, ttl_seconds=1),
    guard("renewed", expires_at=FUTURE_US, ttl_seconds=1),
    guard("good", probation=True),
    guard("known"),
    guard("bad", rating=-3),
    guard("forgiven", rating=-2),
)


def test_a_consolidation_is_one_append_of_all_that_is_still_so() -> None:
    decision = consolidate(READY, *STANDING)
    kinds = [
        MemoryExpired,
        MemoryPromoted,
        MemoryStored,
        MemoryEmbedded,
        *[MemorySuperseded] * 3,
        UpkeepCompleted,
    ]
    assert [type(fact) for fact in facts(decision)] == kinds
    assert facts(decision)[:2] == [
        MemoryExpired(memory_id="over", expired_at=PAST_US),
        MemoryPromoted(memory_id="good", evidence="use", reason="rated helpful"),
    ]
    told = answer(decision)
    assert (told["expired"], told["promoted"], told["flagged"], told["dry_run"]) == (
        ["over"],
        ["good"],
        ["bad"],
        False,
    )
    assert told["compacted"]["superseded"] == 3
    assert told["compacted"]["clusters"][0]["memory_id"] == "mem-sum"


def test_a_dry_consolidation_tells_and_writes_nothing() -> None:
    decision = consolidate(READY, *STANDING, dry_run=True)
    assert decision.events == ()
    told = answer(decision)
    assert (told["expired"], told["promoted"], told["flagged"], told["position"]) == (
        ["over"],
        ["good"],
        ["bad"],
        10,
    )
    assert told["compacted"]["clusters"][0]["memory_id"] is None


def test_what_is_hidden_by_then_is_neither_promoted_nor_flagged() -> None:
    ready = PreparedConsolidation(proven=(("good", "rated helpful"),), flagged=("bad",))
    told = answer(
        consolidate(
            ready, guard("good", probation=True, state="deleted"), guard("bad", rating=-9, state="superseded")
        )
    )
    assert (told["promoted"], told["flagged"]) == ([], [])


def test_what_one_append_promotes_takes_its_summary_off_probation_too() -> None:
    known = [guard(memory_id, probation=True) for memory_id in IDS]
    stored = [
        next(
            fact
            for fact in facts(
                consolidate(PreparedConsolidation(proven=proven, compaction=prepared()), *known)
            )
            if isinstance(fact, MemoryStored)
        )
        for proven in ((), (("m1", "rated helpful"),))
    ]
    assert [one.on_probation for one in stored] == [True, False]


def test_the_drafts_of_a_compaction_follow_its_parameters() -> None:
    assert compaction.drafts(MEMBERS, CompactMemories(threshold=1.0)) == []
    (draft,) = compaction.drafts(MEMBERS, CompactMemories())
    assert draft.members == MEMBERS
    assert "It logs a lot." in draft.content
    assert compaction.drafts(MEMBERS, CompactMemories(threshold=0.4, min_cluster=4)) == []
