"""What Kubernetes keeps in a Secret: the values of its data in YAML and JSON, as manifests and kubectl write
them.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from omegad.text.redaction import values

VALUE_MIN = 4

_BEGINS = re.compile(r"\n---|apiversion\"?:")
_KIND = re.compile(r"kind\"?: ?\"?secret(?![\w-])")
_YAML = re.compile(r"^(?P<margin>[ \t]{0,40})(?:string)?data:[ \t]{0,8}\r?\n", re.MULTILINE)
_LINE = re.compile(
    r"(?P<margin>[ \t]{0,40})(?:(?P<key>[\w.-]{1,100}):[ \t]{1,8}[\"']?"
    r"(?P<value>[^\s\"'|>&*{\[][^\s\"']{0,20000}))?[^\n]*(?:\n|\Z)"
)
_JSON = re.compile(r"\"(?:string)?data\":\s{0,40}\{")
_MEMBER = re.compile(
    r"\s{0,80},?\s{0,80}\"(?P<key>[\w.-]{1,100})\":\s{0,40}\"(?P<value>(?:[^\"\\]|\\.){0,20000})\""
)
_IS_PUBLIC = re.compile(
    r"(?:.*[_.-])?(?:user(?:_?name)?|login|host(?:name)?|port|e?mail|name|namespace|region|bucket|endpoint"
    r"|server|(?:ca|tls)\.crt|type)",
    re.IGNORECASE,
)

Span = tuple[int, int]


def kept(text: str, folded: str) -> list[Span]:
    """Return where values stand that a Secret keeps; *folded* is *text* in lower case."""
    if "kind" not in folded or not _KIND.search(folded):
        return []
    return [
        entry.span("value")
        for first, last in _documents(folded)
        for entry in _entries(text, folded, first, last)
        if len(entry["value"] or "") >= VALUE_MIN
        and not _IS_PUBLIC.fullmatch(entry["key"])
        and not values.is_stand_in(entry["value"])
    ]


def _documents(folded: str) -> Iterator[Span]:
    """Yield where documents begin and end that are Secrets."""
    starts = [0, *(found.start() for found in _BEGINS.finditer(folded)), len(folded)]
    for first, last in pairwise(starts):
        if _KIND.search(folded, first, last):
            yield first, last


def _entries(text: str, folded: str, first: int, last: int) -> Iterator[re.Match[str]]:
    done = first
    for block in _YAML.finditer(folded, first, last):
        done = max(done, block.end())
        while done < last and (line := _LINE.match(text, done, last)):
            if len(line["margin"]) <= len(block["margin"]) and line[0].strip():
                break
            done = line.end()
            yield line
    for block in _JSON.finditer(folded, first, last):
        done = block.end()
        while entry := _MEMBER.match(text, done, last):
            done = entry.end()
            yield entry
