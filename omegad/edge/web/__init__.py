"""Whatever speaks HTTP, in one process: the page, the routes for programs, MCP. A client of the socket."""
