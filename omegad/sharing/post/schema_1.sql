-- The first shape of the post. It runs as omegad_owner, who owns all of it and is nobody's login.
--
-- Logins read by row-level security, which looks at who is a member at every statement, and write by functions
-- alone. The functions run as omegad_owner, whom the same policies bind (FORCE), to the teams of the session's
-- login. A team is a number in every table but its own, since the bounds of partitions can be read by any login.
-- Names are compared byte by byte, which is the same on every server, and quick.

CREATE TABLE omegad.schema_version (
    version    integer PRIMARY KEY,
    works_from integer NOT NULL,  -- the oldest schema a program must know of to work with this one
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE omegad.teams (
    team       integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    name       text NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 100),
    channel    text NOT NULL DEFAULT 'omegad_' || replace(gen_random_uuid()::text, '-', ''),  -- of NOTIFY; no other team can guess it
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE omegad.members (
    team      integer NOT NULL REFERENCES omegad.teams,
    login     text COLLATE "C" NOT NULL,
    person    text NOT NULL CHECK (length(person) BETWEEN 1 AND 100),
    is_admin  boolean NOT NULL DEFAULT false,
    joined_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    left_at   timestamptz,
    PRIMARY KEY (team, login)
);

CREATE TABLE omegad.origins (
    team          integer NOT NULL,
    origin        text COLLATE "C" NOT NULL CHECK (length(origin) BETWEEN 1 AND 100),
    login         text COLLATE "C" NOT NULL,
    machine       text NOT NULL CHECK (length(machine) BETWEEN 1 AND 200),
    head          bigint NOT NULL DEFAULT 0,
    head_chain    bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex'),
    head_position bigint NOT NULL DEFAULT 0,
    head_event    text NOT NULL DEFAULT '',
    joined_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    left_at       timestamptz,
    PRIMARY KEY (team, origin),
    FOREIGN KEY (team, login) REFERENCES omegad.members
) WITH (fillfactor = 50);  -- so that a head moves within its page

CREATE TABLE omegad.facts (
    team      integer NOT NULL,
    origin    text COLLATE "C" NOT NULL,
    seq       bigint NOT NULL,
    hlc       bigint NOT NULL,
    "position" bigint NOT NULL,
    pushed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    event_id  text NOT NULL CHECK (length(event_id) <= 100),
    tag       text NOT NULL CHECK (length(tag) <= 100),
    subject   text COLLATE "C" NOT NULL CHECK (length(subject) <= 200),
    envelope  bytea NOT NULL CHECK (octet_length(envelope) <= 16384),  -- what is hashed; has the hash of the body
    chain     bytea NOT NULL CHECK (octet_length(chain) = 32),
    salt      bytea CHECK (octet_length(salt) = 16),
    body      bytea CHECK (octet_length(body) <= 4194304),  -- NULL once erased, as the salt
    PRIMARY KEY (team, origin, seq)
) PARTITION BY LIST (team);

CREATE INDEX facts_by_subject ON omegad.facts (team, subject);

CREATE TABLE omegad.erased (
    team      integer NOT NULL,
    subject   text COLLATE "C" NOT NULL,
    origin    text COLLATE "C" NOT NULL,
    seq       bigint NOT NULL,
    erased_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (team, subject)
);

CREATE TABLE omegad.cursors (
    team   integer NOT NULL,
    reader text COLLATE "C" NOT NULL,  -- an origin, which has pulled the facts of another up to this one
    origin text COLLATE "C" NOT NULL,
    seq    bigint NOT NULL,
    PRIMARY KEY (team, reader, origin)
);

CREATE FUNCTION omegad.my_teams() RETURNS integer[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
RETURN ARRAY(SELECT team FROM omegad.members WHERE login = session_user::text AND left_at IS NULL);

ALTER TABLE omegad.schema_version ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE omegad.teams ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE omegad.members ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE omegad.origins ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE omegad.facts ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE omegad.erased ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE omegad.cursors ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;

CREATE POLICY all_of_it ON omegad.schema_version USING (true) WITH CHECK (true);
-- Of these two the owner sees all: who is a member is found in them.
CREATE POLICY owner ON omegad.teams TO omegad_owner USING (true) WITH CHECK (true);
CREATE POLICY owner ON omegad.members TO omegad_owner USING (true) WITH CHECK (true);
CREATE POLICY own_team ON omegad.teams FOR SELECT TO omegad_member
    USING (team = ANY ((SELECT omegad.my_teams())::integer[]));
CREATE POLICY own_team ON omegad.members FOR SELECT TO omegad_member
    USING (team = ANY ((SELECT omegad.my_teams())::integer[]));
CREATE POLICY own_team ON omegad.origins TO omegad_owner, omegad_member
    USING (team = ANY ((SELECT omegad.my_teams())::integer[]))
    WITH CHECK (team = ANY ((SELECT omegad.my_teams())::integer[]));
CREATE POLICY own_team ON omegad.facts TO omegad_owner, omegad_member
    USING (team = ANY ((SELECT omegad.my_teams())::integer[]))
    WITH CHECK (team = ANY ((SELECT omegad.my_teams())::integer[]));
CREATE POLICY own_team ON omegad.erased TO omegad_owner, omegad_member
    USING (team = ANY ((SELECT omegad.my_teams())::integer[]))
    WITH CHECK (team = ANY ((SELECT omegad.my_teams())::integer[]));
CREATE POLICY own_team ON omegad.cursors TO omegad_owner, omegad_member
    USING (team = ANY ((SELECT omegad.my_teams())::integer[]))
    WITH CHECK (team = ANY ((SELECT omegad.my_teams())::integer[]));

-- Refuses an origin that is not the session's login's. Errors of these functions have states of their own, OM001
-- and so on, and in the detail what they are about.
CREATE FUNCTION omegad.check_owner(_team integer, _origin text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT _team = ANY (omegad.my_teams()) THEN
        RAISE EXCEPTION 'not a member of this team' USING ERRCODE = 'OM001';
    END IF;
    PERFORM FROM omegad.origins WHERE team = _team AND origin = _origin AND login = session_user::text;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no origin of this login' USING ERRCODE = 'OM002', DETAIL = _origin;
    END IF;
END
$$;

CREATE FUNCTION omegad.enrol(_team integer, _origin text, _machine text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT _team = ANY (omegad.my_teams()) THEN
        RAISE EXCEPTION 'not a member of this team' USING ERRCODE = 'OM001';
    END IF;
    INSERT INTO omegad.origins (team, origin, login, machine)
    VALUES (_team, _origin, session_user::text, _machine) ON CONFLICT DO NOTHING;
    PERFORM omegad.check_owner(_team, _origin);
    -- All homes read the names of all; each time that one leaves and joins again it takes another.
    IF (SELECT count(*) FROM omegad.origins WHERE team = _team AND login = session_user::text) > 1000 THEN
        RAISE EXCEPTION 'a login has 1,000 homes at most' USING ERRCODE = 'OM007';
    END IF;
    UPDATE omegad.origins SET seen_at = clock_timestamp(), left_at = NULL, machine = _machine
    WHERE team = _team AND origin = _origin;
END
$$;

CREATE FUNCTION omegad.push(
    _team integer, _origin text, _head bigint, _head_chain bytea,
    _hlc bigint[], _position bigint[], _event_id text[], _tag text[], _subject text[],
    _envelope bytea[], _chain bytea[], _salt bytea[], _body bytea[]
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
<<push>>
DECLARE
    n integer := cardinality(_hlc);
    ahead_ms bigint;
    erasing text[] := ARRAY(
        SELECT DISTINCT subject FROM unnest(_tag, _subject) AS given (tag, subject) WHERE tag LIKE 'memory.erased@%'
    );
    others text;
BEGIN
    PERFORM omegad.check_owner(_team, _origin);
    IF n NOT BETWEEN 1 AND 1000 OR n <> ALL (ARRAY[
        cardinality(_position), cardinality(_event_id), cardinality(_tag), cardinality(_subject),
        cardinality(_envelope), cardinality(_chain), cardinality(_salt), cardinality(_body)
    ]) THEN
        RAISE EXCEPTION 'a push has 1 to 1000 facts' USING ERRCODE = 'OM003';
    END IF;
    SELECT (max(stamp) >> 16) - floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ahead_ms
    FROM unnest(_hlc) AS given (stamp);
    IF ahead_ms > 60000 THEN
        RAISE EXCEPTION 'stamped ahead of the clock' USING ERRCODE = 'OM004', DETAIL = ahead_ms::text;
    END IF;
    -- What is erased must not come in meanwhile: who erases waits for those who push, and they for him.
    IF cardinality(erasing) > 0 THEN
        PERFORM FROM omegad.teams WHERE team = _team FOR UPDATE;
    ELSE
        PERFORM FROM omegad.teams WHERE team = _team FOR SHARE;
    END IF;
    UPDATE omegad.origins
    SET head = head + n, head_chain = _chain[n], head_position = _position[n], head_event = _event_id[n],
        seen_at = clock_timestamp()
    WHERE team = _team AND origin = _origin AND head = _head AND head_chain = _head_chain AND left_at IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the head is another' USING ERRCODE = 'OM005';
    END IF;
    INSERT INTO omegad.facts (
        team, origin, seq, hlc, "position", event_id, tag, subject, envelope, chain, salt, body
    )
    SELECT _team, _origin, _head + nth, hlc, at, event_id, tag, given.subject, envelope, chain,
        CASE WHEN gone.subject IS NULL THEN salt END, CASE WHEN gone.subject IS NULL THEN body END
    FROM unnest(_hlc, _position, _event_id, _tag, _subject, _envelope, _chain, _salt, _body) WITH ORDINALITY
        AS given (hlc, at, event_id, tag, subject, envelope, chain, salt, body, nth)
    LEFT JOIN omegad.erased AS gone
        ON gone.team = _team AND gone.subject = given.subject AND given.tag NOT LIKE 'memory.erased@%';
    IF cardinality(erasing) > 0 THEN
        IF NOT EXISTS (
            SELECT FROM omegad.members WHERE team = _team AND login = session_user::text AND is_admin
        ) THEN
            SELECT string_agg(this, ', ') INTO others FROM unnest(erasing) AS given (this)
            CROSS JOIN LATERAL (
                SELECT login FROM omegad.facts AS fact JOIN omegad.origins USING (team, origin)
                WHERE fact.team = _team AND fact.subject = this
                ORDER BY fact.tag LIKE 'memory.stored@%' DESC, fact.pushed_at, fact.seq LIMIT 1
            ) AS first WHERE login <> session_user::text;
            IF others IS NOT NULL THEN
                RAISE EXCEPTION 'stored by somebody else' USING ERRCODE = 'OM006', DETAIL = others;
            END IF;
        END IF;
        UPDATE omegad.facts SET salt = NULL, body = NULL
        WHERE team = _team AND subject = ANY (erasing) AND body IS NOT NULL AND tag NOT LIKE 'memory.erased@%';
        INSERT INTO omegad.erased (team, subject, origin, seq)
        SELECT _team, subject, _origin, _head + min(nth)
        FROM unnest(_tag, _subject) WITH ORDINALITY AS given (tag, subject, nth)
        WHERE tag LIKE 'memory.erased@%' GROUP BY subject
        ON CONFLICT DO NOTHING;
    END IF;
    PERFORM pg_notify(channel, '') FROM omegad.teams WHERE team = _team;
END
$$;

CREATE FUNCTION omegad.report(_team integer, _reader text, _origin text[], _seq bigint[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM omegad.check_owner(_team, _reader);
    INSERT INTO omegad.cursors AS known (team, reader, origin, seq)
    SELECT _team, _reader, given.origin, least(given.seq, head)
    FROM unnest(_origin, _seq) AS given (origin, seq)
    JOIN omegad.origins AS told ON told.team = _team AND told.origin = given.origin
    ON CONFLICT (team, reader, origin) DO UPDATE SET seq = excluded.seq WHERE known.seq < excluded.seq;
    UPDATE omegad.origins SET seen_at = clock_timestamp() WHERE team = _team AND origin = _reader;
END
$$;

-- Ends what an origin tells; with_facts, its words are taken away here too. Returns of how many facts.
CREATE FUNCTION omegad.leave(_team integer, _origin text, _with_facts boolean) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
<<leave>>
DECLARE
    n bigint := 0;
BEGIN
    PERFORM omegad.check_owner(_team, _origin);
    UPDATE omegad.origins SET left_at = clock_timestamp() WHERE team = _team AND origin = _origin;
    IF _with_facts THEN
        UPDATE omegad.facts SET salt = NULL, body = NULL
        WHERE team = _team AND origin = _origin AND body IS NOT NULL
            AND tag NOT LIKE 'memory.erased@%';  -- which some home may not have heard of yet
        GET DIAGNOSTICS n = ROW_COUNT;
    END IF;
    RETURN n;
END
$$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA omegad FROM PUBLIC;
GRANT USAGE ON SCHEMA omegad TO omegad_member;
GRANT SELECT ON omegad.schema_version, omegad.teams, omegad.members, omegad.origins, omegad.facts, omegad.erased,
    omegad.cursors TO omegad_member;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA omegad TO omegad_member;
