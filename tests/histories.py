"""Logs made of numbers, such as the guards would let come about: for tests that ask something of any log
whatever.
"""

from collections.abc import Callable, Sequence

from hypothesis import strategies as st

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
    Outcome,
    Side,
    ThesisEvidenceRetracted,
    ThesisPredicted,
    ThesisResolved,
    ThesisRevised,
)
from omegad.log.event import Event
from omegad.log.mending import ClockMended
from omegad.session.events import DeliveriesExpired
from tests.builders import (
    START_US,
    branch_claimed,
    claims_contested,
    claims_released,
    claims_reported,
    contradicted,
    deleted,
    delivery,
    edited,
    embedded,
    erased,
    evidenced,
    evolved,
    excerpt,
    expired,
    files_claimed,
    intent_announced,
    linked,
    memory_erased,
    message_delivered,
    message_posted,
    promoted,
    prompt_submitted,
    queried,
    rated,
    related,
    relations,
    repeated,
    restored,
    session_ended,
    skill_confirmed,
    skill_failed,
    skill_improved,
    stored,
    superseded,
    surfaced,
    task_created,
    thesis_stated,
    tool_called,
    unlinked,
)

Step = tuple[int, int, int]
TASK_CHANGES: tuple[Callable[[str, str], Event], ...] = (
    lambda task_id, other: TaskClaimed(task_id=task_id, owner=other, taken_from=None, reason=None),
    lambda task_id, _: TaskProgressed(task_id=task_id, progress="half"),
    lambda task_id, _: TaskCompleted(task_id=task_id, result="done"),
    lambda task_id, _: TaskFailed(task_id=task_id, reason="no"),
    lambda task_id, _: TaskCancelled(task_id=task_id, reason="not wanted"),
    lambda task_id, other: TaskReopened(
        task_id=task_id, reason="session ended", owner=other, checkpoint_id="mem-0"
    ),
    lambda task_id, other: TaskDependencyChanged(task_id=task_id, depends_on=other, is_dropped=False),
    lambda task_id, other: TaskDependencyChanged(task_id=task_id, depends_on=other, is_dropped=True),
)
DEPENDING = 6


class History:
    """What has happened so far, and what of it later events must agree with."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._states: dict[str, str] = {}
        self._embedded: set[tuple[str, str]] = set()
        self._text: dict[str, str] = {}
        self._theses: dict[str, int] = {}
        self._evidence: list[tuple[str, str]] = []
        self._tasks = 0

    def step(self, step: Step) -> None:
        """Let something happen, where it can: which of the kinds, and to what, is for the numbers to say."""
        kind, one, other = step
        if not self._states:
            self._store(one, other)
            return
        _KINDS[kind % len(_KINDS)](self, one, other)

    def _any(self, number: int) -> str:
        return list(self._states)[number % len(self._states)]

    def _among(self, number: int, *states: str) -> str | None:
        found = [name for name, state in self._states.items() if state in states]
        return found[number % len(found)] if found else None

    def _store(self, one: int, other: int) -> None:
        name = f"mem-{len(self.events)}"
        edges = relations((self._any(one), 0.5), (self._any(other), 1.2)) if self._states else ()
        self._text[name] = f"memory {one} of CamelCase{other} 記憶{one}"
        event = stored(
            name,
            self._text[name],
            tags=("a", "b c") if other % 2 else (),
            auto_tags=("python",) if one % 3 else (),
            related=edges,
            pending=bool(one % 2),
            on_probation=bool(one % 4),
            referenced_at=None if one % 2 else one * 10**15,
            ttl_seconds=other or None,
            metadata={"n": [one, other]},
        )
        self._states[name] = "active"
        self.events.append(event)

    def _embed(self, one: int, other: int) -> None:
        key = (self._any(one), f"embedder-{other % 2}")
        if key not in self._embedded:
            self._embedded.add(key)
            self.events.append(embedded(key[0], self._text[key[0]], f"passage {other}", embedder_id=key[1]))

    def _reword(self, one: int, other: int) -> None:
        if name := self._among(one, "active"):
            self._text[name] = (
                f"{self._text[name]}\nand {other}" if one % 2 else f"rather ParseConfig{other} of {one}"
            )
            self.events.append((evolved if one % 2 else edited)(name, self._text[name]))
            self._embedded -= {(name, "embedder-0"), (name, "embedder-1")}

    def _repeat(self, one: int, _other: int) -> None:
        if name := self._among(one, "active"):
            self.events.append(repeated(name, likeness="jaccard", similarity=0.9, content="again"))

    def _relate(self, one: int, other: int) -> None:
        name = self._any(one)
        self.events.append(related(name, (self._any(other), -0.1), (name, 0.7)))

    def _contradict(self, one: int, other: int) -> None:
        self.events.append(contradicted(self._any(one), self._any(other), other / 10))

    def _supersede(self, one: int, other: int) -> None:
        if name := self._among(one, "active"):
            self._states[name] = "superseded"
            self.events.append(superseded(name, self._any(other)))

    def _delete(self, one: int, _other: int) -> None:
        if name := self._among(one, "active", "superseded", "expired"):
            self._states[name] = "deleted"
            self.events.append(deleted(name))

    def _expire(self, one: int, other: int) -> None:
        if name := self._among(one, "active"):
            self._states[name] = "expired"
            self.events.append(expired(name, other))

    def _restore(self, one: int, other: int) -> None:
        if name := self._among(one, "superseded", "deleted", "expired"):
            self._states[name] = "active"
            self.events.append(restored(name, is_permanent=bool(other % 2)))

    def _rate(self, one: int, other: int) -> None:
        self.events.append(rated(self._any(one), (1, -1, -2)[other % 3]))

    def _promote(self, one: int, _other: int) -> None:
        self.events.append(promoted(self._any(one)))

    def _link(self, one: int, other: int) -> None:
        self.events.append(
            linked(self._any(one), self._any(other), "evolves" if other % 2 else "related", one / 9)
        )

    def _unlink(self, one: int, other: int) -> None:
        self.events.append(unlinked(self._any(one), self._any(other), "related", "superseded_by"))

    def _query(self, one: int, other: int) -> None:
        found = {self._any(one): 0.9, self._any(other): 0.1}
        self.events.append(queried(*found.items(), query_id=f"query-{len(self.events)}", at=one * 10**12))

    def _call(self, one: int, other: int) -> None:
        number = len(self.events)
        self.events.append(tool_called(number, tool_input=excerpt(f"{one}"), duration_ms=other / 3))

    def _state(self, one: int, other: int) -> None:
        thesis_id = f"th-{len(self.events)}"
        self._theses[thesis_id] = 1
        self.events.append(thesis_stated(thesis_id, memory_id=self._any(one), prior=other / 10))

    def _weigh(self, one: int, other: int) -> None:
        if thesis_id := self._open(one):
            side: Side = ("for", "against", "mentions")[other % 3]
            origin = f"s-{other % 4}"
            given = (thesis_id, f"ev-{thesis_id}-{one}")
            self._evidence.append(given)
            weight = 0.0 if side == "mentions" or one % 4 == 3 else 0.5 + other % 2 / 2
            version = self._theses[thesis_id]
            self.events.append(
                evidenced(
                    *given,
                    side,
                    weight,
                    version=version,
                    memory_id=self._any(other),
                    origin=origin,
                    is_echo=one % 4 == 3,
                )
            )

    def _retract(self, one: int, _other: int) -> None:
        if self._evidence and (given := self._evidence[one % len(self._evidence)])[0] in self._theses:
            self.events.append(ThesisEvidenceRetracted(thesis_id=given[0], evidence_id=given[1], why=None))

    def _revise(self, one: int, other: int) -> None:
        if thesis_id := self._open(one):
            self._theses[thesis_id] += 1
            version = self._theses[thesis_id]
            self.events.append(
                ThesisRevised(
                    thesis_id=thesis_id,
                    version=version,
                    memory_id=self._any(other),
                    statement=f"rather {other}",
                    why=None,
                )
            )

    def _predict(self, one: int, other: int) -> None:
        if thesis_id := self._open(one):
            version = self._theses[thesis_id]
            self.events.append(
                ThesisPredicted(
                    thesis_id=thesis_id,
                    version=version,
                    probability=other / 9,
                    due_at=other or None,
                    criterion=None,
                )
            )

    def _resolve(self, one: int, other: int) -> None:
        if thesis_id := self._open(one):
            outcome: Outcome = ("yes", "no", "n/a")[other % 3]
            self.events.append(
                ThesisResolved(
                    thesis_id=thesis_id, version=self._theses.pop(thesis_id), outcome=outcome, source="seen"
                )
            )

    def _open(self, number: int) -> str | None:
        return list(self._theses)[number % len(self._theses)] if self._theses else None

    def _skill(self, one: int, other: int) -> None:
        self.events.append(skill_failed(f"skill {one}") if one % 3 else skill_improved(f"skill {one}"))
        if other % 2:
            self.events.append(skill_confirmed(len(self.events), other))

    def _task(self, one: int, _other: int) -> None:
        waits_for = (f"task-{one % self._tasks}",) if self._tasks else ()
        self.events.append(task_created(f"task-{self._tasks}", priority=one % 5 + 1, depends_on=waits_for))
        self._tasks += 1

    def _work(self, one: int, other: int) -> None:
        if self._tasks:
            change = TASK_CHANGES[other % len(TASK_CHANGES)]
            self.events.append(
                change(
                    f"task-{one % self._tasks}",
                    f"{'task' if other >= DEPENDING else 'session'}-{one // 2 % self._tasks}",
                )
            )

    def _say(self, one: int, other: int) -> None:
        said = (
            message_posted(f"msg-{len(self.events)}", expires_at=one * 10**15),
            message_delivered(f"msg-{one}"),
            intent_announced(f"do {one}"),
        )
        self.events.append(said[other % 3])

    def _end(self, _one: int, _other: int) -> None:
        self.events.append(session_ended())

    def _claim(self, one: int, other: int) -> None:
        self.events.append(
            branch_claimed(f"refs/heads/{one}")
            if other % 4 == 0
            else files_claimed(f"{one}.py", f"{other}.py")
        )

    def _release(self, one: int, other: int) -> None:
        how = ("released", "expired", "taken_over")[one % 3]
        self.events.append(
            claims_released(
                *([f"{one}.py", f"{other}.py"] if other % 2 else []),
                how=how,
                by="session-2" if one % 2 else None,
            )
        )

    def _report(self, one: int, other: int) -> None:
        self.events.append(claims_reported(other) if other % 2 else session_ended())
        how = ("asked", "unguarded", "warned", "shell")[one % 4]
        self.events.append(
            claims_contested(
                f"{one}.py",
                how=how,
                holder="session-1" if other % 2 else "session-2",
                tool_use_id=f"use-{other}",
            )
        )

    def _hear(self, one: int, other: int) -> None:
        self.events.append(
            prompt_submitted(delivery=delivery(f"delivery-{len(self.events)}", f"digest-{one}"))
        )
        self.events.append(
            surfaced(self._any(one), how="edit", subject=f"{other}.py", query_id=f"query-{len(self.events)}")
        )

    def _mend(self, one: int, other: int) -> None:
        ahead_us = (one + 1) * 1_000_000
        to_us = START_US + other * 1_000_000
        last = len(self.events)
        mended = ClockMended(
            first=1,
            last=last,
            from_us=to_us + ahead_us,
            to_us=to_us,
            ahead_us=ahead_us,
            right_us=START_US - 1,
        )
        self.events.append(mended)

    def _let_go(self, one: int, other: int) -> None:
        self.events.append(DeliveriesExpired(before=len(self.events) * (one + 1) // (other + 2)))

    def _erase_memory(self, one: int, _other: int) -> None:
        self.events.append(memory_erased(self._any(one)))

    def _erase(self, one: int, _other: int) -> None:
        self.events.append(erased(one + 1))


_KINDS: tuple[Callable[[History, int, int], None], ...] = (
    *(
        History._store,
        History._embed,
        History._reword,
        History._repeat,
        History._relate,
        History._contradict,
        History._supersede,
    ),
    *(
        History._delete,
        History._expire,
        History._restore,
        History._rate,
        History._promote,
        History._link,
        History._unlink,
    ),
    *(
        History._query,
        History._call,
        History._skill,
        History._erase,
        History._claim,
        History._release,
        History._report,
    ),
    *(
        History._state,
        History._weigh,
        History._weigh,
        History._retract,
        History._revise,
        History._predict,
        History._resolve,
    ),
    *(
        History._task,
        History._work,
        History._say,
        History._end,
        History._erase_memory,
        History._hear,
        History._let_go,
        History._mend,
    ),
)

STEPS = st.lists(
    st.tuples(st.integers(0, len(_KINDS) - 1), st.integers(0, 9), st.integers(0, 9)), max_size=40
)


def history(steps: Sequence[Step]) -> list[Event]:
    """Turn numbers into the events of a log."""
    made = History()
    for step in steps:
        made.step(step)
    return made.events
