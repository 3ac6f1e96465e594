"""The client of hooks as hosts run it: a process of its own, against a daemon that runs, does not, or is
frozen.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import pytest

from tests.acceptance.conftest import PATIENCE_S, Home, daemon, home, homes, homes_in

__all__ = ["daemon", "home", "homes"]

CLIENT = Path(__file__).parents[3] / "omegad" / "hook_client.py"
HURRIED = [str(CLIENT)]
PATIENT = [
    "-c",
    f"""
import posix, sys
sys.path.append({str(CLIENT.parents[1])!r})
from omegad.edge.hook import delivery as hook_delivery
hook_delivery.STDIN_S = hook_delivery.LONG_S = hook_delivery.SHORT_S = {PATIENCE_S}
hook_delivery.STARTING = ()
posix._exit(hook_delivery.main(sys.argv[1], sys.argv[2:]))
""",
]
"""The client with deadlines that it keeps on a busy machine, too, and which starts no daemon; for all tests
but those of its deadlines, and of that.
"""


def payload(event: str, session_id: str = "s-1", **fields: Any) -> dict[str, Any]:
    """Return what Claude Code gives its hooks."""
    return {
        "session_id": session_id,
        "transcript_path": "/tmp/t.jsonl",  # noqa: S108
        "cwd": "/src/shop",
        "hook_event_name": event,
    } | fields


def begin(
    home: Home,
    event: str,
    client: Sequence[str] = PATIENT,
    stdin: IO[bytes] | int = subprocess.PIPE,
    /,
    **environ: str,
) -> subprocess.Popen[bytes]:
    """Run the client as a host does, in an environment of little else than the home."""
    environ = {
        "OMEGAD_HOME": str(home.path),
        "HOME": str(home.path),
        "CLAUDE_PROJECT_DIR": "/src/shop",
        **environ,
    }
    command = [sys.executable, "-I", "-S", *client, event]
    return subprocess.Popen(command, env=environ, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def written(said: dict[str, Any]) -> IO[bytes]:
    """Return what a host says as a file, for which no client waits."""
    file = TemporaryFile()  # noqa: SIM115  for the caller to close
    file.write(json.dumps(said).encode())
    file.seek(0)
    return file


def fire(
    home: Home, event: str, session_id: str = "s-1", client: Sequence[str] = PATIENT, /, **fields: Any
) -> str:
    """Run one hook to its end, and return the words for the agent; its status is 0 and it complains of
    nothing.
    """
    with written(payload(event, session_id, **fields)) as said:
        process = begin(home, event, client, said)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (0, b"")
    return context_of(out, event)


def context_of(out: bytes, event: str) -> str:
    """Return the words for the agent of what a hook printed: nothing, or one JSON object with no other key
    than Claude Code knows.
    """
    if not out:
        return ""
    told = json.loads(out)
    assert told == {
        "hookSpecificOutput": {
            "hookEventName": event,
            "additionalContext": told["hookSpecificOutput"]["additionalContext"],
        }
    }
    return str(told["hookSpecificOutput"]["additionalContext"])


def spooled(home: Home) -> list[Path]:
    folder = home.path / "spool"
    return sorted(folder.glob("[!.]*.json")) if folder.exists() else []


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home whose daemon answers all tests of the module, which keep to sessions and projects of their
    own.
    """
    with homes_in(tmp_path_factory.mktemp("served")) as make:
        yield make().start()
