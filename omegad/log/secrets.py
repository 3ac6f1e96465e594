"""Finds secrets in text, by the shapes that their issuers publish.

A rule is a name and a pattern; where the pattern has a group `secret`, only that is taken out. A replacement never matches a rule,
so text that was searched once is left alone the next time.
"""

import re
from collections.abc import Callable
from functools import lru_cache

import msgspec

REMEMBERED_CHARACTERS = 8 * 1024
REMEMBERED_TEXTS = 256

_NAMES = ("password", "passwd", "secret", "api_key", "api-key", "apikey", "access", "auth", "private")
_VALUE = r"(?P<secret>(?!\[REDACTED:)(?=[^\s\"',;()]{0,200}[0-9])[^\s\"',;()]{8,200})"
_NAME = r"(?i:\b[\w.-]{0,40}(?:password|passwd|secret|api[_-]?key|access[_-]?key|auth[_-]?token|access[_-]?token|private[_-]?key))"


class Rule(msgspec.Struct, frozen=True):
    """One kind of secret. Its pattern matches only where one of the needles is in the text, in lower case."""

    name: str
    needles: tuple[str, ...]
    pattern: re.Pattern[str]


def _rule(name: str, needles: str | tuple[str, ...], pattern: str) -> Rule:
    return Rule(name, (needles,) if isinstance(needles, str) else needles, re.compile(pattern))


RULES = (
    _rule(
        "private_key",
        "private key",
        r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    ),
    _rule("aws_access_key", ("akia", "asia", "abia", "acca"), r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b"),
    _rule("github_token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"\bgh[pousr]_[0-9A-Za-z]{36,255}"),
    _rule("github_token", "github_pat_", r"\bgithub_pat_[0-9A-Za-z_]{22,255}"),
    _rule("gitlab_token", "glpat-", r"\bglpat-[0-9A-Za-z_-]{20,}"),
    _rule("slack_token", "xox", r"\bxox[abeoprs]-[0-9A-Za-z-]{10,}"),
    _rule("anthropic_key", "sk-ant-", r"\bsk-ant-[0-9A-Za-z_-]{20,}"),
    _rule("openai_key", "sk-", r"\bsk-(?:proj-|svcacct-)?[0-9A-Za-z_-]{20,}"),
    _rule("stripe_key", ("k_live_", "k_test_"), r"\b[rs]k_(?:live|test)_[0-9A-Za-z]{16,}"),
    _rule("google_api_key", "aiza", r"\bAIza[0-9A-Za-z_-]{35}"),
    _rule("huggingface_token", "hf_", r"\bhf_[0-9A-Za-z]{30,}"),
    _rule("npm_token", "npm_", r"\bnpm_[0-9A-Za-z]{36}"),
    _rule("pypi_token", "pypi-", r"\bpypi-[0-9A-Za-z_-]{50,}"),
    _rule("jwt", "eyj", r"\beyJ[0-9A-Za-z_-]{8,1000}\.eyJ[0-9A-Za-z_-]{8,4000}\.[0-9A-Za-z_-]{8,}"),
    _rule("url_password", "://", r"\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@\[\]]{1,100}:(?P<secret>(?!\[REDACTED:)[^\s/@]{1,200})@"),
    _rule("bearer_token", "bearer", r"(?i:\bbearer\s+)(?P<secret>(?!\[REDACTED:)[0-9A-Za-z._~+/=-]{16,})"),
    _rule("assigned_secret", _NAMES, _NAME + r"[\"']?\s{0,3}[=:]\s{0,3}[\"']?" + _VALUE),
)


_NEEDLES = tuple({needle for rule in RULES for needle in rule.needles})


def redact(text: str) -> tuple[str, tuple[str, ...]]:
    """Return *text* with each secret replaced by `[REDACTED:rule]`, and the names of the rules that found one."""
    return _redact_remembered(text) if len(text) <= REMEMBERED_CHARACTERS else _redact(text)


def _redact(text: str) -> tuple[str, tuple[str, ...]]:
    found: dict[str, None] = {}
    while names := (passed := _redact_once(text))[1]:
        # Once more: a secret may only show when the one that it was glued to is gone.
        text = passed[0]
        found |= dict.fromkeys(names)
    return text, tuple(found)


# The same text is searched when a command is prepared and again at the append, soon after.
_redact_remembered = lru_cache(maxsize=REMEMBERED_TEXTS)(_redact)


def _redact_once(text: str) -> tuple[str, list[str]]:
    folded = text.lower()
    found: list[str] = []
    # Most texts hold no needle at all; a substring is found many times faster than a pattern fails.
    if not any(map(folded.__contains__, _NEEDLES)):
        return text, found
    for rule in RULES:
        for needle in rule.needles:
            if needle in folded:
                text, count = rule.pattern.subn(_replacer(rule.name), text)
                if count:
                    found.append(rule.name)
                break
    return text, found


def _replacer(name: str) -> Callable[[re.Match[str]], str]:
    mark = f"[REDACTED:{name}]"

    def replace(match: re.Match[str]) -> str:
        if "secret" not in match.re.groupindex:
            return mark
        whole, start, (first, last) = match.group(), match.start(), match.span("secret")
        return whole[: first - start] + mark + whole[last - start :]

    return replace
