"""omegad's entries in a JSON document: put in, brought up to date, and taken out, one place of the text
after the other.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from omegad.edge.setup import jsonc
from omegad.edge.setup.commands import is_ours
from omegad.edge.setup.jsonc import Node
from omegad.runtime.errors import Refused
from omegad.runtime.json_types import Fields

Edit = Callable[[str], str]
ABSENT = object()
"""Stands for what was not in a document."""


def put(text: str, wanted: Fields) -> str:
    """Return *text* with *wanted* in it: objects are joined, and lists hold omegad's elements.

    Raises `Invalid` for what is not JSON and `Refused` where something else stands in the place of an entry.
    """
    if not text.strip(jsonc.BYTE_ORDER_MARK + " \t\r\n"):
        text += "{}\n"
    return _edited(text, lambda root: _missing(root, wanted, ""))


def take_out(text: str, places: Fields, before: object) -> str:
    """Return *text* without omegad's entries under the keys of *places*, and without containers that they
    leave empty.

    A container that is in *before*, the document as it was, stays. Raises `Invalid` for what is not JSON.
    """
    return _edited(
        text,
        lambda root: _cuts(root, [at for at, item in enumerate(root.items) if item.key in places], before),
    )


def _edited(text: str, edits: Callable[[Node], Iterator[Edit]]) -> str:
    """Return *text* after the first edit of it, the first of what that makes of it, and so on."""
    while edit := next(edits(jsonc.parse(text)), None):
        text = edit(text)
    return text


def _missing(node: Node, wanted: Fields, place: str, *, is_own: bool = False) -> Iterator[Edit]:
    """Return the edits that make an object hold *wanted*; each is of the text as it is."""
    if not isinstance(node.value, dict):
        raise _in_the_way(place, node)
    for key, value in wanted.items():
        here = f"{place}.{key}" if place else key
        # The last one, as parsers do, where a key stands twice.
        item = next((item for item in reversed(node.items) if item.key == key), None)
        if item is None:
            yield partial(jsonc.insert, node=node, key=key, value=value)
        elif isinstance(value, dict):
            if is_ours(value) and not is_ours(item.node.value):
                raise _in_the_way(here, item.node)
            yield from _missing(item.node, value, here, is_own=is_own or is_ours(value))
        elif isinstance(value, list) and not is_own:
            yield from _missing_elements(item.node, value, here)
        elif item.node.value != value:
            if not is_own:
                raise _in_the_way(here, item.node)
            yield partial(jsonc.replace, item=item, value=value)
    if place and not is_own:
        yield from _cuts(node, [index for index, item in enumerate(node.items) if item.key not in wanted])


def _missing_elements(array: Node, wanted: list[object], place: str) -> Iterator[Edit]:
    """Return the edits that make an array hold *wanted*, in this order, and no other element of omegad's."""
    if not isinstance(array.value, list):
        raise _in_the_way(place, array)
    ours = [index for index, item in enumerate(array.items) if is_ours(item.node.value)]
    for index, value in zip(ours, wanted, strict=False):
        if not _covers(array.items[index].node.value, value):
            yield partial(jsonc.replace, item=array.items[index], value=value)
    for index in ours[len(wanted) :]:
        yield partial(jsonc.remove, node=array, index=index)
    yield from _cuts(array, [index for index in range(len(array.items)) if index not in ours])
    for value in wanted[len(ours) :]:
        yield partial(jsonc.insert, node=array, key="", value=value)


def _covers(value: object, wanted: object) -> bool:
    """Say whether *value* is *wanted*, with whatever members someone may have added."""
    if isinstance(value, dict) and isinstance(wanted, dict):
        return all(key in value and _covers(value[key], wanted[key]) for key in wanted)
    if isinstance(value, list) and isinstance(wanted, list):
        return len(value) == len(wanted) and all(map(_covers, value, wanted))
    return bool(value == wanted) and type(value) is type(wanted)


def _cuts(node: Node, indexes: Iterable[int], before: object = ABSENT) -> Iterator[Edit]:
    """Return the edits that take what is omegad's out of some items of a container, which was *before*."""
    for index in indexes:
        item = node.items[index]
        inside = before.get(item.key, ABSENT) if isinstance(before, dict) else ABSENT
        if _is_all_ours(item.node, inside):
            yield partial(jsonc.remove, node=node, index=index)
        else:
            yield from _cuts(item.node, range(len(item.node.items)), inside)


def _is_all_ours(node: Node, before: object) -> bool:
    """Say whether nothing is left of a value without omegad's: a container goes with the last thing in it."""
    return is_ours(node.value) or (
        before is ABSENT and len(node.items) == 1 and _is_all_ours(node.items[0].node, ABSENT)
    )


def _in_the_way(place: str, node: Node) -> Refused:
    kind = {"dict": "an object", "list": "an array", "NoneType": "null"}.get(
        type(node.value).__name__, repr(node.value)
    )
    return Refused(
        f"{place or 'the document'} is {kind} that omegad did not write, and has no room for its entry",
        hint="rename or remove it by hand, then run it again; nothing was changed in the file",
    )
