"""The table of methods: everything that can be asked of omegad. A module that declares some has one word here."""

from itertools import chain

from omegad import search
from omegad.agents import briefing, context, hooks
from omegad.agents.tools import calling
from omegad.coordination import claims, intents, message, messages, task, tasks, who
from omegad.coordination import holding as holders
from omegad.coordination import session_end as session
from omegad.knowledge import calibration, predicting, ripple, theses, thesis
from omegad.knowledge import dismissing as lint
from omegad.knowledge import lint as findings
from omegad.memory import compaction, deriving, edges, embedding, history, junk, lessons, prune, stale, storing, timeline, upsert
from omegad.memory import lives as lifecycle
from omegad.memory import reading as memory
from omegad.memory import traversing as graph
from omegad.memory import upkeep as consolidation
from omegad.operations import clock as times
from omegad.operations import clock_mending as clock
from omegad.operations import diff, erase, reactions, views
from omegad.operations import log_reading as log
from omegad.operations import status as system
from omegad.person import identity as identities
from omegad.person import identity_reading as identity
from omegad.person import profile, reminder, reminders, skill
from omegad.person import profile_reading as facts
from omegad.requests.method import CommandMethod, Method
from omegad.search import receipts
from omegad.session import capturing, sql
from omegad.session import deliveries as delivery
from omegad.session import tool_calls as tool

_DECLARING = (
    *(storing, upsert, capturing, deriving, lifecycle, edges, compaction, consolidation, embedding, tool, session, delivery, identities, hooks),
    clock,
    *(thesis, predicting, ripple, lint),
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
