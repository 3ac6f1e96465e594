"""What follows from what happened, or from the time: a file for each reaction, whose shape `contract` describes.

`runner` carries them out; a rebuild never does. Adding one is its file, its test and its name in `ALL`.
"""

from omegad.reactions import expiry, habits, idle_sessions, lint, reflect_stale, ripple, session_end, silent_holders, silent_owners, skill_lessons
from omegad.reactions.contract import Reaction, Schedule

ALL: tuple[Reaction | Schedule, ...] = (
    *(expiry, session_end, idle_sessions, ripple, lint, habits, reflect_stale, skill_lessons, silent_holders, silent_owners),
)
