"""The verbs that keep the store in order: compact, consolidate, drop what never helped."""

from argparse import Namespace

from omegad.edge.cli.connection import Answer, answered, ask, asked
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import safe, warn, warn_if_stale, write_json, write_table


@answered
def compact(answer: Answer, _arguments: Namespace) -> None:
    """Let a summary stand for each cluster of like memories."""
    _show_clusters(answer)
    print(f"{_would(answer)}supersede {answer['superseded']} memories by {len(answer['clusters'])} summaries")


@answered
def consolidate(answer: Answer, _arguments: Namespace) -> None:
    """Record what has expired, promote what has proved itself, compact what accumulates."""
    compacted = answer["compacted"]
    _show_clusters(compacted)
    _show_ids(answer, "expired", "promoted", "flagged")
    print(
        f"{_would(answer)}record {len(answer['expired'])} expiries, promote {len(answer['promoted'])}"
        f" memories and supersede {compacted['superseded']} by {len(compacted['clusters'])} summaries;"
        f" {len(answer['flagged'])} are rated badly and stay as they are"
    )


@answered
def undone(answer: Answer, _arguments: Namespace) -> None:
    """Take back what an upkeep did."""
    _show_ids(answer, "demoted", "restored", "deleted")
    print(
        f"took back the upkeep at position {answer['done_at']}: {len(answer['demoted'])} on probation again,"
        f" {len(answer['restored'])} found again, {len(answer['deleted'])} summaries deleted"
    )


def today(arguments: Namespace, instance: Instance) -> None:
    """Show what happened by itself and what waits for a person, and whatever is not as it should be."""
    answer = asked(arguments, instance)
    degraded = ask(instance, "system.status")["degraded"]
    if arguments.json:
        write_json(answer | {"degraded": degraded})
    else:
        print(safe(answer["text"]))
        warn_if_stale(answer)
        for trouble in degraded:
            warn(trouble)


def junk(arguments: Namespace, instance: Instance) -> None:
    """Show what was captured unasked and never helped, and drop it where asked to."""
    answer = asked(arguments, instance)
    found = answer["memories"]
    dropped = (
        ask(instance, "memory.prune", memory_ids=[one["memory_id"] for one in found])
        if arguments.drop and found
        else None
    )
    if arguments.json:
        write_json(answer if dropped is None else answer | {"dropped": dropped})
    else:
        names = ("memory_id", "why", "source", "event_type", "content")
        write_table(
            ("ID", "WHY", "SOURCE", "TYPE", "CONTENT"),
            [[one[name] or "-" for name in names] for one in found],
            none="",
        )
        print(f"{answer['total']} in all" if dropped is None else _pruned(dropped))
        warn_if_stale(answer)


@answered
def prune(answer: Answer, _arguments: Namespace) -> None:
    """Drop the memories named."""
    print(_pruned(answer))


def _pruned(answer: Answer) -> str:
    kept = (
        f"; kept, since they are hidden or of use: {', '.join(map(safe, answer['kept']))}"
        if answer["kept"]
        else ""
    )
    return f"deleted {len(answer['deleted'])} at position {answer['position']}{kept}"


def _show_clusters(answer: Answer) -> None:
    write_table(
        ("TYPE", "PROJECT", "ORIGINALS", "SUMMARY", "CONTENT"),
        [
            (
                one["event_type"],
                one["project"] or "",
                len(one["originals"]),
                one["memory_id"] or "",
                one["content"],
            )
            for one in answer["clusters"]
        ],
        none="",
    )


def _show_ids(answer: Answer, *kinds: str) -> None:
    ids = [(kind, safe(memory_id)) for kind in kinds for memory_id in answer[kind]]
    write_table(("WHAT", "ID"), ids, none="")


def _would(answer: Answer) -> str:
    return "a dry run: this would " if answer["dry_run"] else "done: "
