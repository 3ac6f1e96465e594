"""Takes the secrets out of a text, rule after rule, until none finds one."""

import re
import string
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256

from omegad.log.secrets.issued import CHARACTERS_MIN, ISSUED, ISSUED_LONG
from omegad.log.secrets.randomness import RANDOM, may_hold_random
from omegad.log.secrets.rule import Rule, Span, stated
from omegad.log.secrets.stated import STATED

REMEMBERED_CHARACTERS = 8 * 1024
REMEMBERED_TEXTS = 256
PASSES_MAX = 8
DIGEST_CHARACTERS = 8

PRIVATE_KEY = stated(
    "private_key",
    "-----begin ",
    r"-----begin [a-z ]{0,40}private key(?: block)?-----[\s\S]*?(?:-----end [a-z ]{0,40}private key(?: block)?-----|\Z)",
)


def _any_of(needles: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern for any of *needles*. Their first letters part them, so that few are tried anywhere."""
    groups: dict[str, list[str]] = {}
    for needle in sorted(needles):
        groups.setdefault(needle[0], []).append(re.escape(needle[1:]))
    return re.compile("|".join(f"{re.escape(letter)}(?:{'|'.join(rests)})" for letter, rests in groups.items()))


_ISSUED_NEEDLES = {needle for rule in ISSUED for needle in rule.needles}
_ISSUED_NEEDLE = _any_of(_ISSUED_NEEDLES)
_STATED_NEEDLES = tuple({needle for rule in (PRIVATE_KEY, *STATED) for needle in rule.needles})
_LONG_NEEDLES = {needle for rule in (*ISSUED_LONG, RANDOM) for needle in rule.needles}
_DIGIT_OR_CAPITAL = re.compile(r"[0-9A-Z]")
_LOWER_CASE = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def redact(text: str) -> tuple[str, tuple[str, ...]]:
    """Return *text* with each secret replaced by `[REDACTED:rule]`, and the names of the rules that found one."""
    return _redact_remembered(text) if len(text) <= REMEMBERED_CHARACTERS else _redact(text)


@lru_cache(maxsize=REMEMBERED_TEXTS)
def redact_name(name: str) -> str:
    """Return the name of a project, session or other thing without the credentials in it.

    The same name always gives the same, so that what was stored by it is found by it; a name that merely looks random is one. A name
    that is nothing but a token keeps the first digits of its SHA-256, so that two of them stay two.
    """
    clean, found = _redact(name, is_name=True)
    if found and clean == f"[REDACTED:{found[-1]}]":
        return f"[REDACTED:{found[-1]}-{sha256(name.encode()).hexdigest()[:DIGEST_CHARACTERS]}]"
    return clean


def _redact(text: str, *, is_name: bool = False) -> tuple[str, tuple[str, ...]]:
    found: dict[str, None] = {}
    passes = 0
    while names := (passed := _redact_once(text, is_name=is_name))[1]:
        # Once more: a secret may only show when the one that it was glued to is gone.
        passes += 1
        text = passed[0] if passes <= PASSES_MAX else _cut(text, *passed)
        found |= dict.fromkeys(names)
    return text, tuple(found)


# The same text is searched when a command is prepared and again at the append, soon after.
_redact_remembered = lru_cache(maxsize=REMEMBERED_TEXTS)(_redact)


def _cut(text: str, clean: str, names: list[str]) -> str:
    """Return *text* up to the first secret found in it: where every pass uncovers another, somebody made it to be searched for ever."""
    same = next((at for at, (before, after) in enumerate(zip(text, clean, strict=False)) if before != after), 0)
    return f"{text[:same]}[REDACTED:{names[0]}]"


def _redact_once(text: str, *, is_name: bool) -> tuple[str, list[str]]:
    folded = _folded(text)
    found: list[str] = []
    # A substring is found many times faster than a pattern fails.
    stated_here = {needle for needle in _STATED_NEEDLES if needle in folded}
    words = [word for word in text.split() if len(word) >= CHARACTERS_MIN and _DIGIT_OR_CAPITAL.search(word)]
    if stated_here:
        text = _apply((PRIVATE_KEY,), text, stated_here, found)
    if words:
        joined = " ".join(words)
        if _ISSUED_NEEDLE.search(joined):
            text = _apply(ISSUED, text, {needle for needle in _ISSUED_NEEDLES if needle in joined}, found)
    if stated_here:
        text = _apply(STATED, text, stated_here, found)
    if not is_name and any(map(may_hold_random, words)):
        text = _apply((*ISSUED_LONG, RANDOM), text, _LONG_NEEDLES, found)
    return text, found


def _folded(text: str) -> str:
    """Return *text* in lower case, character for character."""
    folded = text.lower()
    return folded if len(folded) == len(text) else text.translate(_LOWER_CASE)


def _apply(rules: Iterable[Rule], text: str, needles: set[str], found: list[str]) -> str:
    """Return *text* without what those of *rules* find that have one of *needles*, and add their names to *found*."""
    folded = ""
    for rule in rules:
        if needles.isdisjoint(rule.needles):
            continue
        if rule.is_folded:
            folded = folded or _folded(text)
        if spans := rule.spans(text, folded):
            text, folded = _without(text, spans, f"[REDACTED:{rule.name}]"), ""
            found.append(rule.name)
    return text


def _without(text: str, spans: list[Span], mark: str) -> str:
    pieces, end = [], 0
    for first, last in spans:
        pieces += [text[end:first], mark]
        end = last
    return "".join((*pieces, text[end:]))
