"""The verbs that show first what they would do, and ask: one removes a memory, or a phrase, for good; one
mends the clock of the log. And what the clock says.
"""

import getpass
import sys
from argparse import Namespace

from omegad.edge.cli.arguments import WrongUsage
from omegad.edge.cli.connection import Answer, answered, ask, parameters, standard_input
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import (
    confirmed,
    cut,
    duration,
    moment,
    one_line,
    safe,
    tell,
    warn,
    write_fields,
    write_json,
    write_table,
)
from omegad.runtime.json_types import Fields

NOTHING = "nothing to mend: the log and the clock agree"
NOT_HELD = (
    "nothing was erased: no event and no memory holds that text; it may be spelt otherwise than it was typed"
    " now, so look for a part of it: omegad query, or omegad log"
)
WORDING_COLUMNS = 100
COPIES_SHOWN = 50
NAMED_MAX = 10
LOSES = {"text": "all its text", "copy": "the copy"}
OUTCOMES = {
    "erased": "says just that: it is erased, too",
    "edited": "holds it: it is edited",
    "history": "held it once: its history is changed",
}


def erase(arguments: Namespace, instance: Instance) -> int:
    """Show what would be erased, and erase it after a yes; with --dry-run only show it. Exit with status 1
    where the answer is no, or nothing holds the phrase. Raises `WrongUsage` as `_to_erase` does.
    """
    given = _to_erase(arguments) | {"dry_run": True}
    would = ask(instance, arguments.method, **given)
    if not would["copy_count"] and not would["memories"]:
        tell(arguments, would)
        warn(NOT_HELD)
        _tell_left(would, "it is in")
        return 1
    if arguments.dry_run or not arguments.yes:
        if arguments.json:
            write_json(would)
        else:
            _show(would)
        if arguments.dry_run:
            return 0
        if not is_wanted(
            "Erase it? Nothing brings it back.", "nothing was erased: run it with --yes to erase this"
        ):
            return 1
    done = ask(instance, arguments.method, **given | {"dry_run": False})
    if arguments.json:
        write_json(done)
    else:
        print(
            f"erased {_what(done)} at position {done['position']}, with {done['copy_count']} payloads, in"
            f" {done['took_ms']:.0f} ms"
        )
        if done.get("unfinished"):
            warn(
                f"its bytes are still in some file: {safe(done['unfinished'])}; they go when that is over, at"
                " the latest at the next start"
            )
        _tell_team(done, "is")
        _tell_left(done, "STILL IN")
    return 0


def _to_erase(arguments: Namespace) -> Fields:
    """Return the verb's parameters, with the phrase that is typed, or read. Raises `WrongUsage` where neither
    a memory nor a phrase is named, or both.
    """
    if arguments.memory_id and arguments.text:
        raise WrongUsage("the phrase is not an argument: type it, or give it on standard input")
    if not arguments.memory_id and not arguments.text:
        raise WrongUsage("name a memory by its id, or --text")
    is_asked = sys.stdin and sys.stdin.isatty()
    phrase = None
    if arguments.text:  # which is not shown where somebody types it
        phrase = getpass.getpass("The text to erase, which is not shown: ") if is_asked else standard_input()
    return parameters(arguments) | {"text": phrase}


def _what(answer: Answer) -> str:
    return safe(answer["memory_id"]) if answer["memory_id"] else "the text"


def _show(would: Answer) -> None:
    what = ", with all that it ever said:" if would["memory_id"] else ", wherever it stands"
    wordings = [f"  {safe(cut(one_line(wording), WORDING_COLUMNS))}" for wording in would["wordings"]]
    print("\n".join([f"{_what(would)} would be removed for good{what}", *wordings]))
    if would["whole_values_only"]:
        print(
            f"{would['whole_values_only']} of these are so short or common that only texts which say exactly"
            " that count as copies"
        )
    print(
        f"{would['copy_count']} events hold it; `omegad log --after N --limit 1` shows the one after"
        " position N:"
    )
    write_table(
        ("POSITION", "EVENT", "SESSION", "LOSES"),
        [
            (one["position"], one["tag"], one["session_id"] or "-", LOSES[one["loses"]])
            for one in would["copies"][:COPIES_SHOWN]
        ],
    )
    if would["copy_count"] > COPIES_SHOWN:
        print(f"and {would['copy_count'] - COPIES_SHOWN} more: --json tells them")
    for other in would["memories"]:
        print(f"memory {safe(other['memory_id'])} {OUTCOMES[other['outcome']]}")
    _tell_team(would, "would be")
    _tell_left(would, "will stay in")


def _tell_team(answer: Answer, how: str) -> None:
    """Say for whom of a team it is erased."""
    if answer["for_team"]:
        print(
            f"{_named(answer['for_team'])} {how} erased for the whole team: at its server when this home is"
            " in touch, and in every other home when that is"
        )
    if answer["here_alone"]:
        warn(
            f"{_named(answer['here_alone'])} was stored by another person: it {how} erased in this home"
            " alone, and for everybody where you administer the team"
        )
    if answer["still_told"]:
        warn(
            f"the team was told what {_named(answer['still_told'])} said before, and keeps that: erase the"
            " whole memory (`omegad memory erase ID`), which does so for everybody, and store again what it"
            " says now"
        )


def _named(memory_ids: list[str]) -> str:
    more = len(memory_ids) - NAMED_MAX
    return safe(", ".join(memory_ids[:NAMED_MAX])) + (f" and {more:,} more" if more > 0 else "")


def _tell_left(answer: Answer, where: str) -> None:
    if answer["names"]:
        warn(f"{where} the names of events ({', '.join(answer['names'])}), which are not erased")
    for one in answer["left"]:
        warn(f"{where} {safe(one['file'])}: {safe(one['hint'])}")


def is_wanted(question: str, otherwise: str) -> bool:
    """Ask on a terminal; elsewhere, where only --yes is a yes, say *otherwise*, and on a terminal after a no
    what of that stands before its colon: that nothing was done.
    """
    if not (sys.stdin and sys.stdin.isatty()):
        warn(otherwise)
        return False
    if confirmed(question):
        return True
    print(otherwise.partition(":")[0])
    return False


@answered
def show_clock(answer: Answer, _arguments: Namespace) -> None:
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


def mend_clock(arguments: Namespace, instance: Instance) -> int:
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
