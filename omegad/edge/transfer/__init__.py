"""Logs and memories on their way in and out of a home: backups, an export that loses nothing, and what other
memory systems wrote.

Boundary: works on files. A log is read on a connection of its own, whoever serves it meanwhile, and is
replaced only by the holder of the home's lock. Memories of others are read here and stored through the
socket, like anyone's. Invariants: a file gets its name when it is complete and its hash chain has verified;
nothing that was there is removed but a backup that rotation has let go of.
"""
