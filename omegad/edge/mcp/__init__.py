"""MCP on standard input and output: the bridge that a host starts for a session."""
