"""A model that fails is left alone for a while, and nobody waits for it meanwhile."""

from pathlib import Path

import anyio
import pytest

from omegad.embedding.breaker import FAILURES_MAX, OPEN_S
from omegad.errors import ModelFailed, OmegadError
from tests.embedding.fakes import bench, put_model, until


async def test_failures_open_the_circuit_and_one_trial_closes_it_again(tmp_path: Path) -> None:
    put_model(tmp_path / "models")
    async with bench(tmp_path) as it:
        it.session.failing = True
        for _ in range(FAILURES_MAX):
            with pytest.raises(ModelFailed, match="out of luck"):
                await it.embedder.embed_query("x")
        assert it.embedder.status().state == "failed"
        with pytest.raises(ModelFailed, match="left alone"):
            await it.embedder.embed_store("x")
        assert len(it.session.texts) == FAILURES_MAX
        it.time.now += OPEN_S
        with pytest.raises(ModelFailed, match="out of luck"):
            await it.embedder.embed_query("trial")
        with pytest.raises(ModelFailed, match="left alone"):
            await it.embedder.embed_query("x")
        it.time.now += OPEN_S
        it.session.failing = False
        assert await it.embedder.embed_query("trial")
        status = it.embedder.status()
        assert (status.state, status.failure) == ("ready", None)
        assert it.session.loads == FAILURES_MAX + 2


async def test_a_success_forgives_the_failures_before_it(tmp_path: Path) -> None:
    put_model(tmp_path / "models")
    async with bench(tmp_path) as it:
        for _ in range(2):
            it.session.failing = True
            for _ in range(FAILURES_MAX - 1):
                with pytest.raises(ModelFailed, match="out of luck"):
                    await it.embedder.embed_query("x")
            it.session.failing = False
            await it.embedder.embed_query("x")
        assert it.embedder.status().state == "ready"


async def test_those_who_wait_when_the_circuit_opens_are_answered_without_trying(tmp_path: Path) -> None:
    put_model(tmp_path / "models")
    async with bench(tmp_path) as it:
        it.session.failing = True
        it.session.may_go_on.clear()
        outcomes: list[OmegadError] = []

        async def ask(number: int) -> None:
            try:
                await it.embedder.embed_query(str(number))
            except OmegadError as error:
                outcomes.append(error)

        async with anyio.create_task_group() as callers:
            for number in range(10):
                callers.start_soon(ask, number)
            await until(lambda: it.embedder.status().waiting == 9)
            it.session.may_go_on.set()
        assert len(outcomes) == 10
        assert all(isinstance(outcome, ModelFailed) for outcome in outcomes)
        assert len(it.session.texts) == FAILURES_MAX


async def test_a_vector_of_the_wrong_size_is_a_failure(tmp_path: Path) -> None:
    put_model(tmp_path / "models")
    async with bench(tmp_path) as it:
        it.session.bytes = 5
        with pytest.raises(ModelFailed, match="5 bytes instead of 1536"):
            await it.embedder.embed_query("x")
