"""The verbs about the views and what they are made from: rebuild, verify."""

from argparse import Namespace

from omegad.edge.cli.connection import Answer, ask_long
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import warn, write_json, write_table

RESTORE = "stop the daemon and restore log.db from a backup"
REBUILD_FIRST = f"run `omegad rebuild`; where that does not help, {RESTORE}"


def rebuild(arguments: Namespace, instance: Instance) -> int:
    """Build one view, or all, again."""
    answer = ask_long(instance, "views.rebuild", "rebuilding", name=arguments.view)
    if arguments.json:
        write_json(answer)
    else:
        rows = [
            (name, f"{view['rows']:,}", f"{view['position']:,}") for name, view in answer["views"].items()
        ]
        write_table(("VIEW", "ROWS", "POSITION"), rows)
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
    rows = [
        (
            name,
            f"{view['rows']:,}",
            f"{view['position']:,}",
            "yes" if view["equal"] else "NO",
            view["problem"] or ("" if view["equal"] else "its rows are not those of the log"),
        )
        for name, view in views["views"].items()
    ]
    write_table(("VIEW", "ROWS", "POSITION", "EQUAL", "PROBLEM"), rows)
    if not views["ok"]:
        warn("a view does not equal the log; `omegad rebuild` builds it again")
    return 0 if is_ok else 1


def log_problems(report: Answer) -> list[tuple[str, str]]:
    """Return what is wrong with the log, and what to do about each."""
    found = [(problem, REBUILD_FIRST) for problem in report["problems"]]
    if report["first_bad"] is not None:
        found.append((f"the chain breaks at position {report['first_bad']:,}", RESTORE))
    return found
