"""The verb that a host of MCP starts."""

import os
import sys
from argparse import Namespace
from pathlib import Path
from typing import NoReturn

from omegad.edge.cli.instance import Instance

BRIDGE = Path(__file__).parents[2] / "mcp_bridge.py"


def bridge(_arguments: Namespace, instance: Instance) -> NoReturn:
    """Become the bridge, which is a file that imports nothing of omegad."""
    # Our own file
    os.execve(sys.executable, [sys.executable, "-I", "-S", str(BRIDGE)], instance.handed)  # noqa: S606
