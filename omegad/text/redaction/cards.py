"""Numbers of payment cards: what an issuer's digits begin, whose check digit fits, in the groups of cards."""

import re

BEFORE_CHARACTERS = 8

_SPACE = "[ \u00a0\u2007\u2009\u202f-]?"
# American Express and Diners Club write three groups, UnionPay two or five. Numbers side by side in a row of
# them, in a drawing's path, in an address or behind a point are none.
_NUMBER = (
    r"{first}[0-9]{{3}}(?<![\w.+/#\-].{{4}})(?<![0-9][ -].{{4}})(?<!\b[A-Za-z] .{{4}})"
    r"(?:(?:{space}[0-9]{{4}}){{3}}(?:{space}[0-9]{{3}})?"
    r"|(?:\.[0-9]{{4}}){{3}}|{space}[0-9]{{6}}{space}[0-9]{{4,5}}|[0-9]{{2}}{space}[0-9]{{13}})"
    r"(?![\w/]|[.+-][0-9]|[ -][0-9]{{4}}(?![0-9]{{0,2}}/))"
)
# One for each first digit: what begins with a certain sign is looked for ten times as fast.
NUMBERS = tuple(re.compile(_NUMBER.format(first=first, space=_SPACE)) for first in "23456")
# Mastercard and Mir, American Express, Diners Club and JCB, Visa, Mastercard, Discover and UnionPay.
_ISSUED = re.compile(
    r"2(?:2(?:2[1-9]|[3-9]\d)|[3-6]\d\d|7(?:[01]\d|20)|20[0-4])\d{12}|3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11}"
    r"|35(?:2[89]|[3-8]\d)\d{12}|4\d{15}|5[1-5]\d{14}|6(?:011|4[4-9]\d|5\d\d)\d{12}|62\d{14}(?:\d{3})?"
)
# Of a card's digits, however grouped, two of each fourth character follow another, and four of each second.
_TWO, _FOUR = re.compile("[0-9][0-9]"), re.compile("[0-9][0-9][0-9][0-9]")
_PLAIN = {0xFF10 + digit: str(digit) for digit in range(10)}
_ROUND = re.compile(r"\d+0{6}")  # as nanoseconds are
_ID = re.compile(r"(?:(?<![a-z])id|_id|Id|ID)s?\\?[\"'`]?[ \t]?[:=#]?[ \t]?\\?[\"'`\[]?\Z")


def numbers(text: str) -> list[tuple[int, int]]:
    """Return where numbers of payment cards stand."""
    if not text.isascii() and _has_wide(text):
        text = text.translate(_PLAIN)
    if not _TWO.search(text[::4]) or not _FOUR.search(text[::2]):
        return []
    return sorted(
        match.span() for number in NUMBERS for match in number.finditer(text) if _is_card(text, match)
    )


def _has_wide(text: str) -> bool:
    """Say whether a digit that a card begins with is in *text* in the width of Chinese signs."""
    return "\uff14" in text or "\uff15" in text or "\uff13" in text or "\uff16" in text or "\uff12" in text


def _is_card(text: str, match: re.Match[str]) -> bool:
    number = "".join(filter(str.isdecimal, match[0]))
    digits = [int(digit) for digit in number]
    checked = sum(digits[-1::-2]) + sum(sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return (
        checked % 10 == 0
        and _ISSUED.fullmatch(number) is not None
        and not _ROUND.fullmatch(number)
        and not _ID.search(text[max(0, match.start() - BEFORE_CHARACTERS) : match.start()])
    )
