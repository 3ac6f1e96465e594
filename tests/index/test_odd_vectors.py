"""Vectors that no model gives, in the file of the views."""

from contextlib import closing
from typing import Any

import numpy as np
import pytest

from omegad.index import vector_index
from omegad.runtime.config import Paths
from omegad.storage.database import open_writer
from omegad.storage.driver import sqlite
from tests.builders import FakeClock, Served, served

SELF = "SELECT vec_distance_cosine(embedding, embedding) FROM memories_vec ORDER BY rowid"


async def _stored(it: Served, content: str) -> str:
    memory_id: str = (await it.caller.call("memory.store", content=content))["memory_id"]
    return memory_id


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "0"])
@pytest.mark.usefixtures("model")
async def test_a_vector_of_no_direction_is_near_to_nothing(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, number: str
) -> None:
    async with served(paths, clock) as it:
        one, other = await _stored(it, "alpha beta gamma"), await _stored(it, "alpha beta delta")
        await it.caught_up()
        file = it.daemon.services.views.file
    odd = np.full(vector_index.DIMENSIONS, float(number), "<f4").tobytes()
    with closing(open_writer(file, durable=False)) as connection:
        for refused in (b"", odd[:-1], odd * 2):
            with pytest.raises(sqlite.IntegrityError):
                connection.execute("UPDATE memory_vectors SET vector = ?", (refused,))
        connection.execute("UPDATE memory_vectors SET vector = ? WHERE memory_id = ?", (odd, other))

    async def asked(it: Served, method: str, **params: Any) -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = (await it.caller.call(method, **params))["results"]
        return results

    for exact_max in (vector_index.EXACT_MAX, 0):  # whether they are kept in memory
        monkeypatch.setattr(vector_index, "EXACT_MAX", exact_max)
        async with served(paths, clock) as it:
            for mode in ("semantic", "hybrid"):
                answer = await asked(it, "memory.query", text="alpha beta", mode=mode, all=True)
                assert {found["memory_id"] for found in answer} >= {one, other}
            alike = await asked(it, "memory.similar", memory_id=other)
            assert {found["similarity"] for found in alike} == {0.0}
            selected = (await it.caller.call("audit.sql", sql=SELF))["rows"]
            assert selected[1] == [None]
            assert await _stored(it, f"alpha beta epsilon {exact_max}") not in {one, other}
