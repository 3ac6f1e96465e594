"""The list of reactions. Adding one is its file, its test and its name in `ALL`."""

from omegad.agents import stale_report as reflect_stale
from omegad.coordination import idle_sessions, silent_holders, silent_owners
from omegad.coordination import session_ending as session_end
from omegad.knowledge import lint_report as lint
from omegad.knowledge import ripple_reaction as ripple
from omegad.memory import expiry
from omegad.person import skill_lessons
from omegad.reactions.contract import Reaction, Schedule
from omegad.session import habits_reaction as habits

ALL: tuple[Reaction | Schedule, ...] = (
    *(expiry, session_end, idle_sessions, ripple, lint, habits, reflect_stale, skill_lessons, silent_holders, silent_owners),
)
