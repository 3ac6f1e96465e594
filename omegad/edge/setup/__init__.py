"""Registers omegad with coding agents: hooks, the MCP server and instructions, in the files of each host.

Boundary: knows the hosts and their files, and nothing of the daemon. Invariant: what omegad did not write is
never rewritten. Files are edited as text at the place of the change; what setup has added is recognised by
the exact form of omegad's commands or lies between markers, and can be taken out again to the byte.
"""
