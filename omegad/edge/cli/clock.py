"""The verbs about the clock: what it says, and that it is right again."""

from argparse import Namespace

from omegad.edge.cli.connection import Answer, ask
from omegad.edge.cli.erasing import is_wanted
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.parameters import answered, parameters
from omegad.edge.cli.printing import duration, moment, safe, warn, write_fields, write_json

NOTHING = "nothing to mend: the log and the clock agree"


@answered
def show(answer: Answer, _arguments: Namespace) -> None:
    """Show what the clock says, and what does not agree with it."""
    fields = [
        ("clock", moment(answer["now"])),
        ("latest event", moment(answer["latest"]) if answer["latest"] else "none"),
    ]
    if answer["events"]:
        fields.append(("stamped ahead", _ahead(answer)))
    if answer["jumped_s"]:
        where = "ahead" if answer["jumped_s"] > 0 else "back"
        fields.append(("jumped", f"{duration(abs(answer['jumped_s']))} {where} since the daemon started"))
    write_fields(fields)
    if answer["trouble"]:
        warn(answer["trouble"])


def mend(arguments: Namespace, instance: Instance) -> int:
    """Show what would be mended, and mend it after a yes; with --dry-run only show it. Exit with status 1
    where the answer is no.
    """
    given = parameters(arguments)
    would = ask(instance, arguments.method, **given | {"dry_run": True, "request_id": None})
    if arguments.dry_run or (would["events"] and not arguments.yes):
        if arguments.json:
            write_json(would)
        else:
            print(
                f"{_ahead(would)}; they would count from the time that the clock says now"
                if would["events"]
                else NOTHING
            )
            for memory_id in would["restored"]:
                print(f"  {safe(memory_id)} expired early, and would be found again")
        if arguments.dry_run:
            return 0
        now = moment(ask(instance, "clock.show")["now"])
        if not is_wanted(
            f"Is {now} the right time?", f"nothing was mended: if {now} is the right time, run it with --yes"
        ):
            return 1
    done = ask(instance, arguments.method, **given | {"dry_run": False})
    if arguments.json:
        write_json(done)
    elif done["events"]:
        print(
            f"mended at position {done['position']}: {_ahead(done)}; {len(done['restored'])} memories that"
            " expired early are found again"
        )
    else:
        print(NOTHING)
    return 0


def _ahead(answer: Answer) -> str:
    return (
        f"{answer['events']:,} events from position {answer['first']:,} on, by a clock that was"
        f" {duration(answer['ahead_s'])} ahead"
    )
