"""The cache gives back what was put, and losing it is never an error."""

import sys
import threading
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from structlog.testing import capture_logs

from omegad.embedding import cache
from omegad.embedding.cache import FileLookup, canonical, text_hash
from omegad.embedding.catalogue import VECTOR_BYTES
from omegad.runtime.errors import StorageFailed
from omegad.storage.driver import sqlite
from tests.embedding.fakes import get_many, put_many

VECTOR = bytes(range(256)) * (VECTOR_BYTES // 256)


def test_texts_that_unicode_calls_the_same_have_the_same_hash() -> None:
    assert text_hash("caf\u00e9") == text_hash("cafe\u0301") != text_hash("cafe")
    assert len(text_hash("")) == 64
    assert canonical("a\udcffb") == "a?b"


async def test_vectors_survive_a_restart_and_are_kept_apart_by_embedder(tmp_path: Path) -> None:
    path = tmp_path / "embeddings.db"
    async with cache.opened(path) as vectors:
        await put_many(vectors, "one", {text_hash("a"): VECTOR, text_hash("b"): VECTOR[::-1]})
        await put_many(vectors, "two", {text_hash("a"): VECTOR[::-1]})
    async with cache.opened(path) as vectors:
        assert await get_many(vectors, "one", [text_hash("a"), text_hash("b"), text_hash("c")]) == {
            text_hash("a"): VECTOR,
            text_hash("b"): VECTOR[::-1],
        }
        assert await get_many(vectors, "two", [text_hash("a")]) == {text_hash("a"): VECTOR[::-1]}
        assert await get_many(vectors, "three", [text_hash("a")]) == {}
        assert await get_many(vectors, "one", []) == {}


async def test_a_vector_can_be_put_again(tmp_path: Path) -> None:
    async with cache.opened(tmp_path / "embeddings.db") as vectors:
        await put_many(vectors, "one", {"h": VECTOR})
        await put_many(vectors, "one", {"h": VECTOR[::-1]})
        assert await get_many(vectors, "one", ["h"]) == {"h": VECTOR[::-1]}


async def test_thousands_are_fetched_at_once(tmp_path: Path) -> None:
    async with cache.opened(tmp_path / "embeddings.db") as vectors:
        hashes = [text_hash(str(n)) for n in range(5000)]
        await put_many(vectors, "one", dict.fromkeys(hashes, VECTOR))
        assert len(await get_many(vectors, "one", hashes)) == 5000


def files_with(content: bytes, folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if content in path.read_bytes()]


async def test_a_forgotten_vector_is_in_no_file(tmp_path: Path) -> None:
    secret, kept = b"\xab\xcd\xef\x17" * (VECTOR_BYTES // 4), VECTOR
    async with cache.opened(tmp_path / "embeddings.db") as vectors:
        await put_many(vectors, "one", {"secret": secret, "kept": kept})
        await put_many(vectors, "two", {"secret": secret})
        (tmp_path / "embeddings.db.damaged").write_bytes(secret)
        assert files_with(secret[:64], tmp_path)
        await vectors.forget(["secret"])
        assert await get_many(vectors, "one", ["secret", "kept"]) == {"kept": kept}
        assert not files_with(secret[:64], tmp_path)


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"SQLite format 3\0" + b"\xff" * 8192])
async def test_a_file_that_is_no_database_is_set_aside(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "embeddings.db"
    path.write_bytes(content)
    with capture_logs() as logs:
        async with cache.opened(path) as vectors:
            await put_many(vectors, "one", {"h": VECTOR})
            assert await get_many(vectors, "one", ["h"]) == {"h": VECTOR}
    assert [entry["event"] for entry in logs] == ["embedding.cache_set_aside"]
    assert (tmp_path / "embeddings.db.damaged").read_bytes() == content


async def test_damage_found_while_running_starts_a_fresh_file_once(tmp_path: Path) -> None:
    path = tmp_path / "embeddings.db"
    async with cache.opened(path) as vectors:
        await put_many(vectors, "one", {text_hash(str(n)): VECTOR for n in range(2000)})
    damaged = bytearray(path.read_bytes())
    damaged[8192:] = b"\xff" * (len(damaged) - 8192)
    path.write_bytes(damaged)
    with capture_logs() as logs:
        async with cache.opened(path) as vectors, anyio.create_task_group() as callers:
            for n in range(8):
                callers.start_soon(put_many, vectors, "one", {text_hash(str(n)): VECTOR})
    assert [entry["event"] for entry in logs] == ["embedding.cache_set_aside"]
    async with cache.opened(path) as vectors:
        await put_many(vectors, "one", {"h": VECTOR})
        assert await get_many(vectors, "one", ["h"]) == {"h": VECTOR}


async def test_vectors_that_cannot_be_written_are_kept_in_memory_until_they_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "UNWRITTEN_MAX", 3)
    path = tmp_path / "embeddings.db"
    async with cache.opened(path) as vectors:
        lookup = vectors.lookup
        await vectors._database.run(lambda connection: connection.execute("PRAGMA query_only=ON"))
        with capture_logs() as logs:
            for number in range(5):
                await put_many(vectors, "one", {f"h{number}": VECTOR})
        assert {entry["event"] for entry in logs} == {"embedding.cache_unwritable"}
        known = {f"h{number}": VECTOR for number in (2, 3, 4)}
        assert await get_many(vectors, "one", [f"h{number}" for number in range(5)]) == known
        assert [lookup.find("one", f"h{number}") for number in range(5)] == [
            None,
            None,
            VECTOR,
            VECTOR,
            VECTOR,
        ]
        await vectors._database.run(lambda connection: connection.execute("PRAGMA query_only=OFF"))
        await vectors.forget(["h2"])
        await put_many(vectors, "one", {"h5": VECTOR})
        assert not vectors.unwritten
        assert sorted(await get_many(vectors, "one", [f"h{number}" for number in range(6)])) == [
            "h3",
            "h4",
            "h5",
        ]


def _move_away(folder: Path) -> None:
    for path in folder.glob("embeddings.db*"):
        path.rename(path.with_name(f"moved-{path.name}"))


@pytest.mark.parametrize("how", ["damaged", "moved away"])
async def test_the_lookup_follows_the_cache_to_a_fresh_file(tmp_path: Path, how: str) -> None:
    path = tmp_path / "embeddings.db"
    async with cache.opened(path) as vectors:
        lookup = vectors.lookup
        await put_many(vectors, "one", {text_hash(str(n)): VECTOR for n in range(5_000)})
        assert lookup.find("one", text_hash("1")) == VECTOR
        if how == "damaged":
            await vectors._run(
                lambda connection: connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            )
            path.write_bytes(b"\xff" * path.stat().st_size)
            assert lookup.find("one", text_hash("2")) is None
        else:
            _move_away(tmp_path)
        await put_many(vectors, "one", {"new": VECTOR[::-1]})
        assert lookup.find("one", "new") == VECTOR[::-1]
    async with cache.opened(path) as vectors:
        assert await get_many(vectors, "one", ["new"]) == {"new": VECTOR[::-1]}


def _ruin(path: Path) -> None:
    path.write_bytes(b"\xff" * 100_000)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("harm", [_ruin, _empty, _make_folder, Path.unlink])
@pytest.mark.parametrize("when", ["before it is opened", "once it is open"])
async def test_another_process_finds_nothing_in_a_cache_that_cannot_be_read(
    tmp_path: Path, harm: Callable[[Path], None], when: str
) -> None:
    path = tmp_path / "embeddings.db"
    async with cache.opened(path) as vectors:
        await put_many(vectors, "one", {"h": VECTOR})
    with FileLookup(path) as whole:
        assert whole.find("one", "h") == VECTOR
    if when == "once it is open":
        with FileLookup(path) as lookup:
            harm(path)
            assert [lookup.find("one", "h") for _ in range(2)] in ([None, None], [VECTOR, VECTOR])
    else:
        harm(path)
        with FileLookup(path) as lookup:
            assert [lookup.find("one", "h") for _ in range(2)] == [None, None]


async def test_the_lookup_finds_nothing_in_a_file_that_has_no_table_yet(tmp_path: Path) -> None:
    path = tmp_path / "embeddings.db"
    async with cache.opened(path) as vectors:
        lookup = vectors.lookup
        _move_away(tmp_path)
        _empty(path)
        assert lookup.find("one", "h") is None
        await put_many(vectors, "one", {"h": VECTOR})
        assert lookup.find("one", "h") == VECTOR


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
async def test_threads_that_look_up_and_end_leave_no_file_open(tmp_path: Path) -> None:
    async with cache.opened(tmp_path / "embeddings.db") as vectors:
        await put_many(vectors, "one", {str(n): VECTOR for n in range(20)})
        lookup = vectors.lookup
        assert lookup.find("one", "0") == VECTOR
        before = _descriptors()
        for number in range(1, 20):
            found: list[bytes | None] = []
            thread = threading.Thread(
                target=lambda key=str(number), found=found: found.append(lookup.find("one", key))
            )
            thread.start()
            thread.join()
            assert found == [VECTOR]
        assert _descriptors() == before


async def test_the_write_ahead_log_stays_short(tmp_path: Path) -> None:
    async with cache.opened(tmp_path / "embeddings.db") as vectors:
        for number in range(2_000):
            await put_many(vectors, "one", {text_hash(str(number)): VECTOR})
        assert (tmp_path / "embeddings.db-wal").stat().st_size < 6 * 1024 * 1024


async def test_a_place_where_no_file_can_be_is_an_error_of_the_catalogue(tmp_path: Path) -> None:
    (tmp_path / "embeddings.db").mkdir()
    (tmp_path / "embeddings.db.damaged").mkdir()
    with pytest.raises(StorageFailed, match="neither"):
        async with cache.opened(tmp_path / "embeddings.db"):
            pass


async def test_the_table_can_be_read_with_any_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "embeddings.db"
    async with cache.opened(path) as vectors:
        await put_many(vectors, "one", {"h": VECTOR})
    connection = sqlite.connect(str(path))
    assert connection.execute("SELECT embedder_id, text_hash, length(vector) FROM vectors").fetchall() == [
        ("one", "h", VECTOR_BYTES)
    ]
    connection.close()
