"""The verb about who holds which files and branches."""

import time
from argparse import Namespace

from omegad.edge.cli.connection import Answer
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.parameters import asked
from omegad.edge.cli.printing import moment, warn_if_stale, write_json, write_table

WATCH_S = 2.0


def held(arguments: Namespace, instance: Instance) -> int:
    """Show the claims; with --watch again and again, until interrupted."""
    while True:
        answer = asked(arguments, instance)
        if arguments.json:
            write_json(answer)
        elif answer["claims"]:
            write_table(
                ("SINCE", "SEEN", "SESSION", "HOST", "NAME", "IN", "UNTIL", "WHY"),
                [_told(claim) for claim in answer["claims"]],
            )
        else:
            print("nobody holds anything")
        warn_if_stale(answer)
        if not arguments.watch:
            return 0
        print(flush=True)
        time.sleep(WATCH_S)


def _told(claim: Answer) -> tuple[object, ...]:
    until = moment(claim["until"]) if claim["until"] else "-"
    where = claim["worktree"] or claim["repository"] or "-"
    why = (claim["reason"] or claim["ended"]) if claim["until"] else (claim["intent"] or "-")
    return (
        moment(claim["since"]),
        moment(claim["seen"]),
        claim["session_id"],
        claim["host"] or "-",
        claim["name"],
        where,
        until,
        why,
    )
