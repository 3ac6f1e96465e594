"""When two texts say the same: alike in words, and equal in everything that a detail can hang on.

Pure, and linear in the length of the texts. A near-duplicate is only ever called one when numbers, versions, paths, identifiers and
polarity agree, because acknowledged memories that were taken for duplicates by likeness alone are memories lost.
"""

import re

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_EDGE = ".,;:!?\"'`()[]{}"

_NEGATIONS = frozenset(
    """no not never none nothing nobody neither nor without cannot avoid stop stopped disable disabled deny denied forbid forbidden reject
    rejected remove removed instead unlike against fail fails failed false off hardly rarely""".split()  # noqa: SIM905  words read as words
)
_DIRECTIONS = frozenset(
    """always enable enabled allow allowed accept accepted add added on true yes before after more less increase decrease up down first last
    succeed succeeds succeeded pass passes passed start started open closed above below old new left right""".split()  # noqa: SIM905
)


def words(text: str) -> frozenset[str]:
    """Return the distinct words of a text, case-folded, with straight apostrophes."""
    return frozenset(_all_words(text))


def jaccard(one: str, other: str) -> float:
    """Return the share of distinct words that two texts have in common, 0 to 1 (Jaccard 1901); 0 when neither has any."""
    ours, theirs = words(one), words(other)
    return len(ours & theirs) / len(ours | theirs) if ours | theirs else 0.0


def differ_in_detail(one: str, other: str) -> bool:
    """Say whether two texts name different numbers, versions, paths or identifiers, or one denies what the other affirms."""
    return _details(one) != _details(other) or _polarity(one) != _polarity(other)


def _details(text: str) -> list[str]:
    return sorted(token for part in _straight(text).split() if (token := part.strip(_EDGE)) and _is_detail(token))


def _is_detail(token: str) -> bool:
    """Say whether a token is a number, version, date, path, URL, option, dotted, snake_case or CamelCase name, constant, or not ASCII."""
    if not token.isascii() or any(sign.isdigit() or sign in "_/\\.@#$%=<>*+" for sign in token):
        return True
    return token.startswith("-") or any(sign.isupper() for sign in token[1:])


def _polarity(text: str) -> list[str]:
    found = (word for word in _all_words(text) if word in _NEGATIONS or word in _DIRECTIONS or word.endswith("n't"))
    return sorted("not" if word.endswith("n't") else word for word in found)


def _all_words(text: str) -> list[str]:
    return [match.group() for match in _WORD.finditer(_straight(text.casefold()))]


def _straight(text: str) -> str:
    return text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
