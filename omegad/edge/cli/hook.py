"""The verb that a host may run at a hook; what `omegad setup` writes runs the client itself, which costs a
fraction.
"""

import os
import sys
from argparse import Namespace
from pathlib import Path
from typing import NoReturn

from omegad.edge.cli.instance import Instance

CLIENT = Path(__file__).parents[2] / "hook_client.py"


def run(arguments: Namespace, instance: Instance) -> NoReturn:
    """Become the client of hooks."""
    # It is ours
    os.execve(sys.executable, [sys.executable, "-I", "-S", str(CLIENT), arguments.event], instance.handed)  # noqa: S606
