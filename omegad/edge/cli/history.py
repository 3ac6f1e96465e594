"""The verbs that look back: timeline, history, SQL, what changed."""

from argparse import Namespace

import msgspec

from omegad.edge.cli.connection import Answer, answered
from omegad.edge.cli.printing import moment, warn, write_more, write_table

UNTOLD = frozenset({"type", "content_key", "text_hashes"})  # of an event's data: what tells a person nothing


@answered
def timeline(answer: Answer, _arguments: Namespace) -> None:
    """Show the memories of the last days."""
    rows = [
        (
            day["day"],
            moment(memory["created_at"])[-5:],
            memory["memory_id"],
            memory["event_type"],
            memory["project"] or "-",
            memory["content"],
        )
        for day in answer["days"]
        for memory in day["memories"]
    ]
    if answer["days"]:
        write_table(("DAY", "TIME", "ID", "TYPE", "PROJECT", "CONTENT"), rows)
    else:
        print("no memories")
    if answer["truncated"]:
        warn("there are older ones in these days; --limit shows more of them")


@answered
def history(answer: Answer, arguments: Namespace) -> None:
    """Show the events of a memory's life."""
    write_table(
        ("POSITION", "WHEN", "WHAT", "BY", "DATA"),
        [
            (
                event["position"],
                moment(event["occurred_at"]),
                event["tag"].partition("@")[0],
                event["client"] or event["session_id"] or "-",
                _data(event["data"], arguments.memory_id),
            )
            for event in answer["events"]
        ],
    )
    write_more(answer)


def _data(data: Answer, memory_id: str) -> str:
    """Write what an event says beyond its tag, without what is empty and the id that was asked about."""
    if not isinstance(data, dict):
        return "(erased)" if data is None else str(data)
    told = {
        name: value
        for name, value in data.items()
        if name not in UNTOLD and value not in (None, "", [], {}, False, memory_id)
    }
    return msgspec.json.encode(told).decode()


@answered
def sql(answer: Answer, _arguments: Namespace) -> None:
    """Show what a SELECT finds."""
    write_table(
        answer["columns"], [["NULL" if value is None else value for value in row] for row in answer["rows"]]
    )
    if answer["truncated"]:
        warn("there are more rows: narrow the SELECT, or raise --limit")


@answered
def diff(answer: Answer, _arguments: Namespace) -> None:
    """Show what changed between two moments."""
    print(
        f"positions {answer['from'] + 1} to {answer['to']}:"
        f" {', '.join(f'{count} {tag}' for tag, count in answer['tags'].items()) or 'nothing'}"
    )
    if answer["changes"]:
        write_table(
            ("LAST", "KIND", "ID", "WHAT", "TEXT"),
            [
                (moment(one["at"]), one["noun"], one["id"], ", ".join(one["what"]), one["text"] or "")
                for one in answer["changes"]
            ],
        )
    if answer["next"] is not None:
        warn(f"there is more: --from {answer['next']} goes on")
