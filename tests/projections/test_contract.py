"""What every projection promises, asked of each of them."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import projections
from omegad.catalog import decision_state
from omegad.catalog.events import CODEC
from omegad.log.checkpoint import start_of
from omegad.log.event import Event, RecordedEvent
from omegad.log.folding import run
from omegad.log.projection import Embedding, Projection, schema
from omegad.memory.events import MemoryEdited, MemoryEvolved, MemoryStored
from omegad.memory.types import TTL_SECONDS_MAX
from omegad.session.events import ToolCalled
from omegad.storage.digest import digest
from omegad.storage.driver import Connection
from omegad.storage.transaction import run_script
from omegad.views import applying, generation
from omegad.views.applying import Lookup, ViewFold
from projections import vectors
from tests.builders import (
    START_US,
    edited,
    embedded,
    evolved,
    look_up,
    open_in_memory,
    prompt_submitted,
    recorded,
    rows,
    session_ended,
    session_started,
    show,
    stored,
    tool_called,
)
from tests.histories import STEPS, Step, history
from tests.released import FILES, tag_in

EACH = pytest.mark.parametrize("projection", projections.ALL, ids=lambda projection: projection.NAME)

CHECKPOINTS = (Path(applying.__file__).parent / "checkpoints.sql").read_text(encoding="utf-8")


def golden() -> list[RecordedEvent]:
    """Return every event that was ever released, in an order in which it could have come; each other shape
    is about something of its own.
    """
    order = [MemoryStored, MemoryEvolved, MemoryEdited, *CODEC.kinds.values()]
    facts = sorted(map(_released, FILES), key=lambda event: order.index(type(event)))
    return [recorded(event, position) for position, event in enumerate(facts, 1)]


def every_kind() -> list[RecordedEvent]:
    """Return those, and a reminder, which a view of its own shows."""
    events = golden()
    return [*events, recorded(stored("mem-due", event_type="reminder", referenced_at=1), len(events) + 1)]


def _released(path: Path) -> Event:
    event = CODEC.decode(tag_in(path), path.read_bytes())
    assert isinstance(event, Event)
    named = next(
        (name for name in event.__struct_fields__ if name.endswith("_id") and getattr(event, name)), None
    )
    return (
        event
        if path.stem in CODEC.kinds or not named
        else msgspec.structs.replace(event, **{named: f"one of {path.stem}"})
    )


class Views:
    """All projections over one database, as a generation holds them."""

    def __init__(self) -> None:
        self.connection = open_in_memory()
        run_script(self.connection, CHECKPOINTS)
        self.states = {projection.NAME: start_of(projection) for projection in projections.ALL}
        for projection in projections.ALL:
            run_script(self.connection, schema(projection))
            generation.save_checkpoint(self.connection, self.states[projection.NAME])

    def apply(self, batch: Sequence[RecordedEvent]) -> None:
        self.show(batch, look_up)

    def show(self, batch: Sequence[RecordedEvent], lookup: Lookup) -> None:
        self.states |= ViewFold(projections.ALL, self.states, lookup).show(
            self.connection, batch, self.states
        )

    def say(self) -> dict[str, object]:
        assert [state for state in self.states.values() if state.error] == []
        assert generation.load_checkpoints(self.connection) == self.states
        for projection in projections.ALL:
            for statement in getattr(projection, "INTEGRITY", ()):
                assert rows(self.connection, statement) == []
        return {projection.NAME: digest(self.connection, projection) for projection in projections.ALL}


def a_log(steps: Sequence[Step]) -> list[RecordedEvent]:
    return [recorded(event, position) for position, event in enumerate(history(steps), 1)]


@EACH
def test_a_projection_has_what_the_contract_asks_for(projection: Projection) -> None:
    assert re.fullmatch(r"[a-z_]+", projection.NAME)
    assert projection.VERSION >= 1
    assert projection.EVENTS
    assert projection.CANONICAL
    assert set(projection.EVENTS) <= set(CODEC.kinds.values())
    assert [select for select in projection.CANONICAL if " ORDER BY " not in select] == []


def test_names_and_tables_are_nobody_elses() -> None:
    names = [projection.NAME for projection in projections.ALL]
    tables = [
        table
        for projection in projections.ALL
        for table in re.findall(r"CREATE (?:VIRTUAL )?TABLE (\w+)", projection.SCHEMA)
    ]
    assert len(set(names)) == len(names)
    assert len(set(tables)) == len(tables)
    assert not {"checkpoints", "deferred"} & set(tables)


@EACH
def test_a_projection_touches_no_tables_but_its_own(projection: Projection) -> None:
    own = set(re.findall(r"CREATE (?:VIRTUAL )?TABLE (\w+)", projection.SCHEMA))
    statements = [
        sql
        for event in golden()
        if isinstance(event.event, projection.EVENTS)
        for sql, _ in projection.project(event)
    ]
    named = {
        name
        for sql in (*statements, *projection.CANONICAL)
        for name in re.findall(r"(?:INTO|FROM|UPDATE|JOIN) (\w+)", sql)
    }
    assert named
    assert named - own - {"SET", "json_each"} == set()


@EACH
def test_a_projection_shows_every_event_that_was_ever_released(projection: Projection) -> None:
    connection = show(projection, every_kind())
    found = digest(connection, projection)
    assert found.rows > 0
    connection.close()


@EACH
def test_a_projection_says_the_same_of_the_same_event(projection: Projection) -> None:
    for event in golden():
        if isinstance(event.event, projection.EVENTS):
            assert list(projection.project(event)) == list(projection.project(event))


def test_tool_calls_of_which_a_log_is_full_are_shown_by_one_statement_each_the_same() -> None:
    calls = [recorded(tool_called(number), number, session_id="s") for number in range(1, 4)]
    folds = [fold for fold in (*projections.ALL, *decision_state.ALL) if ToolCalled in fold.EVENTS]
    ran = {fold.NAME: [sql for call in calls for sql, _ in fold.project(call)] for fold in folds}
    assert {"audit", "conversations", "tool_calls", "hooks"} <= ran.keys()
    assert [name for name, sqls in ran.items() if len(sqls) > len(calls) or len(set(sqls)) > 1] == []


MOMENTS = st.tuples(
    st.integers(0, 9),
    st.sampled_from(["s1", "s2", None]),
    st.sampled_from(["p1", "p2", None]),
    st.integers(0, 3),
)


@given(st.lists(MOMENTS, max_size=30))
def test_what_is_shown_together_is_what_is_shown_one_by_one(
    moments: list[tuple[int, str | None, str | None, int]],
) -> None:
    others = (session_started(), prompt_submitted(), session_ended())
    events = [
        recorded(
            others[kind] if kind < len(others) else tool_called(number),
            number,
            session_id=session_id,
            project=project,
            client=project,
            recorded_at=START_US + later,
        )
        for number, (kind, session_id, project, later) in enumerate(moments, 1)
    ]
    for projection in projections.ALL:
        if together := getattr(projection, "project_together", None):
            one_by_one, at_once = show(projection, events), show(projection, ())
            run(at_once, together(events))
            for select in projection.CANONICAL:
                assert rows(at_once, select) == rows(one_by_one, select)
            one_by_one.close()
            at_once.close()


@EACH
def test_every_place_that_waits_for_a_vector_may_be_filled_twice(projection: Projection) -> None:
    events = [event for event in golden() if isinstance(event.event, projection.EVENTS)]
    connection = show(projection, events)
    before = digest(connection, projection), _approximate(connection, projection)
    for event in events:
        for sql, values in projection.project(event):
            if any(isinstance(value, Embedding) for value in values):
                connection.execute(
                    sql, [look_up(value) if isinstance(value, Embedding) else value for value in values]
                )
    assert (digest(connection, projection), _approximate(connection, projection)) == before
    connection.close()


@pytest.mark.parametrize(
    "reworded", [edited("a", "other words"), evolved("a", "more words")], ids=["edited", "evolved"]
)
def test_a_vector_that_comes_after_the_text_has_changed_is_no_vector_of_the_memory(reworded: Event) -> None:
    late, current = recorded(embedded("a", "words"), 2), recorded(embedded("a", "new words"), 4)
    views = Views()
    log = [recorded(stored("a", "words"), 1), late, recorded(reworded, 3), current]
    views.show(
        log,
        lambda wanted: look_up(wanted) if wanted.text_hash in _hashes(current) else None,
    )
    before = views.say()
    fold = ViewFold(projections.ALL, views.states, look_up)
    assert fold.fill(views.connection, vectors.NAME, late)
    assert views.say() == before
    assert rows(views.connection, "SELECT id, vector IS NULL FROM memory_vectors") == [(4096, 0)]


def _hashes(event: RecordedEvent) -> tuple[str, ...]:
    found: tuple[str, ...] = event.event.text_hashes  # type: ignore[union-attr]
    return found


def _approximate(connection: Connection, projection: Projection) -> list[object]:
    return [row for select in getattr(projection, "APPROXIMATE", ()) for row in rows(connection, select)]


@pytest.mark.parametrize(
    "changes",
    [
        {"referenced_at": -62_135_596_800_000_000},
        {"referenced_at": 253_402_300_799_000_000},
        {"referenced_at": -1},
        {"ttl_seconds": TTL_SECONDS_MAX},
        {"content": "\0 and \U0001f600"},
        {"tags": ("\0", "é"), "metadata": {"\0": "\0"}},
        {"confidence": 0.1 + 0.2, "priority": 1},
    ],
    ids=str,
)
@EACH
def test_a_projection_shows_whatever_a_memory_may_hold(
    projection: Projection, changes: dict[str, object]
) -> None:
    event = recorded(stored(**changes), 1)  # type: ignore[arg-type]
    show(projection, [event]).close()


@given(STEPS, st.lists(st.integers(1, 9), max_size=40))
def test_the_size_of_batches_does_not_matter(steps: list[tuple[int, int, int]], sizes: list[int]) -> None:
    log = a_log(steps)
    at_once, in_parts, one_by_one = Views(), Views(), Views()
    at_once.apply(log)
    start = 0
    for size in (*sizes, len(log)):
        in_parts.apply(log[start : start + size])
        start += size
    for event in log:
        one_by_one.apply([event])
    assert at_once.say() == in_parts.say() == one_by_one.say()


@given(STEPS, st.integers(0, 40))
def test_an_event_shown_before_changes_nothing(steps: list[tuple[int, int, int]], again_from: int) -> None:
    log = a_log(steps)
    views = Views()
    views.apply(log)
    before = views.say()
    views.apply(log[again_from:])
    assert views.say() == before


@given(STEPS, st.integers(1, 60), st.integers(1, 9))
def test_an_interrupted_batch_leaves_no_trace(
    steps: list[tuple[int, int, int]], fails_at: int, size: int
) -> None:
    """A lookup that is interrupted stands for anything that ends a batch in its middle."""

    class Interrupted(BaseException):
        pass

    log = a_log(steps)
    whole, broken = Views(), Views()
    calls = 0

    def look_up_or_fail(wanted: Embedding) -> bytes:
        nonlocal calls
        calls += 1
        if calls == fails_at:
            raise Interrupted
        return look_up(wanted)

    for start in range(0, len(log), size):
        whole.apply(log[start : start + size])
        batch = log[start : start + size]
        before = broken.say()
        try:
            broken.show(batch, look_up_or_fail)
        except Interrupted:
            assert not broken.connection.in_transaction
            assert broken.say() == before
            broken.apply(batch)
    assert broken.say() == whole.say()


def test_canonical_rows_tell_views_apart() -> None:
    for projection in projections.ALL:
        log = [event for event in every_kind() if isinstance(event.event, projection.EVENTS)]
        one, other = show(projection, log), show(projection, [])
        assert digest(one, projection) != digest(other, projection)
        one.close()
        other.close()


def test_the_golden_events_are_all_of_them() -> None:
    assert len(golden()) == len(FILES) >= len(CODEC.kinds)
    assert all(json.loads(path.read_bytes())["type"] == tag_in(path) for path in FILES)
