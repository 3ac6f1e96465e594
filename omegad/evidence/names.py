"""Words as written that name things: products, identifiers of code. Pure."""

from functools import lru_cache

from omegad.evidence.slots import has_rivals
from omegad.evidence.wording import EDGE, stem


def bare(token: str) -> str:
    """Return a word in lower case without the signs around it and without the genitive."""
    return token.strip(EDGE + "*").casefold().removesuffix("'s")


def is_name(token: str) -> bool:
    """Say whether a word as written is a name by its looks: it has capitals, digits or signs in it, or is one of known rivals."""
    plain = token.strip(EDGE)
    return any(sign.isupper() or sign.isdigit() or sign in "_+/." for sign in plain) or is_rival(plain.casefold())


def is_identifier(name: tuple[str, ...]) -> bool:
    """Say whether a name is an identifier of code, which is the same thing wherever it occurs."""
    return len(name) == 1 and any(sign in "_." or sign == "(" for sign in name[0])


@lru_cache(maxsize=1024)
def is_rival(word: str) -> bool:
    """Say whether a word is the name of one of several things of which a project takes one."""
    return has_rivals(stem(word))
