"""What remains of an event that is erased, and what holds it until it is taken out of every file."""

import gc
import tracemalloc

import msgspec
import pytest

from omegad.catalog.events import CODEC
from omegad.log.erasure import remnant
from omegad.log.event import RecordedEvent, Unknown
from tests.builders import recorded, stored


def with_steps(number: int) -> RecordedEvent:
    steps = [{"line": line, "old": f"old {line}", "new": f"new {line}"} for line in range(10)]
    return recorded(stored(f"mem-{number}", metadata={"steps": steps}), position=number + 1)


@pytest.mark.parametrize("number", [7, 2**70, 1.5, None, "\ud7ff\U0001f600"])
def test_an_event_and_what_remains_of_it_are_given_back_as_they_were(number: object) -> None:
    event = stored("mem-1", metadata={"number": number})
    whole, left = recorded(event, cause=3), msgspec.structs.replace(event, content="", metadata={})
    found = remnant(whole, left, CODEC)
    assert found.before == whole
    assert found.after == msgspec.structs.replace(whole, event=left)


def test_nothing_remains_of_what_a_newer_version_wrote() -> None:
    whole = recorded(Unknown(tag="tide.turned@9", body=b'{"said":"4711"}'))
    found = remnant(whole, None, CODEC)
    assert (found.before, found.after, found.hash) == (whole, None, "")


def test_what_is_erased_is_held_in_less_memory_than_as_objects() -> None:
    tracemalloc.start()
    try:
        whole = [with_steps(number) for number in range(200)]
        as_objects = tracemalloc.get_traced_memory()[0]
        held = [remnant(one, stored(), CODEC) for one in whole]
        gc.collect()
        more = tracemalloc.get_traced_memory()[0] - as_objects
    finally:
        tracemalloc.stop()
    assert len(held) == len(whole)
    assert more < 0.6 * as_objects, "half of what Python 3.11 takes for objects, and later ones take less"
