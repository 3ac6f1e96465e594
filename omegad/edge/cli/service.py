"""Checks of `omegad doctor` that ask the home's own daemon, and leave no memory behind in it."""

import time
from collections.abc import Iterator

from omegad import __version__
from omegad.client.blocking import Client
from omegad.edge.cli import starting
from omegad.edge.cli.connection import ANSWER_S, Answer, ask_long, ensure
from omegad.edge.cli.findings import Finding
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import size
from omegad.edge.cli.views import log_problems

EVENTS_VERIFIED = 20_000  # a log up to this long is verified whole without being asked to
WARM_UP_S = 60.0
NOWHERE = "omegad doctor: no project"  # a project without memories, so that no memory counts as retrieved


def daemon(instance: Instance) -> Iterator[Finding]:
    """Reach the daemon, starting it where that is allowed."""
    was_running = starting.answering(instance.paths) is not None
    ensure(instance)
    status = asked(instance, "system.status")
    seen = f"process {status['pid']} answers, version {status['version']}, {size(status['rss_bytes'])}"
    if status["home"] != str(instance.paths.home):
        yield Finding(
            "daemon",
            "FAIL",
            f"{instance.paths.socket} is served for another home, {status['home']}",
            "set OMEGAD_SOCKET to a socket of this home's own",
        )
    elif status["version"] != __version__:
        yield Finding(
            "daemon",
            "warn",
            f"{seen}; this command is {__version__}",
            "restart it: `omegad stop`, then `omegad start`",
        )
    else:
        yield Finding("daemon", "ok", seen if was_running else f"{seen}; started for this check")


def asked(instance: Instance, method: str, **params: object) -> Answer:
    """Ask the daemon that runs, never starting one."""
    with Client(instance.paths.socket, timeout_s=ANSWER_S) as client:
        return client.call(method, **params)


def log(instance: Instance, *, is_full: bool) -> Iterator[Finding]:
    """Verify the log's chain: the whole of it where that is quick or asked for."""
    status = asked(instance, "system.status")
    head, length = status["log"]["head"], size(status["log"]["bytes"])
    if head > EVENTS_VERIFIED and not is_full:
        assert asked(instance, "log.read", after=head - 1, limit=1)["events"], "the log ends where it says"
        yield Finding(
            "log",
            "ok",
            f"{head:,} events, {length}; the daemon verified the end of the chain when it started (--full"
            " verifies all)",
        )
        return
    report = ask_long(instance, "log.verify", "verifying the log")
    if report["ok"]:
        yield Finding(
            "log",
            "ok",
            f"{report['events']:,} events, {length}; the chain holds, the file is sound, the decision state"
            " equals a replay",
        )
    for problem, remedy in log_problems(report):
        yield Finding("log", "FAIL", problem, remedy)


def views(instance: Instance, *, is_full: bool) -> Iterator[Finding]:
    """Look at each view's state, and compare it with a replay where that is quick or asked for."""
    status = asked(instance, "system.status")
    broken = {
        name: f"failed {view['error']}" for name, view in status["views"].items() if view["state"] == "failed"
    }
    is_compared = is_full or status["log"]["head"] <= EVENTS_VERIFIED
    if is_compared:
        report = ask_long(instance, "views.verify", "verifying the views")
        unequal = {
            name: view["problem"] or "does not equal the log"
            for name, view in report["views"].items()
            if not view["equal"]
        }
        broken = unequal | broken
    for name, problem in broken.items():
        yield Finding("views", "FAIL", f"{name}: {problem}", f"run `omegad rebuild {name}`")
    if not broken:
        lag = max((view["lag"] for view in status["views"].values()), default=0)
        how = (
            "equal to a replay of the log"
            if is_compared
            else f"at most {lag:,} events behind (--full compares them with the log)"
        )
        yield Finding("views", "ok", f"{len(status['views'])} views, {how}")


def embedding(instance: Instance) -> Iterator[Finding]:
    """Have the daemon embed a question; the first one may find the model still loading."""
    if asked(instance, "system.status")["embedding"]["state"] == "absent":
        yield Finding(
            "embedding",
            "warn",
            "the daemon has no model: it searches by words alone",
            "see the line about the model",
        )
        return
    deadline = time.monotonic() + WARM_UP_S
    started = time.monotonic()
    while degraded := asked(
        instance, "memory.query", text="omegad doctor", mode="semantic", limit=1, project=NOWHERE
    )["degraded"]:
        state = asked(instance, "system.status")["embedding"]["state"]
        if state == "failed" or time.monotonic() > deadline:
            yield Finding(
                "embedding",
                "FAIL",
                f"a query by meaning fell back to {degraded}; the model is {state}",
                "run `omegad model install --force`",
            )
            return
    status = asked(instance, "system.status")["embedding"]
    yield Finding(
        "embedding",
        "ok",
        f"{status['model']} embedded a question in {(time.monotonic() - started) * 1e3:.0f} ms",
    )


def troubles(instance: Instance) -> Iterator[Finding]:
    """Pass on what the daemon itself complains about, but for what other checks look at."""
    status = asked(instance, "system.status")
    known = ["embedding model", "the view ", "hooks were let go"]
    if status["embedding"]["state"] == "absent":
        known.append("wait for their vectors")  # which follows from having no model
    for trouble in status["degraded"]:
        if not any(part in trouble for part in known):
            yield Finding("daemon", "warn", trouble, "see `omegad status`")
