"""Numbers that English writes as words, from two up: "one" is mostly none."""

from collections.abc import Iterable

_UNITS = ["two", "three", "four", "five", "six", "seven", "eight", "nine"]
_TEENS = [
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_SCALES = {"dozen": 12, "hundred": 100, "thousand": 1_000, "million": 1_000_000}
SPELLED = (
    _SCALES
    | {word: number for number, word in enumerate([*_UNITS, *_TEENS], 2)}
    | {ten: 10 * number for number, ten in enumerate(_TENS, 2)}
    | {
        f"{ten}-{unit}": 10 * tens + units
        for tens, ten in enumerate(_TENS, 2)
        for units, unit in enumerate(("one", *_UNITS), 1)
    }
)
"""By their words, in lower case."""
DIGITS_MAX = 9
"""Longer numbers are not counted in hundreds."""


def in_digits(words: Iterable[str]) -> list[str]:
    """Return words of which those that are numbers are digits: "two hundred" is "200"."""
    found = list[str]()
    for word in words:
        folded = word.casefold()
        many, of = found[-1].casefold() if found else "", _SCALES.get(folded)
        if of and (many in {"a", "one"} or (many.isdecimal() and len(many) <= DIGITS_MAX)):
            found[-1] = str(of * (int(many) if many.isdecimal() else 1))
        elif folded in SPELLED:
            found.append(str(SPELLED[folded]))
        else:
            found.append(word)
    return found
