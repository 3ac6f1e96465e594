"""Claims as decisions: whatever sessions, clocks and restarts do, nobody holds what another does, and all
that is held is let go in time.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omegad.catalog import decision_state as state
from omegad.coordination.claim import (
    ClaimFiles,
    ExpireClaims,
    ReleaseClaims,
    Wanted,
    claim,
    contested,
    expire,
    release,
    ruled,
)
from omegad.coordination.claim_state import Claims
from omegad.coordination.events import ClaimsReleased, Contest
from omegad.coordination.targets import Target
from omegad.log.decision import Decision, DecisionState
from omegad.log.event import NewEvent, RecordedEvent
from omegad.log.inline import Inline
from omegad.runtime.clock import STEP_US
from omegad.runtime.errors import NotFound, Refused
from omegad.session.events import SessionEnded, ToolCalled
from omegad.session.liveness import GRACE_US, LEASE_US, LIVE_US, MINUTE_US, Activity, Liveness
from omegad.storage.transaction import run_script
from projections import coord_claims
from tests.builders import START_US, FakeClock, open_in_memory, recorded, rows, session_ended, tool_called

INLINE = Inline(state.ALL)
CONTESTS: tuple[Contest, ...] = ("asked", "unguarded", "warned", "shell")
FILES = [Target("/r/.git", worktree, f"{name}.py") for worktree in ("/r", "/w") for name in "ab"]
FILES += [Target("/r/.git", "", "refs/heads/main", is_branch=True), Target("", "", "/srv/outside.py")]


class World:
    """A log in memory with its state and its view, sessions that do things, and a clock that is set."""

    def __init__(self) -> None:
        self.now_us = START_US
        self.log: list[RecordedEvent] = []
        self.connection = open_in_memory()
        INLINE.replica(self.connection)
        run_script(self.connection, coord_claims.SCHEMA)
        self.restart()

    @property
    def state(self) -> DecisionState:
        return DecisionState(self.connection)

    def restart(self) -> None:
        self.activity = Activity({}, self.now_us)

    def hear(self, session: str) -> None:
        self.activity = Activity({**self.activity.seen, session: self.now_us}, self.activity.steady_us)

    def step(self, us: int, *, slept: bool) -> None:
        """Let time go by, or the clock be set, which a daemon that runs finds out."""
        self.now_us += us
        if slept or us < 0:
            self.activity = msgspec.structs.replace(self.activity, steady_us=self.now_us)

    def append(self, decision: Decision) -> Any:
        for new in decision.events:
            self._write(new)
        return decision.answer

    def _write(self, new: NewEvent) -> None:
        event = recorded(new.event, len(self.log) + 1, session_id=new.session_id, occurred_at=self.now_us)
        self.log.append(event)
        INLINE.fold(self.connection, event)
        if isinstance(event.event, coord_claims.EVENTS):
            for sql, values in coord_claims.project(event):
                self.connection.execute(sql, values)

    def happens(self, session: str, event: ToolCalled | SessionEnded) -> None:
        self._write(NewEvent(event=event, session_id=session))

    def claim(self, session: str, *targets: Target, reason: str = "") -> bool:
        """Have a session claim files, and say whether it could."""
        self.hear(session)
        command = ClaimFiles(session_id=session, paths=("as said",), force=bool(reason), reason=reason)
        before = self.held()
        try:
            self.append(claim(command, Wanted(session, targets, self.activity), self.state, self.now_us))
        except Refused:
            assert self.held() == before, "a refusal grants nothing"
            return False
        assert {self.held()[target] for target in targets} == {session}
        return True

    def meet(self, session: str, targets: Sequence[Target], how: Contest) -> None:
        """Let a session come upon what others hold of some files; nobody loses anything, and whom it
        concerns is yet to be told.
        """
        before = self.held()
        ruling = ruled(Wanted(session, targets, self.activity), self.state, self.now_us)
        for event in contested(ruling.held, how, "use"):
            self._write(NewEvent(event=event, session_id=session))
        assert self.held() == before
        for one in ruling.held if how != "asked" else ():
            told = ([session] if how != "warned" else []) + [one.session_id]
            assert all(one.name in [news.name for news in self.state[Claims].news(name)] for name in told)

    def expire(self) -> None:
        sessions = tuple(sorted(set(self.held().values())))
        self.append(expire(ExpireClaims(session_ids=sessions), self.activity, self.state, self.now_us))

    def held(self) -> dict[Target, str]:
        return self._read("state_file_claims", "state_branch_claims")

    def _read(self, files: str, branches: str, condition: str = "1") -> dict[Target, str]:
        found = rows(
            self.connection,
            f"SELECT repository, worktree, path, 0, session_id FROM {files} WHERE {condition}",
        )
        found += rows(
            self.connection, f"SELECT repository, '', ref, 1, session_id FROM {branches} WHERE {condition}"
        )
        held = {Target(row[0], row[1], row[2], bool(row[3])): row[4] for row in found}
        assert len(held) == len(found)
        return held

    def check(self) -> None:
        """The view shows those who hold; and all is the same when it is made again from the log."""
        assert self._read("coord_file_claims", "coord_branch_claims", "released_at IS NULL") == self.held()
        again = open_in_memory()
        INLINE.replica(again)
        for event in self.log:
            INLINE.fold(again, event)
        assert INLINE.digests_of_replica(again) == INLINE.digests_of_replica(self.connection)
        again.close()


DEEDS = st.tuples(
    st.sampled_from(
        [
            "claim",
            "claim",
            "claim",
            "force",
            "work",
            "release",
            "end",
            "wait",
            "sleep",
            "set back",
            "restart",
            "expire",
        ]
    ),
    st.sampled_from(["s1", "s2", "s3"]),
    st.sets(st.integers(0, len(FILES) - 1), min_size=1, max_size=4),
    st.integers(1, 40),
)


@settings(max_examples=100)
@given(st.lists(DEEDS, max_size=40))
def test_whatever_happens_each_file_has_one_holder_and_the_log_says_who(
    deeds: list[tuple[str, str, set[int], int]],
) -> None:
    world = World()
    for deed, session, numbers, minutes in deeds:
        targets = [FILES[number] for number in sorted(numbers)]
        match deed:
            case "claim":
                before = world.held()
                others = {before[target] for target in targets if before.get(target, session) != session}
                alive = any(minutes_silent(world, other) < 30 for other in others)
                assert not (world.claim(session, *targets) and alive), (
                    "nobody who is alive loses anything but by force"
                )
            case "force":
                assert world.claim(session, *targets, reason="it must be")
            case "work":
                world.hear(session)
                world.happens(session, tool_called(len(world.log) + 1))
                world.meet(session, targets, how=CONTESTS[minutes % len(CONTESTS)])
            case "release":
                own = [target for target in targets if world.held().get(target) == session]
                try:
                    world.append(
                        release(
                            ReleaseClaims(session_id=session, paths=("as said",)),
                            own or targets,
                            world.state,
                            world.now_us,
                        )
                    )
                except (NotFound, Refused):
                    assert not own
                assert not own or not set(own) & set(world.held())
            case "end":
                world.happens(session, session_ended())
                assert session not in world.held().values()
            case "restart":
                world.restart()
            case "expire":
                alive_ones = {
                    target: one
                    for target, one in world.held().items()
                    if minutes_silent(world, one) < LEASE_US // MINUTE_US
                }
                world.expire()
                assert alive_ones.items() <= world.held().items()
            case _:
                world.step(minutes * (-MINUTE_US if deed == "set back" else MINUTE_US), slept=deed == "sleep")
        world.check()
    world.step(2 * LEASE_US, slept=True)
    world.step(GRACE_US, slept=False)
    world.step(LEASE_US, slept=False)
    world.expire()
    assert world.held() == {}, "nobody holds anything for longer than the lease"
    world.check()


def minutes_silent(world: World, session: str) -> float:
    recorded_us = world.state[Claims].seen_us(session)
    return (
        float("inf")
        if recorded_us is None
        else (world.now_us - world.activity.seen_us(session, recorded_us, world.now_us)) / MINUTE_US
    )


@pytest.mark.parametrize(
    ("silent_us", "steady_us", "standing"),
    [
        (0, LEASE_US * 9, "live"),
        (LIVE_US - 1, LEASE_US * 9, "live"),
        (LIVE_US, LEASE_US * 9, "quiet"),
        (LEASE_US - 1, LEASE_US * 9, "quiet"),
        (LEASE_US, LEASE_US * 9, "gone"),
        (LEASE_US * 8, GRACE_US, "gone"),
        (LEASE_US * 8, GRACE_US - 1, "quiet"),
        (-LEASE_US, 0, "live"),  # told by a clock that was set back just now
        (-LEASE_US, LIVE_US, "quiet"),
        (-LEASE_US, LEASE_US, "gone"),
    ],
)
def test_a_session_is_live_then_quiet_then_gone(silent_us: int, steady_us: int, standing: str) -> None:
    now_us = START_US + 100 * LEASE_US
    for heard in (Activity({"s": now_us - silent_us}, now_us - steady_us), Activity({}, now_us - steady_us)):
        assert heard.status("s", now_us - silent_us, now_us) == standing


def test_who_was_heard_of_before_the_clock_was_set_back_and_is_heard_of_still_is_live() -> None:
    assert Activity({"s": START_US}, START_US - LEASE_US).status("s", START_US + LEASE_US, START_US) == "live"


def test_what_is_heard_beside_the_log_counts_and_a_tool_that_runs_is_heard_all_the_time() -> None:
    clock, passed = FakeClock(step_us=0), [0]
    liveness = Liveness(clock, lambda: passed[0] * 1_000)

    def wait(us: int) -> None:
        clock.us += us
        passed[0] += us

    liveness.begin("s", "build", 40 * MINUTE_US)
    wait(40 * MINUTE_US)
    assert liveness.activity().status("s", 0, clock.us) == "live"
    wait(LEASE_US)
    assert liveness.activity().status("s", 0, clock.us) == "gone", "it can have taken no longer"
    liveness.end("s", "build")
    assert liveness.activity().status("s", 0, clock.us) == "live"
    wait(LEASE_US)
    assert liveness.activity().status("s", 0, clock.us) == "gone"
    liveness.forget("s")
    assert dict(liveness.activity().seen) == {}


@pytest.mark.parametrize(
    ("jump_us", "standing"), [(LEASE_US, "quiet"), (-LEASE_US, "live"), (STEP_US // 2, "live")]
)
def test_a_clock_that_jumps_gives_everybody_time_to_be_heard(jump_us: int, standing: str) -> None:
    clock = FakeClock(step_us=0)
    liveness = Liveness(clock, lambda: 0)
    liveness.hear("s")
    clock.us += jump_us
    assert liveness.activity().status("s", 0, clock.us) == standing


def test_a_holder_that_is_gone_is_let_go_with_all_it_has_and_the_reason() -> None:
    world = World()
    assert world.claim("s1", *FILES[:2])
    world.step(31 * MINUTE_US, slept=False)
    assert world.claim("s2", FILES[0])
    assert world.held() == {FILES[0]: "s2"}
    (ended,) = [event for event in world.log if isinstance(event.event, ClaimsReleased)]
    assert (ended.session_id, ended.event) == (
        "s1",
        ClaimsReleased(how="expired", reason="silent 31 min", is_all=True),
    )
    assert [one.name for one in world.state[Claims].news("s1")] == ["a.py", "b.py"]
