"""Put the store in order: record what has expired, promote what has proved itself, compact what accumulates,
name what should be looked at again. It is done when somebody asks for it, and once a day: after ten minutes
in which no session was at work; after another day one minute is enough. A home whose first memory is of today
waits for tomorrow.

Deletes nothing; what has no time to live is only ever compacted, and that where its type is one of
`COMPACTED_TYPES`.
"""

from collections.abc import Iterable, Iterator
from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.index.active import active, is_over
from omegad.log.decision import Decision, DecisionState
from omegad.log.event import NewEvent, Position
from omegad.log.projection import to_json
from omegad.memory import owner
from omegad.memory.events import (
    MemoryDeleted,
    MemoryDemoted,
    MemoryExpired,
    MemoryPromoted,
    MemoryRestored,
    Proof,
    UpkeepCompleted,
    UpkeepReverted,
    Upkept,
)
from omegad.memory.state import Memories, MemoryState
from omegad.memory.types import EPISODIC_TYPES
from omegad.memory.upkeep import compaction, expiry, review
from omegad.memory.upkeep.compaction import (
    Compaction,
    CompactMemories,
    PreparedCompaction,
    compacted,
)
from omegad.memory.upkeep.expiry import ExpireMemories
from omegad.memory.upkeep.review import DAY_US
from omegad.reactions.contract import Reader
from omegad.requests import details
from omegad.requests.command import Acknowledged, Command
from omegad.requests.method import CommandMethod, Moment, RequestContext, Services
from omegad.requests.query import POSITION_MAX
from omegad.requests.verb import AgentTool, Verb
from omegad.runtime.errors import Refused
from omegad.storage.driver import Connection
from omegad.storage.readers import Turn

NAMED_MAX = 1_000  # of each kind in one consolidation; the next one finds the rest
FLAGGED_RATING_MAX = -3
"""The sum of ratings from which a memory is named as one to be looked at."""


VIEWS = ("memories", "retrievals", "upkeeps", details.VIEW, owner.VIEW)


USED_SESSIONS_MIN = 3
"""In how many sessions a memory has to be among the best of an answer to count as used."""
USED_CONFIDENCE_MIN = 0.5
"""How sure an answer is, by the score of its first, for what is among its best to count as used."""
USED_RANK_MAX = 3


STALE_OF_EACH = 10
"""How much of a project is marked at a time as to be looked at again."""


_FLAGGED = (
    f"SELECT m.node_id FROM memories AS m WHERE m.rating <= :rating AND {active()} ORDER BY m.id LIMIT :limit"
)


# A query that names no session counts as one for its day.
_USED = f"""
SELECT r.memory_id, coalesce(r.session_id, substr(r.at, 1, 10)) AS used_in FROM retrievals AS r
JOIN retrievals AS f ON f.id = r.id - r.rank + 1 AND f.score >= {USED_CONFIDENCE_MIN} -- the answer's first
WHERE r.how = 'query' AND r.rank <= {USED_RANK_MAX}
"""
_PROOFS = f"""
SELECT DISTINCT memory_id, used_in FROM ({_USED} AND r.id BETWEEN :after * 1024 + 1024
  AND :through * 1024 + 1023)
CROSS JOIN memories AS m ON m.node_id = memory_id WHERE m.on_probation = 1 ORDER BY 1, 2
"""
# What an undone upkeep had promoted waits for a person. A query within the memory's own session says nothing
# about its use elsewhere.
_PROVEN = f"""
SELECT node_id, rating, sessions FROM (
    SELECT m.id, m.node_id, m.rating, (
        SELECT count(*) FROM (
            SELECT used_in FROM ({_USED} AND r.memory_id = m.node_id)
            UNION SELECT used_in FROM proofs_aged WHERE memory_id = m.node_id
        ) WHERE used_in IS NOT m.session_id
    ) AS sessions
    FROM memories AS m WHERE m.on_probation = 1 AND {active()}
      AND m.event_type NOT IN (SELECT value FROM json_each(:episodic)) AND m.node_id NOT IN (
        SELECT j.value ->> 'memory_id' FROM upkeeps AS u, json_each(u.promoted) AS j
        WHERE u.undone_at IS NOT NULL)
) WHERE rating > 0 OR sessions >= :sessions ORDER BY id LIMIT :limit
"""


_MARKED = "SELECT j.value ->> 'memory_id' FROM upkeeps AS u, json_each(u.stale) AS j"


_DONE = """
SELECT id, expired, promoted, compacted FROM upkeeps
WHERE undone_at IS NULL AND (id = :position OR (:position IS NULL
  AND json_array_length(expired) + json_array_length(promoted) + json_array_length(compacted) > 0))
ORDER BY id DESC LIMIT 1
"""


_ORIGINALS = (
    "SELECT j.value FROM memories AS s, json_each(s.metadata, '$.compacted') AS j WHERE s.node_id = ?"
)


class ConsolidateMemories(Command, frozen=True, kw_only=True, tag="memory.consolidate"):
    """Record due expiries, end the probation of what has proved itself, compact session summaries and advisor
    insights; delete nothing.

    A dry run says what would be done.
    """

    dry_run: Annotated[bool, Meta(description="only say what would be done")] = False


class KeepUp(ConsolidateMemories, frozen=True, kw_only=True, tag="memory.keep_up"):
    """Do that because it is time to."""


class Consolidated(Acknowledged, frozen=True):
    """What was done, or would be, by memory id. `flagged` are the memories rated -3 or worse, which stay
    as they are; `stale` those that should be looked at again from now on.
    """

    dry_run: bool
    expired: tuple[str, ...]
    promoted: tuple[str, ...]
    compacted: Compaction
    flagged: tuple[str, ...]
    stale: tuple[str, ...] = ()


class PreparedConsolidation(msgspec.Struct, frozen=True, kw_only=True):
    """What the views showed: memories whose time is over, with evidence for them, rated badly, and like
    each other.
    """

    due: tuple[str, ...] = ()
    proven: tuple[tuple[str, str], ...] = ()
    flagged: tuple[str, ...] = ()
    stale: tuple[tuple[str, str], ...] = ()
    compaction: PreparedCompaction = PreparedCompaction()


def flagged(connection: Connection, rating_max: int, now_us: int, limit: int) -> tuple[str, ...]:
    """Return memories whose ratings sum up to *rating_max* or less, oldest first."""
    values = {"rating": rating_max, "now_us": now_us, "limit": limit}
    return tuple(row[0] for row in connection.execute(_FLAGGED, values))


def proven(connection: Connection, now_us: int, limit: int) -> tuple[tuple[str, str], ...]:
    """Return memories on probation that were rated helpful, or used: among the best three of answers in
    three sessions, and no mere account of what happened; each with what it proved itself by, in words.
    Oldest first.
    """
    values = {
        "now_us": now_us,
        "sessions": USED_SESSIONS_MIN,
        "limit": limit,
        "episodic": to_json(sorted(EPISODIC_TYPES)),
    }
    return tuple(
        (
            memory_id,
            "rated helpful" if rating > 0 else f"among the best answers in {sessions} other sessions",
        )
        for memory_id, rating, sessions in connection.execute(_PROVEN, values)
    )


def proofs(connection: Connection, after: Position, through: Position) -> tuple[Proof, ...]:
    """Return what answers that stand after one position up to another say for memories on probation."""
    return tuple(
        Proof(*row) for row in connection.execute(_PROOFS, {"after": after, "through": through}).fetchall()
    )


def newly_stale(connection: Connection, now_us: int) -> tuple[tuple[str, str], ...]:
    """Return what should be looked at again and was not marked as that before, each with why."""
    marked = {memory_id for (memory_id,) in connection.execute(_MARKED)}
    found = review.worst(connection, now_us, each=STALE_OF_EACH, besides="")
    return tuple((memory_id, why) for memory_id, why in found.items() if memory_id not in marked)


async def prepare(
    services: Services, command: ConsolidateMemories, context: RequestContext
) -> PreparedConsolidation:
    """Find what a consolidation is about."""

    def read(connection: Connection, moment: Moment) -> PreparedConsolidation:
        return PreparedConsolidation(
            due=expiry.over(connection, moment.now_us, NAMED_MAX),
            proven=proven(connection, moment.now_us, NAMED_MAX),
            flagged=flagged(connection, FLAGGED_RATING_MAX, moment.now_us, NAMED_MAX),
            stale=newly_stale(connection, moment.now_us),
        )

    found = await services.look(read, at_least=services.head, names=VIEWS, turn=Turn.LONG)
    compacting = CompactMemories(dry_run=command.dry_run, ack=command.ack)
    return msgspec.structs.replace(found, compaction=await compaction.prepare(services, compacting, context))


def consolidate(
    command: ConsolidateMemories, prepared: PreparedConsolidation, state: DecisionState, now_us: int
) -> Decision:
    """Decide a consolidation, all of it at once; what has changed since it was prepared is left out. One that
    it was time for is recorded even where there was nothing to do.
    """
    expired = expiry.expire(ExpireMemories(memory_ids=prepared.due), state, now_us).events
    why = dict(prepared.proven)
    promoted = [memory for memory in _active(why, state, now_us) if memory.probation]
    promotions = tuple(
        NewEvent(
            event=MemoryPromoted(memory_id=memory.memory_id, evidence="use", reason=why[memory.memory_id]),
            project=memory.project,
        )
        for memory in promoted
    )
    promoted_ids = tuple(memory.memory_id for memory in promoted)
    compactions, account = compacted(prepared.compaction, state, now_us, promoted_ids, is_dry=command.dry_run)
    over = [new.event.memory_id for new in expired if isinstance(new.event, MemoryExpired)]
    stale = {memory.memory_id for memory in _active(dict(prepared.stale), state, now_us)}
    done = UpkeepCompleted(
        by="schedule" if isinstance(command, KeepUp) else "hand",
        expired=tuple(Upkept(memory_id=one, reason="its time to live was over") for one in over),
        promoted=tuple(Upkept(memory_id=one, reason=why[one]) for one in promoted_ids),
        compacted=tuple(
            Upkept(memory_id=one.memory_id, reason=one.reason) for one in account.clusters if one.memory_id
        ),
        stale=tuple(Upkept(memory_id=one, reason=said) for one, said in prepared.stale if one in stale),
    )
    events: tuple[NewEvent, ...] = ()
    if not command.dry_run and (expired or promotions or compactions or isinstance(command, KeepUp)):
        events = (*expired, *promotions, *compactions, NewEvent(event=done))
    answer = Consolidated(
        dry_run=command.dry_run,
        expired=tuple(over),
        promoted=promoted_ids,
        compacted=account,
        flagged=tuple(
            memory.memory_id
            for memory in _active(prepared.flagged, state, now_us)
            if memory.rating <= FLAGGED_RATING_MAX
        ),
        stale=tuple(one for one, _ in prepared.stale if one in stale),
        position=0 if events else prepared.compaction.read_position,
    )
    return Decision(events=events, answer=answer)


def _active(memory_ids: Iterable[str], state: DecisionState, now_us: int) -> list[MemoryState]:
    found = (state[Memories].get(memory_id) for memory_id in memory_ids)
    return [memory for memory in found if memory is not None and memory.is_active(now_us)]


class UndoUpkeep(Command, frozen=True, kw_only=True, tag="upkeep.undo"):
    """Take back what an upkeep did: promotions end, summaries give way to what they stand for, what expired
    is found again. What somebody has changed since stays as it is.
    """

    done_at: (
        Annotated[
            int,
            Meta(
                ge=1, le=POSITION_MAX, description="the position of the upkeep; the latest that did something"
            ),
        ]
        | None
    ) = None


class Undone(Acknowledged, frozen=True):
    """What was taken back, by memory id: on probation again, found again, and the summaries deleted."""

    done_at: Position
    demoted: tuple[str, ...]
    restored: tuple[str, ...]
    deleted: tuple[str, ...]


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What an upkeep did: where it stands in the log, which memories expired and were promoted, and by
    summary those that it stands for.
    """

    position: int
    expired: tuple[str, ...]
    promoted: tuple[str, ...]
    originals: dict[str, tuple[str, ...]]


def to_undo(connection: Connection, position: int | None) -> Done | None:
    """Return what the upkeep at a position did, or the latest that was not undone; None where there is
    none.
    """
    row = connection.execute(_DONE, {"position": position}).fetchone()
    if row is None:
        return None
    lists = [msgspec.json.decode(one, type=tuple[Upkept, ...]) for one in row[1:]]
    expired, promoted, compacted = (tuple(one.memory_id for one in kept) for kept in lists)
    originals = {
        memory_id: tuple(one for (one,) in connection.execute(_ORIGINALS, (memory_id,)))
        for memory_id in compacted
    }
    return Done(position=row[0], expired=expired, promoted=promoted, originals=originals)


async def prepare_undo(services: Services, command: UndoUpkeep, _context: RequestContext) -> Done | None:
    """Return what there is to take back."""
    return await services.look(
        lambda connection, _: to_undo(connection, command.done_at),
        at_least=services.head,
        names=VIEWS,
        turn=Turn.LONG,
    )


def undo(command: UndoUpkeep, done: Done | None, state: DecisionState, now_us: int) -> Decision:
    """Decide that an upkeep is taken back; raises `Refused` where there is none."""
    if done is None:
        at = "" if command.done_at is None else f" at position {command.done_at}"
        raise Refused(f"there is no upkeep{at} to undo", hint="omegad today shows what was done")
    memories = state[Memories]
    demoted = [one for one in _active(done.promoted, state, now_us) if not one.probation and one.rating <= 0]
    summaries = _active(done.originals, state, now_us)
    hidden = [memories.get(one) for summary in summaries for one in done.originals[summary.memory_id]]
    hidden = [one for one in hidden if one and one.state == "superseded"]
    hidden += [one for name in done.expired if (one := memories.get(name)) and one.state == "expired"]
    restored = [
        one
        for one in hidden
        if one and (memories.holder(one.content_key, now_us) or one).memory_id == one.memory_id
    ]
    why = "the upkeep was undone"
    facts: list[tuple[MemoryState, MemoryDemoted | MemoryDeleted | MemoryRestored]] = [
        *((one, MemoryDemoted(memory_id=one.memory_id, reason=why)) for one in demoted),
        *((one, MemoryDeleted(memory_id=one.memory_id, reason=why)) for one in summaries),
        *(
            (
                one,
                MemoryRestored(
                    memory_id=one.memory_id, reason=why, is_permanent=is_over(one.expires_at, now_us)
                ),
            )
            for one in restored
        ),
    ]
    events = [NewEvent(event=fact, project=memory.project) for memory, fact in facts]
    answer = Undone(
        done_at=done.position,
        demoted=tuple(one.memory_id for one in demoted),
        restored=tuple(one.memory_id for one in restored),
        deleted=tuple(one.memory_id for one in summaries),
    )
    return Decision(events=(*events, NewEvent(event=UpkeepReverted(done_at=done.position))), answer=answer)


IDLE_US, SHORT_IDLE_US = 600_000_000, 60_000_000
EVERY_US = DAY_US - 1_800_000_000
"""Half an hour less than a day, since a look comes a moment early or late."""

_LAST = """
SELECT coalesce((SELECT at_us FROM upkeeps WHERE by = 'schedule' ORDER BY id DESC LIMIT 1),
  (SELECT min(created_us) FROM memories))
"""
_HEARD = "SELECT max(last_us) FROM agent_sessions WHERE last_us <= ?"


class DailyUpkeep:
    """The schedule; there is none where it is switched off."""

    NAME = "upkeep"
    VERSION = 1
    EVERY = IDLE_US // 1_000_000
    VIEWS = ("memories", "upkeeps", "conversations")

    def __init__(self) -> None:
        self._looked_us = self._since_us = 0

    def due(self, _slot: int, reader: Reader) -> Iterator[KeepUp]:
        """Say that it is time to. A daemon that has just started, or whose machine has just woken, does not
        know yet who is at work: it looks on for as long as nobody may have been.
        """
        now_us = reader.now_us
        if not 0 <= now_us - self._looked_us <= 2 * IDLE_US:
            self._since_us = now_us
        self._looked_us = now_us
        if is_time(reader.connection, now_us, now_us - self._since_us):
            yield KeepUp()


def is_time(connection: Connection, now_us: int, awake_us: int) -> bool:
    """Say whether the last upkeep, or the first memory, was a day ago, and for ten minutes of those that the
    daemon has been looking no session was at work; or two days ago, and for one minute.

    What a clock stamped that was ahead says nothing of how long ago it was: an upkeep of then is long ago.
    """
    (last_us,), (heard_us,) = (
        connection.execute(_LAST).fetchone(),
        connection.execute(_HEARD, (now_us,)).fetchone(),
    )
    if last_us is None or abs(now_us - last_us) < EVERY_US:
        return False
    idle_us = min(awake_us, now_us - (heard_us or 0))
    return idle_us >= (IDLE_US if abs(now_us - last_us) < EVERY_US + DAY_US else SHORT_IDLE_US)


METHODS = (
    CommandMethod(
        params=ConsolidateMemories,
        answer=Consolidated,
        prepare=prepare,
        decide=consolidate,
        verb=Verb(by="upkeep.consolidate", examples=("omegad memory consolidate --dry-run",)),
        tool=AgentTool("omega_maintain consolidate", by="upkeep.consolidated"),
    ),
    CommandMethod(params=KeepUp, answer=Consolidated, prepare=prepare, decide=consolidate, is_internal=True),
    CommandMethod(
        params=UndoUpkeep,
        answer=Undone,
        prepare=prepare_undo,
        decide=undo,
        verb=Verb(by="upkeep.undone", examples=("omegad upkeep undo",)),
    ),
)
