"""The verbs about agents that work beside each other: who is there, tasks, messages."""

from argparse import Namespace
from collections.abc import Callable, Sequence

from omegad.edge.cli.connection import Answer
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.parameters import answered, parameters
from omegad.edge.cli.printing import duration, moment, safe, table, warn, write_table
from omegad.edge.cli.watching import watch

Rows = Callable[[Answer], list[Sequence[object]]]

WHO = ("SESSION", "HOST", "PROJECT", "SINCE", "SILENT", "ON")
TASKS = ("TASK", "STATUS", "PRIORITY", "PROJECT", "OWNER", "WAITS FOR", "TITLE")
MESSAGES = ("WHEN", "FROM", "TO", "READ BY", "TEXT")


def who(arguments: Namespace, instance: Instance) -> int:
    """Show the sessions that are open."""
    return _show(arguments, instance, WHO, lambda answer: [_session(one) for one in answer["sessions"]])


def tasks(arguments: Namespace, instance: Instance) -> int:
    """Show tasks."""
    return _show(arguments, instance, TASKS, lambda answer: [_task(one) for one in answer["tasks"]])


@answered
def take(answer: Answer, _arguments: Namespace) -> None:
    """Take the task that comes first."""
    print(
        safe(f"{answer['task_id']} is claimed by {answer['owner']}")
        if answer["task_id"]
        else "no task is ready"
    )


def messages(arguments: Namespace, instance: Instance) -> int:
    """Show messages."""
    return _show(arguments, instance, MESSAGES, lambda answer: [_message(one) for one in answer["messages"]])


def _show(arguments: Namespace, instance: Instance, header: Sequence[str], rows: Rows) -> int:
    if getattr(arguments, "watch", False):
        watch(arguments, instance, parameters(arguments), lambda answer: table(header, rows(answer)))

    @answered
    def show(answer: Answer, _arguments: Namespace) -> None:
        if found := rows(answer):
            write_table(header, found)
        else:
            print("none")
        if answer["truncated"]:
            warn("there are more; --limit shows them")

    return show(arguments, instance)


def _session(one: Answer) -> tuple[object, ...]:
    doing = "; ".join([*one["tasks"], *filter(None, [one["intent"]])]) or one["asked"] or "-"
    return (
        one["session_id"],
        one["host"],
        one["project"] or "-",
        moment(one["since"]),
        duration(one["silent_s"]),
        doing,
    )


def _task(one: Answer) -> tuple[object, ...]:
    waits_for = ", ".join(one["waits_for"]) or "-"
    return (
        one["task_id"],
        one["status"],
        one["priority"],
        one["project"] or "-",
        one["owner"] or "-",
        waits_for,
        one["title"],
    )


def _message(one: Answer) -> tuple[object, ...]:
    to = one["to_session"] or f"project {one['to_project']}"
    return (
        moment(one["created_at"]),
        one["sender"] or "a person",
        to,
        ", ".join(one["delivered_to"]) or "-",
        one["text"],
    )
