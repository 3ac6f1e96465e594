-- Guards that are a fold of the events, and can be made again from them: a new format does just that.
CREATE TABLE IF NOT EXISTS memory_guards (
    memory_id   TEXT PRIMARY KEY,
    content_key TEXT NOT NULL,
    stored_at   INTEGER NOT NULL, -- position of memory.stored
    changed_at  INTEGER NOT NULL, -- position of the latest event that changed whether, or as what, it is found
    state       TEXT NOT NULL CHECK (state IN ('active', 'superseded', 'deleted', 'expired')),
    pending     INTEGER NOT NULL, -- 1 until its relations are decided
    event_type  TEXT NOT NULL,
    project     TEXT,
    entity_id   TEXT,
    session_id  TEXT,
    denied_by   TEXT,             -- the memory that denied it last, since it was last said
    probation   INTEGER NOT NULL, -- 1 until it is promoted
    rating      INTEGER NOT NULL, -- the sum of what it was given
    ttl_seconds INTEGER,
    expires_at  INTEGER,          -- microseconds since 1970, NULL where it is permanent
    said_at     INTEGER NOT NULL  -- microseconds since 1970, when it was last stored, said again or edited
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS memory_guards_by_content ON memory_guards (content_key);

CREATE TABLE IF NOT EXISTS embedding_guards (
    memory_id   TEXT NOT NULL,
    embedder_id TEXT NOT NULL,
    PRIMARY KEY (memory_id, embedder_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS tool_guards (
    session_id  TEXT NOT NULL,
    tool_use_id TEXT NOT NULL,
    position    INTEGER NOT NULL,
    call_index  INTEGER NOT NULL,
    PRIMARY KEY (session_id, tool_use_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS session_guards (
    session_id TEXT PRIMARY KEY,
    calls      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

