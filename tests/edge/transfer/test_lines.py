"""A log as JSON Lines: the same log again, or none."""

import asyncio
import io
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from omegad.edge.transfer import lines, log_file
from omegad.log.event import NewEvent
from omegad.log.mending import ClockMended
from omegad.runtime.errors import Invalid
from omegad.storage.database import open_writer
from tests.builders import append, edited, erased, running_log, stored, tool_called

TABLES = ("events", "payloads", "requests", "cursors", "erasures", "mendings", "identity")


def _quiet(_done: int, _total: int, _what: str) -> None:
    pass


async def _write(path: Path) -> None:
    async with running_log(path) as log:
        await append(log, stored(content="“the café's port” is 5003\n"), client="cli", trace="trace")
        await append(log, stored("mem-2", "The bank account is at Example & Sons"), tool_called())
        await append(log, NewEvent(event=edited(), session_id="s-1", project="shop", cause=1))
        await append(log, erased(2))
    with closing(open_writer(path, durable=False)) as connection:
        connection.execute("DELETE FROM payloads WHERE position = 2")
        connection.execute(
            "INSERT INTO requests VALUES ('cli', 'r-1', x'00ff', 1, 1, '{\"memory_id\":\"mem-1\"}')"
        )
        connection.execute("INSERT INTO cursors (name, version, position) VALUES ('capture', 2, 3)")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sample") / "log.db"
    asyncio.run(_write(path))
    return path


@pytest.fixture(scope="module")
def exported(log: Path) -> bytes:
    out = io.BytesIO()
    lines.export(log, out, _quiet)
    return out.getvalue()


def _rows(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    with closing(open_writer(path, durable=False)) as connection:
        return {table: connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall() for table in TABLES}


def test_every_row_is_made_again_also_where_a_payload_was_erased(
    log: Path, exported: bytes, tmp_path: Path
) -> None:
    told = [json.loads(line) for line in exported.splitlines()]
    assert [line["type"] for line in told] == ["header", *["event"] * 5, "request"]
    assert (told[2]["payload"], told[2]["salt"], told[0]["cursors"]) == (None, None, [["capture", 2, 3]])
    made = tmp_path / "made.db"
    assert lines.make_log(io.BytesIO(exported), made, _quiet).head == 5
    assert _rows(made) == _rows(log)
    assert log_file.verify(made, _quiet) == log_file.verify(log, _quiet)


async def _mended(path: Path) -> None:
    async with running_log(path) as log:
        await append(log, stored())
        await append(log, ClockMended(first=1, last=1, from_us=9, to_us=7, ahead_us=2, right_us=0))


def test_what_was_said_of_the_clock_is_there_again(tmp_path: Path) -> None:
    path, made, out = tmp_path / "log.db", tmp_path / "made.db", io.BytesIO()
    asyncio.run(_mended(path))
    lines.export(path, out, _quiet)
    out.seek(0)
    lines.make_log(out, made, _quiet)
    assert _rows(path)["mendings"] == _rows(made)["mendings"] == [(2, 1, 2, 0, 7)]


def _altered(change: Callable[[list[dict[str, Any]]], None]) -> Callable[[bytes], bytes]:
    def alter(exported: bytes) -> bytes:
        told = [json.loads(line) for line in exported.splitlines()]
        change(told)
        return b"".join(
            json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode() + b"\n" for line in told
        )

    return alter


@pytest.mark.parametrize(
    ("alter", "told"),
    [
        (lambda exported: exported[: len(exported) // 2], "line "),
        (lambda exported: b"\n".join(exported.splitlines()[:4]) + b"\n", "ends at event 3 of 5"),
        (lambda exported: exported.partition(b"\n")[2], "does not begin with the header"),
        (lambda exported: exported[:0], "does not begin with the header"),
        (lambda exported: exported.replace(b"is 5003", b"is 6003", 1), "line 2 .* breaks at position 1"),
        (_altered(lambda told: told[0].update(version=99)), "has version 99"),
        (_altered(lambda told: told[3].update(project="elsewhere")), "line 4 .* breaks at position 3"),
        (_altered(lambda told: told[3].update(chain="zz")), "line 4"),
        (_altered(lambda told: told[3].update(salt="zz")), "line 4"),
        (_altered(lambda told: told[3].update(hlc=2**80)), "line 4"),
        (
            _altered(lambda told: told[3].update(salt=None, payload=None)),
            "the payload at position 3 is missing",
        ),
        (_altered(lambda told: told.insert(4, told[0])), "line 5 .* second header"),
        (_altered(lambda told: told.append(told[-1])), "line 8"),
    ],
)
def test_an_export_that_was_changed_makes_no_log(
    alter: Callable[[bytes], bytes], told: str, exported: bytes, tmp_path: Path
) -> None:
    with pytest.raises(Invalid, match=told):
        lines.make_log(io.BytesIO(alter(exported)), tmp_path / "log.db", _quiet)
