"""The post: a PostgreSQL database where homes of a team leave what they share, and fetch what others did.

It is never asked for an answer, and nothing waits for it. psycopg, the driver, comes with the extra `shared`
and is imported where a connection is made. Who may do what is decided by the database alone: row-level
security and functions of its own, by the login of the connection.
"""
