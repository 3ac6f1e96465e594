"""A home that an earlier version wrote opens, verifies, and answers as it did.

`tests/homes/*.tar.xz` hold what a daemon left behind to which everything happened that there were events of;
`*.json` beside them are what that version itself said of it: the digests of its views' canonical rows, and
its answers. Neither is ever written again.
"""

import os
import re
import tarfile
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from omegad import daemon
from omegad.runtime.config import Config, Paths
from tests.builders import Caller, FakeClock, Served

HOMES = Path(__file__).parents[1] / "homes"
NOW_US = 1_795_500_000_000_000  # some hours after the last event
QUESTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("memory.query", {"text": "how does billing store data?", "project": "shop", "limit": 5}),
    ("memory.query", {"text": "what to do on 429", "mode": "keyword", "explain": True}),
    ("memory.query", {"text": "full jitter", "mode": "phrase"}),
    ("memory.query", {"text": "PostgreSQL", "as_of": "20"}),
    ("memory.list", {"limit": 50}),
    ("memory.timeline", {"days": 3}),
    ("memory.lessons", {"project": "shop"}),
    ("memory.stale", {}),
    ("memory.junk", {}),
    ("receipts.list", {"session_id": "session-a"}),
    ("thesis.list", {}),
    ("thesis.calibration", {}),
    ("lint.report", {"project": "shop"}),
    ("task.list", {}),
    ("message.list", {}),
    ("claim.list", {}),
    ("session.who", {}),
    ("intent.check", {"paths": ["mail.py"], "project": "shop"}),
    ("profile.get", {}),
    ("reminder.list", {}),
    ("identity.get", {}),
    ("session.briefing", {"project": "shop"}),
    ("context.assemble", {"project": "shop", "query": "billing"}),
    ("log.read", {"after": 0, "limit": 161}),
    ("log.diff", {"from": "10", "to": "60"}),
    ("audit.sql", {"sql": "SELECT kind, status, count(*) FROM audit_log GROUP BY 1, 2 ORDER BY 1, 2"}),
)


SAY_MORE = {"audit", "conversations", "git_events", "memories", "retrievals"}
"""Views that say more than that version's did; `test_versions` pins their digests."""

RECKONED = {
    *("score", "confidence", "explanation", "strength", "retrieval_count", "last_retrieved_at", "floor"),
    "tokens",
}
"""What later versions reckon otherwise of the same events, or did not say."""


def lasting(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer without what is of its own asking: its id, how long it took, and how far the log
    was with what was asked before.
    """
    return {
        name: value
        for name, value in answer.items()
        if name not in {"query_id", "position", "stale_by", "head", "took_ms"}
    }


def as_before(now: Any, before: Any) -> Any:
    """Return what is said now without fields that were not there before, where those say nothing: a new
    one has a default. What is `RECKONED` is what it was.
    """
    if isinstance(now, dict) and isinstance(before, dict):
        return {
            name: before[name] if name in RECKONED and name in before else as_before(value, before.get(name))
            for name, value in now.items()
            if name in before or (value and name not in RECKONED)
        }
    if isinstance(now, list) and isinstance(before, list) and len(now) == len(before):
        return [as_before(*pair) for pair in zip(now, before, strict=True)]
    return unmarked(now) if isinstance(now, str) else now


def unmarked(text: str) -> str:
    """Return what is told without the word of what may take its place."""
    return re.sub(r" \(mem-\w+, later, may take its place\)", "", text)


def in_any_order(answer: Any) -> Any:
    """Return what was found for a question without the order that later versions rank it in."""
    return answer | {"results": sorted(answer["results"], key=lambda one: str(one["memory_id"]))}


def in_other_words(report: dict[str, Any]) -> dict[str, Any]:
    """Return what the lint finds without the words that later versions ask and offer in."""
    findings = [
        {name: value for name, value in one.items() if name not in {"text", "settle"}}
        for one in report["findings"]
    ]
    return report | {"findings": findings}


async def said(paths: Paths) -> dict[str, Any]:
    """Open a home without its reactions, and return what it is and says: the views' digests, and the
    answers to questions.
    """
    settings = Config(
        model="none", fresh_wait_ms=20_000, query_timeout_s=20.0, read_timeout_s=60.0, report_timeout_s=60.0
    )
    async with (
        daemon.composed(paths, settings, FakeClock(NOW_US, step_us=0)) as service,
        anyio.create_task_group() as tasks,
    ):
        for run in (
            service.services.log.run,
            service.services.views.run,
            service.services.past.run,
            service.services.near.embedder.run,
        ):
            tasks.start_soon(run)
        it = Served(service, Caller(service))
        views = service.services.views
        while views.rebuilding:  # noqa: ASYNC110  nothing tells of it
            await anyio.sleep(0.02)
        await views.wait_for(
            service.services.log.head, views.driver.checkpoints.keys()
        )  # nothing reacts here
        log, proof = await it.caller.call("log.verify"), await it.caller.call("views.verify")
        assert (log["ok"], proof["ok"]) == (True, True)
        digests = {name: [view["rows"], view["live_digest"]] for name, view in sorted(proof["views"].items())}
        answers = [
            [method, params, lasting(await it.caller.call(method, **params))] for method, params in QUESTIONS
        ]
        listed = await it.caller.call("memory.list", limit=50)
        for one in listed["memories"]:
            of = {"memory_id": one["memory_id"]}
            answers += [
                [method, of, lasting(await it.caller.call(method, **of))]
                for method in ("memory.get", "memory.history")
            ]
        await service.services.log.drain()
        tasks.cancel_scope.cancel()
    return {"head": log["head_hash"], "views": digests, "answers": answers}


@pytest.mark.parametrize("name", sorted(path.name.removesuffix(".tar.xz") for path in HOMES.glob("*.tar.xz")))
async def test_a_home_of_before_is_what_it_was_and_says_what_it_said(name: str, paths: Paths) -> None:
    paths.home.mkdir(mode=0o700, exist_ok=True)
    with tarfile.open(HOMES / f"{name}.tar.xz") as packed:
        packed.extractall(paths.home, filter="data")
    found = msgspec.json.decode(msgspec.json.encode(await said(paths)))
    expected = HOMES / f"{name}.json"
    if not expected.exists() and "OMEGAD_BLESS" in os.environ:
        expected.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    recorded = msgspec.json.decode(expected.read_bytes())
    assert found["head"] == recorded["head"]
    differing = {name for name, view in recorded["views"].items() if found["views"][name] != view}
    assert differing == SAY_MORE
    for (method, params, answer), (_, _, before) in zip(found["answers"], recorded["answers"], strict=True):
        if method == "audit.sql":  # counts the rows of a view that says more
            continue
        if method == "session.briefing":  # what is denied is left out by now
            assert set(answer["shown"]) < set(before["shown"])
            assert set(unmarked(answer["text"]).splitlines()) < set(before["text"].splitlines())
            continue
        # What is found is ranked, and what is wrong is asked otherwise by now
        alike = (
            in_any_order if method == "memory.query" else in_other_words if method == "lint.report" else dict
        )
        now, then = alike(answer), alike(before)
        assert (method, params, as_before(now, then)) == (method, params, then)
