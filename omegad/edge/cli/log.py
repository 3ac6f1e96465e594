"""The verb that shows the log."""

import sys
from argparse import Namespace

import msgspec

from omegad.edge.cli.arguments import WrongUsage
from omegad.edge.cli.connection import Answer, connected
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import cut, in_json, is_terminal, moment, one_line, painted, write_json
from omegad.runtime.errors import NoDaemon

LATEST = 20
PAGE = 1_000
DATA_COLUMNS = 160  # of an event's data on a terminal; a pipe gets all of it
TAG_COLUMNS = 21


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
    where = one_line(event["session_id"] or event["client"] or "-")
    line = (
        f"{event['position']:>7}  {moment(event['occurred_at'])} "
        f" {painted(one_line(event['tag']).ljust(TAG_COLUMNS), 'bold')}  {where}  "
    )
    print(line + (cut(data, DATA_COLUMNS) if is_terminal(sys.stdout) else data), flush=True)
