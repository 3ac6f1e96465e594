"""The verbs about the clock: what it says, and that it is right again."""

from argparse import Namespace

from omegad.edge.cli.connection import Answer, answered, ask, parameters
from omegad.edge.cli.erasing import is_wanted
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import duration, moment, safe, tell, warn, write_fields

NOTHING = "nothing to mend: the log and the clock agree"


@answered
def show(answer: Answer, _arguments: Namespace) -> None:
    """Show what the clock says, and what does not agree with it."""
    jumped = f"{duration(abs(answer['jumped_s']))} {'ahead' if answer['jumped_s'] > 0 else 'back'}"
    write_fields(
        [
            ("clock", moment(answer["now"])),
            ("latest event", moment(answer["latest"]) if answer["latest"] else "none"),
            ("stamped ahead", _ahead(answer) if answer["events"] else None),
            ("jumped", f"{jumped} since the daemon started" if answer["jumped_s"] else None),
        ]
    )
    if answer["trouble"]:
        warn(answer["trouble"])


def mend(arguments: Namespace, instance: Instance) -> int:
    """Show what would be mended, and mend it after a yes; with --dry-run only show it. Exit with status 1
    where the answer is no.
    """
    given = parameters(arguments)
    would = ask(instance, arguments.method, **given | {"dry_run": True, "request_id": None})
    if arguments.dry_run or (would["events"] and not arguments.yes):
        tell(
            arguments,
            would,
            f"{_ahead(would)}; they would count from the time that the clock says now"
            if would["events"]
            else NOTHING,
            *(
                f"  {safe(memory_id)} expired early, and would be found again"
                for memory_id in would["restored"]
            ),
        )
        if arguments.dry_run:
            return 0
        now = moment(ask(instance, "clock.show")["now"])
        if not is_wanted(
            f"Is {now} the right time?", f"nothing was mended: if {now} is the right time, run it with --yes"
        ):
            return 1
    done = ask(instance, arguments.method, **given | {"dry_run": False})
    mended = NOTHING
    if done["events"]:
        mended = (
            f"mended at position {done['position']}: {_ahead(done)}; {len(done['restored'])} memories that"
            " expired early are found again"
        )
    tell(arguments, done, mended)
    return 0


def _ahead(answer: Answer) -> str:
    return (
        f"{answer['events']:,} events from position {answer['first']:,} on, by a clock that was"
        f" {duration(answer['ahead_s'])} ahead"
    )
