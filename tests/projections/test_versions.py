"""A view that says something else of the same events than it did has another VERSION, so that no home
keeps the old rows.
"""

from typing import Any

import pytest

import projections
from omegad.coordination.events import (
    TaskCancelled,
    TaskClaimed,
    TaskCompleted,
    TaskDependencyChanged,
    TaskFailed,
    TaskProgressed,
    TaskReopened,
)
from omegad.knowledge.events import (
    Effect,
    FindingDismissed,
    MemoryRippled,
    ThesisEvidenceRetracted,
    ThesisPredicted,
    ThesisResolved,
    ThesisRevised,
    Touch,
)
from omegad.log.aging import PayloadsAged
from omegad.log.event import Event
from omegad.log.mending import ClockMended
from omegad.log.projection import Projection
from omegad.memory.events import (
    ConflictOffered,
    ConflictSettled,
    MemoryCountsCarried,
    MemoryDemoted,
    Proof,
    ProofsAged,
    UpkeepCompleted,
    UpkeepReverted,
    Upkept,
)
from omegad.search.events import QueryAged, Use
from omegad.session.events import CheckedRef, GitMerged, SurfacingAged, ToolCallAged
from omegad.sharing.events import FactsReceived, KnownOrigin, ShareJoined, ShareLeft, ShareRenewed
from omegad.storage.digest import digest
from tests.builders import (
    START_US,
    branch_claimed,
    claims_contested,
    claims_released,
    claims_reported,
    contradicted,
    deleted,
    edited,
    embedded,
    evidenced,
    evolved,
    excerpt,
    expired,
    files_claimed,
    identity_changed,
    intent_announced,
    linked,
    memory_erased,
    message_delivered,
    message_posted,
    profile_updated,
    promoted,
    prompt_submitted,
    push_checked,
    queried,
    rated,
    recorded,
    related,
    relations,
    repeated,
    restored,
    session_compacted,
    session_ended,
    session_started,
    show,
    skill_confirmed,
    skill_failed,
    skill_improved,
    stored,
    subagent_ended,
    superseded,
    surfaced,
    task_created,
    thesis_stated,
    tool_called,
    turn_ended,
    unlinked,
)

TOUCH = Touch(thesis_id="th-1", side="for", is_echo=True)
UPKEPT = (Upkept(memory_id="c", reason="as it was"),)
LOG: tuple[Event, ...] = (
    stored(
        "a",
        "Anna: the PaymentGateway of fjord_amber.py now runs on 8080, because 7070 was taken",
        tags=("pay",),
        auto_tags=("python",),
    ),
    stored(
        "b",
        "数据库用 PostgreSQL; is that still so?",
        event_type="decision",
        referenced_at=1_767_225_600_000_000,
        ttl_seconds=60,
    ),
    stored("c", "the build needs HTTPServer2", pending=True, on_probation=True, metadata={"ticket": 7}),
    stored("d", "the importer was replaced; see std::vector<int> in src/a-b.cc"),
    embedded("a", "one", "two"),
    repeated("a", tags=("pay", "port"), content="the same"),
    repeated("b", ttl_seconds=90),
    evolved(
        "c",
        "the build needs HTTPServer2\nand a compiler, since v1.2",
        tags=("build",),
        auto_tags=("c",),
        is_permanent=True,
    ),
    edited(
        "d",
        "the importer is in Rust",
        auto_tags=("rust",),
        tags=("new",),
        priority=5,
        metadata={},
        referenced_at=0,
        source="x",
        confidence=0.5,
    ),
    related("c", ("a", 0.5)),
    contradicted("a", "d"),
    linked("a", "b", "evolves", 0.25),
    linked("a", "c"),
    unlinked("a", "c", "related"),
    superseded("b", "a"),
    restored("b", is_permanent=True),
    expired("c"),
    rated("a", -2),
    promoted("c"),
    queried(("a", 0.9), ("d", 0.4)),
    tool_called(),
    deleted("d"),
    session_started(),
    surfaced("a", "c"),
    prompt_submitted(),
    tool_called(2, tool_input=excerpt('{"file_path":"/src/a.py","old":"see mem-00000000000000aa"}')),
    turn_ended(),
    session_ended(),
    push_checked(
        CheckedRef(
            ref="refs/heads/main",
            local_sha="a",
            remote_sha="b",
            found="stale",
            is_forced=True,
            lacks=1,
            commits=("b Ann: x",),
        )
    ),
    push_checked(verdict="allowed"),
    identity_changed(),
    identity_changed("USER.md", "Ann", "ab12345"),
    identity_changed("IDENTITY.md", None),
    thesis_stated(domain="search", prior=0.7, due_at=1_767_225_600_000_000, criterion="p99"),
    evidenced("th-1", "ev-1"),
    evidenced("th-1", "ev-2", "against", 0.5, by="rule", similarity=0.9),
    evidenced("th-1", "ev-3", weight=0.0, is_echo=True),
    ThesisEvidenceRetracted(thesis_id="th-1", evidence_id="ev-1", why="another index"),
    ThesisPredicted(thesis_id="th-1", version=1, probability=0.4, due_at=None, criterion="p95"),
    ThesisRevised(thesis_id="th-1", version=2, memory_id="b", statement="rather this", why=None),
    ThesisResolved(thesis_id="th-1", version=2, outcome="no", source="seen"),
    MemoryRippled(
        memory_id="c",
        origin="s",
        effects=(Effect(memory_id="a", similarity=0.9, side="for", is_echo=False, theses=(TOUCH,)),),
    ),
    FindingDismissed(rule="orphan", ids=("a", "b")),
    subagent_ended(),
    session_compacted(),
    profile_updated(editor="helix", shell=None),
    skill_improved(),
    skill_failed(),
    skill_confirmed(44),
    task_created("task-1", description="dump, restore", priority=4, capability="database"),
    task_created("task-2", depends_on=("task-1",)),
    TaskDependencyChanged(task_id="task-1", depends_on="task-3", is_dropped=False),
    TaskDependencyChanged(task_id="task-1", depends_on="task-3", is_dropped=True),
    TaskClaimed(task_id="task-1", owner="s-2", taken_from="s-1", reason="silent"),
    TaskProgressed(task_id="task-1", progress="half"),
    TaskReopened(task_id="task-1", reason="session ended", owner="s-2", checkpoint_id="c"),
    TaskCompleted(task_id="task-1", result="done"),
    TaskFailed(task_id="task-2", reason="no disk"),
    TaskCancelled(task_id="task-2", reason="not wanted"),
    message_posted(memory_id="a"),
    message_delivered("msg-1", intents_of=("s-2",)),
    intent_announced(),
    intent_announced("and the exporter", "src/export.py"),
)
GONE = (
    stored("gone", "the door opens with 4711", related=relations(("a", 0.5)), tags=("door",)),
    embedded("gone", "the door"),
    linked("a", "gone"),
    memory_erased("gone"),
)
AGED: dict[str, Any] = {"read_position": 1, "at": START_US, "returned": 2}


def aged(kind: str) -> tuple[Event, ...]:
    """Return what says that the details of all events before went."""
    known: dict[str, Any] = {"days": 90, "steps": (), "hashes": "", "counts": {}, "freed": 0}
    return (PayloadsAged(kind=kind, after=0, through=len(LOG), **known),)


MENDED = ClockMended(
    first=1,
    last=99,
    from_us=START_US,
    to_us=START_US - 5_000_000,
    ahead_us=2_000_000,
    right_us=START_US - 9_000_000,
    reason="the battery",
)
"""Whatever has a time of its own says another after this."""
CALL_AGED = ToolCallAged(
    tool_name="Edit", status="ok", call_index=3, input_bytes=80, file="/src/b.py", edited=("/src/b.py",)
)
QUERIES_AGED = (
    surfaced("a", how="prompt", query_id="surfaced-2"),
    QueryAged(
        **AGED | {"query_id": "query-2", "mode": "hybrid", "limit": 10, "ranking_version": 1, "took_us": 9}
    ),
    SurfacingAged(
        **AGED | {"query_id": "surfaced-3", "how": "prompt", "uses": (Use("a", 4, 1, START_US, START_US),)}
    ),
)
ALONE: dict[str, tuple[Event, ...]] = {
    "audit": (CALL_AGED, *aged("tools")),
    "retrievals": (
        surfaced("c", how="file", query_id="surfaced-4", agent_id="a-1"),
        *QUERIES_AGED,
        ProofsAged(proofs=(Proof("c", "s-1"),)),
        *aged("queries"),
    ),
    "aged": (*aged("tools"), *aged("queries"), *aged("tools")),
    "conversations": (CALL_AGED, *aged("prompts")),
    **dict.fromkeys(("edges", "vectors", "fulltext"), GONE),
    "conflicts": (
        *(ConflictOffered(memory_id=one, target_id="a", similarity=0.7) for one in ("e", "f", "gone")),
        ConflictOffered(memory_id="g", target_id="f", similarity=0.5),
        contradicted("a", "f"),
        ConflictSettled(memory_id="f", target_id="g", verdict="compatible"),
        *(
            ConflictSettled(memory_id="d", target_id="c", verdict=said)
            for said in ("supersedes", "compatible")
        ),
        memory_erased("gone"),
    ),
    "memories": (
        MemoryCountsCarried(
            memory_id="a", origin="elsewhere", retrievals=7, last_retrieved_at=START_US - 9_000_000
        ),
        MemoryCountsCarried(memory_id="b", origin="elsewhere", retrievals=1),
        *QUERIES_AGED,
        *GONE,
    ),
    "upkeeps": (
        MemoryDemoted(memory_id="c", reason="the upkeep was undone"),
        UpkeepCompleted(by="schedule", expired=UPKEPT, promoted=UPKEPT, compacted=UPKEPT, stale=UPKEPT),
        UpkeepReverted(done_at=len(LOG) + 2),
        UpkeepCompleted(by="hand"),
    ),
    "coord_claims": (
        CALL_AGED,
        files_claimed("a.py", "b.py", intent="faster"),
        branch_claimed(),
        claims_released("a.py", how="taken_over", by="session-2"),
        claims_contested("b.py", how="asked", tool_use_id="use-1"),
        claims_contested(refs=("refs/heads/main",), worktree=""),
        claims_reported(),
        claims_released(how="expired"),
        files_claimed("c.py"),
    ),
    "git_events": (
        GitMerged(worktree="/src", ref="refs/heads/main", before="a", after="b", what="pull: Fast-forward"),
        GitMerged(worktree="/src", ref=None, before="b", after="c", what="commit (merge): Merge branch 'x'"),
    ),
    "reminders": (
        stored("e", "rotate the keys", event_type="reminder", referenced_at=1_767_225_600_000_000),
        surfaced("e", how="reminder"),
        stored("gone", "call 4711", event_type="reminder", referenced_at=1_767_225_600_000_000),
        memory_erased("gone"),
    ),
    "owners": (
        ShareJoined(team="shop", origin="home-1", person="Ada", machine="ada-laptop"),
        FactsReceived(facts=(), origins=(KnownOrigin(origin="home-2", person="Grace", machine="desk"),)),
        FactsReceived(facts=(), origins=(KnownOrigin(origin="home-2", person="Grace H.", machine="tower"),)),
        ShareRenewed(team="shop", origin="home-3", before="home-1", seq=1, told_to=1),
        ShareLeft(team="shop"),
        ShareJoined(team="shop", origin="home-4", person="Ada L.", machine="ada-laptop"),
        *GONE,
    ),
    "coord_snapshots": (
        stored("e", "half of it is done", event_type="checkpoint"),
        stored("gone", "the door is open", event_type="checkpoint"),
        memory_erased("gone"),
    ),
}
"""What only one view tells from the rest."""


PINNED: dict[str, tuple[int, str]] = {
    "memories": (6, "2eaf22f15d5158414009e5e6d37ec2fe"),
    "conflicts": (2, "bb0468c69ff7d20da4c0f2e9de8399a0"),
    "edges": (2, "a5abc4e2d04f4605adf55adf533ff902"),
    "vectors": (3, "98396640ac9eb54260b51ed7f900ab0f"),
    "fulltext": (5, "6039a90f0aa178e96fb90cf1b1345da5"),
    "sessions": (1, "0319636312627d141183155f06f7a1a6"),
    "histories": (1, "b557aa8f8112646bc1276b2d89117a0e"),
    "audit": (6, "42bcff3591dd816553ee4b6e420188a0"),
    "retrievals": (6, "34278c4065172c07720078193732e9d6"),
    "aged": (1, "3cb780a5e01cdc3ebec193d7b31360e7"),
    "skills": (1, "04b1114741ff2e2efe47dc3b457ace77"),
    "identity": (1, "6c0425d41550e900d17355606cfe9f09"),
    "coord_claims": (3, "d7311507e5cdde7e602cbbe8ac2360db"),
    "git_events": (2, "98a8a9527dbe140564701ff3706a754c"),
    "feedback": (1, "cff63102503931b6c619f3bf2c711d35"),
    "theses": (3, "e8481b1dd8931b26ee3b4d197a0e936f"),
    "dismissals": (1, "11698a39ee87e3eced2b6b420eef4499"),
    "ripples": (1, "a2aa8ce2f2de5865a5e5c14f71ea4510"),
    "conversations": (6, "7625439111465c3026d111dc608ebed7"),
    "upkeeps": (1, "ea997e9d3e7263000b6bffe287db7de1"),
    "facts": (1, "89876e84b3e52e70fd8685030b387adc"),
    "reminders": (2, "c77afefdd1d0a75a9a0f8eaa61a817db"),
    "coord_tasks": (1, "5b251780a32791f63769ff3d7ec616da"),
    "coord_messages": (2, "105fdbfc4a54cc85a9814ee55af5646c"),
    "coord_intents": (2, "9b8eec6972892ff21f089370cebb5bdd"),
    "owners": (1, "99f1a628e4b1ad181c09cf63804dd74e"),
    "coord_snapshots": (1, "d1dbed6b73e26f35ef78bbe36a345de5"),
}


@pytest.mark.parametrize("projection", projections.ALL, ids=lambda projection: projection.NAME)
def test_what_a_version_says_of_the_past_it_says_for_ever(projection: Projection) -> None:
    log = (*LOG, *ALONE.get(projection.NAME, ()), MENDED)
    connection = show(
        projection,
        [
            recorded(event, position)
            for position, event in enumerate(log, 1)
            if isinstance(event, projection.EVENTS)
        ],
    )
    said = digest(connection, projection).digest
    connection.close()
    assert (projection.VERSION, said) == PINNED[projection.NAME], (
        "let VERSION go up where this changes on purpose, and pin what it says now"
    )


def test_the_log_has_every_event_that_a_view_shows() -> None:
    assert {kind for projection in projections.ALL for kind in projection.EVENTS} <= {
        type(event) for part in (LOG, *ALONE.values(), (MENDED,)) for event in part
    }
