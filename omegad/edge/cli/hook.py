"""The verb that a host may run at a hook; what `omegad setup` writes runs the client itself, which costs a fraction."""

import os
import sys
from argparse import Namespace
from pathlib import Path
from typing import NoReturn

from omegad.edge.cli.place import Place

CLIENT = Path(__file__).parents[2] / "hook_client.py"


def run(arguments: Namespace, place: Place) -> NoReturn:
    """Become the client of hooks."""
    os.execve(sys.executable, [sys.executable, "-I", "-S", str(CLIENT), arguments.event], place.environ)  # noqa: S606  it is ours
