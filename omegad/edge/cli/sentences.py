"""Verbs whose answer is a sentence, a table, or the answer's own fields."""

from argparse import Namespace
from string import Formatter

import msgspec

from omegad.edge.cli.instance import Instance
from omegad.edge.cli.parameters import asked
from omegad.edge.cli.printing import (
    moment,
    safe,
    warn_if_stale,
    write_fields,
    write_json,
    write_more,
    write_table,
)


def say(arguments: Namespace, instance: Instance) -> int:
    """Ask the method, and say what came of it, in the verb's sentence, its table, or field by field. Exit
    with status 1 where the answer is that it failed.
    """
    answer = asked(arguments, instance)
    if arguments.json:
        write_json(answer)
    elif arguments.says:
        print(safe(arguments.says.format_map(vars(arguments) | answer)).rstrip("\n"))
    elif arguments.table:
        of, columns, none = arguments.table
        if answer[of]:
            cells = _Cells()
            rows = [[cells.vformat(cell, (), one) for _, cell in columns] for one in answer[of]]
            write_table([heading for heading, _ in columns], rows)
        else:
            print(none)
        if "next_cursor" in answer:
            write_more(answer)
    else:
        write_fields(
            [
                (name, value if isinstance(value, str) else msgspec.json.encode(value).decode())
                for name, value in answer.items()
            ]
        )
    if arguments.table:
        warn_if_stale(answer)
    return int(answer.get("outcome") == "failed")


class _Cells(Formatter):
    """Writes the fields of a row."""

    def format_field(self, value: object, format_spec: str) -> str:
        """Write one."""
        if value is None:
            return "-"
        if isinstance(value, bool):
            return format_spec if value else ""
        return moment(str(value)) if format_spec == "moment" else format(value, format_spec)
