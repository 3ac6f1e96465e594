CREATE TABLE IF NOT EXISTS events (
    position     INTEGER PRIMARY KEY,
    event_id     TEXT NOT NULL,    -- UUIDv7; without an index, since nothing is found by it
    tag          TEXT NOT NULL,
    recorded_at  INTEGER NOT NULL, -- microseconds since 1970, never decreasing but where clock.mended says so
    occurred_at  INTEGER NOT NULL, -- microseconds since 1970
    tz_offset    INTEGER NOT NULL, -- minutes that local time was ahead of UTC
    origin       TEXT NOT NULL,    -- the installation that recorded it
    hlc          INTEGER NOT NULL, -- hybrid logical clock
    session_id   TEXT,
    project      TEXT,
    client       TEXT,
    cause        INTEGER,          -- position of the event that led to this one
    trace        TEXT,
    payload_hash BLOB NOT NULL,    -- H(salt, body)
    chain        BLOB NOT NULL     -- H(the previous chain, this row's envelope and payload_hash)
) STRICT;

CREATE TABLE IF NOT EXISTS payloads (
    position INTEGER PRIMARY KEY,
    salt     BLOB NOT NULL,
    body     TEXT NOT NULL         -- JSON
) STRICT;

CREATE TRIGGER IF NOT EXISTS events_are_not_updated BEFORE UPDATE ON events
BEGIN
    SELECT raise(ABORT, 'the log is append-only');
END;

CREATE TRIGGER IF NOT EXISTS events_are_not_deleted BEFORE DELETE ON events
BEGIN
    SELECT raise(ABORT, 'the log is append-only');
END;

CREATE TRIGGER IF NOT EXISTS payloads_are_not_updated BEFORE UPDATE ON payloads
BEGIN
    SELECT raise(ABORT, 'the log is append-only');
END;

CREATE TRIGGER IF NOT EXISTS payloads_are_deleted_only_when_erased BEFORE DELETE ON payloads
WHEN NOT EXISTS (SELECT 1 FROM erasures WHERE erasures.position = old.position)
BEGIN
    SELECT raise(ABORT, 'the log is append-only');
END;

-- What the installation is.
CREATE TABLE IF NOT EXISTS identity (
    singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
    origin    TEXT NOT NULL,
    format    INTEGER NOT NULL
) STRICT;

-- What was answered, so that the same request is the same; kept for a while. By rowid, in the order in which it
-- came: rows of a table that is its own index fit into a page by fours, and what does not takes a page of its own.
CREATE TABLE IF NOT EXISTS requests (
    client         TEXT NOT NULL,
    request_id     TEXT NOT NULL,
    params_digest  BLOB NOT NULL,
    first_position INTEGER,          -- of its first event, or that it would have had; NULL where an older version wrote it
    position       INTEGER NOT NULL, -- that it was acknowledged at
    answer         TEXT NOT NULL,
    PRIMARY KEY (client, request_id)
) STRICT;

-- Those of versions whose digests had no key, which are forgotten at the next start.
CREATE INDEX IF NOT EXISTS requests_unkeyed ON requests (client, request_id) WHERE length(params_digest) = 16;

-- Those of imports by versions that named them by a digest without a key, which are named anew at the next start.
CREATE INDEX IF NOT EXISTS requests_of_imports ON requests (client, request_id)
WHERE substr(request_id, 1, 7) = 'import-' AND substr(request_id, -33, 1) = '-';

-- What a clock stamped that was ahead, as clock.mended says of it.
CREATE TABLE IF NOT EXISTS mendings (
    position INTEGER PRIMARY KEY, -- of clock.mended
    first    INTEGER NOT NULL,    -- position of the first event that was stamped so
    ahead_us INTEGER NOT NULL,
    right_us INTEGER NOT NULL,
    to_us    INTEGER NOT NULL
) STRICT;

-- How far those have come who act on events; each moves in the transaction of what it led to.
CREATE TABLE IF NOT EXISTS cursors (
    name     TEXT PRIMARY KEY,
    version  INTEGER NOT NULL,
    position INTEGER NOT NULL -- of the latest event that was acted on, or passed over
) STRICT, WITHOUT ROWID;

-- What they failed on and passed over, until it is tried again.
CREATE TABLE IF NOT EXISTS set_aside (
    name      TEXT NOT NULL,
    position  INTEGER NOT NULL, -- of the event, or the number of the slot of time
    is_slot   INTEGER NOT NULL,
    failed_at INTEGER NOT NULL, -- microseconds since 1970
    tries     INTEGER NOT NULL,
    error     TEXT NOT NULL,
    PRIMARY KEY (name, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS erasures (
    position INTEGER PRIMARY KEY -- of a payload that a payload.erased event names
) STRICT;

-- The inline projections, whose tables are in this file.
CREATE TABLE IF NOT EXISTS inline_projections (
    name          TEXT PRIMARY KEY,
    version       INTEGER NOT NULL,
    schema_digest TEXT NOT NULL,
    tables        TEXT NOT NULL, -- JSON: the names of its tables, so that they can be dropped whatever another version calls its own
    position      INTEGER        -- of the latest event that it has been shown while it is made; NULL once it is written with every append
) STRICT, WITHOUT ROWID;
