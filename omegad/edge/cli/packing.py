"""The verb that gives back to the disk what is free in a home's log. No daemon serves it meanwhile."""

from argparse import Namespace

from omegad.edge.cli import starting
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import counted, size, tell
from omegad.edge.cli.sealing import held
from omegad.edge.transfer import log_file
from omegad.operations import files, seal
from omegad.runtime import alone


def pack(arguments: Namespace, instance: Instance) -> None:
    """Write the log anew without what is free in it, and put that in its place once it has verified."""
    starting.require_home(instance.paths)
    with held(instance) as paths:
        seal.enter(paths)
        log = paths.log.resolve()  # which may be a link
        with counted("packing") as progress, files.unfinished(log) as part:
            report = log_file.pack(log, part, progress)
            before, after = log.stat().st_size, part.stat().st_size
            alone.sync(part)
            part.replace(log)
            alone.sync(log.parent)
    tell(
        arguments,
        {"home": str(paths.home), "events": report.events, "bytes_before": before, "bytes": after},
        f"{paths.log} has {size(after)} instead of {size(before)}; its {report.events:,} events verified",
    )
