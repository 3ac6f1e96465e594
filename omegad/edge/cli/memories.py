"""The verbs that store and find memories: store, query, get, what the edges of one lead to, when they came,
and what happened to them.
"""

from argparse import Namespace
from collections.abc import Iterator

import msgspec

from omegad.edge.cli.connection import Answer, answered, asked, warn_of_new_project
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import (
    cut,
    in_words,
    moment,
    one_line,
    painted,
    safe,
    warn,
    warn_if_stale,
    write_fields,
    write_json,
    write_more,
    write_table,
)
from omegad.text.quoting import excerpt

LISTS = ("tags", "auto_tags", "redacted")
CONFLICT_COLUMNS = 120
UNTOLD = frozenset({"type", "content_key", "text_hashes"})  # of an event's data: what tells a person nothing
PREVIEW_COLUMNS = 48  # of a content beside what explains its score


def store(arguments: Namespace, instance: Instance) -> None:
    """Remember something, and say what became of it."""
    answer = asked(arguments, instance)
    if arguments.json:
        write_json(answer)
    else:
        print("\n".join([f"{painted(answer['outcome'], 'green')} {answer['memory_id']}", *_beside(answer)]))
        if arguments.project and answer["outcome"] == "stored":
            warn_of_new_project(instance, arguments.project, answer["memory_id"])
    for what, key in (
        ("NOT KEPT, since an older memory says it already", "ignored"),
        ("NO MEMORY has these ids, which were to be evidence", "unfound"),
        ("REDACTED before it was stored", "redacted"),
    ):
        if answer[key]:
            warn(f"{what}: {', '.join(answer[key])}")
    if answer["note"]:
        warn(f"KNOWN ALREADY: {answer['note']}")
    if answer["degraded"] and _wants_model(instance):
        warn(f"DEGRADED: {answer['degraded']}; until the model answers, it is found by its words alone")


def _beside(stored: Answer) -> Iterator[str]:
    """Yield what a memory is to others, of each the strongest alone."""
    own, told = stored["memory_id"], set[str]()
    for word in ("supersedes", "contradicts"):
        for other in stored["superseded" if word == "supersedes" else word]:
            if other not in told:
                yield f"  {word} {other}"
            told.add(other)
    for key, word in (("may_contradict", "may contradict"), ("may_replace", "may replace")):
        for one in stored[key]:
            other = one["memory_id"]
            if other in told:
                continue
            told.add(other)
            yield (
                f"  {word} {other} ({one['cosine']:.2f}): {cut(one_line(one['content']), PREVIEW_COLUMNS)}\n"
                + (
                    f"    if so: omegad memory supersede {other} {own}"
                    if key == "may_replace"
                    else f"    say so: omegad memory settle {own} {other} contradicts"
                    " (or supersedes, or compatible)"
                )
            )
    for one in stored["related"]:
        if one["memory_id"] not in told:
            yield f"  {one['edge_type']} {one['memory_id']} ({one['similarity']:.2f})"


def _wants_model(instance: Instance) -> bool:
    from omegad.runtime import config  # noqa: PLC0415  most stores are embedded

    return config.load(instance.paths, instance.environ).model != "none"


def query(arguments: Namespace, instance: Instance) -> None:
    """Find memories, best first."""
    answer = asked(arguments, instance)
    if arguments.json:
        write_json(answer)
    elif answer["abstained"]:
        print(_nothing(answer))
    elif arguments.explain:
        write_table(
            ("SCORE", "COSINE", "BM25", "ID", "CONTENT", "STAGES"),
            [_explained(result) for result in answer["results"]],
        )
    else:
        has_people = any("person" in result for result in answer["results"])
        write_table(
            ("SCORE", "ID", "TYPE", "WHEN", "PROJECT", *(["BY"] * has_people), "CONTENT"),
            [
                (
                    in_words(result["score"]),
                    result["memory_id"],
                    result["event_type"],
                    moment(result["referenced_date"] or result["created_at"]),
                    result["project"] or "-",
                    *([_by(result)] * has_people),
                    excerpt(result["content"], result.get("passage")),
                )
                for result in answer["results"]
            ],
        )
    for result in () if arguments.json else answer["results"]:
        _tell_conflict(result)
        if same := result.get("same"):
            print(f"{len(same)} more say{'s' if len(same) == 1 else ''} the same as {result['memory_id']}")
    if not arguments.json:
        _say_what_is_not_there(answer)
    if answer.get("unchecked"):
        warn("whether later memories may deny these could not be checked; `omegad status` says why")
    if answer["degraded"]:
        warn(f"DEGRADED: searched by {answer['degraded']} alone; `omegad status` says why")
    elif answer["unembedded"]:
        warn(
            f"{answer['unembedded']} of what was looked at has no vectors yet, and was compared by its words"
            " alone"
        )
    warn_if_stale(answer)


def _tell_conflict(result: Answer) -> None:
    """Say which memory denies a result, or may."""
    conflict = cut(one_line(result.get("conflict") or ""), CONFLICT_COLUMNS)
    if by := result.get("doubted_by"):
        print(f"{by}, later, may deny {result['memory_id']}{conflict and f': {conflict}'}")
        print(
            f"  → say so: omegad memory settle {by} {result['memory_id']} contradicts|supersedes|compatible"
        )
    elif conflict:
        print(f"{result['memory_id']} is in conflict with {result['contradicted_by']}, {conflict}")


def _say_what_is_not_there(answer: Answer) -> None:
    if answer["nothing_of"]:
        print(f"nothing is of {answer['nothing_of']}, the time that the question names")
    if answer["more"]:
        print(f"at least {answer['more']} more, far less likely; --all shows them")
    if answer["beyond"]:
        print(f"at least {answer['beyond']} more may answer as well; a higher --limit shows them")


def _nothing(answer: Answer) -> str:
    """Say that nothing was found; where something was too unlikely, how likely it was, and what to try."""
    if not answer["confidence"]:
        return "nothing found"
    return (
        f"nothing found: the best answers with a probability of {answer['confidence']:.2f}, too little to be"
        f" shown, which begins at {answer['floor']:.2f}\n"
        "  → ask in other words; `--mode keyword` shows whatever has one of the question's words"
    )


def _by(said: Answer, *others: str) -> str:
    """Write who said something, and on which machine; and what else is known of that."""
    return ", ".join(filter(None, (said.get("person"), said.get("machine"), *others))) or "-"


def _explained(result: Answer) -> tuple[object, ...]:
    why = result["explanation"]
    stages = sorted(why["stages"].items(), key=lambda stage: -abs(stage[1]))
    told = ", ".join(f"{name} {share:+.3f}" for name, share in stages if f"{share:.3f}".strip("-") != "0.000")
    return (
        f"{result['score']:.3f}",
        f"{why['cosine']:.3f}",
        f"{why['bm25']:.3f}",
        result["memory_id"],
        cut(one_line(excerpt(result["content"], result.get("passage"))), PREVIEW_COLUMNS),
        told,
    )


@answered
def get(memory: Answer, _arguments: Namespace) -> None:
    """Show one memory."""
    unshown = {"elsewhere", "content", "edges", "position", "stale_by", "metadata", *LISTS}
    fields = [(name, value) for name, value in memory.items() if name not in unshown and value is not False]
    fields += [(name, ", ".join(memory[name])) for name in LISTS]
    if memory["metadata"]:
        fields.append(("metadata", msgspec.json.encode(memory["metadata"]).decode()))
    write_fields(fields)
    print(f"\n{safe(memory['content'])}")
    if memory["edges"]:
        print()
        write_table(
            ("EDGE", "TYPE", "WEIGHT", "ID"),
            [
                (edge["direction"], edge["edge_type"], f"{edge['weight']:.2f}", edge["memory_id"])
                for edge in memory["edges"]
            ],
        )


@answered
def traverse(answer: Answer, _arguments: Namespace) -> None:
    """Show what the edges of a memory lead to."""
    write_table(
        ("HOP", "ID", "TYPE", "STATUS", "CONTENT"),
        [
            (node["hop"], node["memory_id"], node["event_type"], node["status"], node["content"])
            for node in answer["nodes"]
        ],
    )
    edges = [
        (edge["hop"], edge["source_id"], edge["edge_type"], f"{edge['weight']:.2f}", edge["target_id"])
        for edge in answer["edges"]
    ]
    if edges:
        print()
        write_table(("HOP", "FROM", "EDGE", "WEIGHT", "TO"), edges)
    if answer["truncated"]:
        warn("there is more than the limits let through; --min-weight and --edge-type narrow it")


@answered
def timeline(answer: Answer, _arguments: Namespace) -> None:
    """Show the memories of the last days."""
    has_people = any(memory["person"] for day in answer["days"] for memory in day["memories"])
    write_table(
        ("DAY", "TIME", "ID", "TYPE", "PROJECT", *(["BY"] * has_people), "CONTENT"),
        [
            (
                day["day"],
                moment(memory["created_at"])[-5:],
                memory["memory_id"],
                memory["event_type"],
                memory["project"] or "-",
                *([_by(memory)] * has_people),
                memory["content"],
            )
            for day in answer["days"]
            for memory in day["memories"]
        ],
        none="no memories",
    )
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
                _by(event, event["client"] or event["session_id"] or ""),
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
