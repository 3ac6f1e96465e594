"""The verbs that change a memory, or what is thought of it: edit, delete, restore, supersede, rate, promote."""

from argparse import Namespace

from omegad.cli.connection import Answer, ask
from omegad.cli.parameters import chosen, content
from omegad.cli.place import Place
from omegad.cli.printing import safe, write_json


def edit(arguments: Namespace, place: Place) -> int:
    """Replace what a memory says."""
    told = content(arguments.content)
    answer = ask(place, "memory.edit", content=told, **chosen(arguments, "memory_id", "reason"))
    return _tell(arguments, answer, f"edited {arguments.memory_id} at position {answer['position']}")


def delete(arguments: Namespace, place: Place) -> int:
    """Hide a memory."""
    answer = ask(place, "memory.delete", **chosen(arguments, "memory_id", "reason"))
    return _tell(arguments, answer, f"deleted {arguments.memory_id} at position {answer['position']}")


def restore(arguments: Namespace, place: Place) -> int:
    """Bring a hidden memory back."""
    answer = ask(place, "memory.restore", **chosen(arguments, "memory_id", "reason"))
    return _tell(arguments, answer, f"restored {arguments.memory_id} at position {answer['position']}")


def supersede(arguments: Namespace, place: Place) -> int:
    """Let another memory take the place of one."""
    answer = ask(place, "memory.supersede", **chosen(arguments, "memory_id", "superseded_by", "reason"))
    return _tell(arguments, answer, f"superseded {arguments.memory_id} by {arguments.superseded_by} at position {answer['position']}")


def rate(arguments: Namespace, place: Place) -> int:
    """Rate a memory."""
    answer = ask(place, "memory.rate", **chosen(arguments, "memory_id", "rating", "reason"))
    return _tell(arguments, answer, f"rated {arguments.memory_id} {arguments.rating}; its score is {answer['score']}")


def promote(arguments: Namespace, place: Place) -> int:
    """End a memory's probation."""
    answer = ask(place, "memory.promote", **chosen(arguments, "memory_id", "reason"))
    return _tell(arguments, answer, f"promoted {arguments.memory_id}; it is {answer['status']}")


def _tell(arguments: Namespace, answer: Answer, sentence: str) -> int:
    if arguments.json:
        write_json(answer)
    else:
        print(safe(sentence))
    return 0
