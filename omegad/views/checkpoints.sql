CREATE TABLE IF NOT EXISTS checkpoints (
    name            TEXT PRIMARY KEY,
    version         INTEGER NOT NULL,
    schema_digest   TEXT NOT NULL,
    tables          TEXT NOT NULL,    -- JSON: the names of its tables, so that they can be dropped whatever a later version calls its own
    position        INTEGER NOT NULL, -- of the latest event that the projection shows
    chain           BLOB NOT NULL,    -- of the log at that position
    failed_position INTEGER,          -- of the event that it failed on
    error           TEXT
) STRICT, WITHOUT ROWID;

-- Events whose vectors were not at hand; their statements run again when they are.
CREATE TABLE IF NOT EXISTS deferred (
    name     TEXT NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (name, position)
) STRICT, WITHOUT ROWID;

-- What is computed of the views for the next start (`kept.py`), in parts; the first tells what they are.
CREATE TABLE IF NOT EXISTS kept (
    name  TEXT NOT NULL,
    part  INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (name, part)
) STRICT;
