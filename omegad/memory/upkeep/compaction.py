"""Let one memory stand for many that say much the same. The originals keep their ids and content, and can
be restored.
"""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.embedding.passages import Embedded
from omegad.index.active import active
from omegad.log.decision import Decision, DecisionState
from omegad.log.event import Event, NewEvent, Position
from omegad.log.projection import to_json
from omegad.log.sanitise import TAGS_MAX
from omegad.memory import owner
from omegad.memory.content import content_key, vectors_of
from omegad.memory.events import MadeOf, MemoryStored, MemorySuperseded
from omegad.memory.state import Memories, MemoryState, new_id
from omegad.memory.store import SUMMARISED_BY
from omegad.memory.types import DAY_SECONDS
from omegad.memory.upkeep.clusters import (
    CHARACTERS_MAX,
    CLUSTER_MAX,
    Member,
    clusters,
    summary,
    week_summary,
    weeks,
)
from omegad.requests.command import Command, Name
from omegad.requests.method import CommandMethod, Moment, RequestContext, Services
from omegad.requests.verb import AgentTool, Verb
from omegad.storage.driver import Connection
from omegad.storage.readers import Turn

COMPACTED_TYPES = ("advisor_insight", "session_summary")
"""What is compacted where nothing else is asked for: notes that accumulate by themselves and that nobody
wrote to be kept word by word.

Decisions, lessons, preferences, errors and completed tasks are each worth finding alone; a checkpoint is the
state of one task.
"""

CLUSTERS_MAX = 50
SIZE_MIN = 3
SOURCE = "compaction"
REASON = "compacted"
MEMORIES_MAX = 10_000
"""How many memories one compaction looks at, the latest."""

WEEK_TTL_SECONDS = 366 * DAY_SECONDS
"""How long the summary of a week's sessions lasts."""

RATING_MAX = 0
"""A memory rated higher is left as it is."""


VIEWS = ("memories", owner.VIEW)

# What a summary stands for already and is found all the same was restored: it stays.
_COMPACTABLE = f"""
SELECT m.node_id, m.content, m.event_type, m.project, m.entity_id, m.session_id, m.tags, m.auto_tags,
  m.priority, m.confidence, m.referenced_us, iif(m.source = :summarised_by, m.created_us, NULL)
FROM memories AS m
WHERE m.event_type IN (SELECT value FROM json_each(:event_types)) AND {active()}
  AND (:project IS NULL OR m.project = :project)
AND NOT {owner.is_elsewhere("m.node_id")}
AND m.rating <= 0 AND m.priority < 5 AND m.contradicted_by IS NULL AND length(m.content) <= :characters
AND NOT (coalesce(m.source, '') = :source AND m.metadata ->> 'week' IS NOT NULL)
AND m.node_id NOT IN (SELECT j.value FROM memories AS s, json_each(s.metadata, '$.compacted') AS j
  WHERE s.source = :source AND j.value IS NOT NULL)
ORDER BY m.id DESC LIMIT :limit
"""


class CompactMemories(Command, frozen=True, kw_only=True, tag="memory.compact"):
    """Let a summary stand for each cluster of at least `min_cluster` like memories of one type, project and
    entity, and for the sessions of each week that is over.

    `threshold` is the share of words that any two of them have in common. The summary keeps what each adds.
    What is opposite in polarity, rated above 0, has priority 5 or is another home's is left as it is. A dry
    run says what would be done.
    """

    project: Annotated[Name | None, Meta(description="of this project alone")] = None
    event_types: Annotated[
        tuple[Name, ...], Meta(min_length=1, max_length=32, description="of this type")
    ] = COMPACTED_TYPES
    threshold: Annotated[float, Meta(ge=0.4, le=1, description="how many words any two have in common")] = 0.6
    min_cluster: Annotated[int, Meta(ge=2, le=CLUSTER_MAX, description="how many make a cluster")] = SIZE_MIN
    limit: Annotated[int, Meta(ge=1, le=CLUSTERS_MAX, description="how many clusters at most")] = CLUSTERS_MAX
    dry_run: Annotated[bool, Meta(description="only say what would be done")] = False


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """Memories and the summary that stands for them; its `memory_id` is None in a dry run."""

    memory_id: str | None
    originals: tuple[str, ...]
    event_type: str
    project: str | None
    content: str
    week: str | None = None

    @property
    def reason(self) -> str:
        """Why there is a summary."""
        if self.week is not None:
            return f"stands for the sessions of the week {self.week}"
        return f"stands for {len(self.originals)} that say much the same"


class Compaction(msgspec.Struct, frozen=True, kw_only=True):
    """Which clusters were compacted, or would be, and how many memories are superseded by that."""

    clusters: tuple[Cluster, ...] = ()
    superseded: int = 0


class Compacted(Compaction, frozen=True, kw_only=True):
    """What a compaction came to."""

    dry_run: bool
    position: Position = 0


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster with the text of its summary, and a fresh id and the vectors for it where it is to be
    stored and could be embedded.
    """

    members: tuple[Member, ...]
    content: str
    week: str | None = None
    memory_id: str = ""
    embedded: Embedded | None = None


class PreparedCompaction(msgspec.Struct, frozen=True, kw_only=True):
    """The clusters there were at `read_position`."""

    drafts: tuple[Draft, ...] = ()
    size_min: int = SIZE_MIN
    read_position: Position = 0


async def prepare(
    services: Services, command: CompactMemories, _context: RequestContext
) -> PreparedCompaction:
    """Find the clusters of a compaction, and embed their summaries."""

    def read(connection: Connection, moment: Moment) -> tuple[list[Member], Moment]:
        return compactable(connection, command, moment.now_us), moment

    members, moment = await services.look(read, at_least=services.head, names=VIEWS, turn=Turn.LONG)
    found = await services.compute(partial(drafts, members, command, week_of(moment.now_us)))
    for place, draft in enumerate(() if command.dry_run else found):
        # Where the model cannot, the backlog sees to the vectors.
        embedded = None if command.ack == "durable" else await services.embed(draft.content, is_backlog=True)
        found[place] = msgspec.structs.replace(draft, memory_id=new_id(services), embedded=embedded)
    return PreparedCompaction(
        drafts=tuple(found), size_min=command.min_cluster, read_position=moment.position
    )


def week_of(at_us: int) -> str:
    """Return the week of a moment in microseconds since 1970, as 2026-W47, by UTC."""
    year, week, _ = datetime.fromtimestamp(at_us / 1e6, UTC).isocalendar()
    return f"{year:04}-W{week:02}"


def compactable(
    connection: Connection, command: CompactMemories, now_us: int, limit: int = MEMORIES_MAX
) -> list[Member]:
    """Return the latest *limit* memories that may be compacted, oldest first; none that was restored from
    a compaction.
    """
    values = {
        "event_types": to_json(command.event_types),
        "project": command.project,
        "characters": CHARACTERS_MAX,
        "source": SOURCE,
        "summarised_by": SUMMARISED_BY,
        "now_us": now_us,
        "limit": limit,
    }
    return [
        Member(
            memory_id=row[0],
            content=row[1],
            event_type=row[2],
            project=row[3],
            entity_id=row[4],
            session_id=row[5],
            tags=msgspec.json.decode(row[6], type=tuple[str, ...]),
            auto_tags=msgspec.json.decode(row[7], type=tuple[str, ...]),
            priority=row[8],
            confidence=row[9],
            referenced_at=row[10],
            week=row[11] and week_of(row[11]),
        )
        for row in reversed(connection.execute(_COMPACTABLE, values).fetchall())
    ]


def drafts(members: Sequence[Member], command: CompactMemories, week: str = "") -> list[Draft]:
    """Return the clusters that a compaction is about, and the weeks before *week*, and what their summaries
    say; takes up to seconds for thousands of members.
    """
    found = clusters(members, command.threshold, command.min_cluster, command.limit)
    return [_draft(cluster) for cluster in (*weeks(members, week)[: command.limit], *found)]


def _draft(members: tuple[Member, ...]) -> Draft:
    week = members[0].week
    return Draft(
        members=members, week=week, content=summary(members) if week is None else week_summary(members)
    )


def compact(
    command: CompactMemories, prepared: PreparedCompaction, state: DecisionState, now_us: int
) -> Decision:
    """Decide a compaction: all clusters at once. What changed since it was prepared is left out; nothing
    is refused.
    """
    events, compaction = compacted(prepared, state, now_us, is_dry=command.dry_run)
    answer = Compacted(
        dry_run=command.dry_run,
        clusters=compaction.clusters,
        superseded=compaction.superseded,
        position=0 if events else prepared.read_position,
    )
    return Decision(events=events, answer=answer)


def compacted(
    prepared: PreparedCompaction,
    state: DecisionState,
    now_us: int,
    promoted: Collection[str] = (),
    *,
    is_dry: bool,
) -> tuple[tuple[NewEvent, ...], Compaction]:
    """Return the events that a compaction comes to, none of a dry run, and its account. *promoted* are
    memories whose probation ends in the same append.
    """
    events: list[NewEvent] = []
    found: list[Cluster] = []
    for draft in prepared.drafts:
        known = ((member, state[Memories].get(member.memory_id)) for member in draft.members)
        current = {
            member: memory
            for member, memory in known
            if memory is not None
            and memory.is_active(now_us)
            and memory.changed_at <= prepared.read_position
            and memory.rating <= RATING_MAX
            and not state[Memories].is_elsewhere(memory)
        }
        if len(current) < (prepared.size_min if draft.week is None else 1):
            continue
        left = draft
        if len(current) < len(draft.members):  # its text is another one then, and has no vectors yet
            left = msgspec.structs.replace(_draft(tuple(current)), memory_id=draft.memory_id)
        stored = _stored(left, list(current.values()), promoted)
        holder = state[Memories].holder(stored.content_key, now_us)
        if holder is not None and holder not in current.values():
            continue
        events.extend(() if is_dry else _events(left, stored))
        found.append(
            Cluster(
                memory_id=None if is_dry else stored.memory_id,
                originals=tuple(member.memory_id for member in left.members),
                event_type=stored.event_type,
                project=left.members[0].project,
                content=stored.content,
                week=draft.week,
            )
        )
    return tuple(events), Compaction(
        clusters=tuple(found), superseded=sum(len(cluster.originals) for cluster in found)
    )


def _stored(draft: Draft, memories: Sequence[MemoryState], promoted: Collection[str]) -> MemoryStored:
    first = draft.members[0]
    ttls = [memory.ttl_seconds for memory in memories if memory.ttl_seconds is not None]
    moments = {member.referenced_at for member in draft.members}
    tags = tuple(dict.fromkeys(tag for member in draft.members for tag in member.tags))[:TAGS_MAX]
    found = dict.fromkeys(tag for member in draft.members for tag in member.auto_tags if tag not in tags)
    return MemoryStored(
        memory_id=draft.memory_id,
        content=draft.content,
        content_key=content_key(draft.content, first.event_type, first.project, first.entity_id),
        event_type=first.event_type,
        entity_id=first.entity_id,
        tags=tags,
        auto_tags=tuple(found)[: TAGS_MAX - len(tags)],
        priority=max(member.priority for member in draft.members),
        metadata=dict[str, object](
            compacted=[member.memory_id for member in draft.members],
            **({} if draft.week is None else {"week": draft.week}),
        ),
        made_of=MadeOf(memories=tuple(member.memory_id for member in draft.members)),
        referenced_at=moments.pop() if len(moments) == 1 else None,
        ttl_seconds=(WEEK_TTL_SECONDS if draft.week else max(ttls) if len(ttls) == len(memories) else None),
        source=SOURCE,
        confidence=min(
            (member.confidence for member in draft.members if member.confidence is not None), default=None
        ),
        on_probation=all(memory.probation and memory.memory_id not in promoted for memory in memories),
    )


def _events(draft: Draft, stored: MemoryStored) -> tuple[NewEvent, ...]:
    facts: list[Event] = [stored, *vectors_of(stored.memory_id, draft.embedded)]
    facts += [
        MemorySuperseded(memory_id=m.memory_id, superseded_by=stored.memory_id, reason=REASON)
        for m in draft.members
    ]
    sessions = {member.session_id for member in draft.members}
    session_id = sessions.pop() if len(sessions) == 1 else None
    project = draft.members[0].project
    return tuple(
        NewEvent(event=fact, session_id=session_id, project=project, follows=place > 0)
        for place, fact in enumerate(facts)
    )


METHODS = (
    CommandMethod(
        params=CompactMemories,
        answer=Compacted,
        prepare=prepare,
        decide=compact,
        verb=Verb(
            by="upkeep.compact",
            examples=(
                "omegad memory compact --dry-run",
                "omegad memory compact --project shop --type session_summary --min-cluster 4",
            ),
        ),
        tool=AgentTool("omega_maintain compact", by="upkeep.compacted"),
    ),
)
