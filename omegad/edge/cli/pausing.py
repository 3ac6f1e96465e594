"""The verbs that pause omegad and end the pause. They ask no daemon: a file of the home says so to all."""

import os
import re
import time
from argparse import Namespace
from contextlib import suppress
from pathlib import Path

from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import tell
from omegad.rpc import endpoint
from omegad.runtime import pausing
from omegad.runtime.errors import Invalid

SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
SPAN = re.compile(r"(\d{1,6}) ?([smhdw])")
SPAN_S_MAX = 3_660 * 86_400


def pause(arguments: Namespace, instance: Instance) -> None:
    """Pause the home, for a span or until somebody resumes. Raises `Invalid` for what is no span."""
    _write(instance, "" if arguments.span is None else f"{time.time() + _seconds(arguments.span):.0f}\n")
    _say(arguments, instance)


def resume(arguments: Namespace, instance: Instance) -> None:
    """End the pause of the home."""
    if pausing.of_home(str(instance.paths.home)) is not None:
        _write(instance, f"{time.time():.6f}\n")  # of what was silent until then nobody is to wonder
    _say(arguments, instance)


def _write(instance: Instance, text: str) -> None:
    home = instance.paths.home
    endpoint.private_directory(home, "OMEGAD_HOME")
    part = home / f".{pausing.FILE}.{os.getpid()}"
    part.write_text(text, encoding="ascii")
    part.replace(home / pausing.FILE)


def here(instance: Instance) -> str | None:
    """Say why the folder that a person is in is paused, None where it is not."""
    with suppress(OSError):
        return pausing.of_folders(str(instance.paths.home), [str(Path.cwd())])
    return None


def _say(arguments: Namespace, instance: Instance) -> None:
    home, folder = pausing.of_home(str(instance.paths.home)), here(instance)
    tell(
        arguments,
        {"paused": home, "paused_here": folder},
        f"omegad keeps off: {home}" if home else "omegad goes on",
        *([f"this folder is paused all the same: {folder}"] if folder else ()),
    )


def _seconds(span: str) -> int:
    parts = SPAN.findall(span)
    seconds = sum(int(count) * SECONDS[unit] for count, unit in parts)
    if not parts or SPAN.sub("", span).strip() or not 0 < seconds <= SPAN_S_MAX:
        raise Invalid(f"{span[:40]!r} is no span of time", hint="say for how long, like 2h, 30m or 1h30m")
    return seconds
