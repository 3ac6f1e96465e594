"""The verbs about the log and the views that are made from it: log, rebuild, verify, SQL, what changed."""

import sys
from argparse import Namespace

import msgspec

from omegad.edge.cli.arguments import WrongUsage
from omegad.edge.cli.connection import Answer, answered, ask_long, connected
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import (
    cut,
    in_json,
    is_terminal,
    moment,
    one_line,
    painted,
    warn,
    write_json,
    write_table,
)
from omegad.runtime.errors import NoDaemon

LATEST = 20
PAGE = 1_000
DATA_COLUMNS = 160  # of an event's data on a terminal; a pipe gets all of it
TAG_COLUMNS = 21
RESTORE = "stop the daemon and restore log.db from a backup"
REBUILD_FIRST = f"run `omegad rebuild`; where that does not help, {RESTORE}"


def show(arguments: Namespace, instance: Instance) -> None:
    """Show a stretch of the log and, if asked to, go on with what comes."""
    limit = LATEST if arguments.limit is None else arguments.limit
    if limit < 0 or (arguments.after or 0) < 0:
        raise WrongUsage("--after and --limit are not negative")
    events: list[Answer] = []
    with connected(instance) as client:
        page = client.call("log.read", after=0, limit=1)
        after = max(0, page["head"] - limit) if arguments.after is None else arguments.after
        while page["events"] and len(events) < limit and not arguments.follow:
            page = client.call("log.read", after=after + len(events), limit=min(PAGE, limit - len(events)))
            events += page["events"]
    if arguments.follow:
        write = (lambda event: print(in_json(event), flush=True)) if arguments.json else _write_event
        with connected(instance, None, on_notice=write) as client:
            client.call("log.follow", after=after)
        raise NoDaemon("the daemon has stopped")
    if arguments.json:
        write_json({"events": events, "head": page["head"]})
    else:
        for event in events:
            _write_event(event)


def _write_event(event: Answer) -> None:
    said = event["data"]
    if isinstance(said, dict):
        said = {name: value for name, value in said.items() if name != "type"}
    data = "(erased)" if said is None else one_line(msgspec.json.encode(said).decode())
    print(
        f"{event['position']:>7}  {moment(event['occurred_at'])} "
        f" {painted(one_line(event['tag']).ljust(TAG_COLUMNS), 'bold')} "
        f" {one_line(event['session_id'] or event['client'] or '-')}  "
        f"{cut(data, DATA_COLUMNS) if is_terminal(sys.stdout) else data}",
        flush=True,
    )


def rebuild(arguments: Namespace, instance: Instance) -> int:
    """Build one view, or all, again."""
    answer = ask_long(instance, "views.rebuild", "rebuilding", name=arguments.view)
    if arguments.json:
        write_json(answer)
    else:
        write_table(
            ("VIEW", "ROWS", "POSITION"),
            [(name, f"{view['rows']:,}", f"{view['position']:,}") for name, view in answer["views"].items()],
        )
        print(f"rebuilt {arguments.view or 'all views'}")
    return 0 if answer["ok"] else 1


def verify(arguments: Namespace, instance: Instance) -> int:
    """Verify the log's chain, then the views."""
    log = ask_long(instance, "log.verify", "verifying the log")
    views = ask_long(instance, "views.verify", "verifying the views")
    is_ok = log["ok"] and views["ok"]
    if arguments.json:
        write_json({"ok": is_ok, "log": log, "views": views})
        return 0 if is_ok else 1
    if log["ok"]:
        print(f"log: {log['events']:,} events are as they were written, head {log['head_hash'][:16]}…")
    else:
        for problem, remedy in log_problems(log):
            warn(f"log: BROKEN: {problem}; {remedy}")
    write_table(
        ("VIEW", "ROWS", "POSITION", "EQUAL", "PROBLEM"),
        [
            (
                name,
                f"{view['rows']:,}",
                f"{view['position']:,}",
                "yes" if view["equal"] else "NO",
                view["problem"] or ("" if view["equal"] else "its rows are not those of the log"),
            )
            for name, view in views["views"].items()
        ],
    )
    if waiting := vectors_waiting(views):
        print(waiting)
    if not views["ok"]:
        warn("a view does not equal the log; `omegad rebuild` builds it again")
    return 0 if is_ok else 1


def vectors_waiting(report: Answer) -> str:
    """Say how many vectors of a report of the views are to be computed again; nothing where all are there."""
    count = sum(view.get("waiting", 0) for view in report["views"].values())
    return f"{count:,} vectors wait for the model" if count else ""


def log_problems(report: Answer) -> list[tuple[str, str]]:
    """Return what is wrong with the log, and what to do about each."""
    found = [(problem, REBUILD_FIRST) for problem in report["problems"]]
    if report["first_bad"] is not None:
        found.append((f"the chain breaks at position {report['first_bad']:,}", RESTORE))
    return found


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
    write_table(
        ("LAST", "KIND", "ID", "WHAT", "TEXT"),
        [
            (moment(one["at"]), one["noun"], one["id"], ", ".join(one["what"]), one["text"] or "")
            for one in answer["changes"]
        ],
        none="",
    )
    if answer["next"] is not None:
        warn(f"there is more: --from {answer['next']} goes on")
