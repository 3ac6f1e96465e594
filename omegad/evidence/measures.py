"""The quantities and versions that a sentence names: numbers with their units, products with their version. English. Pure."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from omegad.evidence.names import bare, is_name, is_rival
from omegad.evidence.wording import EDGE

_WRITTEN = "one/1 two/2 three/3 four/4 five/5 six/6 seven/7 eight/8 nine/9 ten/10 twelve/12 fifteen/15 twenty/20 thirty/30 sixty/60 ninety/90"
_NUMBERS = {word: number for pair in _WRITTEN.split() for word, _, number in (pair.partition("/"),)}
UNITS = {
    unit: names.split()[0]
    for names in (
        "second seconds sec secs s",
        "millisecond milliseconds ms",
        "minute minutes min mins",
        "hour hours h hrs",
        "day days",
        "week weeks",
        "month months",
        "year years",
        "space spaces",
        "column columns",
        "character characters chars",
        "request requests",
        "retry retries",
        "attempt attempts",
        "worker workers",
        "replica replicas",
        "connection connections",
        "approval approvals",
        "percent %",
        "kb kib",
        "mb mib",
        "gb gib",
        "tb tib",
        "euro euros eur \u20ac",
        "dollar dollars usd $",
        "item items",
        "row rows",
    )
    for unit in names.split()
}
_DIGITS = re.compile(r"\d[\d.,]*\d|\d")
_AGAINST = re.compile(r"\b(?:instead of|rather than|from|no longer|not)\s(?:every\s|after\s|for\s|only\s)?(\S+)")
_GLUED = re.compile(r"(\d[\d.,]*)([a-z%\u20ac$]{1,4})")

_VERSIONED = re.compile(
    r"(?:(?P<before>\b(?:[Uu]ses?|on|to|with|[Ss]upports?|[Ss]upport\sfor|[Rr]equires?|[Nn]eeds?|is|are|[Tt]argets?)\s(?:the\s|at\sleast\s)?)"
    r"|^(?:The\s|Minimum\s)?)"
    r"(?:(?P<name>[A-Za-z][\w.+-]*[A-Za-z])|(?P<other>[A-Za-z]\w*)\sversion\s(?:is|of|:))\s(?P<version>v?\d+(?:\.\d+)*)(?![\w.-]*\w)"
    r"(?!\s(?:ms|s|sec\w*|min\w*|hours?|days?|weeks?|months?|years?|%|requests?|[kmgt]i?b)\b)"
)


class Quantity(NamedTuple):
    """A number with its unit, and the number it takes the place of where the sentence says so."""

    number: str
    unit: str
    instead: str


def quantities(text: str) -> Iterator[Quantity]:
    """Yield the quantities of a sentence: of `30 minutes rather than 15`, 30 minutes instead of 15."""
    words = [bare(token) or token for token in _GLUED.sub(r"\1 \2", text.casefold()).split()]
    words = [_NUMBERS.get(word, word) for word in words]
    against = _AGAINST.search(" ".join(words))
    instead = against.group(1).strip(EDGE) if against else ""
    for number, unit in pairwise(words):
        if _DIGITS.fullmatch(number) and unit in UNITS and number != instead:
            yield Quantity(number, UNITS[unit], instead if _DIGITS.fullmatch(instead) else "")


def versions(text: str) -> Iterator[tuple[str, str]]:
    """Yield the products, in lower case, and their versions of which a sentence says that they are used, needed or supported."""
    for match in _VERSIONED.finditer(text):
        name = match["name"] or match["other"]
        if is_name(name) if match["before"] else any(sign.isupper() for sign in name[1:]) or is_rival(name.casefold()):
            yield bare(name), match["version"].removeprefix("v")
