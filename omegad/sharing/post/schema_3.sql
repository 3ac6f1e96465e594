-- A home that is gone can be retired; one that leaves reaches the names that it had before.

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

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA omegad FROM PUBLIC;
GRANT EXECUTE ON FUNCTION omegad.retire, omegad.leave_all TO omegad_member;
