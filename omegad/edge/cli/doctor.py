"""The verb that tries every part: `omegad doctor`."""

from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from omegad.edge.cli import service, setup, surroundings, trial, units
from omegad.edge.cli.findings import Finding, examined
from omegad.edge.cli.place import Place
from omegad.edge.cli.printing import painted, safe, write_json

COLOURS = {"ok": "green", "warn": "yellow", "FAIL": "red"}
PART_COLUMNS = 10
STATE_COLUMNS = 5

Check = tuple[str, Callable[[], Iterable[Finding]]]


def diagnose(arguments: Namespace, place: Place) -> int:
    """Print a line for each part as it is checked; fail if one does."""
    found = []
    for finding in _findings(place, is_full=arguments.full):
        found.append(finding)
        if not arguments.json:
            _write(finding)
    failures = sum(finding.state == "FAIL" for finding in found)
    if arguments.json:
        write_json({"ok": not failures, "findings": found})
    elif failures:
        print(painted(f"\n{failures} of {len(found)} checks failed", "red"))
    else:
        print(painted("\nall is well" if all(finding.state == "ok" for finding in found) else "\nit works; see the warnings", "green"))
    return 1 if failures else 0


def _findings(place: Place, *, is_full: bool) -> Iterator[Finding]:
    """Check part after part, leaving out what can only fail with the part that it depends on."""
    for part, check in _checks_around(place):
        yield from examined(part, check)
    settings = examined("config", partial(surroundings.settings, place))
    yield from settings
    if _work(settings):
        yield from examined("model", partial(surroundings.model, place))
    reached = examined("daemon", partial(service.daemon, place))
    yield from reached
    if _work(reached):
        for part, check in _checks_of_daemon(place, is_full=is_full):
            yield from examined(part, check)
    if _work(settings):
        yield from examined("trial", partial(trial.round_trip, place))


def _work(findings: Iterable[Finding]) -> bool:
    return all(finding.state != "FAIL" for finding in findings)


def _checks_around(place: Place) -> list[Check]:
    return [
        ("python", surroundings.python),
        ("sqlite", surroundings.sqlite),
        ("home", partial(surroundings.home, place)),
        ("socket", partial(surroundings.socket, place)),
        ("agents", partial(setup.agents, place)),
        ("service", partial(units.examine, place)),
    ]


def _checks_of_daemon(place: Place, *, is_full: bool) -> list[Check]:
    return [
        ("log", partial(service.log, place, is_full=is_full)),
        ("views", partial(service.views, place, is_full=is_full)),
        ("embedding", partial(service.embedding, place)),
        ("daemon", partial(service.troubles, place)),
    ]


def _write(finding: Finding) -> None:
    state = painted(finding.state.ljust(STATE_COLUMNS), COLOURS[finding.state])
    indent = " " * (STATE_COLUMNS + PART_COLUMNS)
    print(f"{state}{finding.part:<{PART_COLUMNS}}{safe(finding.seen).replace(chr(10), chr(10) + indent)}", flush=True)
    if finding.remedy:
        print(f"{indent}→ {safe(finding.remedy)}", flush=True)
