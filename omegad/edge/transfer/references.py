"""How memories of another system name each other in what is kept beside them, and come to name ours."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from omegad.runtime.json_types import Json

CHARACTERS_MIN = 5
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{4,}")


def references(value: object, is_one: Callable[[str], object]) -> set[str]:
    """Return the names in some JSON that are ids of memories, as *is_one* says."""
    return {name for name in _names(value) if is_one(name)}


def renamed(value: Json, ids: Mapping[str, str]) -> Json:
    """Return some JSON in which each id of theirs is ours, keys as they were."""
    match value:
        case str() if may_be_id(value) and value in ids:
            return ids[value]
        case str():
            return _NAME.sub(lambda name: ids.get(name[0], name[0]) if may_be_id(name[0]) else name[0], value)
        case list():
            return [renamed(one, ids) for one in value]
        case dict():
            return {name: renamed(one, ids) for name, one in value.items()}
        case _:
            return value


def may_be_id(name: str) -> bool:
    """Say whether a name is nothing but an id where it is one: no word, and no number."""
    return len(name) >= CHARACTERS_MIN and not name.isdigit() and any(map(str.isdigit, name))


def steps(refers: Mapping[str, Collection[str]], first: Iterable[str]) -> dict[str, int]:
    """Return when each memory is to be stored, from 0: after those that it refers to.

    Where some refer to each other in a circle, one of them is stored before what it refers to; not those of
    *first* if that can be.
    """
    found = dict[str, int]()
    for start in (*first, *refers):
        under_way = [] if start in found else [(start, iter(refers.get(start, ())))]
        entered = {start}
        while under_way:
            name, others = under_way[-1]
            other = next((one for one in others if one not in found and one not in entered), None)
            if other is None:
                under_way.pop()
                entered.discard(name)
                found[name] = 1 + max((found.get(one, -1) for one in refers.get(name, ())), default=-1)
            elif other in refers:
                entered.add(other)
                under_way.append((other, iter(refers[other])))
    return found


def _names(value: object) -> Iterator[str]:
    match value:
        case str():
            yield from {name for name in (value, *_NAME.findall(value)) if may_be_id(name)}
        case list():
            for one in value:
                yield from _names(one)
        case dict():
            for one in value.values():
                yield from _names(one)
        case _:
            pass
