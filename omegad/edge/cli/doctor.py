"""The verb that tries every part: `omegad doctor`. Its round trip stores, finds, deletes, verifies, and has a
hook and a tool for real, in a home that is thrown away afterwards.
"""

import shutil
import signal
import subprocess
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec

from omegad.client.blocking import Client
from omegad.edge.cli import checks, consult, setup, sharing, starting, units
from omegad.edge.cli.connection import ANSWER_S
from omegad.edge.cli.findings import Finding
from omegad.edge.cli.instance import Instance, at
from omegad.edge.cli.printing import painted, safe, write_json
from omegad.edge.setup.commands import installed
from omegad.runtime.errors import NoAnswer, NoDaemon, OmegadError

COLOURS = {"ok": "green", "warn": "yellow", "FAIL": "red"}
PART_COLUMNS = 10
STATE_COLUMNS = 5
POLL_S = 0.02
CONTENT = "The lighthouse keeper mends the lamp on Tuesdays"
WORDS = "lighthouse Tuesdays"
MEANING = "who repairs the light?"
SESSION = (
    (
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
        b'"capabilities":{},"clientInfo":{"name":"omegad doctor","version":"1"}}}'
    ),
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
    (
        b'{"jsonrpc":"2.0","id":2,"method":"tools/call",'
        b'"params":{"name":"omega_query","arguments":{"query":"lighthouse"}}}'
    ),
)
REMEDY = "run `omegad serve` in a fresh OMEGAD_HOME to see more"

Check = tuple[str, Callable[[], Iterable[Finding]], str]
"""A part, what looks at it, and the part without which that can only fail."""


def diagnose(arguments: Namespace, instance: Instance) -> int:
    """Print a line for each part as it is checked; fail if one does."""
    found = []
    for finding in _findings(instance, is_full=arguments.full, is_reached=arguments.reach):
        found.append(finding)
        if not arguments.json:
            _write(finding)
    failures = sum(finding.state == "FAIL" for finding in found)
    if arguments.json:
        write_json({"ok": not failures, "findings": found})
    elif failures:
        print(painted(f"\n{failures} of {len(found)} checks failed", "red"))
    else:
        is_well = all(finding.state == "ok" for finding in found)
        print(painted("\nall is well" if is_well else "\nit works; see the warnings", "green"))
    return 1 if failures else 0


def _findings(instance: Instance, *, is_full: bool, is_reached: bool) -> Iterator[Finding]:
    """Check part after part, leaving out what can only fail with the part that it depends on; an error of the
    catalogue or of the system is a finding, too.
    """
    parts: tuple[Check, ...] = (
        ("python", checks.python, ""),
        ("sqlite", partial(checks.sqlite, instance), ""),
        ("home", partial(checks.home, instance), ""),
        ("seal", partial(checks.sealed, instance), ""),
        ("socket", partial(checks.socket, instance), ""),
        ("agents", partial(setup.agents, instance), ""),
        ("service", partial(units.examine, instance), ""),
        ("config", partial(checks.settings, instance), ""),
        ("model", partial(checks.model, instance), "config"),
        ("consult", partial(consult.examine, instance, is_reached=is_reached), "config"),
        ("daemon", partial(checks.daemon, instance), ""),
        ("log", partial(checks.log, instance, is_full=is_full), "daemon"),
        ("views", partial(checks.views, instance, is_full=is_full), "daemon"),
        ("embedding", partial(checks.embedding, instance), "daemon"),
        ("sharing", partial(sharing.examine, instance), "daemon"),
        ("daemon", partial(checks.troubles, instance), "daemon"),
        ("trial", partial(round_trip, instance), "config"),
    )
    failed = set[str]()
    for part, check, needed in parts:
        found: list[Finding] = []
        try:
            found.extend(check() if needed not in failed else ())
        except NoAnswer as error:
            found.append(Finding(part, "FAIL", str(error), starting.what_ends_it(instance.paths)))
        except OmegadError as error:
            found.append(Finding(part, "FAIL", str(error), error.hint))
        except OSError as error:
            hint = "see what the system's error says; the home must be readable and writable"
            found.append(Finding(part, "FAIL", str(error), hint))
        failed |= {part for one in found if one.state == "FAIL"}
        yield from found


def _write(finding: Finding) -> None:
    state = painted(finding.state.ljust(STATE_COLUMNS), COLOURS[finding.state])
    indent = " " * (STATE_COLUMNS + PART_COLUMNS)
    seen = safe(finding.seen).replace("\n", f"\n{indent}")
    print(f"{state}{finding.part:<{PART_COLUMNS}}{seen}", flush=True)
    if finding.remedy:
        print(f"{indent}→ {safe(finding.remedy)}", flush=True)


def round_trip(real: Instance) -> Iterator[Finding]:
    """Take a memory through everything that can happen to it, with the real home's configuration."""
    started = time.monotonic()
    with _serving(real) as trial, Client(trial.paths.socket, timeout_s=ANSWER_S) as client:
        problem, done = _problem(client)
        if problem:
            yield Finding("trial", "FAIL", f"in a home made for it: {problem}", REMEDY)
        else:
            yield Finding(
                "trial", "ok", f"in a home made for it, {done} in {time.monotonic() - started:.1f} s"
            )
        yield _hook(trial, client)
        yield _tool(trial)


def _hook(trial: Instance, client: Client) -> Finding:
    """Have the client that agents run tell of a prompt, and see that it is recorded."""
    started = time.monotonic()
    told = b'{"session_id":"omegad-doctor","prompt":"does it arrive?"}\n'
    done = _run([*installed().hook_words(), "UserPromptSubmit"], told, trial)
    took_ms = (time.monotonic() - started) * 1e3
    deadline = time.monotonic() + ANSWER_S
    while "prompt.submitted@1" not in [event["tag"] for event in client.call("log.read")["events"]]:
        if time.monotonic() > deadline:
            return Finding(
                "hooks",
                "FAIL",
                f"what a hook tells is not recorded; it ended with status {done.returncode}",
                REMEDY,
            )
        time.sleep(POLL_S)
    return Finding("hooks", "ok", f"a hook was told and recorded; its process took {took_ms:.0f} ms")


def _tool(trial: Instance) -> Finding:
    """Have a session of MCP call a tool, as an agent does."""
    started = time.monotonic()
    done = _run(installed().server(), b"".join(line + b"\n" for line in SESSION), trial)
    answers = [line for line in done.stdout.splitlines() if b'"id":2' in line.replace(b" ", b"")]
    if not answers or b'"result"' not in answers[0] or b'"isError":true' in answers[0].replace(b" ", b""):
        said = (answers[0] if answers else done.stderr[-200:]).decode(errors="replace")
        return Finding(
            "mcp", "FAIL", f"a tool called over MCP does not answer: {said or 'nothing was said'}", REMEDY
        )
    over_http = "" if find_spec("mcp") else "; only HTTP needs the extra: pip install 'omegad[web]'"
    return Finding(
        "mcp", "ok", f"a tool was called over MCP in {time.monotonic() - started:.1f} s{over_http}"
    )


def _run(command: list[str], told: bytes, trial: Instance) -> "subprocess.CompletedProcess[bytes]":
    try:
        return subprocess.run(  # noqa: S603  our own files
            command,
            input=told,
            env=trial.environ,
            cwd=trial.paths.home,
            capture_output=True,
            timeout=ANSWER_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NoDaemon(f"{command[-1]} does not end within {ANSWER_S:.0f} s", hint=REMEDY) from None


def _problem(client: Client) -> tuple[str | None, str]:
    """Return what goes wrong first, None when nothing does, and what was done."""
    stored = client.call("memory.store", content=CONTENT)
    memory_id = stored["memory_id"]
    if memory_id not in _found(client, WORDS, "keyword"):
        return "a memory is not found by its words", ""
    by_meaning = stored["degraded"] is None
    if by_meaning and memory_id not in _found(client, MEANING, "semantic"):
        return "a memory is not found by its meaning", ""
    if client.call("memory.get", memory_id=memory_id)["content"] != CONTENT:
        return "a memory does not come back as it was stored", ""
    client.call("memory.delete", memory_id=memory_id, reason="the trial is over")
    if _found(client, WORDS, "keyword"):
        return "a deleted memory is still found", ""
    if not client.call("log.verify")["ok"] or not client.call("views.verify")["ok"]:
        return "the log or a view does not verify", ""
    return None, f"stored, found by words{' and by meaning' if by_meaning else ''}, read, deleted, verified"


def _found(client: Client, text: str, mode: str) -> list[str]:
    return [result["memory_id"] for result in client.call("memory.query", text=text, mode=mode)["results"]]


@contextmanager
def _serving(real: Instance) -> Iterator[Instance]:
    """Run a daemon for the length of the block, in a home that is gone afterwards."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that it is, however early that comes
    with tempfile.TemporaryDirectory(prefix="omegad-doctor-", ignore_cleanup_errors=True) as name:
        environ = {key: value for key, value in real.environ.items() if key != "OMEGAD_SOCKET"}
        trial = at(environ | {"OMEGAD_HOME": name}, may_spawn=False)
        if real.paths.config.exists():
            shutil.copyfile(real.paths.config, trial.paths.config)
        try:
            starting.start(trial)
            yield trial
        except NoDaemon as error:
            raise NoDaemon(str(error), hint=REMEDY) from error
        finally:
            starting.stop(trial.paths)
