"""The verb that lets go of details whose time is over, or shows what that would be."""

from argparse import Namespace

from omegad.edge.cli.asking_first import is_wanted
from omegad.edge.cli.connection import AGED, Answer, ask
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import moment, size, write_json, write_table

QUOTING_MAX = 1_000  # as many as are named


def apply(arguments: Namespace, instance: Instance) -> int:
    """Show what would go, and let go of it after a yes; with --dry-run only show it. Exit with status 1 where
    the answer is no.
    """
    would = ask(instance, arguments.method, dry_run=True)
    is_over = any(one["counts"] for one in would["aged"])
    if arguments.dry_run or not is_over or not arguments.yes:
        _show(would, arguments)
        if arguments.dry_run or not is_over:
            return 0
        if not is_wanted(
            "Let go of it? Nothing but a backup brings it back.",
            "nothing went: run it with --yes to let go of this",
        ):
            return 1
    done = ask(instance, arguments.method, dry_run=False)
    if arguments.json:
        write_json(done)
    else:
        freed = size(done["freed_bytes"])
        print(f"let go of the details of {_events(done):,} events: their payloads are {freed} less")
        print(_given_back("is", done))
        _show_quoting(done)
    return 0


def _show(would: Answer, arguments: Namespace) -> None:
    if arguments.json:
        write_json(would)
        return
    write_table(
        ("WHAT", "KEPT", "OVER BEFORE", "EVENTS", "FREES"),
        [
            (
                AGED[one["kind"]],
                f"{one['days']} days",
                moment(one["until"]),
                f"{sum(one['counts'].values()):,}",
                size(one["freed_bytes"]),
            )
            for one in would["aged"]
        ],
        none="everything is kept for ever, by the settings",
    )
    if would["aged"] and not _events(would):
        print("nothing is that old yet, so that nothing goes")
    if _events(would):
        print("What remains is that each happened, when, and how often what was found.")
        print(_given_back("would be, about,", would))
    _show_quoting(would)


def _show_quoting(answer: Answer) -> None:
    """Say in what memories there may be of what was said, since none goes by its age."""
    if many := len(answer.get("quoted_in", ())):
        least = "at least " if many >= QUOTING_MAX else ""
        print(
            f"{least}{many:,} memor{'ies' if many > 1 else 'y'} that omegad made of sessions may quote what"
            " was said then, and no memory goes by its age: `omegad retention --dry-run --json` names them in"
            " quoted_in, `omegad memory erase ID` erases one"
        )


def _given_back(verb: str, answer: Answer) -> str:
    # Where rows are short no page may be free as a whole, and what they lost is room within pages.
    packed = max(answer["free_bytes"], answer["freed_bytes"])
    return (
        f"{size(answer['free_bytes'])} of log.db {verb} free in whole pages, and filled again before it"
        f" grows; `omegad stop && omegad pack` gives about {size(packed)} or more back to the disk"
    )


def _events(answer: Answer) -> int:
    return sum(count for one in answer["aged"] for count in one["counts"].values())
