"""Finds secrets in text, by the shapes that their issuers publish.

A rule is a name and a pattern; where the pattern has a group `secret`, only that is taken out. A replacement never matches a rule,
so text that was searched once is left alone the next time.
"""

import re
from collections.abc import Callable

_NAME_OF_ONE = r"(?i:\b[\w.-]{0,40}(?:password|passwd|secret|api[_-]?key|access[_-]?key|auth[_-]?token|access[_-]?token|private[_-]?key))"

_RULES: tuple[tuple[str, str], ...] = (
    ("private_key", r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)"),
    ("aws_access_key", r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b"),
    ("github_token", r"\bgh[pousr]_[0-9A-Za-z]{36,255}|\bgithub_pat_[0-9A-Za-z_]{22,255}"),
    ("gitlab_token", r"\bglpat-[0-9A-Za-z_-]{20,}"),
    ("slack_token", r"\bxox[abeoprs]-[0-9A-Za-z-]{10,}"),
    ("anthropic_key", r"\bsk-ant-[0-9A-Za-z_-]{20,}"),
    ("openai_key", r"\bsk-(?:proj-|svcacct-)?[0-9A-Za-z_-]{20,}"),
    ("stripe_key", r"\b[rs]k_(?:live|test)_[0-9A-Za-z]{16,}"),
    ("google_api_key", r"\bAIza[0-9A-Za-z_-]{35}"),
    ("huggingface_token", r"\bhf_[0-9A-Za-z]{30,}"),
    ("npm_token", r"\bnpm_[0-9A-Za-z]{36}"),
    ("pypi_token", r"\bpypi-[0-9A-Za-z_-]{50,}"),
    ("jwt", r"\beyJ[0-9A-Za-z_-]{8,}\.eyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]{8,}"),
    ("url_password", r"\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@\[\]]{1,100}:(?P<secret>(?!\[REDACTED:)[^\s/@]{1,200})@"),
    ("bearer_token", r"(?i:\bbearer\s+)(?P<secret>(?!\[REDACTED:)[0-9A-Za-z._~+/=-]{16,})"),
    ("assigned_secret", _NAME_OF_ONE + r"[\"']?\s{0,3}[=:]\s{0,3}[\"']?(?P<secret>(?!\[REDACTED:)(?=[^\s\"']*[0-9])[^\s\"',;]{8,200})"),
)

_COMPILED = tuple((name, re.compile(pattern)) for name, pattern in _RULES)

# A text that holds none of these holds no secret that a rule knows; most texts end here, after one pass.
_HINTS = re.compile(
    r"PRIVATE KEY|AKIA|ASIA|ABIA|ACCA|gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|sk-|[rs]k_(?:live|test)_|AIza|hf_|npm_|pypi-|eyJ|://"
    r"|(?i:bearer|passw|secret|api[_-]?key|access[_-]?key|auth[_-]?token|access[_-]?token|private[_-]?key)"
)


def redact(text: str) -> tuple[str, tuple[str, ...]]:
    """Return *text* with each secret replaced by `[REDACTED:rule]`, and the names of the rules that found one."""
    if not _HINTS.search(text):
        return text, ()
    found: list[str] = []
    for name, pattern in _COMPILED:
        text, count = pattern.subn(_replacer(name), text)
        if count:
            found.append(name)
    return text, tuple(found)


def _replacer(name: str) -> Callable[[re.Match[str]], str]:
    mark = f"[REDACTED:{name}]"

    def replace(match: re.Match[str]) -> str:
        if "secret" not in match.re.groupindex:
            return mark
        whole, start, (first, last) = match.group(), match.start(), match.span("secret")
        return whole[: first - start] + mark + whole[last - start :]

    return replace
