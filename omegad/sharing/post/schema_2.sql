-- What a team holds, folded of its facts by the rule of agreement.py, for who has no home and asks here.
--
-- It is folded by who asks and not by who tells, whole memories at a time: what changed is made anew of all facts
-- about it, so that it does not matter in which order, or how often, that is done. Words that are taken out of the
-- facts leave it in the same transaction.
--
-- The owner sees all of these tables, so that full text can be searched by its index, which the policies of others
-- would keep from being used; the functions see for themselves who is a member.

CREATE TEXT SEARCH DICTIONARY omegad.stems (TEMPLATE = pg_catalog.snowball, language = english);  -- no stop words
CREATE TEXT SEARCH CONFIGURATION omegad.words (COPY = pg_catalog.simple);
ALTER TEXT SEARCH CONFIGURATION omegad.words
    ALTER MAPPING FOR asciiword, asciihword, hword_asciipart, word, hword, hword_part WITH omegad.stems;

CREATE TABLE omegad.held (
    team          integer NOT NULL,
    number        bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    memory_id     text COLLATE "C" NOT NULL,
    origin        text COLLATE "C" NOT NULL,  -- that stored it
    agent         text,
    project       text,
    event_type    text NOT NULL,
    entity_id     text,
    created_us    bigint NOT NULL,   -- times are microseconds since 1970
    said_us       bigint NOT NULL,   -- when it was last stored, said again or edited
    expires_us    bigint,
    content       text NOT NULL,
    tags          text[] NOT NULL,
    auto_tags     text[] NOT NULL,
    priority      integer NOT NULL,
    metadata      jsonb NOT NULL,
    referenced_us bigint,
    source        text,
    confidence    double precision,
    status        text NOT NULL,     -- active, superseded or deleted
    superseded_by text,
    rating        bigint NOT NULL,
    repeated      bigint NOT NULL,
    words         tsvector NOT NULL,
    PRIMARY KEY (team, memory_id),
    UNIQUE (team, number)
) PARTITION BY LIST (team);

CREATE INDEX held_by_words ON omegad.held USING gin (words);

CREATE TABLE omegad.folding (
    team integer PRIMARY KEY  -- whose row is locked by who folds; no login can lock it
);

CREATE TABLE omegad.folded (
    team   integer NOT NULL,
    origin text COLLATE "C" NOT NULL,
    seq    bigint NOT NULL,  -- of the last fact that is in omegad.held
    PRIMARY KEY (team, origin)
);

ALTER TABLE omegad.held ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE omegad.folding ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE omegad.folded ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY owner ON omegad.held TO omegad_owner USING (true) WITH CHECK (true);
CREATE POLICY owner ON omegad.folding TO omegad_owner USING (true) WITH CHECK (true);
CREATE POLICY owner ON omegad.folded TO omegad_owner USING (true) WITH CHECK (true);
CREATE POLICY own_team ON omegad.held FOR SELECT TO omegad_member
    USING (team = ANY ((SELECT omegad.my_teams())::integer[]));
CREATE POLICY own_team ON omegad.folded FOR SELECT TO omegad_member
    USING (team = ANY ((SELECT omegad.my_teams())::integer[]));

CREATE FUNCTION omegad.check_member(_team integer) RETURNS void
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT _team = ANY (omegad.my_teams()) THEN
        RAISE EXCEPTION 'not a member of this team' USING ERRCODE = 'OM001';
    END IF;
END
$$;

-- Returns the values of an envelope, an array of MessagePack of strings, whole numbers, nothing and a hash, as texts;
-- of a hash nothing.
CREATE FUNCTION omegad.unpacked(_envelope bytea) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    at integer := 1;
    kind integer;
    size integer;
    value numeric;
    found text[] := '{}';
BEGIN
    FOR _ IN 1 .. get_byte(_envelope, 0) - 144 LOOP
        kind := get_byte(_envelope, at);
        at := at + 1;
        IF kind < 128 OR kind >= 224 THEN
            found := found || (CASE WHEN kind < 128 THEN kind ELSE kind - 256 END)::text;
        ELSIF kind BETWEEN 160 AND 191 OR kind IN (217, 218, 196) THEN
            size := kind - 160;
            IF kind IN (217, 196) THEN
                size := get_byte(_envelope, at);
                at := at + 1;
            ELSIF kind = 218 THEN
                size := get_byte(_envelope, at) * 256 + get_byte(_envelope, at + 1);
                at := at + 2;
            END IF;
            found := found || CASE WHEN kind <> 196 THEN convert_from(substr(_envelope, at + 1, size), 'UTF8') END;
            at := at + size;
        ELSIF kind BETWEEN 204 AND 211 THEN
            size := 1 << (kind - 204) % 4;
            value := 0;
            FOR nth IN 0 .. size - 1 LOOP
                value := value * 256 + get_byte(_envelope, at + nth);
            END LOOP;
            IF kind >= 208 AND get_byte(_envelope, at) >= 128 THEN
                value := value - 256::numeric ^ size;
            END IF;
            found := found || trunc(value)::text;
            at := at + size;
        ELSE
            found := found || NULL::text;  -- nil, or what no home writes
        END IF;
    END LOOP;
    RETURN found;
END
$$;

-- Returns what a fact says, without characters that no text here can hold; nothing where that cannot be read.
CREATE FUNCTION omegad.said(_tag text, _body bytea) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    told text;
    found jsonb;
BEGIN
    told := convert_from(_body, 'UTF8');
    IF strpos(told, '\u0000') > 0 THEN
        told := regexp_replace(told, '(?<!\\)((?:\\\\)*)\\u0000', '\1', 'g');
    END IF;
    found := told::jsonb;
    RETURN CASE WHEN found ->> 'type' = _tag THEN found END;
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END
$$;

-- Signs become spaces, since the parser takes what they join for addresses and names of files.
CREATE FUNCTION omegad.plain(_text text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp
RETURN regexp_replace(left(_text, 100000), '[\x01-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]+', ' ', 'g');

-- Beside the words themselves it has the parts of names, and what stands in a script without spaces apart from that.
CREATE FUNCTION omegad.words_of(_content text, _known text) RETURNS tsvector
LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    plain text := omegad.plain(_content);
    parts text := regexp_replace(plain, '([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])', '\1\3 \2\4', 'g');
BEGIN
    IF octet_length(plain) <> length(plain) THEN
        parts := regexp_replace(parts, '[\u3000-\u9fff\uac00-\ud7af\uff00-\uffef]+', ' \& ', 'g');
    END IF;
    RETURN setweight(to_tsvector('omegad.words', plain), 'A')
        || setweight(to_tsvector('omegad.words', omegad.plain(_known)), 'B')
        || CASE WHEN parts <> plain THEN to_tsvector('omegad.words', parts) ELSE '' END;
END
$$;

CREATE FUNCTION omegad.texts(_array jsonb) RETURNS text[]
LANGUAGE sql IMMUTABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
RETURN ARRAY(SELECT one FROM jsonb_array_elements_text(_array) AS found (one) ORDER BY one COLLATE "C");

-- Makes memories anew of all facts about them; those of which no fact stores one, any more, are removed.
CREATE FUNCTION omegad.refold(_team integer, _subjects text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan AS $$
BEGIN
    WITH fact AS MATERIALIZED (
        SELECT * FROM (
            SELECT fact.*, omegad.unpacked(envelope) AS sealed, omegad.said(tag, body) AS said
            FROM omegad.facts AS fact
            WHERE team = _team AND subject = ANY (_subjects) AND body IS NOT NULL AND tag = ANY ('{
                memory.stored@2, memory.edited@1, memory.repeated@2, memory.rated@1, memory.superseded@1,
                memory.deleted@1, memory.restored@1}')
            AND NOT EXISTS (
                SELECT FROM omegad.erased AS gone WHERE gone.team = _team AND gone.subject = fact.subject
            )
        ) AS told
        -- What says beside the envelope something else than in it, or is about something else than it says, is nothing.
        WHERE said ->> 'memory_id' = subject
        AND sealed[1:6] = ARRAY[origin, seq::text, hlc::text, event_id, tag, subject]
    ), stored AS (
        SELECT DISTINCT ON (subject) * FROM fact
        WHERE tag = 'memory.stored@2' AND said ->> 'event_type' <> ALL ('{
            checkpoint, session_summary, handoff, reminder, task_completion}')  -- which are never shared
        ORDER BY subject, hlc, event_id COLLATE "C", origin, seq
    ), worded AS (
        SELECT DISTINCT ON (subject) * FROM fact
        WHERE tag = 'memory.edited@1' ORDER BY subject, hlc DESC, event_id COLLATE "C" DESC
    ), standing AS (
        SELECT DISTINCT ON (subject) subject, tag, said ->> 'superseded_by' AS superseded_by FROM fact
        WHERE tag IN ('memory.superseded@1', 'memory.deleted@1', 'memory.restored@1')
        ORDER BY subject, hlc DESC, event_id COLLATE "C" DESC
    ), counted AS (
        SELECT subject, sum(greatest(-1000000, least(1000000, (said ->> 'points')::bigint))) FILTER (WHERE tag = 'memory.rated@1') AS rating,
            count(*) FILTER (WHERE tag = 'memory.repeated@2') AS repeated,
            bool_or((said ->> 'is_permanent')::boolean) AS is_permanent,
            -- The wall clock of whoever said so, to the millisecond.
            max(hlc >> 16) FILTER (WHERE tag IN ('memory.edited@1', 'memory.repeated@2')) * 1000 AS said_us
        FROM fact GROUP BY subject
    ), made AS (
        SELECT stored.subject, stored.origin, stored.sealed[10] AS agent, stored.sealed[9] AS project,
            stored.sealed[7]::bigint AS created_us,
            stored.said ->> 'event_type' AS event_type, stored.said ->> 'entity_id' AS entity_id,
            coalesce(worded.said, stored.said) AS now, stored.said AS first, standing.tag AS standing, superseded_by,
            coalesce(rating, 0) AS rating, coalesce(repeated, 0) AS repeated, coalesce(is_permanent, false) AS is_permanent,
            greatest(stored.sealed[7]::bigint, counted.said_us) AS said_us
        FROM stored LEFT JOIN worded USING (subject) LEFT JOIN standing USING (subject) JOIN counted USING (subject)
    ), whole AS (
        SELECT *, omegad.texts(coalesce(nullif(now -> 'tags', 'null'), first -> 'tags', '[]')) AS tags,
            omegad.texts(coalesce(now -> 'auto_tags', '[]')) AS auto_tags,
            coalesce(nullif((now ->> 'referenced_at')::bigint, 0), (first ->> 'referenced_at')::bigint) AS referenced_us
        FROM made
    ), kept AS (
        INSERT INTO omegad.held AS known (
            team, memory_id, origin, agent, project, event_type, entity_id, created_us, said_us, expires_us, content,
            tags, auto_tags, priority, metadata, referenced_us, source, confidence, status, superseded_by,
            rating, repeated, words
        )
        SELECT _team, subject, origin, agent, project, event_type, entity_id, created_us, said_us,
            CASE WHEN NOT is_permanent THEN said_us + (first ->> 'ttl_seconds')::bigint * 1000000 END,
            now ->> 'content', tags, auto_tags,
            greatest(1, least(5, coalesce((now ->> 'priority')::integer, (first ->> 'priority')::integer, 3))),
            coalesce(nullif(now -> 'metadata', 'null'), first -> 'metadata', '{}'), referenced_us,
            coalesce(nullif(now ->> 'source', ''), first ->> 'source'),
            coalesce((now ->> 'confidence')::double precision, (first ->> 'confidence')::double precision),
            CASE standing WHEN 'memory.superseded@1' THEN 'superseded' WHEN 'memory.deleted@1' THEN 'deleted'
                ELSE 'active' END,
            CASE standing WHEN 'memory.superseded@1' THEN superseded_by END, rating, repeated,
            omegad.words_of(now ->> 'content', concat_ws(
                ' ', project, entity_id, event_type, array_to_string(tags || auto_tags, ' '),
                to_char(to_timestamp(referenced_us / 1e6) AT TIME ZONE 'UTC', 'FMDD FMMonth YYYY')))
        FROM whole
        ON CONFLICT (team, memory_id) DO UPDATE SET
            (origin, agent, project, event_type, entity_id, created_us, said_us, expires_us, content, tags,
                auto_tags, priority, metadata, referenced_us, source, confidence, status, superseded_by, rating, repeated,
                words)
            = (excluded.origin, excluded.agent, excluded.project, excluded.event_type, excluded.entity_id,
                excluded.created_us, excluded.said_us, excluded.expires_us, excluded.content,
                excluded.tags, excluded.auto_tags, excluded.priority, excluded.metadata, excluded.referenced_us,
                excluded.source, excluded.confidence, excluded.status, excluded.superseded_by, excluded.rating,
                excluded.repeated, excluded.words)
        RETURNING memory_id
    )
    DELETE FROM omegad.held WHERE team = _team AND memory_id = ANY (_subjects)
    AND NOT EXISTS (SELECT FROM stored WHERE subject = memory_id);
END
$$;

-- The same, where somebody may have told what cannot be read: of that alone nothing is held.
CREATE FUNCTION omegad.refold_all(_team integer, _subjects text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    one text;
BEGIN
    PERFORM omegad.refold(_team, _subjects);
EXCEPTION WHEN data_exception OR integrity_constraint_violation OR program_limit_exceeded THEN
    FOREACH one IN ARRAY _subjects LOOP
        BEGIN
            PERFORM omegad.refold(_team, ARRAY[one]);
        EXCEPTION WHEN data_exception OR integrity_constraint_violation OR program_limit_exceeded THEN
            DELETE FROM omegad.held WHERE team = _team AND memory_id = one;
        END;
    END LOOP;
END
$$;

CREATE FUNCTION omegad.lock_folding(_team integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO omegad.folding VALUES (_team) ON CONFLICT DO NOTHING;
    PERFORM FROM omegad.folding WHERE team = _team FOR UPDATE;
END
$$;

-- Makes a table's part for a team, where there is none.
CREATE FUNCTION omegad.add_part(_table text, _team integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    part text := format('omegad.%I', _table || '_' || _team);
BEGIN
    IF to_regclass(part) IS NULL THEN
        EXECUTE format('CREATE TABLE %s PARTITION OF omegad.%I FOR VALUES IN (%s)', part, _table, _team);
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', part);
    END IF;
END
$$;

-- Goes on from where it was, by at most so many facts, and returns by how many it did.
CREATE FUNCTION omegad.fold(_team integer, _limit integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    each integer;
    n integer;
    subjects text[];
BEGIN
    PERFORM omegad.check_member(_team);
    SELECT greatest(1, least(_limit, 5000) / nullif(count(*), 0)) INTO each
    FROM omegad.origins AS told LEFT JOIN omegad.folded AS known USING (team, origin)
    WHERE team = _team AND told.head > coalesce(known.seq, 0);
    IF each IS NULL THEN
        RETURN 0;
    END IF;
    PERFORM omegad.lock_folding(_team);
    PERFORM omegad.add_part('held', _team);
    WITH ahead AS MATERIALIZED (
        SELECT told.origin, fact.seq, fact.subject
        FROM omegad.origins AS told LEFT JOIN omegad.folded AS known USING (team, origin)
        CROSS JOIN LATERAL (
            SELECT seq, subject FROM omegad.facts AS one
            WHERE one.team = _team AND one.origin = told.origin AND one.seq > coalesce(known.seq, 0)
            ORDER BY one.seq LIMIT each
        ) AS fact
        WHERE told.team = _team AND told.head > coalesce(known.seq, 0)
    ), moved AS (
        INSERT INTO omegad.folded AS known SELECT _team, origin, max(seq) FROM ahead GROUP BY origin
        ON CONFLICT (team, origin) DO UPDATE SET seq = excluded.seq
    )
    SELECT count(*), array_agg(DISTINCT subject) INTO n, subjects FROM ahead;
    IF n > 0 THEN
        PERFORM omegad.refold_all(_team, subjects);
    END IF;
    RETURN n;
END
$$;

-- Words that leave the facts leave what is folded of them.
CREATE FUNCTION omegad.unfold() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    whose integer;
    subjects text[];
BEGIN
    FOR whose, subjects IN
        SELECT team, array_agg(DISTINCT subject ORDER BY subject) FROM told WHERE body IS NULL GROUP BY team
    LOOP
        PERFORM omegad.lock_folding(whose);
        subjects := ARRAY(SELECT memory_id FROM omegad.held WHERE team = whose AND memory_id = ANY (subjects));
        IF cardinality(subjects) > 0 THEN
            PERFORM omegad.refold_all(whose, subjects);
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;

CREATE TRIGGER unfold AFTER UPDATE ON omegad.facts REFERENCING NEW TABLE AS told
FOR EACH STATEMENT EXECUTE FUNCTION omegad.unfold();

-- Returns the condition, on omegad.held, of what is of a team, can be found and passes a filter, which has any of:
-- now, since, until, from, before (microseconds since 1970), project, entity_id, agent, types, tags, people.
CREATE FUNCTION omegad.scope(_team integer, _filter jsonb) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    about text := format('held.team = %s AND held.status = %L', _team, 'active');
    given record;
BEGIN
    PERFORM omegad.check_member(_team);
    FOR given IN SELECT * FROM (VALUES
        ('now', '(held.expires_us IS NULL OR held.expires_us > %L::bigint)'),
        ('since', 'held.created_us >= %L::bigint'),
        ('until', 'held.created_us <= %L::bigint'),
        ('from', 'coalesce(held.referenced_us, held.created_us) >= %L::bigint'),
        ('before', 'coalesce(held.referenced_us, held.created_us) < %L::bigint'),
        ('project', 'held.project = %L'),
        ('entity_id', 'held.entity_id = %L'),
        ('agent', 'held.agent = %L'),
        ('types', 'held.event_type = ANY (omegad.texts(%L))'),
        ('tags', '(held.tags || held.auto_tags) && omegad.texts(%L)')
    ) AS known (name, condition) WHERE _filter ? name LOOP
        about := about || ' AND ' || format(given.condition, _filter ->> given.name);
    END LOOP;
    IF _filter ? 'people' THEN
        about := about || format(' AND held.origin = ANY (%L)', ARRAY(
            SELECT origin FROM omegad.origins JOIN omegad.members USING (team, login)
            WHERE team = _team AND person = ANY (omegad.texts(_filter -> 'people'))
        ));
    END IF;
    RETURN about;
END
$$;

CREATE FUNCTION omegad.count_held(_team integer, _filter jsonb, _most integer) RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    n bigint;
BEGIN
    EXECUTE format('SELECT count(*) FROM (SELECT FROM omegad.held WHERE %s LIMIT %s) AS found',
        omegad.scope(_team, _filter), _most) INTO n;
    RETURN n;
END
$$;

-- Returns, for each of some expressions of full text that any memory answers to, how many of all do, and of those that
-- pass a filter, at most so many of either; and the numbers of these where at most _few of all do.
CREATE FUNCTION omegad.count_words(_team integer, _filter jsonb, _asked text[], _most integer, _few integer)
RETURNS TABLE (nth bigint, known bigint, inside bigint, numbers bigint[])
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY EXECUTE format(
        'SELECT nth, count(*), count(*) FILTER (WHERE within),
            CASE WHEN count(*) <= %s THEN array_agg(number) FILTER (WHERE within) END
        FROM unnest($1) WITH ORDINALITY AS given (asked, nth)
        CROSS JOIN LATERAL (
            SELECT number, %s AS within FROM omegad.held
            WHERE %s AND words @@ to_tsquery(''omegad.words'', asked) LIMIT %s
        ) AS found GROUP BY nth',
        _few, omegad.scope(_team, _filter),
        omegad.scope(_team, jsonb_strip_nulls(jsonb_build_object('now', _filter -> 'now'))), _most
    ) USING _asked;
END
$$;

-- Returns the numbers of the best by their words, of those that answer to one expression: by how rare the terms are
-- that they hold, and how often they hold them.
CREATE FUNCTION omegad.best_by_words(
    _team integer, _filter jsonb, _chosen text, _terms text[], _rarity double precision[], _limit integer
) RETURNS SETOF bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY EXECUTE format(
        'SELECT number FROM omegad.held CROSS JOIN LATERAL (
            SELECT sum(rarity * (1 + ts_rank(words, to_tsquery(''omegad.words'', term)))) AS weight
            FROM unnest($2, $3) AS given (term, rarity) WHERE words @@ to_tsquery(''omegad.words'', term)
        ) AS weighed
        WHERE %s AND words @@ to_tsquery(''omegad.words'', $1) ORDER BY weight DESC NULLS LAST, number LIMIT %s',
        omegad.scope(_team, _filter), _limit
    ) USING _chosen, _terms, _rarity;
END
$$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA omegad FROM PUBLIC;
GRANT SELECT ON omegad.held, omegad.folded TO omegad_member;
GRANT EXECUTE ON FUNCTION omegad.fold, omegad.count_held, omegad.count_words, omegad.best_by_words TO omegad_member;
