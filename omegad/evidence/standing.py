"""Whether a statement is real: whether it tells what is so here and now, and not what is supposed, planned, rejected or told of others.

Words tell it, by tables; which of them stand in a statement are its doubts. A doubt that an older text has as well says nothing about the
newer one: of notes on a request, `request` is the subject. English. Pure.
"""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import pairwise

from omegad.evidence.wording import all_words, listed, stem, stems, terms

LABEL_WORDS = 4
"""How many words the label of a sentence has at most: `Feature request:`."""

NEGATED_REACH = 3
"""How many terms after a negator the verb that it negates may stand."""

_SUPPOSED = stems(
    """would could might maybe perhaps possibly presumably hypothetically theoretically if unless whether suppose supposing assume imagine
    hope hopefully wish wonder think thought doubt guess"""
)
_PLANNED = stems(
    """will shall should want intend intention goal objective criterion criteria permitting pending provided tomorrow soon someday eventually
    upcoming future roadmap backlog yet once until temporarily"""
)
_PROPOSED = stems(
    """propose proposal suggest suggestion recommend recommendation consider evaluate explore investigate discuss debate idea ask asked asking
    proposed rfc prototype experiment experimental exercise spike poc trial try tried attempt draft candidate convince argue"""
)
_UNDONE = stems(
    """reject decline refuse postpone defer veto cancel unmerged fail broke accident accidentally mistake mistakenly wrongly inadvertently
    unintentionally almost nearly typo undo undone outage"""
)
_TOLD = stems(
    """competitor customer contributor consultant vendor article tutorial blog talk podcast someone somebody intern junior reviewer colleague
    friend people facebook upstream fork example complain complaint allegedly apparently reportedly rumor"""
)
_BYGONE = stems("formerly previously ago")
WEAK = stems("fail broke outage mistake typo customer people idea draft example discuss") | frozenset({"this week", "this sprint", "this time"})
"""Doubts that as often belong to the story as to the statement: a change so told is marked, and hides nothing."""

_WEIGHED = stems("try tried consider evaluate reject propose prototype")
_DOUBTS = _SUPPOSED | _PLANNED | _PROPOSED | _UNDONE | _TOLD | _BYGONE

_PHRASES = tuple(
    tuple(stem(word) for word in phrase.split())
    for phrase in (
        "about to",
        "plan to",
        "plan for",
        "used to",
        "next year",
        "next quarter",
        "next month",
        "next week",
        "next sprint",
        "next release",
        "some day",
        "one day",
        "decided against",
        "turned down",
        "on hold",
        "staying with",
        "stay with",
        "sticking with",
        "stick with",
        "is blocked",
        "was blocked",
        "according to",
        "back then",
        "at the time",
        "by hand",
        "look into",
        "it says",
        "how to",
        "step to",
        "talk of",
        "before we",
        "proof of concept",
        "were to",
        "to be moved",
        "to be replaced",
        "for now",
        "this week",
        "this sprint",
        "this time",
    )
)
_UNDONE_PHRASES = tuple(tuple(stem(word) for word in phrase.split()) for phrase in ("decided against", "on hold"))
_LABELS = stems(
    """ticket issue task story epic todo fixme bug error proposal rfc question example draft wip plan request suggestion option hypothesis idea
    blocked rejected backlog experiment spike poc concept discussion warning incident postmortem"""
)
_OPENING = stems("if unless suppose supposing once when whether until should assuming before according")
_ADDED = stems("also additionally besides alongside both either")
_ADDING = frozenset({("as", "well"), ("in", "addition")})
_TOO = re.compile(r"\btoo\b(?=[.,;:!)]|$)", re.IGNORECASE)
_CHANGING = stems(
    """switch move migrate change replace rename drop port convert upgrade downgrade remove retire abandon rid rewrite ditch deprecate supersede
    adopt leave swap decommission"""
)
_NEGATORS = stems("not never nobody none hardly without neither nor no rarely")
_STILL = (("longer",), ("any",), (stem("more"),))
"""What follows a negator that tells of a change itself: `no longer`."""

_DECIDED = stems(
    """switch move migrate change replace decide agree choose pick adopt settle start go convert port upgrade standardize introduce rewrite
    refactor configure set use drop stop rename roll release merge"""
)
_PAST_COPULAS = listed("was were had did")
_PAST_FORMS = listed("felt made ran wrote built rebuilt kept sent held took got put let")
_AUXILIARIES = listed("is are be been being has have gets get not now")
_PROGRESSIVE = listed("is are am slowly still currently gradually")
_ADJECTIVAL = listed("the a an our with of in for on to by from via and or use as")
_NOT_PAST = listed("need speed feed seed embed shed hundred red")
_REASON = re.compile(
    r"""[,;:\s]\s*(?:because|since\s(?:it|they|we|the|its?)|so\sthat|due\sto|thanks\sto|in\sorder\sto|after|which|where|whereas|although
    |as\s(?:it|they|we|the))\b.*""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_MONTH = re.compile(r"\b(?:in|of|since|from|until|by|last|this|early|late|mid)[\s-]may\b|\bmay\s\d", re.IGNORECASE)
_ELSEWHERE = re.compile(
    r"\b(?:in|of|for|at|on|by)\s(?:the|an|my|our|their|his|her)\s(?:old|previous|former|other)\b|\banother\s(?:team|project|company)\b", re.IGNORECASE
)
_ROLLED_BACK = re.compile(
    r"\band\sback\b(?!\s(?:to|up|end)\b)|\b(?:not|never)\smerged\b|\b(?:rolled|roll|reverted|switched|went|moved)\s(?:it\s|this\s|that\s|them\s)?back\b(?!\s(?:to|from)\b)",
    re.IGNORECASE,
)
_WAS_REVERTED = re.compile(
    r"\b(?:was|were|been|got|had\sto\sbe|we|i|they|later|and|then)\sreverted\b(?!\s(?:to|from|back\sto)\b)|\breverted\s(?:it|this|that)\b",
    re.IGNORECASE,
)


@lru_cache(maxsize=512)
def doubts(clause: str, sentence: str = "") -> frozenset[str]:
    """Return the stems and phrases that keep a clause from telling what is so here and now. Reasons that it gives are not looked at.

    Of the sentence around it, where given, count its label, a condition that it opens with, and what says that all of it was undone.
    """
    said = _told(clause)
    found = (_DOUBTS & set(said)) | _phrases(said, _PHRASES) | _modal(clause) | _undone(clause)
    if "user" in said:  # what the user wants holds
        found -= {"want"}
    if _is_gerund(clause):
        found |= {"gerund"}
    if _ELSEWHERE.search(clause):
        found |= {"elsewhere"}
    if sentence:
        around = _told(sentence)
        found |= _label(sentence) | (_OPENING & set(around[:1])) | ((_UNDONE | {"yet"}) & set(around)) | _undone(sentence)
    return frozenset(found)


def is_real(clause: str, sentence: str = "", known: Collection[str] = ()) -> bool:
    """Say whether a clause tells what is so here and now; *known* are the terms of an older text, which are its subject."""
    return not doubts(clause, sentence) - set(known)


def is_bygone(text: str) -> bool:
    """Say whether a text tells of the past, or of what was only weighed."""
    said = _told(text)
    return bool((_BYGONE | _WEIGHED) & set(said)) or "used to" in _phrases(said, _PHRASES)


def undone(text: str) -> frozenset[str]:
    """Return the words by which a whole text says that what it tells of was taken back, or is only the title of a thought."""
    first, _, rest = text.strip().partition("\n")
    heads = terms(first)
    title = _LABELS & set(heads) if rest and len(heads) <= LABEL_WORDS else frozenset[str]()
    said = _told(text)
    return frozenset(title | _undone(" ".join(text.split())) | (_UNDONE & set(said)) | _phrases(said, _UNDONE_PHRASES))


def is_added(clause: str) -> bool:
    """Say whether a clause adds to what is so and replaces nothing: `also`, `as well`."""
    said = _said(clause)
    return bool(_ADDED & set(said)) or not _ADDING.isdisjoint(pairwise(said)) or _TOO.search(clause) is not None


def is_change_denied(clause: str) -> bool:
    """Say whether a clause denies, forbids or asks not to make a change, or a choice of one thing instead of another."""
    said = _said(clause)
    for place, term in enumerate(said):
        if term not in _NEGATORS or said[place + 1 : place + 2] in _STILL:
            continue
        rest = said[place + 1 :]
        if "instead" in rest or ("rather", "than") in set(pairwise(rest)) or _CHANGING & set(rest[:NEGATED_REACH]):
            return True
    return False


def is_told(clause: str) -> bool:
    """Say whether a clause that compares two things tells what was once done, and not what is chosen: `it wrote X instead of Y`."""
    before = re.split(r"\b(?:instead\sof|rather\sthan)\b", clause, maxsplit=1)[0]
    spoken = ["", *all_words(before)]
    return any(_is_past(word, last) for last, word in pairwise(spoken)) and not re.search(r"\b(?:now|from now on|as of)\b", clause)


@lru_cache(maxsize=512)
def _said(text: str) -> tuple[str, ...]:
    return tuple(terms(text))


def _told(text: str) -> tuple[str, ...]:
    """Return the terms of a text without the reasons it gives."""
    return _said(_REASON.sub("", " ".join(text.split())))


def _is_past(word: str, last: str) -> bool:
    if word in _PAST_COPULAS:
        return True
    is_past_form = word in _PAST_FORMS or (word.endswith("ed") and word not in _NOT_PAST)
    return is_past_form and last not in _AUXILIARIES | _ADJECTIVAL and (stem(word) not in _DECIDED or word == "used")


def _is_gerund(clause: str) -> bool:
    """Say whether a clause speaks of doing something, which need not be done: `moving to X would help`, `we are moving`."""
    spoken = all_words(clause)
    is_subject = spoken[:1] and spoken[0].endswith("ing") and stem(spoken[0]) in _CHANGING | {"use"}
    return bool(is_subject) or any(
        word.endswith("ing") and stem(word) in _CHANGING and (last in _PROGRESSIVE or last.endswith("'re")) for last, word in pairwise(spoken)
    )


def _modal(clause: str) -> frozenset[str]:
    spoken = all_words(_MONTH.sub(" ", clause))
    return frozenset({"may"} & set(spoken))


def _label(sentence: str) -> frozenset[str]:
    head, colon, _ = sentence.partition(":")
    named = terms(head) if colon else []
    return frozenset(_LABELS & set(named)) if len(named) <= LABEL_WORDS else frozenset()


def _undone(text: str) -> frozenset[str]:
    return frozenset({"rolled back"} if _ROLLED_BACK.search(text) or _WAS_REVERTED.search(text) else ())


def _phrases(said: Sequence[str], phrases: Collection[tuple[str, ...]]) -> frozenset[str]:
    spoken = f" {' '.join(said)} "
    return frozenset(" ".join(phrase) for phrase in phrases if f" {' '.join(phrase)} " in spoken)
