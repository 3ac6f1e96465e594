-- The vectors of what teams hold, where pgvector is installed in the schema {vector}; made as omegad_owner.

CREATE TABLE omegad.vectors (
    team        integer NOT NULL,
    number      bigint NOT NULL,    -- of the memory in omegad.held
    embedder_id text NOT NULL,
    passage     integer NOT NULL,   -- 0, 1, … of its content
    text_hash   text NOT NULL CHECK (length(text_hash) = 64),
    v           {vector}.vector(384) NOT NULL,
    PRIMARY KEY (team, number, embedder_id, passage),
    FOREIGN KEY (team, number) REFERENCES omegad.held (team, number) ON DELETE CASCADE
) PARTITION BY LIST (team);

ALTER TABLE omegad.vectors ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY owner ON omegad.vectors TO omegad_owner USING (true) WITH CHECK (true);
CREATE POLICY own_team ON omegad.vectors FOR SELECT TO omegad_member
    USING (team = ANY ((SELECT omegad.my_teams())::integer[]));

-- Vectors of words that a memory does not say any more tell of them.
CREATE FUNCTION omegad.forget_vectors() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM omegad.vectors WHERE team = OLD.team AND number = OLD.number;
    RETURN NULL;
END
$$;

CREATE TRIGGER forget_vectors AFTER UPDATE ON omegad.held FOR EACH ROW
WHEN (OLD.content IS DISTINCT FROM NEW.content) EXECUTE FUNCTION omegad.forget_vectors();

-- Returns memories that have no vector of an embedder, the latest first, and what tells their words from others.
CREATE FUNCTION omegad.without_vectors(_team integer, _embedder_id text, _limit integer)
RETURNS TABLE (number bigint, content text, mark bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan AS $$
BEGIN
    PERFORM omegad.check_member(_team);
    RETURN QUERY SELECT held.number, held.content, hashtextextended(held.content, 0) FROM omegad.held
    WHERE held.team = _team AND held.status = 'active' AND NOT EXISTS (
        SELECT FROM omegad.vectors AS known
        WHERE known.team = _team AND known.number = held.number AND known.embedder_id = _embedder_id
    ) ORDER BY held.number DESC LIMIT _limit;
END
$$;

-- Keeps the vectors of passages of memories that still say what they were made of.
CREATE FUNCTION omegad.keep_vectors(
    _team integer, _embedder_id text, _number bigint[], _mark bigint[], _passage integer[], _text_hash text[], _v text[]
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM omegad.check_member(_team);
    PERFORM omegad.add_part('vectors', _team);
    PERFORM FROM omegad.held WHERE team = _team AND number = ANY (_number) ORDER BY number FOR SHARE;
    INSERT INTO omegad.vectors (team, number, embedder_id, passage, text_hash, v)
    SELECT _team, given.number, _embedder_id, given.passage, given.text_hash, given.v::{vector}.vector
    FROM unnest(_number, _mark, _passage, _text_hash, _v) AS given (number, mark, passage, text_hash, v)
    JOIN omegad.held ON held.team = _team AND held.number = given.number
        AND hashtextextended(held.content, 0) = given.mark
    ON CONFLICT DO NOTHING;
END
$$;

-- Returns passages by the cosine of each, nearest first: in order of all vectors, or by the index of the team's.
CREATE FUNCTION omegad.nearest(
    _team integer, _filter jsonb, _embedder_id text, _v text, _limit integer, _by_index boolean
) RETURNS TABLE (number bigint, cosine double precision)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    RETURN QUERY EXECUTE format(
        'SELECT found.number, 1 - distance FROM (
            SELECT near.number, '
            || CASE WHEN _by_index
                THEN 'near.v::{vector}.halfvec(384) OPERATOR({vector}.<=>) $1::{vector}.halfvec(384)'
                ELSE 'near.v OPERATOR({vector}.<=>) $1::{vector}.vector' END
            || ' AS distance FROM omegad.vectors AS near
            JOIN omegad.held ON held.team = near.team AND held.number = near.number
            WHERE near.team = %s AND near.embedder_id = %L AND %s ORDER BY distance LIMIT %s
        ) AS found', _team, _embedder_id, omegad.scope(_team, _filter), _limit
    ) USING _v;
END
$$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA omegad FROM PUBLIC;
GRANT SELECT ON omegad.vectors TO omegad_member;
GRANT EXECUTE ON FUNCTION omegad.without_vectors, omegad.keep_vectors, omegad.nearest TO omegad_member;
