"""A model that fails is left alone for a while, and nobody waits for it meanwhile."""

from pathlib import Path

import anyio
import pytest

from omegad.embedding.breaker import FAILURES_MAX, OPEN_S
from omegad.embedding.embedder import PROBE, TextFailed
from omegad.runtime.errors import ModelFailed, OmegadError
from tests.builders import until
from tests.embedding.fakes import Bench, bench, put_model


def tried(it: Bench) -> list[str]:
    """Return what the model was asked for, but for what the embedder asks to see whether it can do
    anything.
    """
    return [text for text in it.session.texts if text != PROBE]


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
        assert len(tried(it)) == FAILURES_MAX
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
        assert len(tried(it)) == FAILURES_MAX


async def test_a_vector_of_the_wrong_size_is_a_failure(tmp_path: Path) -> None:
    put_model(tmp_path / "models")
    async with bench(tmp_path) as it:
        it.session.bytes = 5
        with pytest.raises(ModelFailed, match="5 bytes instead of 1536"):
            await it.embedder.embed_query("x")


async def test_a_text_that_the_model_fails_on_is_a_failure_of_that_text_alone(tmp_path: Path) -> None:
    put_model(tmp_path / "models")
    async with bench(tmp_path) as it:
        it.session.unfit = {"unfit"}
        for _ in range(3 * FAILURES_MAX):
            with pytest.raises(TextFailed, match="on this text, though not on others: out of luck"):
                await it.embedder.embed_store("unfit")
        assert await it.embedder.embed_query("fit")
        status = it.embedder.status()
        assert (status.state, status.failure, it.session.loads) == ("ready", None, 1)


async def test_failing_on_many_texts_and_on_the_probe_opens_the_circuit(tmp_path: Path) -> None:
    put_model(tmp_path / "models")
    async with bench(tmp_path) as it:
        it.session.unfit = {PROBE, *map(str, range(FAILURES_MAX))}
        for number in range(FAILURES_MAX):
            with pytest.raises(ModelFailed, match="failed: out of luck") as failed:
                await it.embedder.embed_backlog(str(number))
            assert not isinstance(failed.value, TextFailed)
        assert it.embedder.status().state == "failed"


async def test_a_text_that_fails_closes_a_circuit_that_a_trial_may_close(tmp_path: Path) -> None:
    put_model(tmp_path / "models")
    async with bench(tmp_path) as it:
        it.session.failing = True
        for _ in range(FAILURES_MAX):
            with pytest.raises(ModelFailed):
                await it.embedder.embed_query("x")
        it.time.now += OPEN_S
        it.session.failing, it.session.unfit = False, {"unfit"}
        with pytest.raises(TextFailed):
            await it.embedder.embed_query("unfit")
        status = it.embedder.status()
        assert (status.state, status.failure) == ("ready", None)


async def test_a_model_that_cannot_be_loaded_is_not_the_texts_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_model(tmp_path / "models")
    async with bench(tmp_path) as it:

        def load(*_: object) -> None:
            raise OSError("no such weights")

        monkeypatch.setattr(it.embedder, "_load", load)
        for _ in range(FAILURES_MAX):
            with pytest.raises(ModelFailed, match="no such weights"):
                await it.embedder.embed_store("x")
        assert it.embedder.status().state == "failed"
