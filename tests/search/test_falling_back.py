"""What is told where a question that wants the model is answered by words."""

import pytest
from structlog.testing import capture_logs

from omegad.runtime.config import Config, Paths
from tests.builders import FakeClock, FakeModel, served


async def test_a_model_that_takes_too_long_is_logged_as_a_failure_of_retrieval(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    async with served(paths, clock, Config(query_timeout_s=0.05)) as it:
        await it.caller.call("memory.store", content="alpha beta")
        model.may_go_on.clear()
        with capture_logs() as logs:
            found = await it.caller.call("memory.query", text="alpha")
        model.may_go_on.set()
        assert (found["degraded"], found["abstained"], len(found["results"])) == ("keyword", False, 1)
        told = [one for one in logs if one["event"] == "query.degraded"]
        assert [(one["failure"], one["to"], one["log_level"]) for one in told] == [
            ("RETRIEVAL", "keyword", "warning")
        ]
        assert "0.05 s" in told[0]["reason"]


@pytest.mark.parametrize("mode", ["keyword", "phrase"])
async def test_a_question_that_wants_no_model_is_not_degraded_by_a_slow_one(
    paths: Paths, clock: FakeClock, model: FakeModel, mode: str
) -> None:
    async with served(paths, clock, Config(query_timeout_s=0.05)) as it:
        await it.caller.call("memory.store", content="alpha beta")
        model.may_go_on.clear()
        with capture_logs() as logs:
            found = await it.caller.call("memory.query", text="alpha beta", mode=mode)
        model.may_go_on.set()
        assert (found["degraded"], len(found["results"])) == (None, 1)
        assert [one for one in logs if one["event"] == "query.degraded"] == []
