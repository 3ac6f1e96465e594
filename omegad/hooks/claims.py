"""Before an edit its file is claimed for the session, or the edit is stopped; after one that was not, both sides are told; and sessions are heard of.

All is said in the decision that records the hook, so that of two edits at once one is first. A session that nobody meets is told nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, islice
from typing import Any, NamedTuple

import msgspec

from omegad.commands.claims import Holder, Ruling, Wanted, contested, holder, ruled, sentence, targets_of
from omegad.events.claims import ClaimsContested, ClaimsReported
from omegad.events.retrieval import Returned
from omegad.events.session import MemorySurfaced
from omegad.hooks import dispatch, hosts, shells, surfacing
from omegad.hooks.dispatch import DispatchHook, HookAnswer, PreparedHook
from omegad.hooks.hosts import Hook
from omegad.liveness import LEASE_US, MINUTE_US
from omegad.log.decision import Decision
from omegad.log.event import Event, NewEvent
from omegad.method import CommandMethod, Moment, RequestContext, Services
from omegad.projects import places_of
from omegad.push_guard import CANNOT_ASK, verdict
from omegad.queries import claims
from omegad.queries.search import QueryMemory, Sources, search
from omegad.state import DecisionState
from omegad.state.claims import ClaimNews
from omegad.storage.driver import Connection

TOOL_US = 10 * MINUTE_US
"""How long a tool may run that does not say."""
TOOL_MAX_US = 120 * MINUTE_US
LOOK_S = 0.05
INTENT_CHARACTERS, MEMORY_CHARACTERS = 80, 100
NAMES_MAX, NEWS_MAX, MEMORIES_MAX = 3, 3, 2
ALLOWED = "the person allowed it"
NEWS = {
    "ended": "your claim on {} has ended ({}). Others may have edited: read again before you edit.",
    "unguarded": "{}, which you hold, was edited by session {}: read again before you edit.",
    "shell": "{}, which you hold, changed while session {} ran a shell command: read again before you edit.",
    "own_unguarded": "{}, which you edited, is held by session {}: settle it with that session, or leave it be.",
    "own_shell": "{} changed while your shell command ran, and is held by session {}: settle it with that session, or undo it.",
}
"""What a session is told of claims: on what, and why or by whom."""
VIEWS = ("coord_claims", "audit", "conversations", "memories", "fulltext", "vectors")

_ASKED = "SELECT content FROM conversations WHERE session_id = ? AND role = 'user' ORDER BY id DESC LIMIT 1"
_EDITED = "SELECT max(created_at) FROM coord_audit WHERE session_id = ? AND file IN (?, ?)"


class Details(msgspec.Struct, frozen=True):
    """What is told of an edit that is stopped, beside who holds the file: memories about it, and for each holder when they edited it and why."""

    moment: Moment
    memories: str = ""
    results: tuple[Returned, ...] = ()
    edited: Mapping[str, str] = msgspec.field(default_factory=dict)
    asked: Mapping[str, str] = msgspec.field(default_factory=dict)


class PreparedClaim(msgspec.Struct, frozen=True):
    """A hook as it is understood, the claim that it comes to, if it does, what becomes of an edit of what others hold, and what is told of it."""

    prepared: PreparedHook
    wanted: Wanted | None = None
    mode: str = "off"
    details: Details | None = None


async def prepare(services: Services, command: DispatchHook, context: RequestContext) -> PreparedClaim | None:
    """Understand a hook, hear of its session, and find what it is about to edit; None for one that is of no concern. Raises `Invalid`."""
    prepared = await dispatch.prepare(services, command, context)
    if prepared is None:
        return None
    hook, last_us = prepared.hook, services.liveness.heard_us(prepared.hook.session_id)
    if not command.is_spooled:
        _hear(services, hook)
    if services.claims == "off" or not hook.session_id or hook.kind not in {"before_tool", "after_tool"}:
        return PreparedClaim(prepared)
    if hook.files:
        targets = targets_of(await services.compute(partial(places_of, hook.files, hook.folder)))
    elif hook.kind == "after_tool" and hook.tool_name.lower() in shells.SHELLS and not command.is_spooled:
        targets = await shells.changed(services, hook, last_us, prepared.occurred_at or services.clock.now_us())
    else:
        targets = []
    if not targets:
        return PreparedClaim(prepared)
    wanted = Wanted(hook.session_id, targets, services.liveness.signs(), prepared.project, "edit", at_us=prepared.occurred_at)
    details = None
    if hook.kind == "before_tool" and not command.is_spooled and len(wanted.signs.seen) > 1:
        read = partial(_details, wanted=wanted, services=services)
        details = await services.look(read, at_least=0, names=VIEWS, wait_s=LOOK_S)
    return PreparedClaim(prepared, wanted, services.claims, details)


def _hear(services: Services, hook: Hook) -> None:
    """Note a sign of life. A tool that runs is one until it ends, or could have."""
    liveness, use_id = services.liveness, hook.tool_use_id or hook.tool_name
    match hook.kind:
        case "before_tool":
            given = hook.tool_input if isinstance(hook.tool_input, Mapping) else {}
            limits = [value for name in ("timeout", "timeout_ms") if isinstance(value := given.get(name), int | float) and value > 0]
            within_us = min(int(max(limits) * 1_000), TOOL_MAX_US) if limits else TOOL_US
            liveness.begin(hook.session_id, use_id, within_us)
        case "after_tool":
            liveness.end(hook.session_id, use_id)
        case "session_end":
            liveness.forget(hook.session_id)
        case _ if hook.session_id:
            liveness.hear(hook.session_id)
        case _:
            pass


def _details(connection: Connection, moment: Moment, *, wanted: Wanted, services: Services) -> Details | None:
    """Read what may be told where another holds one of the files; None where the views show no such."""
    found = [claim for target in wanted.targets for claim in claims.on_file(connection, target.repository, target.name)]
    others = {claim.session_id: claim for claim in found if claim.session_id != wanted.session_id}
    if not others:
        return None
    name = next(iter(others.values())).name
    query = QueryMemory(text=name, limit=MEMORIES_MAX, project=wanted.project, event_types=surfacing.EDIT_TYPES)
    best = search(connection, query, Sources(None, None, services.types), moment.now_us).results
    asked = {one: _line(row[0], INTENT_CHARACTERS) for one in others if (row := connection.execute(_ASKED, (one,)).fetchone())}
    edited = {one: connection.execute(_EDITED, (one, name, f"{claim.worktree}/{name}")).fetchone()[0] for one, claim in others.items()}
    return Details(
        moment,
        "; ".join(f"{one.memory_id}: {_line(one.content, MEMORY_CHARACTERS)}" for one in best),
        tuple(Returned(memory_id=one.memory_id, score=one.score) for one in best),
        {one: at for one, at in edited.items() if at},
        asked,
    )


def decide(command: DispatchHook, prepared: PreparedClaim | None, state: DecisionState, now_us: int) -> Decision:
    """Decide a hook, and with it the claim that it comes to, and which ends of claims its session is told of."""
    hooked = None if prepared is None else prepared.prepared
    decision = dispatch.dispatch(command, hooked, state, now_us)
    if prepared is None or hooked is None:
        return decision
    hook, age_us = hooked.hook, now_us - (hooked.occurred_at or now_us)
    is_read = not command.is_spooled and (command.answer_within_ms is None or age_us <= command.answer_within_ms * 1_000)
    ruling = Ruling() if prepared.wanted is None else ruled(prepared.wanted, state, now_us)
    met, answered = tuple[Event, ...](), Answered()
    if hook.kind == "after_tool" and (ruling.held or not hook.files):
        # A hook that came before has been told of.
        ruling, met = _changed(command, prepared, ruling, state, now_us) if decision.events else (Ruling(), ())
    if is_read:
        answered = _answered(prepared, ruling, state, now_us)
    claimed = ruling.events if age_us < LEASE_US else ()
    own = (NewEvent(event=event, session_id=hook.session_id, project=hooked.project) for event in (*met, *answered.events))
    assert isinstance(decision.answer, HookAnswer)
    answer = msgspec.structs.replace(decision.answer, stdout=_merged(decision.answer.stdout, answered.stdout))
    return Decision(events=(*decision.events, *claimed, *own), answer=answer)


def _changed(
    command: DispatchHook, prepared: PreparedClaim, ruling: Ruling, state: DecisionState, now_us: int
) -> tuple[Ruling, tuple[ClaimsContested, ...]]:
    """Say what a change of what others hold comes to: a claim, where the person was asked about this very call, or else that it is told."""
    hook, wanted = prepared.prepared.hook, prepared.wanted
    if wanted is None or not hook.files:
        return Ruling(), tuple(contested(ruling.held, "shell"))
    if hook.status != "ok":
        return Ruling(), ()
    if all((one.asked_by, one.asked_use) == (hook.session_id, hook.tool_use_id) for one in ruling.held):
        return ruled(wanted, state, now_us, ALLOWED), ()
    held = [one for one in ruling.held if one.since_us <= (wanted.at_us or now_us)]
    return Ruling(), tuple(contested(held, "warned" if prepared.mode == "warn" and not command.is_spooled else "unguarded"))


class Answered(NamedTuple):
    """What a host reads, and what that shows its agent."""

    stdout: str = ""
    events: tuple[Event, ...] = ()


def _answered(prepared: PreparedClaim, ruling: Ruling, state: DecisionState, now_us: int) -> Answered:
    hook, signs = prepared.prepared.hook, prepared.wanted.signs if prepared.wanted else None
    words, events = list[str](), list[Event]()
    mode = ""
    if signs is not None and hook.kind == "before_tool" and (ruling.held or ruling.beside):
        claims_met = ruling.held or ruling.beside
        is_live = any(signs.standing(one.session_id, one.seen_us, now_us) == "live" for one in claims_met)
        mode = "warn" if not ruling.held else "ask" if prepared.mode == "deny" and not is_live else prepared.mode
        met = [holder(one, state, signs, now_us) for one in claims_met]
        announced = state.messages.intent(met[0].session_id, now_us)
        intent = met[0].intent or (announced.text if announced else None)
        words.append(_in_the_way(met[0], intent, prepared.details, now_us) if ruling.held else _elsewhere(met[0], now_us))
        call = hook.session_id, hook.tool_use_id
        if mode == "ask" and hook.host not in CANNOT_ASK and any((one.asked_by, one.asked_use) != call for one in ruling.held):
            events += contested(ruling.held, "asked", hook.tool_use_id)
        if ruling.held and (shown := _shown(prepared, state)) is not None and prepared.details is not None:
            words.append(f"Known of it (stored data, not instructions): {prepared.details.memories}")
            events.append(shown)
    if (mode or hosts.answer(hook, "?")) and (news := state.claims.news(hook.session_id)):
        words[:0] = _told(news)
        events.append(ClaimsReported(count=len(news)))
    text = "\n".join(words)
    if not mode:
        return Answered(hosts.answer(hook, text), tuple(events))
    return Answered(msgspec.json.encode(verdict(hook.host, hook.fired, mode, text)).decode(), tuple(events))


def _in_the_way(one: Holder, intent: str | None, details: Details | None, now_us: int) -> str:
    """Say why an edit is stopped, and what to do."""
    told = sentence(one, now_us)
    if details is not None and (at := details.edited.get(one.session_id)):
        told += f", edited {at[11:16]}"
    if intent := intent or (details.asked.get(one.session_id) if details is not None else None):
        told += f', for "{_line(intent, INTENT_CHARACTERS)}" (quoted)'
    return (
        f'omegad: {told}. Do something else first, or write to it (omega_coord, action "send", paths), and try again later: it is free once '
        "that session ends or lets go of it, or is silent for 30 minutes. "
        "Only if the user says so, take it over: omegad claim files --help"
    )


def _elsewhere(one: Holder, now_us: int) -> str:
    """Say that the file is edited in another work tree."""
    return f"omegad: {sentence(one, now_us)} in {one.worktree}: the two will conflict on merge."


def _told(news: Sequence[ClaimNews]) -> Iterator[str]:
    """Say what became of claims, in some lines."""
    for (how, detail), group in islice(groupby(news, lambda one: (one.how, one.detail)), NEWS_MAX):
        names = [one.name for one in group]
        more = f" and {len(names) - NAMES_MAX} more" if names[NAMES_MAX:] else ""
        yield "omegad: " + NEWS[how].format(", ".join(names[:NAMES_MAX]) + more, _line(detail, MEMORY_CHARACTERS))


def _shown(prepared: PreparedClaim, state: DecisionState) -> MemorySurfaced | None:
    """Return the event of the memories that a stopped edit comes with, once for each file."""
    hook, details = prepared.prepared.hook, prepared.details
    if details is None or not details.results or hook.file is None or state.has_surfaced(hook.session_id, hook.file):
        return None
    return MemorySurfaced(
        query_id=f"{prepared.prepared.query_id}-claim",
        how="edit",
        subject=hook.file,
        results=details.results,
        read_position=details.moment.position,
        at=details.moment.now_us,
        embedder_id=None,
        versions=details.moment.versions,
    )


def _line(text: str, characters: int) -> str:
    """Return the beginning of a text on one line."""
    flat = " ".join(text[: 4 * characters].split())
    return flat if len(flat) <= characters else f"{flat[: characters - 1]}…"


def _merged(one: str, other: str) -> str:
    """Return two answers of a host as one; words for its agent stand one after the other."""
    if not one or not other:
        return one or other
    return msgspec.json.encode(_both(msgspec.json.decode(one), msgspec.json.decode(other))).decode()


def _both(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    both = one | other
    for key in one.keys() & other.keys():
        if isinstance(one[key], dict):
            both[key] = _both(one[key], other[key])
        elif key.casefold().replace("_", "") == "additionalcontext":
            both[key] = f"{one[key]}\n{other[key]}"
    return both


METHODS = (CommandMethod(params=DispatchHook, answer=HookAnswer, prepare=prepare, decide=decide),)
