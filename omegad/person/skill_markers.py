"""`SKILL_IMPROVE: skill | lesson`, on a line of its own in what an agent says."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from omegad.log.event import Excerpt

SIGN = "SKILL_IMPROVE:"
MARKERS_MAX = 10  # of one message
SKILL_CHARACTERS, LESSON_CHARACTERS = 256, 2_000
PLACEHOLDERS = frozenset("<>{}`")
"""Characters of names that stand for a name, as in documentation."""

_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_MARKER = re.compile(r" {0,3}SKILL_IMPROVE:([^|]*)\|(.*)")


class Marker(NamedTuple):
    """What is to be noted of which skill."""

    skill: str
    lesson: str


def markers(message: Excerpt) -> list[Marker]:
    """Return the markers of a message, each once, at most `MARKERS_MAX`; none of code blocks and quotations.

    Of a long message its beginning and end are known; a line that the cut goes through says nothing.
    """
    if SIGN not in message.head and SIGN not in message.tail:
        return []
    head, tail = message.head.splitlines(), message.tail.splitlines()
    found = list(_found(head[:-1] if tail else head, is_code=False))
    # A message ends outside of its code blocks, so its end begins within one where it has an odd number of
    # fences.
    found += _found(tail[1:], is_code=sum(_FENCE.match(line) is not None for line in tail[1:]) % 2 == 1)
    return list(dict.fromkeys(found))[:MARKERS_MAX]


def _found(lines: list[str], *, is_code: bool) -> Iterator[Marker]:
    fence = "" if is_code else None  # what opened the block, "" where that is not known
    for line in lines:
        if marks := _FENCE.match(line):
            if fence is None:
                fence = marks.group(1)
            elif marks.group(1).startswith(fence):
                fence = None
        elif fence is None and (marked := _MARKER.match(line)):
            skill, lesson = (" ".join(part.split()) for part in marked.groups())
            if skill and lesson and not PLACEHOLDERS & {*skill}:
                yield Marker(skill[:SKILL_CHARACTERS], lesson[:LESSON_CHARACTERS])
