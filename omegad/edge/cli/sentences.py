"""Verbs whose answer is a sentence, a table, or the answer's own fields."""

import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from string import Formatter

import msgspec

from omegad.edge.cli.connection import Answer, asked, parameters, watch
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import (
    duration,
    moment,
    safe,
    table,
    warn,
    warn_if_stale,
    write_fields,
    write_json,
    write_more,
    write_table,
)
from omegad.requests.verb import Table

AGAIN_S = 2.0


def say(arguments: Namespace, instance: Instance) -> int:
    """Ask the method, and say what came of it, in the verb's sentence, its table, or field by field; with
    --watch draw the table every second. Exit with status 1 where the answer is that it failed.
    """
    shown = arguments.table
    if shown and getattr(arguments, "watch", False):
        watch(arguments, instance, parameters(arguments), lambda answer: table(*rows_of(shown, answer)))
    answer = asked(arguments, instance)
    if arguments.json:
        write_json(answer)
    elif arguments.says:
        print(safe(_CELLS.vformat(arguments.says, (), vars(arguments) | answer)).rstrip("\n"))
        if answer.get("redacted"):
            warn(f"REDACTED before it was stored: {', '.join(answer['redacted'])}")
    elif shown:
        write_table(*rows_of(shown, answer), none=shown.none)
        if "next_cursor" in answer:
            write_more(answer)
        for field, sentence in shown.warns.items():
            if answer[field]:
                warn(sentence.format_map(answer))
    else:
        write_fields(
            [
                (name, value if isinstance(value, str) else msgspec.json.encode(value).decode())
                for name, value in answer.items()
            ]
        )
    if shown and "stale_by" in answer:
        warn_if_stale(answer)
    return int(answer.get("outcome") == "failed")


def again(arguments: Namespace, instance: Instance) -> int:
    """Do the same; with --watch again and again, until interrupted."""
    is_watching, arguments.watch = arguments.watch, False
    while True:
        status = say(arguments, instance)
        if not is_watching:
            return status
        print(flush=True)
        time.sleep(AGAIN_S)


def rows_of(shown: Table, answer: Answer) -> tuple[list[str], list[list[str]]]:
    """Return the headings of a table, and the cells of its rows."""
    cells = [[_CELLS.vformat(cell, (), one) for _, cell in shown.columns] for one in answer[shown.of]]
    told = [
        place
        for place, (heading, _) in enumerate(shown.columns)
        if heading not in shown.seldom or any(row[place] for row in cells)
    ]
    return [shown.columns[place][0] for place in told], [
        [row[place] or "-" for place in told] for row in cells
    ]


class _Cells(Formatter):
    """Writes the fields of an answer, or of a row, as `Table` has it."""

    def get_value(self, key: int | str, args: Sequence[object], kwargs: Mapping[str, object]) -> object:
        """Return what the first of some fields says that says something, or what several do."""
        del args
        for names in str(key).split("|"):
            found = [kwargs.get(name, name) for name in names.split("+")]
            parts = [part for one in found for part in (one if isinstance(one, list) else [one])]
            told = [part for part in parts if part not in (None, "")]
            if told:
                return told[0] if len(told) == 1 else ", ".join(map(str, told))
        return None

    def format_field(self, value: object, format_spec: str) -> str:
        """Write one; a cell of nothing but None becomes a dash, and none of a no."""
        match value, format_spec:
            case None, _:
                return ""
            case bool(), _:
                return format_spec if value else " "
            case _, "moment":
                return moment(str(value))
            case float() | int(), "duration":
                return duration(value)
            case _, _ if "%s" in format_spec:
                return format_spec % value
        return format(value, format_spec)


_CELLS = _Cells()
