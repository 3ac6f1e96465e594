"""The verb that tries every part: `omegad doctor`."""

from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from omegad.edge.cli import environment, round_trip, service, setup, units
from omegad.edge.cli.findings import Finding, examined
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import painted, safe, write_json

COLOURS = {"ok": "green", "warn": "yellow", "FAIL": "red"}
PART_COLUMNS = 10
STATE_COLUMNS = 5

Check = tuple[str, Callable[[], Iterable[Finding]]]


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
        print(
            painted(
                (
                    "\nall is well"
                    if all(finding.state == "ok" for finding in found)
                    else "\nit works; see the warnings"
                ),
                "green",
            )
        )
    return 1 if failures else 0


def _findings(instance: Instance, *, is_full: bool) -> Iterator[Finding]:
    """Check part after part, leaving out what can only fail with the part that it depends on."""
    around: tuple[Check, ...] = (
        ("python", environment.python),
        ("sqlite", environment.sqlite),
        ("home", partial(environment.home, instance)),
        ("socket", partial(environment.socket, instance)),
        ("agents", partial(setup.agents, instance)),
        ("service", partial(units.examine, instance)),
    )
    for part, check in around:
        yield from examined(part, check)
    settings = examined("config", partial(environment.settings, instance))
    yield from settings
    if _work(settings):
        yield from examined("model", partial(environment.model, instance))
    reached = examined("daemon", partial(service.daemon, instance))
    yield from reached
    if _work(reached):
        of_daemon: tuple[Check, ...] = (
            ("log", partial(service.log, instance, is_full=is_full)),
            ("views", partial(service.views, instance, is_full=is_full)),
            ("embedding", partial(service.embedding, instance)),
            ("daemon", partial(service.troubles, instance)),
        )
        for part, check in of_daemon:
            yield from examined(part, check)
    if _work(settings):
        yield from examined("trial", partial(round_trip.round_trip, instance))


def _work(findings: Iterable[Finding]) -> bool:
    return all(finding.state != "FAIL" for finding in findings)


def _write(finding: Finding) -> None:
    state = painted(finding.state.ljust(STATE_COLUMNS), COLOURS[finding.state])
    indent = " " * (STATE_COLUMNS + PART_COLUMNS)
    print(
        f"{state}{finding.part:<{PART_COLUMNS}}{safe(finding.seen).replace(chr(10), chr(10) + indent)}",
        flush=True,
    )
    if finding.remedy:
        print(f"{indent}→ {safe(finding.remedy)}", flush=True)
