"""Says in words what is wrong with a value that does not fit its type: which one, and what it must be."""

import re
import typing
from difflib import get_close_matches

import msgspec

_TYPES = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "nothing",
}
_UNITS = {"str": "characters", "array": "entries", "object": "entries"}
_PLACE = re.compile(r" - at `(?:key in )?\$\.?(.*)`\Z", re.DOTALL)
_SAID = re.compile(
    r"Object missing required field `(?P<missing>[^`]+)`|Object contains unknown field `(?P<unknown>[^`]+)`"
    r"|Expected `(?P<kind>\w+)` of length (?P<length>>=|<=|==) (?P<figure>[0-9]+)"
    r"|Expected `(?:int|float)` (?P<bound>>=|<=|>|<) (?P<number>.+)"
    r"|Expected `(?P<wanted>[^`]+)`, got `(?P<got>[^`]+)`|Invalid enum value (?P<choice>.+)",
    re.DOTALL,
)
NAME_CHARACTERS = 100  # of a name that somebody else chose
_BOUNDS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than", "==": "exactly"}


def in_words(error: Exception, whole: str, kind: type[msgspec.Struct] | None = None) -> str:
    """Return what msgspec's *error* found wrong, in words that name the part; what it says itself where that
    is nothing known.

    *whole* is what the parts are of ("params"), *kind* its type, so that it can be said what a part may be.
    """
    said = str(error)
    place = _PLACE.search(said)
    part = place[1] if place else ""
    found = _SAID.fullmatch(said[: place.start()] if place else said)
    if found is None:
        return said.replace("Object", whole, 1)
    if name := (found["missing"] or found["unknown"] or "")[:NAME_CHARACTERS]:
        meant = get_close_matches(name, kind.__struct_fields__, n=1) if kind and not part else []
        what = "is missing" if found["missing"] else "is not known here"
        return f"{part}{'.' * bool(part)}{name} {what}" + (
            f"; did you mean {meant[0]}?" if meant and found["unknown"] else ""
        )
    return f"{part or whole} {_what(found, kind, part)}"


def _what(found: re.Match[str], kind: type[msgspec.Struct] | None, part: str) -> str:
    if bound := found["length"]:
        return _length(found["kind"], bound, found["figure"])
    if bound := found["bound"]:
        return f"must be {_BOUNDS[bound]} {_figure(found['number'])}"
    if wanted := found["wanted"]:
        return f"must be {_types(wanted)}, and is {_types(found['got'])}"
    choices = ", ".join(_choices(kind, part))
    return f"cannot be {found['choice']}" + (f": it is one of {choices}" if choices else "")


def _length(kind: str, bound: str, figure: str) -> str:
    if bound == ">=" and figure == "1":
        return "must not be empty"
    return f"must have {_BOUNDS[bound]} {_figure(figure)} {_UNITS.get(kind, 'bytes')}"


def _figure(figure: str) -> str:
    return f"{int(figure):,}" if figure.lstrip("-").isdigit() else figure


def _types(said: str) -> str:
    names = said.split(" | ")
    return " or ".join(_TYPES.get(name, name) for name in names if name != "null" or len(names) == 1)


def _choices(kind: type[msgspec.Struct] | None, part: str) -> list[str]:
    """Return what the part of that name, or an entry of it, may be; nothing where its type says nothing."""
    field = re.sub(r"\[[^]]*\]\Z", "", part)
    if kind is None or field not in kind.__struct_fields__:
        return []
    found, hints = list[str](), [typing.get_type_hints(kind)[field]]
    while hints:
        hint = hints.pop()
        of = typing.get_args(hint)
        if typing.get_origin(hint) is typing.Literal:
            found += map(repr, of)
        else:
            hints += of
    return found
