"""Verbs whose answer is a sentence, or the answer's own fields."""

from argparse import Namespace

import msgspec

from omegad.edge.cli.parameters import asked
from omegad.edge.cli.place import Place
from omegad.edge.cli.printing import safe, write_fields, write_json


def say(arguments: Namespace, place: Place) -> int:
    """Ask the method, and say what came of it, in the verb's sentence or field by field. Exit with status 1 where the answer is that it failed."""
    answer = asked(arguments, place)
    if arguments.json:
        write_json(answer)
    elif arguments.says:
        print(safe(arguments.says.format_map(vars(arguments) | answer)).rstrip("\n"))
    else:
        write_fields([(name, value if isinstance(value, str) else msgspec.json.encode(value).decode()) for name, value in answer.items()])
    return int(answer.get("outcome") == "failed")
