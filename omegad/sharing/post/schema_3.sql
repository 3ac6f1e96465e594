-- A home that is gone can be retired; one that leaves reaches the names that it had before; a rewording says all of it.

ALTER TABLE omegad.origins
    ADD COLUMN retired_at timestamptz,
    ADD COLUMN retired_by text;  -- the person

-- Refuses an origin that is not the session's login's.
CREATE FUNCTION omegad.check_login(_team integer, _origin text) RETURNS void
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

-- The same, and one that was retired: it tells and reports nothing any more, and can but leave. A home that does not
-- know of that shows the message.
CREATE OR REPLACE FUNCTION omegad.check_owner(_team integer, _origin text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    retired text;
BEGIN
    PERFORM omegad.check_login(_team, _origin);
    SELECT format('%s retired this home on %s', retired_by, to_char(retired_at AT TIME ZONE 'UTC', 'YYYY-MM-DD'))
    INTO retired FROM omegad.origins WHERE team = _team AND origin = _origin AND retired_at IS NOT NULL;
    IF FOUND THEN
        RAISE EXCEPTION '%; it has to leave the team and to join it again', retired
            USING ERRCODE = 'OM008', DETAIL = retired;
    END IF;
END
$$;

-- Ends what a home tells that is not there any more, which nobody waits for then: by its person, or who administers
-- the team.
CREATE FUNCTION omegad.retire(_team integer, _origin text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    who text;
BEGIN
    PERFORM omegad.check_member(_team);
    SELECT member.person INTO who FROM omegad.members AS member JOIN omegad.origins AS told
        ON told.team = member.team AND (told.login = member.login OR member.is_admin)
    WHERE member.team = _team AND member.login = session_user::text AND told.origin = _origin;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no origin of this login' USING ERRCODE = 'OM002', DETAIL = _origin;
    END IF;
    UPDATE omegad.origins
    SET retired_at = clock_timestamp(), retired_by = who, left_at = coalesce(left_at, clock_timestamp())
    WHERE team = _team AND origin = _origin AND retired_at IS NULL;
END
$$;

-- Ends what a home tells, whose names these are, the present one last; with_facts, its words are taken away here too.
-- An earlier name that was in touch after the next one had begun is another machine's by now, and left alone. Returns
-- of how many facts, and which are left alone.
CREATE FUNCTION omegad.leave_all(_team integer, _origins text[], _with_facts boolean)
RETURNS TABLE (removed bigint, others text[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own text[];
BEGIN
    PERFORM omegad.check_login(_team, _origins[cardinality(_origins)]);
    SELECT coalesce(array_agg(name) FILTER (WHERE is_own), '{}'), coalesce(array_agg(name) FILTER (WHERE NOT is_own), '{}')
    INTO own, others FROM (
        SELECT name, seen_at <= lead(joined_at, 1, 'infinity') OVER (ORDER BY nth) AS is_own
        FROM unnest(_origins) WITH ORDINALITY AS given (name, nth)
        JOIN omegad.origins ON team = _team AND origin = name AND login = session_user::text
    ) AS known;
    UPDATE omegad.origins SET left_at = clock_timestamp()
    WHERE team = _team AND origin = ANY (own) AND left_at IS NULL;
    removed := 0;
    IF _with_facts THEN
        UPDATE omegad.facts SET salt = NULL, body = NULL
        WHERE team = _team AND origin = ANY (own) AND body IS NOT NULL
            AND tag NOT LIKE 'memory.erased@%';  -- which some home may not have heard of yet
        GET DIAGNOSTICS removed = ROW_COUNT;
    END IF;
    RETURN NEXT;
END
$$;

CREATE OR REPLACE FUNCTION omegad.leave(_team integer, _origin text, _with_facts boolean) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
RETURN (SELECT removed FROM omegad.leave_all(_team, ARRAY[_origin], _with_facts));

-- As before, but that a rewording says all of it: a time, source or confidence that it does not give, the memory has
-- not any more.
CREATE OR REPLACE FUNCTION omegad.refold(_team integer, _subjects text[]) RETURNS void
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
            (now ->> 'referenced_at')::bigint AS referenced_us
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
            now ->> 'source', (now ->> 'confidence')::double precision,
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

-- As before, but that what is asked for is read once, and not for each memory that is looked at.
CREATE OR REPLACE FUNCTION omegad.count_words(_team integer, _filter jsonb, _asked text[], _most integer, _few integer)
RETURNS TABLE (nth bigint, known bigint, inside bigint, numbers bigint[])
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY EXECUTE format(
        'WITH given AS MATERIALIZED (
            SELECT to_tsquery(''omegad.words'', asked) AS query, nth FROM unnest($1) WITH ORDINALITY AS all_of (asked, nth)
        )
        SELECT nth, count(*), count(*) FILTER (WHERE within),
            CASE WHEN count(*) <= %s THEN array_agg(number) FILTER (WHERE within) END
        FROM given CROSS JOIN LATERAL (
            SELECT number, %s AS within FROM omegad.held
            WHERE %s AND words @@ query LIMIT %s
        ) AS found GROUP BY nth',
        _few, omegad.scope(_team, _filter),
        omegad.scope(_team, jsonb_strip_nulls(jsonb_build_object('now', _filter -> 'now'))), _most
    ) USING _asked;
END
$$;

CREATE OR REPLACE FUNCTION omegad.best_by_words(
    _team integer, _filter jsonb, _chosen text, _terms text[], _rarity double precision[], _limit integer
) RETURNS SETOF bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY EXECUTE format(
        'WITH given AS MATERIALIZED (
            SELECT to_tsquery(''omegad.words'', term) AS query, rarity FROM unnest($2, $3) AS all_of (term, rarity)
        )
        SELECT number FROM omegad.held CROSS JOIN LATERAL (
            SELECT sum(rarity * (1 + ts_rank(words, query))) AS weight
            FROM given WHERE words @@ query
        ) AS weighed
        WHERE %s AND words @@ to_tsquery(''omegad.words'', $1) ORDER BY weight DESC NULLS LAST, number LIMIT %s',
        omegad.scope(_team, _filter), _limit
    ) USING _chosen, _terms, _rarity;
END
$$;

DELETE FROM omegad.folded;  -- all is folded anew, by who asks next

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA omegad FROM PUBLIC;
GRANT EXECUTE ON FUNCTION omegad.retire, omegad.leave_all TO omegad_member;
