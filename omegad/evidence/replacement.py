"""What a statement says was replaced, and by what: `switched X to Y`, `X instead of Y`, `dropped X in favour of Y`, `back to X`."""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from omegad.evidence.wording import EMPTY, content, stems, terms

_END = (
    r"(?=$|[,;:()!?]|\.(?:\s|$)|\s(?:in|for|on|with|by|to|as|at|and|or|when|while|after|before|so|now|from|because|across|everywhere|instead"
    r"|is|are|was|over\sto)\b)"
)
_OLD = rf"(?:using\s|the\s|our\s|an?\s|old\s)*(?P<old>\S+?(?:\s\S+?){{0,3}}?){_END}"
_NEW = rf"(?:using\s|the\s|our\s|an?\s|new\s)*(?P<new>\S+?(?:\s\S+?){{0,3}}?){_END}"
_MOVED = (
    r"switch(?:ed|ing|es)?|mov(?:ed|ing|es?)|migrat(?:ed|ing|es?)|chang(?:ed|ing|es?)|went|upgraded|downgraded|ported|converted|renamed|bumped"
    r"|raised|lowered|rewritten|rewrote|reverted"
)
_USING = r"use|using|uses|used|with|on|via|to|run|adopt|choose|chose|pick|picked|prefer|prefers|want|wants|like|likes|favou?rs?|by|is|are|in"
_DROPPED = (
    r"dropp(?:ed|ing)|deprecat(?:ed|ing)|abandon(?:ed|ing)|ditch(?:ed|ing)|remov(?:ed|ing)|retir(?:ed|ing)|got rid of|stopp(?:ed|ing) using"
    r"|phas(?:ed|ing) out|(?:mov|migrat)(?:ed|ing) (?:away from|off)"
)

_PASSIVE = r"(?:^|\b(?:the|our)\s)(?P<old>\S+(?:\s\S+){0,2}?)\s(?:is|was|were|are|has been|have been|got)"

OUTRIGHT = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\b(?P<verb>{_MOVED})\b[^.;!?]{{0,60}}?\bfrom\s{_OLD}[^.;!?]{{0,40}}?\s(?:over\s)?to\s{_NEW}",
        rf"\b(?P<verb>replac(?:ed|ing|es?))\s{_OLD}\s(?:with|by)\s{_NEW}",
        rf"{_PASSIVE}\s(?P<verb>replaced)\s(?:by|with)\s{_NEW}",
        rf"(?:^|\b(?:the|our)\s)(?P<new>\S+(?:\s\S+){{0,2}}?)\s(?P<verb>replace[sd]|supersedes|took over from)\s(?:the decision to use\s)?{_OLD}",
        rf"\b(?P<verb>{_DROPPED})\s(?:support for\s|use of\s)?{_OLD}(?:\sin favou?r of\s{_NEW})?",
        rf"\b(?P<verb>(?:mov|migrat)ed)\s[^.;!?]{{1,40}}?\s(?:off|away\sfrom)\s{_OLD}",
        rf"{_PASSIVE}\s(?P<verb>{_DROPPED})\sin\sfavou?r\sof\s{_NEW}",
        rf"\b(?P<verb>renamed)\s{_OLD}\s(?:to|as|into)\s{_NEW}",
        rf"{_PASSIVE}\s(?P<verb>renamed)\s(?:to|as|into)\s{_NEW}",
    )
)
COMPARING = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?:\b(?P<verb>{_USING})\s{_NEW}\s)?(?:[^.;!?,]{{0,40}}?)\binstead of\s(?:(?:{_USING})\s)?{_OLD}",
        rf"(?:\b(?P<verb>{_USING})\s{_NEW})?[^.;!?,]{{0,40}},\s(?:and\s)?(?:not|no\slonger)\s(?:(?:{_USING})\s)?{_OLD}",
        rf"(?<!\S)(?P<old>\S+)\s(?P<verb>->|=>|\u2192)\s(?P<new>\S+?){_END}",
    )
)
RETURNING = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\b(?P<verb>back to|reverted to|returned to|rolled back to)\s{_NEW}",
        rf"\b(?P<verb>{_USING})\s(?P<new>\S+(?:\s\S+){{0,1}}?)\sagain\b",
    )
)

_TELLING = re.compile(
    r"switch|mov|migrat|chang|went|graded|ported|convert|renam|bump|rais|lower|rewr|revert|replac|supersed|took\sover|drop|deprecat|abandon|ditch|retir"
    r"|got\srid|stopp|phas|instead|,\s(?:and\s)?(?:not|no\slonger)|->|=>|\u2192|back\sto|return|again"
)
"""What every pattern needs a part of; most clauses have none, and are spared the patterns."""

_ORDERED = re.compile(r"(?:please\s|always\s|we\s|now\s)*(?:use|run|prefer|pick|choose|adopt)\b")
_ROLES = stems("linter formatter library framework database tool package server broker runner editor")

USAGE = stems(
    """use run with on in via by through prefer is adopt choose chose pick deploy to store default call name require support need rely
    depend target like want at under build write test format lint manage want keep host listen install"""
)
"""Words after which a statement names what it is about to be replaced: `runs on X`, `is X`, `we use X`."""

USAGE_REACH = 2
"""How many terms before a thing the word of its use may stand."""

VALUE_TERMS_MAX = 3
"""How many terms what took a place has at most, where it is told by its place alone."""

_BETWEEN = stems("instead not rather no never longer")

GENERIC = stems(
    """team project repo repository codebase code everyone user decided decision default use run go went finally fully completely
    been was were have has had will would should must can everything all everywhere january february march april may june july august september
    october november december monday tuesday wednesday thursday friday today yesterday week month year last next sprint to from in on with for
    by at of as is and instead not favour favor over since during new old do always go prefer choose chose pick adopt deploy store"""
)
"""Words that do not tell which of several things a statement is about."""


class Replacement(NamedTuple):
    """What took whose place, as terms; either may be empty, not both. `context` is what else the statement names.

    `is_outright` says that the statement tells of a change, and does not merely compare.
    """

    old: tuple[str, ...]
    new: tuple[str, ...]
    context: frozenset[str]
    is_outright: bool


def replacements(text: str) -> Iterator[Replacement]:
    """Yield what a clause, in lower case, says was replaced."""
    if _TELLING.search(text) is None:
        return
    for patterns, is_outright in ((OUTRIGHT, True), (COMPARING, False), (RETURNING, True)):
        for pattern in patterns:
            for match in pattern.finditer(text):
                parts = match.groupdict()
                old, new = _named(parts.get("old")), _named(parts.get("new"))
                if old or new:
                    about = context(terms(text), [term for part in parts.values() for term in terms(part or "")])
                    yield Replacement(old, new, about, is_outright or _ORDERED.match(text) is not None)


def context(all_terms: Sequence[str], named: Sequence[str]) -> frozenset[str]:
    """Return what a statement is about beside the things it names: its terms without theirs, without generic words and numbers of years."""
    return frozenset(content(all_terms)) - frozenset(named) - GENERIC - _VERBS


def place(thing: Sequence[str], statement: Sequence[str]) -> int | None:
    """Return where a thing stands in a statement's terms, whole; None where it does not."""
    for start in range(len(statement) - len(thing) + 1):
        if tuple(statement[start : start + len(thing)]) == tuple(thing):
            return start
    return None


def is_in_use(thing: Sequence[str], statement: Sequence[str]) -> bool:
    """Say whether a statement says that a thing is used, chosen or so set: `runs on X`, `the port is X`, `X is our linter`."""
    start = place(thing, statement)
    if start is None:
        return False
    before = statement[max(0, start - USAGE_REACH) : start]
    return bool(USAGE & set(before)) or tuple(statement[start + len(thing) :][:1]) == ("is",)


def completed(change: Replacement, said: Sequence[str], older: Sequence[str]) -> Replacement:
    """Return a comparison that leaves open what took the place of the old, with what stands there in its statement as the new.

    Of `logs go to X instead of Y` and `logs go to Y`, that is X.
    """
    start = place(change.old, older)
    if change.new or not start:
        return change
    before = next((index for index, term in enumerate(said) if term == older[start - 1]), len(said))
    if not _BETWEEN & set(said[before:]):
        return change
    following = said[before + 1 : before + 1 + VALUE_TERMS_MAX]
    new = tuple(takewhile(lambda term: term not in _BETWEEN and term not in older, following))
    return change._replace(new=new, context=change.context - frozenset(new))


def is_path(thing: Sequence[str]) -> bool:
    """Say whether a thing is a file, path or identifier, which is the same wherever it is named."""
    return len(thing) == 1 and any(sign in thing[0] for sign in "._/")


def _named(text: str | None) -> tuple[str, ...]:
    """Return the terms of a name, without the word for what it is: of `the flake8 linter`, `flake8`."""
    named = tuple(term for term in terms(text or "") if term not in EMPTY)
    return named[:-1] if len(named) > 1 and named[-1] in _ROLES else named


_VERBS = stems(
    """switched switch moved migrated migrate changed change replaced dropped deprecated abandoned ditched removed retired stopped
    renamed rewritten rewrote upgraded downgraded ported converted bumped raised lowered replaces supersedes superseded reverted returned rolled back
    again away off got rid phased out"""
)
