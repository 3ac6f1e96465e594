"""Reading single events of the log, and waiting for what is being appended."""

import gc
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from omegad.catalog.events import CODEC
from omegad.log import event_log, reading
from omegad.log.decision import Cursor
from omegad.runtime.errors import LogBroken, StorageFailed
from omegad.storage.database import open_writer
from tests.builders import append, proposal, rated, running_log, stored


async def test_single_events_are_read_in_order(tmp_path: Path) -> None:
    async with running_log(tmp_path / "log.db") as log:
        await append(log, *(stored(f"mem-{number}", f"number {number}") for number in range(1, 6)))
        found = await log.read_at([4, 2, 99])
        assert [(one.position, getattr(one.event, "memory_id", None)) for one in found] == [
            (2, "mem-2"),
            (4, "mem-4"),
        ]
        assert found == [(await log.read(1, 1))[0], (await log.read(3, 1))[0]]
        assert await log.read_at([]) == []


async def test_large_events_come_in_smaller_parts_but_never_in_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BATCH_BYTES_MAX", 1_500)
    async with running_log(tmp_path / "log.db") as log:
        await append(log, *(stored(f"mem-{number}", "x" * 700) for number in range(1, 6)))
        assert [one.position for one in await log.read_at([2, 3, 4])] == [2, 3]
        monkeypatch.setattr(reading, "BATCH_BYTES_MAX", 1)
        assert [one.position for one in await log.read_at([5])] == [5]


async def test_an_event_that_is_no_text_is_a_broken_log(tmp_path: Path) -> None:
    async with running_log(tmp_path / "log.db") as log:
        await append(log, stored("mem-1"), rated("mem-1"))
        await log._writer.run(lambda connection: connection.execute("DROP TRIGGER payloads_are_not_updated"))
        await log._writer.run(
            lambda connection: connection.execute(
                "UPDATE payloads SET body = CAST(x'7bff7d' AS TEXT) WHERE position = 2"
            )
        )
        with pytest.raises(LogBroken, match="one of 2 positions"):
            await log.read_at([1, 2])
        assert len(await log.read_at([1])) == 1


def test_a_read_that_found_no_text_takes_no_row_from_those_after_it(tmp_path: Path) -> None:
    async def three_events() -> None:
        async with running_log(tmp_path / "log.db") as log:
            await append(log, stored("mem-1"), rated("mem-1"), rated("mem-1"))

    anyio.run(three_events)
    with closing(open_writer(tmp_path / "log.db", durable=False)) as connection:
        connection.execute("DROP TRIGGER payloads_are_not_updated")
        connection.execute("UPDATE payloads SET body = CAST(x'7bff7d' AS TEXT) WHERE position = 3")
        with pytest.raises(LogBroken) as failed:
            reading.read_at(connection, CODEC, [1, 2, 3])
        rows = connection.execute(reading.READ_AT, ("[1,2]",))
        first = rows.fetchone()
        del failed  # and with it whatever still holds what read in vain
        gc.collect()
        assert [row[0] for row in (first, *rows.fetchall())] == [1, 2]


async def test_events_are_found_by_their_positions_and_not_by_reading_the_log(tmp_path: Path) -> None:
    async with running_log(tmp_path / "log.db") as log:
        plan = await log._writer.run(
            lambda connection: connection.execute(
                f"EXPLAIN QUERY PLAN {reading.READ_AT}", ("[1]",)
            ).fetchall()
        )
        assert "SEARCH e USING INTEGER PRIMARY KEY (rowid=?)" in [row[3] for row in plan]


async def test_what_was_proposed_for_later_is_appended_when_the_log_has_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "LATER_S", 30.0)
    async with running_log(tmp_path / "log.db") as log:
        log.append_later(proposal(stored("mem-1")))
        assert log.head == 0
        await log.settled()
        assert log.head == 1
        await log.settled()
        assert log.head == 1


async def test_a_log_is_read_by_another_process_byte_for_byte_and_left_as_it_is(tmp_path: Path) -> None:
    async with running_log(tmp_path / "log.db") as log, reading.opened(tmp_path / "log.db", CODEC) as reader:
        await append(log, stored("mem-1"), rated("mem-1"), cursor=Cursor("expiry", 1))
        assert reader.head == 0
        assert await reader.refresh() == 2
        assert await reader.read(0, 10) == await log.read(0, 10)
        assert await reader.read_at([2]) == await log.read_at([2])
        assert (await reader.chain_at(2), await reader.cursors()) == (
            await log.chain_at(2),
            await log.cursors(),
        )
        raws = await reader._readers.read(lambda connection: reading.raw(connection, 0, 10))
        assert [raw.recorded(CODEC) for raw in raws] == await log.read(0, 10)
        stored_rows = await log._writer.run(
            lambda c: c.execute(
                "SELECT e.*, salt, CAST(body AS BLOB) FROM events AS e JOIN payloads USING (position)"
            ).fetchall()
        )
        assert [(*raw.envelope, raw.chain, raw.salt, raw.body) for raw in raws] == stored_rows
        with pytest.raises(Exception, match="readonly"):
            await reader._readers.read(lambda connection: connection.execute("DELETE FROM cursors"))


async def test_there_is_nothing_to_read_where_no_log_is(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed, match="no log"):
        async with reading.opened(tmp_path / "log.db", CODEC):
            pass
    assert not (tmp_path / "log.db").exists()
