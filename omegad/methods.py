"""The table of methods: everything that can be asked of omegad. A module that declares some has one word here."""

from itertools import chain

from omegad import hooks
from omegad.commands import (
    capturing,
    claims,
    clock,
    compaction,
    consolidation,
    delivery,
    deriving,
    embedding,
    lifecycle,
    lint,
    message,
    profile,
    prune,
    reminder,
    ripple,
    session,
    skill,
    storing,
    task,
    thesis,
    tool,
    upsert,
)
from omegad.commands import graph as edges
from omegad.commands import identity as identities
from omegad.method import CommandMethod, Method
from omegad.queries import (
    briefing,
    calibration,
    context,
    diff,
    erase,
    graph,
    history,
    identity,
    intents,
    junk,
    lessons,
    log,
    memory,
    messages,
    reactions,
    receipts,
    reminders,
    search,
    sql,
    stale,
    system,
    tasks,
    theses,
    timeline,
    views,
    who,
)
from omegad.queries import claims as holders
from omegad.queries import clock as times
from omegad.queries import lint as findings
from omegad.queries import profile as facts
from omegad.tools import calling

_DECLARING = (
    *(storing, upsert, capturing, deriving, lifecycle, edges, compaction, consolidation, embedding, tool, session, delivery, identities, hooks),
    clock,
    *(thesis, ripple, lint),
    *(profile, reminder, briefing, facts, reminders, prune, skill, claims, holders),
    *(search, memory, timeline, lessons, stale, junk, history, graph, receipts, log, diff, views, erase, system, times, sql, reactions),
    *(identity, context, theses, calibration, findings),
    *(task, tasks, message, messages, intents, who),
    calling,
)

ALL: dict[str, Method] = {method.name: method for method in chain.from_iterable(module.METHODS for module in _DECLARING)}
"""Every method by its name."""

SERVED: dict[str, Method] = {name: method for name, method in ALL.items() if not (isinstance(method, CommandMethod) and method.is_internal)}
"""The methods of the socket."""
