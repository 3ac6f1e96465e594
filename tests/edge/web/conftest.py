"""The process that speaks HTTP, in a home of its own."""

from tests.edge.mcp.conftest import Host, host

__all__ = ["Host", "host"]
