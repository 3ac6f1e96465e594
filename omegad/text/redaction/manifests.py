"""What Kubernetes keeps in a Secret: the values of its data in YAML and JSON, as manifests, kubectl and the
API's server write them, and as `kubectl patch` takes them.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from omegad.text.redaction import values
from omegad.text.redaction.values import Span

VALUE_MIN = 4
PATCH_CHARACTERS = 2_000

# A document begins at the first of its two names, whatever their order; those of owners, and of who changed
# it, begin none.
_BEGINS = re.compile(
    r"\n---|\"(?:ownerreferences|managedfields)\":\[[^\[\]]{0,4000}"
    r"|(?<![\w-])(?P<name>apiversion|kind)\\?\"?:"
)
_KIND = re.compile(r"kind(?<![\w-]kind)\\?\"?: {0,2}\\?\"?secret(?:list)?(?![\w-])")
_PATCH = re.compile(r" patch secrets?[ /]")
_YAML = re.compile(r"^(?P<margin>[ \t]{0,40})(?:string)?data:[ \t]{0,8}\r?\n", re.MULTILINE)
_LINE = re.compile(
    r"(?P<margin>[ \t]{0,40})(?:(?P<key>[\w.-]{1,100}):[ \t]{1,8}(?:!{1,2}\w{1,20}[ \t]{1,8})?"
    r"(?:(?P<block>[|>][-+0-9]{0,2}(?=\s))|(?P<value>[^\s!|>&*{\[#][^\r\n]{0,20000})))?[^\n]*(?:\n|\Z)"
)
_REMARK = re.compile(r"[ \t]#")
# Once more as a string of JSON has it.
_JSON = tuple(re.compile(rf"{quote}(?:string)?data{quote}:\s{{0,40}}\{{") for quote in ('"', r'\\"'))
_MEMBERS = tuple(
    re.compile(
        rf"\s{{0,80}},?\s{{0,80}}{quote}(?P<key>[\w.-]{{1,100}}){quote}:\s{{0,40}}"
        rf"{quote}(?P<value>(?:[^\"\\]|\\{escaped}){{0,20000}}){quote}"
    )
    for quote, escaped in (('"', "."), (r'\\"', r"[^\"]"))
)
_IS_PUBLIC = re.compile(
    r"(?:.*[_.-])?(?:user(?:_?name)?|login|host(?:name)?|port|e?mail|name|namespace|region|bucket|endpoint"
    r"|server|(?:ca|tls)\.crt|type)",
    re.IGNORECASE,
)


def kept(text: str, folded: str) -> list[Span]:
    """Return where values stand that a Secret keeps; *folded* is *text* in lower case."""
    if not (("kind" in folded and _KIND.search(folded)) or ("patch" in folded and _PATCH.search(folded))):
        return []
    spans: list[Span] = []
    found = {entry for part in _documents(folded) for entry in _entries(text, folded, *part)}
    for (first, last), key in sorted(found):
        value = text[first:last]
        if (
            len(value) >= VALUE_MIN
            and (not spans or first >= spans[-1][1])
            and not (is_public(key) or values.is_stand_in(value))
        ):
            spans.append((first, last))
    return spans


def is_public(key: str) -> bool:
    """Say whether what a Secret keeps by this key is no secret: a user's name, a host, and the like."""
    return _IS_PUBLIC.fullmatch(key) is not None


def _documents(folded: str) -> Iterator[Span]:
    """Yield where documents begin and end that are Secrets, or lists of them."""
    starts, seen = [0], set[str]()
    for found in _BEGINS.finditer(folded):
        name = found["name"]
        if name in seen or found[0] == "\n---":
            starts.append(found.start())
            seen.clear()
        if name:
            seen.add(name)
    for first, last in pairwise([*starts, len(folded)]):
        if _KIND.search(folded, first, last):
            yield first, last
    for patch in _PATCH.finditer(folded):
        yield patch.start(), min(len(folded), patch.start() + PATCH_CHARACTERS)


def _entries(text: str, folded: str, first: int, last: int) -> Iterator[tuple[Span, str]]:
    """Yield where the values of a Secret stand, each with its key."""
    done = first
    for block in _YAML.finditer(folded, first, last):
        done = max(done, block.end())
        key, depth, value = "", 0, (0, 0)
        while done < last and (line := _LINE.match(text, done, last)):
            margin, is_blank = len(line["margin"]), not line[0].strip()
            if margin <= len(block["margin"]) and not is_blank:
                break
            done = line.end()
            if key and margin > depth and not is_blank:  # the value goes on
                begin = value[0] or line.start() + margin
                value = begin, line.start() + len(line[0].rstrip())
            elif not is_blank:
                yield _unquoted(text, *value), key
                key, depth, value = line["key"] or "", margin, (0, 0)
                if line["value"]:
                    begin = line.start("value")
                    value = begin, begin + len(line["value"].rstrip())
                key = key if line["value"] or line["block"] else ""
        yield _unquoted(text, *value), key
    for opening, member in zip(_JSON, _MEMBERS, strict=True):
        for block in opening.finditer(folded, first, last):
            done = block.end()
            while entry := member.match(text, done, last):
                done = entry.end()
                yield entry.span("value"), entry["key"]


def _unquoted(text: str, first: int, last: int) -> Span:
    """Return where the value of a scalar is, without its quotes, or the remark behind it."""
    quote = text[first:last][:1]
    if quote in {'"', "'"}:
        end = text.find(quote, first + 1, last)
        while end > 0 and quote == '"' and text[end - 1] == "\\":
            end = text.find(quote, end + 1, last)
        return first + 1, last if end < 0 else end
    found = None if "\n" in text[first:last] else _REMARK.search(text, first, last)
    return first, found.start() if found else last
