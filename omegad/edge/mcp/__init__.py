"""MCP: the bridge that a host starts, the gateway that serves sessions, and HTTP."""
