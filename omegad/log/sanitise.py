"""What a text must go through before it may enter the log, because the log keeps its mistakes for ever.

`sanitise` runs on every event at the append; commands that answer with what was redacted call `redact` before
they decide. Names, by which memories are found again, go through `without_credentials` as a request comes in,
be it a command or a query.
"""

import re
import typing
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cache, partial
from hashlib import sha256

import msgspec

from omegad.log.event import Excerpt, NewEvent
from omegad.text.redaction import redact, redact_name

CONTENT_BYTES_MAX = 256 * 1024
METADATA_BYTES_MAX = 16 * 1024
TAGS_MAX = 32
EXCERPT_BYTES = 4 * 1024  # kept of each end of a tool's input or output
EXCERPT_MARGIN_BYTES = (
    4 * 1024
)  # searched beyond each end, so that a secret across the cut is still recognised

SEARCHED_CHARACTERS = 2 * (EXCERPT_BYTES + EXCERPT_MARGIN_BYTES)
OUTLINE_CHARACTERS = 64
"""So much of a text stands beside the keys that tell what it is, when these are searched."""
DEPTH_MAX = 16
_ESCAPED = re.compile(r"[\n\t\"\\]")

NAMES = frozenset(
    {"project", "session_id", "entity_id", "tool_name", "tool_use_id", "client", "request_id"}
    | {"to_session", "to_project", "owner", "asked_in", "delivery_id"}
)
"""Fields of an event's envelope and of requests that are no free text, and still are chosen by whoever
writes.
"""

StructT = typing.TypeVar("StructT", bound=msgspec.Struct)


class Searched(Enum):
    """How a field of an event is searched."""

    AS_TEXT = "for secrets"
    AS_NAME = "for credentials alone, which are always replaced by the same"
    NOT = "not at all: no text can stand in it, or its mark says why"


def sanitise(event: StructT) -> StructT:
    """Return *event* with the secrets in its free text and the credentials in its names replaced; itself
    where there are none.
    """
    changes: dict[str, object] = {}
    for name, clean_of in _cleaners(type(event)):
        value = getattr(event, name)
        if value and (clean := clean_of(value)) is not value:
            changes[name] = clean
    return msgspec.structs.replace(event, **changes) if changes else event


def without_credentials(request: StructT) -> StructT:
    """Return *request*, or an event's envelope, with the credentials in its names replaced, always by the
    same; itself without any.

    A name is replaced on its way in, so that it is the same in the log, in the views, and in every question
    that asks for it.
    """
    changes = _clean_names(request)
    return msgspec.structs.replace(request, **changes) if changes else request


def sanitise_new(new: NewEvent) -> NewEvent:
    """Return an event on its way into the log, sanitised, with its envelope's names; itself where there is
    nothing to replace.
    """
    changes, event = _clean_names(new), sanitise(new.event)
    if event is not new.event:
        changes["event"] = event
    return msgspec.structs.replace(new, **changes) if changes else new


def _clean_names(struct: msgspec.Struct) -> dict[str, object]:
    changes: dict[str, object] = {}
    for name in _names(type(struct)):
        value = getattr(struct, name)
        if isinstance(value, str) and (clean := redact_name(value)) != value:
            changes[name] = clean
    return changes


@cache
def _names(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    return tuple(name for name in kind.__struct_fields__ if name in NAMES)


def excerpt(text: str) -> Excerpt:
    """Cut *text* to its first and last 4 KiB, free of secrets.

    The SHA-256 is of what is kept, and the size counts a secret that was taken out as its mark: neither tells
    a guess from the secret. What lies between the ends is not searched; it counts as it is, and is in no
    hash.
    """
    return _cut(text, lambda end: redact(end)[0])


def _cut(text: str, clean: Callable[[str], str]) -> Excerpt:
    data = text.encode()
    if len(data) <= 2 * EXCERPT_BYTES:
        kept = clean(text)
        return Excerpt(head=kept, bytes=len(kept.encode()), sha256=_digest(kept))
    window = EXCERPT_BYTES + EXCERPT_MARGIN_BYTES + 4  # the window may begin or end within a character
    cut = data[:window].decode(errors="ignore"), data[-window:].decode(errors="ignore")
    head, tail = (clean(end).encode() for end in cut)
    size = len(data) - sum(len(end.encode()) for end in cut) + len(head) + len(tail)
    # The inner margin goes whatever redaction has left of the rest: a secret that the window cut in two may
    # stand there.
    head = head[: min(EXCERPT_BYTES, max(0, len(head) - EXCERPT_MARGIN_BYTES))]
    tail = tail[max(EXCERPT_MARGIN_BYTES, len(tail) - EXCERPT_BYTES) :]
    ends = head.decode(errors="ignore"), tail.decode(errors="ignore")
    return Excerpt(head=ends[0], tail=ends[1], bytes=size, sha256=_digest(*ends))


def excerpt_of(value: object) -> Excerpt | None:
    """Cut what a tool took or gave, written as JSON unless it is a text, to what `excerpt` keeps, free of
    secrets; None for nothing.

    Each text is searched as it is, since written as JSON its lines are one; then the whole, where keys tell
    what a value is, with no more of its texts than their beginnings. What these tell is looked for in all.
    """
    if value is None:
        return None
    if isinstance(value, str):
        return excerpt(value)
    lengths, items = _sizes(value)
    clean = _searched(value, lengths) if lengths else value
    text = msgspec.json.encode(clean).decode()
    # Of so many items the outline is too long as well.
    if 2 * items <= 2 * EXCERPT_BYTES:
        outline = msgspec.json.encode(_outline(clean)).decode()
        if len(outline) <= 2 * EXCERPT_BYTES and not redact(outline)[1]:
            return _cut(text, lambda end: end)
    return excerpt(text)


def _searched(value: object, lengths: int) -> object:
    """Return a value with its texts, of so many characters, searched, one by one: those at its beginning and
    its end, which alone may be kept, but for short ones, which its outline has whole, and what is nested
    deeper than `DEPTH_MAX`.
    """
    at = 0

    def clean(text: str) -> str:
        nonlocal at
        first, at = at, at + len(text)
        is_kept = first < SEARCHED_CHARACTERS or at > lengths - SEARCHED_CHARACTERS
        is_more = len(text) > OUTLINE_CHARACTERS or _ESCAPED.search(text)
        if not is_more:
            return text
        # Where much is taken out, what lies between the ends is kept as well, and nobody has searched it.
        return _both_ends(text) if is_kept else " " * (len(msgspec.json.encode(text)) - 2)

    return _each_text(value, clean)


def _outline(value: object) -> object:
    """Return a value with the beginnings of its texts alone."""
    return _each_text(value, lambda text: text[:OUTLINE_CHARACTERS])


def _each_text(value: object, change: Callable[[str], str], depth: int = DEPTH_MAX) -> object:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict) and depth:
        return {key: _each_text(item, change, depth - 1) for key, item in value.items()}
    if isinstance(value, list) and depth:
        return [_each_text(item, change, depth - 1) if item else item for item in value]
    return value


def _sizes(value: object) -> tuple[int, int]:
    """Return how many characters the texts of a value have, as deep as they are searched, and how many items
    it has.
    """
    lengths, items, level = 0, 0, [value]
    for _ in range(DEPTH_MAX + 1):
        lengths += sum([len(item) for item in level if isinstance(item, str)])
        items += len(level)
        level = [
            part
            for item in level
            if item and isinstance(item, (dict, list))
            for part in (item.values() if isinstance(item, dict) else item)
        ]
    return lengths, items


def _both_ends(text: str) -> str:
    if len(text) <= 2 * SEARCHED_CHARACTERS:
        return redact(text)[0]
    first, last = (redact(end)[0] for end in (text[:SEARCHED_CHARACTERS], text[-SEARCHED_CHARACTERS:]))
    # Where much was taken out, more of a text is kept than its ends: not what the ends have cut in two, nor
    # what lies between them, which nobody has searched.
    first, last = first[: max(0, len(first) - EXCERPT_MARGIN_BYTES)], last[EXCERPT_MARGIN_BYTES:]
    between = len(text[SEARCHED_CHARACTERS:-SEARCHED_CHARACTERS].encode()) + 2 * EXCERPT_MARGIN_BYTES
    return f"{first}{' ' * between}{last}"


def _digest(*texts: str) -> str:
    return sha256("".join(texts).encode()).hexdigest()


@cache
def _cleaners(kind: type[msgspec.Struct]) -> tuple[tuple[str, Callable[[object], object]], ...]:
    by_way: dict[Searched, Callable[[object], object]] = {
        Searched.AS_TEXT: _sanitised,
        Searched.AS_NAME: _clean_name,
    }
    return tuple((name, by_way[way]) for name, way in ways(kind).items() if way is not Searched.NOT)


@cache
def searched_fields(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the names of the fields in which free text can stand."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return tuple(name for name in kind.__struct_fields__ if _holds_text(hints[name]))


@cache
def ways(kind: type[msgspec.Struct]) -> dict[str, Searched]:
    """Return how each field of a kind of event, or of a part of one, is searched: as text, unless its type
    says otherwise.
    """
    hints = typing.get_type_hints(kind, include_extras=True)
    return {
        name: max((way for _, way in parts(hints[name])), key=_THOROUGHNESS.index, default=Searched.NOT)
        for name in kind.__struct_fields__
    }


_THOROUGHNESS = (Searched.NOT, Searched.AS_NAME, Searched.AS_TEXT)


def parts(hint: object) -> Iterator[tuple[object, Searched]]:
    """Yield each part of a type in which a text can stand, however deep, and how it is searched."""
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) is typing.Annotated:
        told = {key for meta in arguments[1:] if isinstance(meta, msgspec.Meta) for key in meta.extra or ()}
        if "unsearched" in told:
            yield hint, Searched.NOT
        elif "name" in told:
            yield hint, Searched.AS_NAME
        else:
            yield from parts(arguments[0])
    elif isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        # What is within is cleaned as its own fields say.
        found = [
            way
            for part in typing.get_type_hints(hint, include_extras=True).values()
            for _, way in parts(part)
        ]
        yield hint, Searched.AS_TEXT if any(way is not Searched.NOT for way in found) else Searched.NOT
    elif hint in _TEXTLESS or typing.get_origin(hint) in {typing.Literal, typing.ClassVar}:
        return
    elif arguments:
        for part in arguments:
            yield from parts(part)
    else:
        yield hint, Searched.AS_TEXT  # a str, whatever JSON has, and what nobody has thought of yet


_TEXTLESS = frozenset({int, float, bool, type(None), ...})


def _holds_text(hint: object) -> bool:
    return any(
        (
            any(map(_holds_text, typing.get_type_hints(part, include_extras=True).values()))
            if isinstance(part, type) and issubclass(part, msgspec.Struct)
            else way is Searched.AS_TEXT
        )
        for part, way in parts(hint)
    )


def _clean_name(value: object) -> object:
    """Return names, in whatever they stand, without the credentials in them; *value* itself where there
    are none.
    """
    if isinstance(value, str):
        return value if (clean := redact_name(value)) == value else clean
    if isinstance(value, dict):
        names = {_clean_name(key): item for key, item in value.items()}
        return value if names.keys() == value.keys() else names
    return _each(_clean_name, value) if isinstance(value, tuple | list) else value


def _each(clean_of: Callable[[object], object], values: list[object] | tuple[object, ...]) -> object:
    """Return *values* with each as *clean_of* returns it; themselves where it changes none."""
    items = [clean_of(one) for one in values]
    return type(values)(items) if any(a is not b for a, b in zip(items, values, strict=True)) else values


def _named(key: object, item: object) -> object:
    """Return the value of a name, or its values, taken out where the name says that it is a secret."""
    if isinstance(item, list | tuple):
        return _each(partial(_named, key), item)
    if not (isinstance(key, str) and isinstance(item, str) and item):
        return item
    # As JSON has it, so that it is clear where the value ends.
    quote = next((mark for mark in "\"'`" if mark not in item), "")
    before = f"{quote}{key}{quote}: {quote}"
    clean, found = redact(f"{before}{item}{quote}")
    return clean.removeprefix(before).removesuffix(quote) if found and clean.startswith(before) else item


def _sanitised(value: object) -> object:
    if isinstance(value, str):
        clean, found = redact(value) if value else (value, ())
        return clean if found else value
    if isinstance(value, Excerpt):
        head, tail = redact(value.head)[0], redact(value.tail)[0]
        if (head, tail) == (value.head, value.tail):
            return value
        # One of an older version, which says the hash and size of the text with its secrets.
        added = len(f"{head}{tail}".encode()) - len(f"{value.head}{value.tail}".encode())
        size = max(0, value.bytes + added)
        return Excerpt(head=head, tail=tail, bytes=size, sha256=_digest(head, tail))
    if isinstance(value, msgspec.Struct):
        return sanitise(value)
    if isinstance(value, dict):
        pairs = {_sanitised(key): _sanitised(_named(key, item)) for key, item in value.items()}
        changed = any(
            a is not b for a, b in zip((*pairs, *pairs.values()), (*value, *value.values()), strict=False)
        )
        return pairs if changed or len(pairs) != len(value) else value
    return _each(_sanitised, value) if isinstance(value, tuple | list) else value
