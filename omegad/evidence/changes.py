"""What one sentence of a note tells of the present: what is gone, what is in use, and which quantities and versions hold.

English. Sentences that ask, suppose, plan or tell of the past tell nothing here. Pure.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from omegad.evidence.measures import UNITS, Quantity, quantities, versions
from omegad.evidence.names import bare, is_name
from omegad.evidence.prose import prose
from omegad.evidence.replacement import GENERIC
from omegad.evidence.slots import has_rivals
from omegad.evidence.standing import doubts, is_added, is_change_denied, is_told
from omegad.evidence.wording import EMPTY, NEGATORS, sentences, stem, stems, straight, with_opposites

SENTENCES_MAX = 12
"""How many sentences of a note are read."""

WORDS_MAX = 60
"""A longer sentence is none: it is a table, a log or a listing."""

KEY_LETTERS = 6
"""How many letters of a stem tell what a sentence is about: `reservation` and `reserved` share their first six."""

NAMED_MAX = 4
"""How many words the name of a thing has at most."""

AFTER = 3
"""How many words after a thing may deny that it is in use: `X is not in use`."""

_HEADING = re.compile(r"^\W*[A-Za-z][\w.-]*\s+v?\d[\w.]*:\s+")
_IDENTIFIER = re.compile(r"`+([\w.]*[A-Za-z][\w.]*[_.A-Z][\w.]*(?:\(\))?)`+")
_END = (
    r"(?=$|[,;:()!?]|\.(?:\s|$)|\s(?:in|for|on|with|by|to|as|at|and|or|but|when|while|after|before|so|now|from|because|since|across|everywhere"
    r"|instead|anymore|any|is|are|was|has|had|last|this|entirely|completely|at|of)\b)"
)
_THING = rf"(?:(?:using|the|our|my|an?|old|bare|plain)\s)*(?P<thing>\S+?(?:\s\S+?){{0,3}}?){_END}"
_IS_GONE = (
    r"(?:is|are|was|were|has\sbeen|have\sbeen|got|gets)\s(?:now\s|finally\s|fully\s|completely\s|being\s)*"
    r"(?:retired|replaced|switched\soff|gone|dropped|removed|decommissioned|shut\sdown|abandoned|phased\sout|disabled|unplugged"
    r"|no\slonger\s(?:used|needed|supported|in\suse)|not\s(?:used|needed|supported|in\suse)\sany\s?more)\b"
)
_ENDS = (
    r"replaced|replaces|replacing|supersedes|retired|dropped|ditched|abandoned|decommissioned|got\srid\sof|stopped\susing"
    r"|phased\sout|switched\soff|shut\sdown|took\sover\sfrom|(?:mov|migrat)ed\s(?:away\sfrom|off)"
)
_OUTRIGHT = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\bno\slonger\s(?:use|using|used|run|running|on|depend\son|rely\son)\s(?:on\s)?{_THING}",
        rf"\b(?:do\snot|don't|does\snot|doesn't)\suse\s{_THING}\sany\s?more",
        rf"(?:^|[,;:(]\s?|\b(?:and|but|so|the|our|my)\s)(?P<thing>[^\s,;:()]+(?:\s[^\s,;:()]+){{0,2}}?)\s{_IS_GONE}",
        rf"(?<!was\s)(?<!were\s)(?<!is\s)(?<!been\s)\b(?:{_ENDS})\s(?:support\sfor\s|use\sof\s)?{_THING}",
        rf"\b(?:switched|moved|migrated|changed|went|ported|converted|upgraded|swapped)\b[^.;!?]{{0,60}}?\bfrom\s{_THING}[^.;!?]{{0,40}}?\sto\b",
    )
)
_REMOVED = re.compile(r"\b(?:is|are|was|were|has\sbeen|have\sbeen)\s(?:now\s)?(?:removed|gone)\b", re.IGNORECASE)
_COMPARING = re.compile(rf"\b(?:deprecated|instead\sof|rather\sthan|in\splace\sof)\s{_THING}", re.IGNORECASE)

_SUCCESSOR = re.compile(
    r"^.*?(?=\b(?:replaces|supersedes|took\sover\sfrom)\b)|^\S+(?:\s\S+)?\s(?=replaced\b)|\b(?:by|with|to|in\sfavou?r\sof)\s\S+(?:\s[A-Z]\S*)*"
)

_CHANGED = re.compile(
    r"\b(?:moved|switched|migrated|upgraded|downgraded|bumped|raised|lowered|increased|decreased|reduced|shortened|extended|lengthened|doubled|halved"
    r"|cut|changed|ported|converted)\b",
    re.IGNORECASE,
)
_MARKED = re.compile(
    r"\b(?:now|from\snow\son|no\slonger|by\snow|these\sdays|as\sof|any\s?more|going\sforward|meanwhile|since\s(?:today|yesterday|last))\b",
    re.IGNORECASE,
)
_TO = re.compile(r"\bto\s(?:the\s|an?\s|using\s)?(?P<thing>\S+)", re.IGNORECASE)
_PAST = re.compile(
    r"\b(?:tried|considered|evaluated|used\sto|formerly|previously|rejected|decided\sagainst|ago|until|would|might|proposed|planned|was|were|back\sthen)\b",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"[,\s:]\s*(?:because|since|so\sthat|due\sto|in\sorder\sto|which|where|whereas|although|as\s(?:it|they|we|the))\b.*", re.IGNORECASE | re.DOTALL
)
_AGAINST = re.compile(
    r"\b(?:instead\sof|rather\sthan|unlike|over|than|not|no|never|without|neither|(?<!come\s)(?<!comes\s)(?<!served\s)(?<!read\s)from|like|for)\s(?:(?:the|an?|on|by|with)\s)?$",
    re.IGNORECASE,
)
_IN_USE = re.compile(
    r"(?:\b(?:uses?|using|is|are|on|with|via|in|by|through|from|to|into)|:)\s(?:(?:the|an?|our|plain|self-hosted|on)\s)*$", re.IGNORECASE
)
_STRICTLY_USED = re.compile(
    r"(?:\b(?:uses?|using|runs?\s(?:on|with)|with|via|through|built\son|managed\sby)|:)\s(?:(?:the|an?|our)\s)*$", re.IGNORECASE
)

_ROLES = stems("linter formatter library framework database tool package server broker runner editor orchestrator cache queue workers")

WEAK = (
    stems(
        """service app application server client api repo project module component package library tool system instance cluster node config setting
    file data version timeout limit interval size phase period window length duration rate count number time default value maximum minimum max min
    port host level new old current change set raise lower shorten extend increase decrease reduce move switch upgrade bump last lapse expire take
    keep hold wait run use go get make need work per each every after within until up down than rather instead first second third half twice
    longer anymore one two three four five six seven eight nine ten twenty thirty again still just only more less least most about around
    roughly some any above below following replaced replaces superseded supersedes retired dropped ditched abandoned decommissioned drop gone off
    disabled disable switched migrated ported converted swapped stopped phased shut unplugged removed support
    issue thing way lot bit do does did done let know people user assistant yesterday today tomorrow night morning
    used needed supported
    second minute hour day week month year it's i'm phase what when where how why who
    which then but so if or no not because while during since before between over under off out into both same other another"""
    )
    | GENERIC
    | EMPTY
)
"""Words that do not tell what a sentence is about: fillers, attributes, verbs of change and of lasting, as stems."""

_MEASURED = re.compile(
    r"\b(?:(?:was|were)(?!\s\w+ed\b)|takes?|took|taking|lost|saw|measured|spent|waited|finished|ago|reached|faster|slower|fewer|saves?|saved|about|roughly|~)\b",
    re.IGNORECASE,
)


COMPONENTS = stems(
    """service app application server client api repo project module component package library tool system instance cluster node old new first
    second third last public private unit integration worker replica connection min max minimum maximum user team"""
)
"""Words that tell one part from another, though two notes that share them need not be about the same."""


_GOING = re.compile(
    r"longer|any\s?more|retired|replac|switched|gone|drop|remov|decommission|shut|abandon|phased|disabled|unplugged|supersed|ditch|rid\sof|stopp|took\sover"
    r"|mov|migrat|changed|went|ported|converted|upgraded|swapped|deprecated|instead|rather|in\splace",
    re.IGNORECASE,
)
"""What every pattern of what is gone needs a part of; most sentences have none, and are spared the patterns."""


class Gone(NamedTuple):
    """A thing that a sentence says is used no more: its name in lower case, and whether the sentence says so outright."""

    name: tuple[str, ...]
    is_outright: bool
    about: frozenset[str]


class Sentence(NamedTuple):
    """A sentence: as written, in words of lower case, what it is about as keys, and what it tells."""

    text: str
    words: tuple[str, ...]
    plain: tuple[str, ...]
    about: frozenset[str]
    parts: frozenset[str]
    where: frozenset[str]
    subject: frozenset[str]
    gone: tuple[Gone, ...]
    becomes: str
    quantities: tuple[Quantity, ...]
    versions: frozenset[tuple[str, str]]
    rivals: frozenset[str]
    is_changed: bool
    doubts: frozenset[str]
    is_past: bool
    is_measured: bool


@lru_cache(maxsize=64)
def read(text: str) -> tuple[Sentence, ...]:
    """Return the first sentences of a text that state something, in order."""
    found: list[Sentence] = []
    for part in sentences(straight(prose(text))):
        sentence = " ".join(_HEADING.sub("", part).strip("-*\u2022# ").split())
        if sentence and not sentence.endswith("?") and sentence.count(" ") < WORDS_MAX:
            found.append(_sentence(sentence))
        if len(found) == SENTENCES_MAX:
            break
    return tuple(found)


def is_real(sentence: Sentence, older: Sentence) -> bool:
    """Say whether a sentence tells what is so here and now, where what an older one speaks of as well is its subject and no doubt."""
    return not sentence.doubts - with_opposites(older.plain)


def keys(words: Iterable[str]) -> frozenset[str]:
    """Return what words are about: the beginnings of their stems, without numbers, units and words that tell nothing."""
    stemmed = ((word, stem(word)) for word in words if not word[:1].isdigit() and word not in UNITS and len(word) > 1)
    return frozenset(one[:KEY_LETTERS] for word, one in stemmed if one not in WEAK and word not in WEAK)


def uses(sentence: Sentence, name: tuple[str, ...]) -> bool:
    """Say whether a sentence says that a thing is in use now: `runs on X`, `backups: X`, `X 4 with …`; of common nouns only `uses x`."""
    if sentence.is_past:
        return False
    plain = _REASON.sub("", sentence.text)
    for match in _named(name).finditer(plain):
        before = plain[: match.start()]
        around = (*re.split(r"[,;:]\s", before)[-1].split(), *plain[match.end() :].split()[:AFTER])
        if _AGAINST.search(before) or NEGATORS & {stem(bare(token)) for token in around}:
            continue
        is_named = is_name(match.group().split()[0]) and (
            bool(before) or bool(re.match(r"\s(?:v?\d|with\b|as\b|for\b|is\b|runs?\b)", plain[match.end() :]))
        )
        if is_named and (not before or _IN_USE.search(before)):
            return True
        if _STRICTLY_USED.search(before):
            return True
    return False


@lru_cache(maxsize=256)
def _named(name: tuple[str, ...]) -> re.Pattern[str]:
    words = r"\s".join(map(re.escape, name))
    return re.compile(rf"(?<!\S)['\"`(*]*{words}(?:'s)?(?=$|['\"`)*,;:.!?\s])", re.IGNORECASE)


def _sentence(text: str) -> Sentence:
    plain = _REASON.sub("", text) or text
    words = tuple(word for token in text.split() if (word := bare(token)))
    changed = _CHANGED.search(plain)
    stemmed = tuple(stem(word) for token in plain.split() if (word := bare(token)))
    becomes = _TO.search(plain, changed.end()) if changed else None
    subject = plain[: changed.start()] if changed else re.split(r":\s|\b(?:uses?|runs?|is|are|has|have|lasts?|live|lives)\b", plain, maxsplit=1)[0]
    return Sentence(
        text=text,
        words=words,
        about=keys(words),
        where=frozenset(stem(word) for token in re.split(r"\safter\s|[;(]", plain)[0].split() if (word := bare(token))),
        parts=COMPONENTS.intersection(stemmed),
        plain=stemmed,
        subject=keys(bare(token) for token in re.sub(r"\([^)]*\)", "", subject).split()),
        gone=tuple(_gone(plain)) if not is_change_denied(plain) else (),
        becomes=bare(becomes["thing"]) if becomes else "",
        quantities=tuple(quantities(plain)),
        versions=frozenset(versions(plain)),
        rivals=frozenset(word for word in stemmed if has_rivals(word)),
        is_changed=changed is not None or _MARKED.search(plain) is not None,
        doubts=doubts(plain, plain) | ({"added"} if is_added(plain) else frozenset()),
        is_past=_PAST.search(plain) is not None,
        is_measured=_MEASURED.search(plain) is not None,
    )


def _gone(text: str) -> Iterator[Gone]:
    if _GOING.search(text) is None:
        return
    comparing = () if is_told(text) else ((_COMPARING, False),)
    for pattern, is_outright in (*((pattern, True) for pattern in _OUTRIGHT), *comparing):
        for match in pattern.finditer(text):
            name = tuple(word for token in match["thing"].split() if (word := bare(token)) and stem(word) not in EMPTY)
            while name and (stem(name[-1]) in WEAK or stem(name[-1]) in _ROLES) and len(name) > 1:
                name = name[:-1]
            if name and len(name) <= NAMED_MAX and not all(stem(word) in WEAK or not word[0].isalnum() for word in name):
                clause = next((part for part in re.split(r"[,;:]\s", text) if match["thing"] in part), text)
                about = keys(bare(token) for token in _SUCCESSOR.sub("", clause).split()) - keys(name)
                yield Gone(name, is_outright, about)

    for removed in _REMOVED.finditer(text):
        for identifier in _IDENTIFIER.findall(text[: removed.start()]):
            yield Gone((identifier.casefold(),), is_outright=False, about=frozenset())
