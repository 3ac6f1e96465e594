"""The verb that shows the log."""

import sys
from argparse import Namespace

import msgspec

from omegad.client.blocking import Client
from omegad.edge.cli.arguments import WrongUsage
from omegad.edge.cli.connection import Answer, connected, follow
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import cut, in_json, is_terminal, moment, one_line, painted, write_json

LATEST = 20
PAGE = 1_000
DATA_COLUMNS = 160  # of an event's data on a terminal; a pipe gets all of it
TAG_COLUMNS = 21


def show(arguments: Namespace, instance: Instance) -> int:
    """Show a stretch of the log and, if asked to, go on with what comes."""
    limit = LATEST if arguments.limit is None else arguments.limit
    if limit < 0 or (arguments.after or 0) < 0:
        raise WrongUsage("--after and --limit are not negative")
    with connected(instance) as client:
        head = client.call("log.read", after=0, limit=1)["head"]
        after = max(0, head - limit) if arguments.after is None else arguments.after
        events, head = ([], head) if arguments.follow else _read(client, after, limit, head)
    if arguments.follow:
        show = (lambda event: print(in_json(event), flush=True)) if arguments.json else _write_event
        follow(instance, "log.follow", show, after=after)
    elif arguments.json:
        write_json({"events": events, "head": head})
    else:
        for event in events:
            _write_event(event)
    return 0


def _read(client: Client, after: int, limit: int, head: int) -> tuple[list[Answer], int]:
    """Read up to *limit* events, in as many pages as the daemon makes of them."""
    events: list[Answer] = []
    while len(events) < limit:
        page = client.call("log.read", after=after + len(events), limit=min(PAGE, limit - len(events)))
        head = page["head"]
        if not page["events"]:
            break
        events += page["events"]
    return events, head


def _write_event(event: Answer) -> None:
    said = event["data"]
    if isinstance(said, dict):
        said = {name: value for name, value in said.items() if name != "type"}
    data = "(erased)" if said is None else one_line(msgspec.json.encode(said).decode())
    where = one_line(event["session_id"] or event["client"] or "-")
    line = (
        f"{event['position']:>7}  {moment(event['occurred_at'])} "
        f" {painted(one_line(event['tag']).ljust(TAG_COLUMNS), 'bold')}  {where}  "
    )
    print(line + (cut(data, DATA_COLUMNS) if is_terminal(sys.stdout) else data), flush=True)
