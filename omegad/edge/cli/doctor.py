"""The verb that tries every part: `omegad doctor`."""

from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from omegad.edge.cli import checks, round_trip, setup, units
from omegad.edge.cli.findings import Finding
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import painted, safe, write_json
from omegad.runtime.errors import OmegadError

COLOURS = {"ok": "green", "warn": "yellow", "FAIL": "red"}
PART_COLUMNS = 10
STATE_COLUMNS = 5

Check = tuple[str, Callable[[], Iterable[Finding]], str]
"""A part, what looks at it, and the part without which that can only fail."""


def diagnose(arguments: Namespace, instance: Instance) -> int:
    """Print a line for each part as it is checked; fail if one does."""
    found = []
    for finding in _findings(instance, is_full=arguments.full):
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


def _findings(instance: Instance, *, is_full: bool) -> Iterator[Finding]:
    """Check part after part, leaving out what can only fail with the part that it depends on; an error of the
    catalogue or of the system is a finding, too.
    """
    parts: tuple[Check, ...] = (
        ("python", checks.python, ""),
        ("sqlite", checks.sqlite, ""),
        ("home", partial(checks.home, instance), ""),
        ("socket", partial(checks.socket, instance), ""),
        ("agents", partial(setup.agents, instance), ""),
        ("service", partial(units.examine, instance), ""),
        ("config", partial(checks.settings, instance), ""),
        ("model", partial(checks.model, instance), "config"),
        ("daemon", partial(checks.daemon, instance), ""),
        ("log", partial(checks.log, instance, is_full=is_full), "daemon"),
        ("views", partial(checks.views, instance, is_full=is_full), "daemon"),
        ("embedding", partial(checks.embedding, instance), "daemon"),
        ("daemon", partial(checks.troubles, instance), "daemon"),
        ("trial", partial(round_trip.round_trip, instance), "config"),
    )
    failed = set[str]()
    for part, check, needed in parts:
        found: list[Finding] = []
        try:
            found.extend(check() if needed not in failed else ())
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
