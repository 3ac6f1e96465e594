"""One memory on several machines: what is shared with a team, told, received and merged.

A home tells its team *facts* about memories, numbered within its *origin*; the others' are merged into its
own log as events. PostgreSQL is the post office between them (`post`), and never asked for an answer.
"""
