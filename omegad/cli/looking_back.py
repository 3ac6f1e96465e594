"""The verbs that look back: timeline, history, lessons, reminders, receipts, SQL."""

from argparse import Namespace

import msgspec

from omegad.cli.connection import Answer
from omegad.cli.parameters import asked
from omegad.cli.place import Place
from omegad.cli.printing import moment, warn, warn_if_stale, write_json, write_more, write_table

UNTOLD = frozenset({"type", "content_key", "text_hashes"})  # of an event's data: what tells a person nothing


def timeline(arguments: Namespace, place: Place) -> int:
    """Show the memories of the last days."""
    answer = asked(arguments, place)
    if arguments.json:
        write_json(answer)
    elif answer["days"]:
        rows = [
            (day["day"], moment(memory["created_at"])[-5:], memory["memory_id"], memory["event_type"], memory["project"] or "-", memory["content"])
            for day in answer["days"]
            for memory in day["memories"]
        ]
        write_table(("DAY", "TIME", "ID", "TYPE", "PROJECT", "CONTENT"), rows)
    else:
        print("no memories")
    if answer["truncated"]:
        warn("there are older ones in these days; --limit shows more of them")
    warn_if_stale(answer)
    return 0


def history(arguments: Namespace, place: Place) -> int:
    """Show the events of a memory's life."""
    answer = asked(arguments, place)
    if arguments.json:
        write_json(answer)
    else:
        write_table(("POSITION", "WHEN", "WHAT", "BY", "DATA"), [_lived(event, arguments.memory_id) for event in answer["events"]])
        write_more(answer)
    warn_if_stale(answer)
    return 0


def _lived(event: Answer, memory_id: str) -> tuple[object, ...]:
    what, _, _ = event["tag"].partition("@")
    return event["position"], moment(event["occurred_at"]), what, event["client"] or event["session_id"] or "-", _data(event["data"], memory_id)


def _data(data: Answer, memory_id: str) -> str:
    """Write what an event says beyond its tag, without what is empty and the id that was asked about."""
    if not isinstance(data, dict):
        return "(erased)" if data is None else str(data)
    told = {name: value for name, value in data.items() if name not in UNTOLD and value not in (None, "", [], {}, False, memory_id)}
    return msgspec.json.encode(told).decode()


def lessons(arguments: Namespace, place: Place) -> int:
    """Show what was learned."""
    answer = asked(arguments, place)
    if arguments.json:
        write_json(answer)
    elif answer["lessons"]:
        names = ("rating", "repeated", "retrieval_count", "memory_id", "event_type", "content")
        write_table(("RATING", "REPEATED", "FOUND", "ID", "TYPE", "CONTENT"), [[lesson[name] for name in names] for lesson in answer["lessons"]])
    else:
        print("no lessons")
    warn_if_stale(answer)
    return 0


def reminders(arguments: Namespace, place: Place) -> int:
    """Show the reminders that stand."""
    answer = asked(arguments, place)
    if arguments.json:
        write_json(answer)
    elif answer["reminders"]:
        rows = [
            (moment(one["due"]), "due" if one["is_due"] else "", one["memory_id"], one["project"] or "-", one["content"])
            for one in answer["reminders"]
        ]
        write_table(("FROM", "", "ID", "PROJECT", "CONTENT"), rows)
    else:
        print("no reminders")
    warn_if_stale(answer)
    return 0


def receipts(arguments: Namespace, place: Place) -> int:
    """Show which memories were found by which queries."""
    answer = asked(arguments, place)
    if arguments.json:
        write_json(answer)
    elif answer["receipts"]:
        write_table(("WHEN", "HOW", "QUERY", "RANK", "SCORE", "SESSION", "MEMORY"), [_shown(receipt) for receipt in answer["receipts"]])
        write_more(answer)
    else:
        print("no receipts")
    warn_if_stale(answer)
    return 0


def _shown(receipt: Answer) -> tuple[object, ...]:
    score = f"{receipt['score']:.3f}"
    return moment(receipt["at"]), receipt["how"], receipt["query_id"], receipt["rank"], score, receipt["session_id"] or "-", receipt["memory_id"]


def sql(arguments: Namespace, place: Place) -> int:
    """Show what a SELECT finds."""
    answer = asked(arguments, place)
    if arguments.json:
        write_json(answer)
    else:
        write_table(answer["columns"], [["NULL" if value is None else value for value in row] for row in answer["rows"]])
    if answer["truncated"]:
        warn("there are more rows: narrow the SELECT, or raise --limit")
    warn_if_stale(answer)
    return 0
