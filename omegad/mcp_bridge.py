"""What a coding agent's host starts as an MCP server, as `PYTHON -I -S mcp_bridge.py`: `edge.mcp.pipe`.

Python compiles a file that it is told to run each time, so there is next to nothing in this one.
"""

import posix
import sys

if __name__ == "__main__":
    try:
        sys.path.append(__file__.rpartition("/omegad/")[0])
        from omegad.edge.mcp.pipe import main

        main()
    except KeyboardInterrupt:
        posix._exit(0)  # the host is gone, which the pipe itself takes it for
