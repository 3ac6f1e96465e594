"""What others wrote, as an agent is shown it: on one line, in quotes or in a fence that it cannot leave, and
with no tag in it.

Everything that could be read as a tag or as the fence's name is broken by a dot, in whatever way it is spelt.
A boundary drawn by chance would do for the fence, but leave the tags of hosts, and the same question would
get another text each time. Quoting what is quoted changes nothing.
"""

import re
import unicodedata
from collections.abc import Sequence

FENCE = "omegad_memory"
NAME_CHARACTERS = 256
BY_CHARACTERS = 80  # of who said something
NAMES_MAX = 3
DOT = "\N{MIDDLE DOT}"

_BREAK = re.compile("\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")
# Controls, what turns the direction of writing, and what is not seen but read all the same: zero-width
# characters, and those that spell in secret.
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]+"
)
# What shows nothing of its own either, and has its place in emoji and scripts.
_JOINING = (
    "\u0300-\u036f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c\u200d\u20d0-\u20ff\u2800\u3164"
    "\ufe00-\ufe0f\ufe20-\ufe2f\uffa0"
)
_ENTITIES = ("#", "lt", "lang", "laquo", "lsaquo", "nvlt", "amp", "quot")
_TAG = re.compile(
    rf"""
    [<\uff1c\ufe64\u226e](?![\s{_JOINING}]*[0-9=<\-{DOT}])  # but for what compares and points: a < 5, <=, <-
    | [\u2039\xab\u2329\u27e8\u3008\u300a\u276e\u276c\u2770\u02c2\u1438]  # others alike, with /
      (?=[\s{_JOINING}]*[/\\\uff0f\u2044\u2215\u29f8\u2571])
    | &(?=[{_JOINING}]*(?:{"|".join(f"[{_JOINING}]*".join(map(re.escape, one)) for one in _ENTITIES)}))
    | (?:\\u00|\\x|%)(?=3c)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ODD = re.compile(r"[^\t\n -$'-;=-\[\]-~]")  # what all of the above begin with, and whatever is not ASCII
_NAMED = re.compile(f"[\\s{_JOINING}]*".join(FENCE), re.IGNORECASE)
_JOINED = re.compile(f"[{_JOINING}]+")
_BROKEN = FENCE.replace("_", f"{DOT}_")
_DOUBLE = dict.fromkeys(map(ord, '"\u201c\u201d\u201e\u201f\u2033\u301d\u301e\uff02'), "'")
_ROUND = str.maketrans("()\uff08\uff09", "[][]")
_PLAIN = re.compile(r"[\w./\\:@+,=~%*\[\]-]+")


def inert(text: str) -> str:
    """Return a text, its lines kept, in which nothing is a tag, the end of a fence, or hidden."""
    if not _ODD.search(text):  # as most texts, which then take a fifth of the time
        return _NAMED.sub(_BROKEN, text)
    text = _UNSEEN.sub("", _BREAK.sub("\n", text))
    composed = text if text.isascii() else _JOINED.sub("", unicodedata.normalize("NFKC", text))
    if _NAMED.search(composed):
        text = _NAMED.sub(_BROKEN, composed)
    return _TAG.sub(rf"\g<0>{DOT}", text)


def one_line(text: str, characters: int) -> str:
    """Return the beginning of a text on one line, as harmless."""
    beginning = text[: 4 * characters]
    flat = inert(" ".join(beginning.split()))
    return (
        flat
        if len(flat) <= characters and len(beginning) == len(text)
        else f"{flat[: characters - 1].rstrip()}…"
    )


def shortened(text: str, characters: int) -> str:
    """Return the beginning of a text on one line, in its own words."""
    flat = " ".join(text.split())
    return flat if len(flat) <= characters else f"{flat[: characters - 1].rstrip()}…"


BEGINNING_CHARACTERS = 400
"""Of a content of which nothing is known to answer."""


def excerpt(content: str, passage: str | None) -> str:
    """Return a passage of a content, between dots where there is more of it; where there is none the
    beginning, of a content that is not long all of it.
    """
    if not passage:
        passage = content[:BEGINNING_CHARACTERS]
    before, after = (
        "" if is_edge else "…" for is_edge in (content.startswith(passage), content.endswith(passage))
    )
    return f"{before}{passage}{after}"


def quoted(text: str, characters: int) -> str:
    """Return the beginning of a text on one line, in quotes that it cannot leave."""
    return '"' + one_line(text, characters).translate(_DOUBLE).rstrip("\\") + '"'


def in_parentheses(text: str, characters: int) -> str:
    """Return the beginning of a text on one line, in parentheses that it cannot leave."""
    return "(" + one_line(text, characters).translate(_ROUND) + ")"


def name(text: str, characters: int = NAME_CHARACTERS) -> str:
    """Return a name that others gave, of a file or a session: as it is where it is one plain word, else in
    quotes.
    """
    flat = one_line(text, characters)
    return flat if _PLAIN.fullmatch(flat.removesuffix("…")) else quoted(text, characters)


def names(several: Sequence[str], characters: int = NAMES_MAX * NAME_CHARACTERS) -> str:
    """Return the first of some names, as many as there is room for, and how many more there are."""
    shown, room = list[str](), characters
    for one in several[:NAMES_MAX]:
        told = name(one, max(room, 8))
        if shown and len(told) > room:
            break
        shown.append(told)
        room -= len(told) + 2
    more = f" and {len(several) - len(shown)} more" if len(several) > len(shown) else ""
    return ", ".join(shown) + more


def fenced(head: str, body: str) -> str:
    """Return a text for an agent between marks, with a head that says what it is; what others wrote of
    both is quoted, or on a line of its own.
    """
    return f"<{FENCE}>\n{head}\n{body}\n</{FENCE}>"
