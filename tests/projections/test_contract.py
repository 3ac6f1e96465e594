"""What every projection promises, asked of each of them."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import projections
from omegad.events.fact import Fact, Recorded
from omegad.log.codec import EVENT_TYPES, decode
from omegad.storage.driver import Connection
from omegad.storage.transaction import run_script
from omegad.views import applying, checkpoints
from omegad.views.contract import Embedding, Projection
from omegad.views.digest import digest
from tests.builders import (
    deleted,
    embedded,
    erased,
    excerpt,
    look_up,
    open_in_memory,
    queried,
    recorded,
    related,
    relations,
    repeated,
    rows,
    show,
    stored,
    superseded,
    tool_called,
)

GOLDEN = sorted((Path(__file__).parents[1] / "events" / "golden").glob("*.json"))
EACH = pytest.mark.parametrize("projection", projections.ALL, ids=lambda projection: projection.NAME)

CHECKPOINTS = (Path(applying.__file__).parent / "checkpoints.sql").read_text(encoding="utf-8")


def golden() -> list[Recorded]:
    events = [decode(path.stem, path.read_bytes()) for path in GOLDEN]
    order = list(EVENT_TYPES)
    facts = sorted((event for event in events if isinstance(event, Fact)), key=lambda event: order.index(str(event.__struct_config__.tag)))
    return [recorded(event, position) for position, event in enumerate(facts, 1)]


class Views:
    """All projections over one database, as a generation holds them."""

    def __init__(self) -> None:
        self.connection = open_in_memory()
        run_script(self.connection, CHECKPOINTS)
        self.states = {projection.NAME: checkpoints.start_of(projection) for projection in projections.ALL}
        for projection in projections.ALL:
            run_script(self.connection, projection.SCHEMA)

    def apply(self, batch: Sequence[Recorded]) -> None:
        work = {projection.NAME: (projection, self.states[projection.NAME]) for projection in projections.ALL}
        self.states |= applying.apply(self.connection, batch, work, look_up)

    def say(self) -> dict[str, object]:
        assert [state for state in self.states.values() if state.error] == []
        assert checkpoints.load(self.connection) == {name: state for name, state in self.states.items() if state.position}
        return {projection.NAME: digest(self.connection, projection) for projection in projections.ALL}


def a_log(steps: Sequence[tuple[int, int, int]]) -> list[Recorded]:
    """Turn numbers into a log such as the guards would let come about: each of its events speaks of memories that are there."""
    events: list[Fact] = []
    alive: list[str] = []
    for kind, one, other in steps:
        memory = alive[one % len(alive)] if alive else "mem-none"
        second = alive[other % len(alive)] if alive else "mem-none"
        name = f"mem-{len(events)}"
        match kind if alive else 0:
            case 0:
                edges = relations((memory, 0.5), (second, 1.2)) if alive else ()
                tags = ("a", "b c") if other % 2 else ()
                changes = {"referenced_at": None if one % 2 else one * 10**15, "ttl_seconds": other or None, "metadata": {"n": [one, other]}}
                events.append(stored(name, f"memory {one} of {other} things", tags=tags, related=edges, pending=bool(one % 2), **changes))
                alive.append(name)
            case 1:
                events.append(embedded(memory, f"text {one}", f"text {other}", embedder_id=f"embedder-{len(events)}"))
            case 2:
                events.append(repeated(memory, likeness="jaccard", similarity=0.9, content="again"))
            case 3:
                events.append(related(memory, (second, -0.1), (memory, 0.7)))
            case 4:
                events.append(superseded(memory, second))
            case 5:
                events.append(deleted(memory))
            case 6:
                events.append(queried((memory, 0.9), (second, 0.1), query_id=f"query-{len(events)}", at=one * 10**12))
            case 7:
                events.append(tool_called(one + 1, tool_input=excerpt(f"{one}"), duration_ms=other / 3))
            case _:
                events.append(erased(one + 1))
    return [recorded(event, position) for position, event in enumerate(events, 1)]


STEPS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 9), st.integers(0, 9)), max_size=40)


@EACH
def test_a_projection_has_what_the_contract_asks_for(projection: Projection) -> None:
    assert re.fullmatch(r"[a-z_]+", projection.NAME)
    assert projection.VERSION >= 1
    assert projection.EVENTS
    assert projection.CANONICAL
    assert set(projection.EVENTS) <= set(EVENT_TYPES.values())
    assert [select for select in projection.CANONICAL if " ORDER BY " not in select] == []


def test_names_and_tables_are_nobody_elses() -> None:
    names = [projection.NAME for projection in projections.ALL]
    tables = [table for projection in projections.ALL for table in re.findall(r"CREATE (?:VIRTUAL )?TABLE (\w+)", projection.SCHEMA)]
    assert len(set(names)) == len(names)
    assert len(set(tables)) == len(tables)
    assert not {"checkpoints", "deferred"} & set(tables)


@EACH
def test_a_projection_touches_no_tables_but_its_own(projection: Projection) -> None:
    own = set(re.findall(r"CREATE (?:VIRTUAL )?TABLE (\w+)", projection.SCHEMA))
    statements = [sql for event in golden() if isinstance(event.event, projection.EVENTS) for sql, _ in projection.project(event)]
    named = {name for sql in (*statements, *projection.CANONICAL) for name in re.findall(r"(?:INTO|FROM|UPDATE|JOIN) (\w+)", sql)}
    assert named
    assert named - own - {"SET"} == set()


@EACH
def test_a_projection_shows_every_event_that_was_ever_released(projection: Projection) -> None:
    connection = show(projection, golden())
    found = digest(connection, projection)
    assert found.rows > 0
    connection.close()


@EACH
def test_a_projection_says_the_same_of_the_same_event(projection: Projection) -> None:
    for event in golden():
        if isinstance(event.event, projection.EVENTS):
            assert list(projection.project(event)) == list(projection.project(event))


@EACH
def test_every_place_that_waits_for_a_vector_may_be_filled_twice(projection: Projection) -> None:
    events = [event for event in golden() if isinstance(event.event, projection.EVENTS)]
    connection = show(projection, events)
    before = digest(connection, projection), _approximate(connection, projection)
    for event in events:
        for sql, values in projection.project(event):
            if any(isinstance(value, Embedding) for value in values):
                connection.execute(sql, [look_up(value) if isinstance(value, Embedding) else value for value in values])
    assert (digest(connection, projection), _approximate(connection, projection)) == before
    connection.close()


def _approximate(connection: Connection, projection: Projection) -> list[object]:
    return [row for select in getattr(projection, "APPROXIMATE", ()) for row in rows(connection, select)]


@pytest.mark.parametrize(
    "changes",
    [
        {"referenced_at": -62_135_596_800_000_000},
        {"referenced_at": 253_402_300_799_000_000},
        {"referenced_at": -1},
        {"ttl_seconds": 2**63 - 1},
        {"content": "\0 and \U0001f600"},
        {"tags": ("\0", "é"), "metadata": {"\0": "\0"}},
        {"confidence": 0.1 + 0.2, "priority": 1},
    ],
    ids=str,
)
@EACH
def test_a_projection_shows_whatever_a_memory_may_hold(projection: Projection, changes: dict[str, object]) -> None:
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
    assert [rows(v.connection, "SELECT rowid FROM memories_vec ORDER BY 1") for v in (in_parts, one_by_one)] == [
        rows(at_once.connection, "SELECT rowid FROM memories_vec ORDER BY 1")
    ] * 2


@given(STEPS, st.integers(0, 40))
def test_an_event_shown_before_changes_nothing(steps: list[tuple[int, int, int]], again_from: int) -> None:
    log = a_log(steps)
    views = Views()
    views.apply(log)
    before = views.say()
    views.apply(log[again_from:])
    assert views.say() == before


@given(STEPS, st.integers(1, 60), st.integers(1, 9))
def test_an_interrupted_batch_leaves_no_trace(steps: list[tuple[int, int, int]], fails_at: int, size: int) -> None:
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
        work = {projection.NAME: (projection, broken.states[projection.NAME]) for projection in projections.ALL}
        before = broken.say()
        try:
            broken.states |= applying.apply(broken.connection, batch, work, look_up_or_fail)
        except Interrupted:
            assert not broken.connection.in_transaction
            assert broken.say() == before
            broken.apply(batch)
    assert broken.say() == whole.say()


def test_canonical_rows_tell_views_apart() -> None:
    for projection in projections.ALL:
        log = [event for event in golden() if isinstance(event.event, projection.EVENTS)]
        one, other = show(projection, log), show(projection, [])
        assert digest(one, projection) != digest(other, projection)
        one.close()
        other.close()


def test_the_golden_events_are_all_of_them() -> None:
    assert len(golden()) == len(GOLDEN) >= len(EVENT_TYPES)
    assert all(json.loads(path.read_bytes())["type"] == path.stem for path in GOLDEN)
