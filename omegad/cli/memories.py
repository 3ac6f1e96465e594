"""The verbs about memories: store, query, get, list, delete."""

import sys
from argparse import Namespace
from collections.abc import Iterable

import msgspec

from omegad.cli.arguments import WrongUsage
from omegad.cli.connection import Answer, ask
from omegad.cli.place import Place
from omegad.cli.printing import moment, painted, safe, warn, write_fields, write_json, write_table

STDIN_BYTES_MAX = 1024 * 1024  # more than the daemon takes, so that it is the one to refuse it
SCOPE = ("project", "entity_id", "session_id")
FILTERS = (*SCOPE, "event_types", "tags", "since", "until")
STORED = ("event_type", "tags", "priority", "referenced_date", "ttl_seconds", "source", "confidence", "request_id", "ack")


def store(arguments: Namespace, place: Place) -> int:
    """Remember something, and say what became of it."""
    content = _standard_input() if arguments.content == "-" else arguments.content
    answer = ask(place, "memory.store", content=content, metadata=_metadata(arguments.metadata), **_chosen(arguments, (*SCOPE, *STORED)))
    if arguments.json:
        write_json(answer)
    else:
        print(f"{painted(answer['outcome'], 'green')} {answer['memory_id']}")
        for related in answer["related"]:
            print(f"  {related['edge_type']} {related['memory_id']} ({related['similarity']:.2f})")
        for other in answer["contradicts"]:
            print(f"  contradicts {other}")
    if answer["redacted"]:
        warn(f"REDACTED before it was stored: {', '.join(answer['redacted'])}")
    if answer["degraded"]:
        warn(f"DEGRADED: {answer['degraded']}; until the model answers, it is found by its words alone")
    return 0


def _standard_input() -> str:
    data = sys.stdin.buffer.read(STDIN_BYTES_MAX) if sys.stdin else b""
    try:
        return data.decode().rstrip("\n")
    except UnicodeDecodeError as error:
        raise WrongUsage(f"standard input is not UTF-8: {error}") from error


def _metadata(text: str | None) -> object:
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=dict[str, object])
    except msgspec.DecodeError as error:
        raise WrongUsage(f"--metadata is not a JSON object: {error}") from error


def _chosen(arguments: Namespace, names: Iterable[str]) -> dict[str, object]:
    return {name: getattr(arguments, name) for name in names}


def query(arguments: Namespace, place: Place) -> int:
    """Find memories, best first."""
    asked = _chosen(arguments, ("text", "mode", "limit", "explain", "min_position", *FILTERS))
    answer = ask(place, "memory.query", **asked)
    if arguments.json:
        write_json(answer)
    elif answer["abstained"]:
        print("nothing found")
    elif arguments.explain:
        write_table(("SCORE", "MEANING", "WORDS", "COSINE", "BM25", "ID", "CONTENT"), [_explained(result) for result in answer["results"]])
    else:
        header = ("SCORE", "ID", "TYPE", "STORED", "PROJECT", "CONTENT")
        write_table(header, [(f"{result['score']:.3f}", *_cells(result)) for result in answer["results"]])
    if answer["degraded"]:
        warn(f"DEGRADED: searched by {answer['degraded']} alone; `omegad status` says why")
    if answer["stale_by"]:
        warn(f"{answer['stale_by']} events that are stored already do not show yet")
    return 0


def _explained(result: Answer) -> tuple[object, ...]:
    why = result["explanation"]
    cosine = "-" if why["cosine"] is None else f"{why['cosine']:.3f}"
    return (
        f"{result['score']:.3f}",
        f"{why['vector']:.3f}",
        f"{why['text']:.3f}",
        cosine,
        f"{why['bm25']:.3g}",
        result["memory_id"],
        result["content"],
    )


def _cells(memory: Answer) -> tuple[object, ...]:
    return memory["memory_id"], memory["event_type"], moment(memory["created_at"]), memory["project"] or "-", memory["content"]


def get(arguments: Namespace, place: Place) -> int:
    """Show one memory."""
    memory = ask(place, "memory.get", memory_id=arguments.memory_id)
    if arguments.json:
        write_json(memory)
        return 0
    unshown = {"content", "edges", "position", "metadata", "tags", "redacted"}
    fields = [(name, value) for name, value in memory.items() if name not in unshown and value is not False]
    fields += [("tags", ", ".join(memory["tags"])), ("redacted", ", ".join(memory["redacted"]))]
    if memory["metadata"]:
        fields.append(("metadata", msgspec.json.encode(memory["metadata"]).decode()))
    write_fields(fields)
    print(f"\n{safe(memory['content'])}")
    if memory["edges"]:
        print()
        rows = [(edge["direction"], edge["edge_type"], f"{edge['weight']:.2f}", edge["memory_id"]) for edge in memory["edges"]]
        write_table(("EDGE", "TYPE", "WEIGHT", "ID"), rows)
    return 0


def list_all(arguments: Namespace, place: Place) -> int:
    """List a page of memories."""
    answer = ask(place, "memory.list", **_chosen(arguments, ("limit", "cursor", *FILTERS)))
    if arguments.json:
        write_json(answer)
    elif answer["memories"]:
        write_table(("ID", "TYPE", "STORED", "PROJECT", "CONTENT"), [_cells(memory) for memory in answer["memories"]])
    else:
        print("no memories")
    if answer["next_cursor"] and not arguments.json:
        print(painted(f"there are more: --cursor {answer['next_cursor']}", "dim"))
    return 0


def delete(arguments: Namespace, place: Place) -> int:
    """Hide a memory."""
    answer = ask(place, "memory.delete", memory_id=arguments.memory_id, reason=arguments.reason)
    if arguments.json:
        write_json(answer)
    else:
        print(f"deleted {safe(arguments.memory_id)} at position {answer['position']}")
    return 0
