"""Takes the secrets out of a text, pass after pass, until none is found."""

import re
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256

import msgspec

from omegad.redaction import assignments, entropy, values
from omegad.redaction.issuers import CHARACTERS_MIN, ISSUED, kind_of

REMEMBERED_CHARACTERS = 8 * 1024
REMEMBERED_TEXTS = 256
PASSES_MAX = 8
DIGEST_CHARACTERS = 8

Span = tuple[int, int]
Judge = Callable[[str, re.Match[str]], Span | None]
"""Takes the text and a match in it; returns where the secret is, None where there is none."""


class Rule(msgspec.Struct, frozen=True):
    """Secrets that the place gives away: a pattern in lower case that begins with one of the needles."""

    kind: str
    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    judge: Judge


def _rule(kind: str, needles: str, pattern: str, is_secret: Callable[[str], bool] = bool) -> Rule:
    """Return a rule for the group `secret`, if it is no stand-in."""

    def judge(text: str, match: re.Match[str]) -> Span | None:
        value = text[slice(*match.span("secret"))]
        return match.span("secret") if is_secret(value) and not values.is_stand_in(value) else None

    return Rule(kind, tuple(needles.split("|")), re.compile(pattern), judge)


RULES = (
    _rule("webhook", "hooks.slack.com|api/webhooks/", r"(?:hooks\.slack\.com/[a-z]{8,9}|api/webhooks/[0-9]{15,20})/(?P<secret>[\w/-]{32,})"),
    _rule("url_password", "sig=", r"sig=(?P<secret>(?=[\w%+/-]{0,200}[0-9])[\w%+/-]{30,}={0,2})"),
    _rule("url_password", "://", r"(?<=[a-z0-9])://[^\s:/@\[\]]{0,100}:(?P<secret>[^\s/@]{1,200})@"),
    _rule(
        "url_password",  # a token alone; half of what a digest has is a public key in some addresses
        "://",
        r"(?<=[a-z0-9])://(?P<secret>[\w.~+=-]{20,200})@",
        lambda value: entropy.is_random(value) or re.fullmatch(r"[0-9a-fA-F]{36,}", value) is not None,
    ),
    _rule("authorization", "bearer", r"(?<![a-z0-9])bearer[ \t]{1,60}(?P<secret>(?=\S{0,200}[0-9])[0-9a-z._~+/=-]{16,})"),
    _rule(
        "authorization",
        "auth",
        r"(?<![a-z0-9])auth(?:orization)?\\?[\"'`]?[ \t]{0,3}[=:]?[ \t]{0,3}\\?[\"'`]?(?:basic[ \t]{1,60})?(?P<secret>[0-9a-z+/]{6,}={0,2})",
        lambda value: ":" in entropy.decoded(value),  # a user and a password
    ),
    _rule(
        "authorization",
        "authorization",
        r"authorization[\"'`]?[ \t]{0,3}[=:,][ \t]{0,3}[\"'`]?(?:(?:token|api-?key|key|apitoken)[ \t]{1,60}(?:token=)?[\"']?)?"
        r"(?P<secret>(?=[^\s\"'`]{0,200}[0-9])[0-9a-z._~+/-]{16,2000}+={0,2})(?![\w(])",
        lambda value: not values.has_word(value),
    ),
    _rule("password_file", "machine", r"machine[ \t]{1,60}\S{1,200}\s{1,60}login\s{1,60}\S{1,100}\s{1,60}password\s{1,60}(?P<secret>\S+)"),
    _rule(
        "password_file",  # of PostgreSQL: host, port, database, user
        ":*:|:54|:6432:",
        r"(?<=[\w*-]):(?:\*|54[0-9]{2}|6432):(?:\*|[a-z_][\w-]{0,63}):(?:\*|[a-z_][\w.@-]{0,63}):(?P<secret>(?:[^\s:\\\"'`]|\\.){3,128}+)(?![^\s\"'`])",
    ),
    Rule("assigned_secret", ("pass", "pw", "secret", "token", "key"), re.compile(assignments.NAMED), assignments.named),
)
_NEEDLES = tuple({needle for rule in RULES for needle in rule.needles})
_DIGIT_OR_CAPITAL = re.compile(r"[0-9A-Z]")
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)")


def redact(text: str) -> tuple[str, tuple[str, ...]]:
    """Return *text* with each secret replaced by `[REDACTED:kind]`, and the kinds that were found."""
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
    while (passed := _redact_once(text, is_name=is_name))[1]:
        # Once more: a secret may only show when the one that it was glued to is gone. Where every pass uncovers another, somebody made
        # the text to be searched for ever; it ends at the first mark.
        passes += 1
        text = passed[0] if passes <= PASSES_MAX else f"{passed[0].partition('[REDACTED:')[0]}[REDACTED:{passed[1][0]}]"
        found |= dict.fromkeys(passed[1])
    return text, tuple(found)


# The same text is searched when a command is prepared and again at the append, soon after.
_redact_remembered = lru_cache(maxsize=REMEMBERED_TEXTS)(_redact)


def _redact_once(text: str, *, is_name: bool) -> tuple[str, list[str]]:
    found: list[str] = []

    def mark(match: re.Match[str]) -> str:
        found.append(kind_of(match) if match.re is ISSUED else "private_key")
        return f"[REDACTED:{found[-1]}]"

    if "-----BEGIN " in text:
        text = _PRIVATE_KEY.sub(mark, text)
    words = [word for word in text.split() if len(word) >= CHARACTERS_MIN and _DIGIT_OR_CAPITAL.search(word)]
    if words and ISSUED.search(" ".join(words)):
        text = ISSUED.sub(mark, text)
    folded = text.replace("İ", "I").lower()  # the one letter that is two in lower case
    if here := {needle for needle in _NEEDLES if needle in folded}:
        for rule in RULES:
            if not here.isdisjoint(rule.needles) and (spans := _spans(rule, text, folded)):
                text = _without(text, spans, rule.kind, found)
                folded = text.replace("İ", "I").lower()
    if not is_name and any(map(entropy.is_mixed, words)):
        text = _without(text, [span for match in entropy.RANDOM.finditer(text) if (span := entropy.random_token(text, match))], "high_entropy", found)
    return text, found


def _spans(rule: Rule, text: str, folded: str) -> list[Span]:
    # To find a substring takes a tenth of the time of a pattern that begins with it.
    places = sorted(at for needle in rule.needles for at in map(re.Match.start, re.finditer(re.escape(needle), folded)))
    spans: list[Span] = []
    for at in places:
        # What begins within a secret is a part of it, whatever it looks like.
        if (not spans or at >= spans[-1][1]) and (match := rule.pattern.match(folded, at)) and (span := rule.judge(text, match)):
            spans.append(span)
    return spans


def _without(text: str, spans: list[Span], kind: str, found: list[str]) -> str:
    """Return *text* with *kind* for what is in *spans*, and add it to *found*."""
    if not spans:
        return text
    found.append(kind)
    ends = [0, *(last for _, last in spans)]
    kept = [text[end:first] for end, first in zip(ends, [*(first for first, _ in spans), len(text)], strict=True)]
    return f"[REDACTED:{kind}]".join(kept)
