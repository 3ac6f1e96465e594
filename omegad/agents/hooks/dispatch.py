"""A hook's way in: understood, recorded once, and answered."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.agents import hook_arrivals
from omegad.agents.hook_arrivals import HookArrivals
from omegad.agents.hooks import claims, git_sync, hosts, noting, surfacing, telling
from omegad.agents.hooks.delegated import Delegated
from omegad.agents.hooks.hosts import Hook
from omegad.agents.hooks.prepared import PreparedHook, Recalled, looked
from omegad.agents.hooks.surfacing import Surfaced
from omegad.agents.hooks.unbriefed import Unbriefed
from omegad.coordination.session_end import is_open
from omegad.log.decision import Decision, DecisionState
from omegad.log.event import Event, NewEvent
from omegad.log.sanitise import excerpt_of
from omegad.memory.types import MemoryTypes
from omegad.requests.command import Command, Name
from omegad.requests.method import CommandMethod, Moment, RequestContext, Services
from omegad.runtime import pausing
from omegad.runtime.clock import uuid7
from omegad.runtime.errors import Overloaded, PathHangs
from omegad.runtime.repository import project_of
from omegad.runtime.times import parse_time
from omegad.session.events import (
    CheckedRef,
    Delivery,
    GitPushChecked,
    MemorySurfaced,
    PromptSubmitted,
    SessionCompacted,
    SessionEnded,
    SessionStarted,
    SubagentEnded,
    ToolCalled,
    TurnEnded,
    Verdict,
)
from omegad.session.hook_state import ANYBODY, Hooks
from omegad.session.projects import name_of
from omegad.session.tool_calls import Excerpts, own_call_data
from omegad.session.tool_state import ToolCalls
from omegad.storage.driver import Connection
from omegad.storage.readers import Turn

KNOWING = 0.1
"""Which part of its time the verdict on a tool waits for memories, and again for what is told of who holds
the file.
"""
USED = 0.3
"""Which part of its time what is said of a tool waits for what is known of the files that it used."""
LOOK_S = 0.1  # for the views to show what has just happened
EMBED_S = 0.25
ASKED_S, SAID_S = 0.02, 10.0
"""How long a question, and anything else, waits for what was left in the spool."""
BRIEFED_LATE = ("prompt", "after_tool")
"""Where a session is briefed whose start no daemon answered."""
WARM_S = 0.001
WARMING = "what is asked first"
"""Has the model loaded by the time of the first prompt; nobody waits for its vector."""
FOLDER_CHARACTERS = 4_096
GIT_PUSH = "git push"
"""The name of the tool call that is a push which git's own hook has stopped."""


class CheckedPush(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A push that was looked at before it ran."""

    remote: Annotated[str, Meta(max_length=1_024)]
    verdict: Verdict
    reason: Annotated[str, Meta(max_length=65_536)] | None
    refs: Annotated[tuple[CheckedRef, ...], Meta(max_length=64)]
    folder: Annotated[str, Meta(max_length=4_096)] | None = None
    """Of the repository, where it is not that of the command's folder."""


class DispatchHook(Command, frozen=True, kw_only=True, tag="hook.dispatch"):
    """Take in what an agent's host tells at a hook, once, and answer with what its agent should know.

    The same delivery_id counts once, for 30 days at least, and so do the same session, event and tool_use_id,
    by which alone pushes are known; what has no tool_use_id is the same again where it says the same within 2
    seconds. What counts already is answered with nothing.
    """

    event: Annotated[str, Meta(max_length=256, description="the host's name of the event")]
    payload: Annotated[dict[str, object], Meta(description="what the host gives its hook: a JSON object")]
    delivery_id: Annotated[
        Name | None, Meta(description="which delivery it is, of all that there ever are")
    ] = None
    occurred_at: Annotated[str | None, Meta(description="when it happened, like 2026-01-31T09:30:00Z")] = None
    host: Annotated[
        str,
        Meta(max_length=64, description="which host it seems to be: claude-code, codex, cursor, gemini, …"),
    ] = ""
    answer_within_ms: (
        Annotated[int, Meta(ge=0, description="how long after it happened somebody reads the answer")] | None
    ) = None
    pushes: Annotated[
        tuple[CheckedPush, ...],
        Meta(max_length=16, description="what the push guard found of the pushes in it"),
    ] = ()
    is_spooled: Annotated[bool, Meta(description="whether nobody reads the answer")] = False
    is_kept: Annotated[
        bool,
        Meta(
            description=(
                "whether it lies in the spool, too: it is answered now, and recorded when that is taken in"
            )
        ),
    ] = False
    is_paused: Annotated[bool, Meta(description="whether its session is one that nothing is kept of")] = False


class HookAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What the hook's process is to do: end with `exit_code`, and print."""

    exit_code: int = 0
    stdout: str = ""
    stderr: str = ""


async def prepare(services: Services, command: DispatchHook, context: RequestContext) -> PreparedHook | None:
    """Understand a hook, and look for what its agent should know; None for one that is of no concern.
    Raises `Invalid`.
    """
    occurred_at = services.clock.now_us()
    if command.occurred_at is not None:
        occurred_at = min(parse_time(command.occurred_at, "occurred_at"), occurred_at)
    hook = hosts.understood(command.event, command.payload, command.host)
    if hook is None:
        return None
    is_asked = command.is_kept or hook.kind == "before_tool"
    if (
        not command.is_spooled
        and not await services.spool_settled(0.0 if command.is_kept else ASKED_S if is_asked else SAID_S)
        and not is_asked
    ):
        raise Overloaded(
            "what hooks left in the spool is being taken in, and this goes behind it",
            hint="try again in a moment",
        )
    project = await _project(services, hook.folder)
    project = None if project is None else hosts.name(project)
    # Whether to leave anything in the spool its hook has asked.
    is_paused = command.is_paused or (
        not command.is_spooled and await services.paused(pausing.named(command.payload)) is not None
    )
    services[HookArrivals].hear(hook, command.payload, is_paused=is_paused)
    if not (command.is_spooled or is_paused):
        hook = await services[Delegated].heard(hook, services.clock)
    is_call = hook.kind == "after_tool" and not is_paused
    # Of a tool it is told with the verdict, which does not wait for it.
    is_hurried = hook.kind == "before_tool" and command.answer_within_ms is not None
    within_s = KNOWING * (command.answer_within_ms or 0) / 1e3 if is_hurried else math.inf
    is_used = is_call and hook.used and command.answer_within_ms is not None
    told_s = USED * (command.answer_within_ms or 0) / 1e3 if is_used else within_s
    if hook.kind == "session_start" and not is_paused and (command.is_spooled or command.is_kept):
        services[Unbriefed].note(hook.session_id, occurred_at)
    told = (
        None
        if command.is_spooled or is_paused
        else await services.in_time(_recalled(services, hook, project, is_again=context.is_again), told_s)
    )
    delivery_id = _delivery_id(services, command, hook)
    own = own_call_data(hook.tool_name, hook.tool_input) if is_call else None
    # The same push may be tried again at once, and each time counts that is not known by its tool's use.
    is_push = hook.kind == "push" or (bool(command.pushes) and hook.tool_use_id is None)
    said = msgspec.json.encode((*hook.said, delivery_id if is_push else None))
    found = PreparedHook(
        hook=hook,
        delivery=Delivery(delivery_id=delivery_id, digest=services.digests.of(said).hex()),
        own_call=(
            None if own is None else Delivery(delivery_id=delivery_id, digest=services.digests.of(own).hex())
        ),
        project=project,
        occurred_at=occurred_at,
        excerpts=(
            Excerpts(excerpt_of(hook.tool_input), excerpt_of(hook.result))
            if is_call
            else Excerpts(None, None)
        ),
        text=None if hook.text is None or hook.kind == "other" or is_paused else excerpt_of(hook.text),
        query_id=uuid7(services.clock),
        is_spooled=command.is_spooled,
        told=told or Recalled(),
        is_last_try=context.is_last_try,
        is_paused=is_paused,
        tasks="off" if command.is_spooled or is_paused else services.task_guard,
        merges=await git_sync.kept(services, hook) if not (command.is_spooled or is_paused) else (),
    )
    if not (command.is_kept or command.pushes or context.is_again or is_paused):
        noting.note(services, found, context)
    pushed = [(one.folder or hook.folder, ref.ref) for one in command.pushes for ref in one.refs]
    return await claims.prepare(services, found, within_s, pushed)


def _delivery_id(services: Services, command: DispatchHook, hook: Hook) -> str:
    """Return which delivery it is; of a tool's use whose pushes were looked at it is always the same, since
    the state knows uses by the calls that were recorded, and of a push that is let pass none is yet.
    """
    if command.pushes and hook.tool_use_id is not None:
        use = ("push", hook.session_id, hook.tool_use_id)
        return services.digests.of(msgspec.json.encode(use)).hex()
    return command.delivery_id or f"{services.clock.random_bits(128):032x}"


async def _project(services: Services, folder: str | None) -> str | None:
    """Return the project of a folder; where that does not answer, by the folder's own name."""
    try:
        return await services.reach(partial(project_of, folder), folder)
    except PathHangs:
        return name_of(folder)


async def _recalled(services: Services, hook: Hook, project: str | None, *, is_again: bool) -> Recalled:
    """Return what an agent should know at a hook. Words alone are looked for where the model takes too
    long.
    """
    look = partial(looked, services, names=surfacing.VIEWS, wait_s=LOOK_S)
    is_start, is_prompt, sought = (
        hook.kind == "session_start",
        hook.kind == "prompt",
        surfacing.wanted(hook, project),
    )
    unbriefed, began_us = services[Unbriefed], None
    if hook.kind in BRIEFED_LATE and hook.agent_id is None and hosts.answer(hook, "?"):
        began_us = unbriefed.taken(hook.session_id, services.clock.now_us())
    if not is_start and not is_prompt and sought is None and not hook.used and began_us is None:
        return Recalled()

    def begin(connection: Connection, moment: Moment) -> tuple[bool, Recalled]:
        is_late = began_us is not None and not surfacing.is_briefed(connection, hook, began_us)
        shown = surfacing.briefed(connection, hook, project, moment) if is_start or is_late else None
        if began_us is not None and (shown is None or not shown.results):
            unbriefed.forget(hook.session_id)
        due = surfacing.due(connection, project, moment.now_us) if is_start or is_prompt else ()
        shown = shown or surfacing.of_file(connection, hook, project, moment)
        return shown is None and surfacing.is_due(connection, hook), Recalled(shown, due, moment)

    if is_start:
        await services.embed_question(WARMING, within_s=WARM_S)
    # What became due a moment ago is told at the next prompt, so that none waits for the views on its
    # account; nor does what is told of a file.
    is_wanted, told = await look(
        begin,
        (False, Recalled()),
        at_least=0 if began_us is None and (is_prompt or hook.used) and not is_again else services.head,
    )
    if is_start:
        if told.moment is None:
            unbriefed.note(hook.session_id, services.clock.now_us())
        stopped = await services[HookArrivals].stopped(services, hook_arrivals.HOOK_S)
        told = told._replace(stopped=tuple(stopped))
    if sought is None or not is_wanted:
        return told
    vector = await services.embed_question(sought.text, within_s=EMBED_S, turn=Turn.FIRST)

    def read(connection: Connection, moment: Moment) -> Surfaced | None:
        return surfacing.found(connection, hook, sought, (vector, services[MemoryTypes]), moment)

    shown = await look(read, None, at_least=services.head)
    return told._replace(
        shown=(
            shown
            if shown is None or vector is None
            else msgspec.structs.replace(shown, embedder_id=services.embedder_id_of(sought.text))
        )
    )


def decide(
    command: DispatchHook, prepared: PreparedHook | None, state: DecisionState, now_us: int
) -> Decision:
    """Decide what a hook comes to: what happened and what was found of pushes, what its agent is told of
    it while somebody reads that, and claims.
    """
    if prepared is None or _is_known(prepared, state, has_pushes=bool(command.pushes)):
        return Decision(answer=HookAnswer())
    hook, is_paused = prepared.hook, prepared.is_paused
    ruling, claimed = claims.ruled_on(prepared, state, now_us)
    prepared = msgspec.structs.replace(prepared, ruling=ruling)
    is_over = (
        command.answer_within_ms is not None
        and now_us - prepared.occurred_at > command.answer_within_ms * 1_000
    )
    stdout, told, verdict = (
        ("", [], "") if is_over or command.is_spooled else _answered(prepared, state, now_us)
    )
    if verdict == "deny" and not ruling.held:
        claimed = ()  # what does not happen needs no file
    is_told = command.is_kept or _is_own_call(prepared, state)
    is_said = not is_told and (not is_paused or hook.kind == "session_end")
    happened = _happened(prepared, state) if is_said else None
    pushes = () if is_paused else command.pushes
    events = [*([happened] if happened else []), *checked(pushes, hook, prepared.delivery), *told]
    if not is_paused:
        events += _denied(command, prepared, verdict, state)
    new = (
        NewEvent(
            event=event,
            session_id=hook.session_id or None,
            project=prepared.project,
            occurred_at=prepared.occurred_at,
            follows=place > 0,
        )
        for place, event in enumerate(events)
    )
    return Decision(
        events=(*new, *claimed, *git_sync.recorded(prepared, state, now_us)), answer=HookAnswer(stdout=stdout)
    )


def _answered(prepared: PreparedHook, state: DecisionState, now_us: int) -> tuple[str, list[Event], str]:
    """Return what the host reads, the events of what that tells its agent, and the verdict; nothing where
    the host takes no words.
    """
    hook = prepared.hook
    if hook.kind != "before_tool" and not hosts.answer(hook, "?"):
        return "", [], ""
    tellings = GUARDS if prepared.is_paused or hook.kind == "push" else TELLINGS
    told = [
        tell(prepared, state, now_us) for tell in tellings if hook.agent_id is None or tell not in OF_SESSION
    ]
    text, verdict = (
        "\n".join(line for one in told for line in one.lines),
        min((one.verdict for one in told), key=VERDICTS.index),
    )
    stdout = hosts.judged(hook, verdict, text) if verdict else hosts.answer(hook, text)
    events = [_told_to(hook, event) for one in told for event in one.events]
    return stdout, events if stdout else [], verdict


def _told_to(hook: Hook, event: Event) -> Event:
    """Return the event of what a hook's agent is told, which says of memories which agent that is."""
    if not isinstance(event, MemorySurfaced):
        return event
    return msgspec.structs.replace(event, agent_id=hook.agent_id)


def _denied(
    command: DispatchHook, prepared: PreparedHook, verdict: str, state: DecisionState
) -> Iterator[ToolCalled]:
    """Return the event of a tool call that was stopped, which no later hook tells of."""
    hook = prepared.hook
    is_denied = verdict == "deny" or any(push.verdict == "denied" for push in command.pushes)
    if hook.kind not in {"before_tool", "push"} or not is_denied:
        return
    if hook.tool_use_id is not None and state[ToolCalls].get(hook.session_id, hook.tool_use_id):
        return
    yield ToolCalled(
        tool_name=hook.tool_name if hook.kind == "before_tool" else GIT_PUSH,
        status="denied",
        call_index=state[ToolCalls].count(hook.session_id) + 1,
        tool_use_id=hook.tool_use_id,
        tool_input=excerpt_of(
            hook.tool_input
            if hook.kind == "before_tool"
            else {push.remote: [one.ref for one in push.refs] for push in command.pushes}
        ),
    )


VERDICTS = ("deny", "ask", "warn", "")
"""The verdicts on what an agent is about to do, the strictest first."""
GUARDS = (claims.news, claims.stopped)
"""What an agent is told at a hook where all else is paused."""
TELLINGS = (
    *GUARDS,
    telling.tasks,
    telling.silent_hosts,
    telling.skills,
    telling.reminders,
    telling.memories,
    telling.messages,
)
"""What an agent is told at a hook, in the order in which it is."""
OF_SESSION = (claims.news, telling.silent_hosts, telling.skills, telling.reminders, telling.messages)
"""What a session is told but once, and so its own agent, and none that works for it and is gone soon."""


def _is_known(prepared: PreparedHook, state: DecisionState, *, has_pushes: bool) -> bool:
    hook = prepared.hook
    if hook.kind == "before_tool" and not has_pushes:
        return False  # nothing else is recorded of it but what is shown, once for each file
    if hook.kind == "after_tool" and hook.tool_use_id is not None and prepared.own_call is None:
        return state[ToolCalls].get(hook.session_id, hook.tool_use_id) is not None
    return state[Hooks].has_come(hook.session_id, prepared.delivery, prepared.occurred_at)


def _is_own_call(prepared: PreparedHook, state: DecisionState) -> bool:
    """Say whether a hook tells of a call of one of omegad's own tools, which that has told of itself."""
    hook = prepared.hook
    if prepared.own_call is None:
        return False
    is_recorded = hook.tool_use_id is not None and state[ToolCalls].get(hook.session_id, hook.tool_use_id)
    return bool(is_recorded) or state[Hooks].has_come(ANYBODY, prepared.own_call, prepared.occurred_at)


def _happened(prepared: PreparedHook, state: DecisionState) -> Event | None:
    hook, delivery = prepared.hook, prepared.delivery
    match hook.kind:
        case "session_start":
            folder = None if hook.folder is None else hook.folder[:FOLDER_CHARACTERS]
            return SessionStarted(
                host=hook.host, source=hook.source, model=hook.model, folder=folder, delivery=delivery
            )
        case "prompt" if prepared.text:
            return PromptSubmitted(host=hook.host, prompt=prepared.text, delivery=delivery)
        case "after_tool":
            return ToolCalled(
                tool_name=hook.tool_name,
                status=hook.status,
                call_index=state[ToolCalls].count(hook.session_id) + 1,
                tool_use_id=hook.tool_use_id,
                duration_ms=hook.duration_ms,
                tool_input=prepared.excerpts.tool_input,
                result=prepared.excerpts.result,
                delivery=delivery if hook.tool_use_id is None else None,
            )
        case _:
            return _ended(hook, prepared, state)


def _ended(hook: Hook, prepared: PreparedHook, state: DecisionState) -> Event | None:
    """Return what is over: a turn, a subagent, what a session had in its context, or the session."""
    delivery, known = prepared.delivery, state[Hooks].session(hook.session_id)
    match hook.kind:
        case "turn_end":
            return TurnEnded(host=hook.host, message=prepared.text, delivery=delivery)
        case "subagent_end":
            return SubagentEnded(
                host=hook.host,
                agent_id=hook.agent_id,
                agent_type=hook.agent_type,
                message=prepared.text,
                delivery=delivery,
            )
        case "compaction":
            return SessionCompacted(
                host=hook.host, trigger=hook.trigger, after=known.ended_at if known else 0, delivery=delivery
            )
        case "session_end" if is_open(hook.session_id, state):
            return SessionEnded(
                host=hook.host, reason=hook.reason, after=known.ended_at if known else 0, delivery=delivery
            )
        case _:
            return None


def checked(pushes: Sequence[CheckedPush], hook: Hook, delivery: Delivery) -> Iterator[GitPushChecked]:
    """Return the event of each push; the first says which delivery told of them."""
    for place, push in enumerate(pushes):
        yield GitPushChecked(
            how="hook" if hook.kind == "push" else "command",
            host=hook.host,
            remote=push.remote,
            verdict=push.verdict,
            reason=push.reason,
            refs=push.refs,
            delivery=None if place else delivery,
        )


METHODS = (CommandMethod(params=DispatchHook, answer=HookAnswer, prepare=prepare, decide=decide, verb=None),)
