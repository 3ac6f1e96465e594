"""Homes and their daemons, for hooks that are run as hosts run them."""

from tests.acceptance.conftest import daemon, home, homes
from tests.edge.hook.conftest import served

__all__ = ["daemon", "home", "homes", "served"]
