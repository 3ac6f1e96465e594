"""Lifts payloads that older versions wrote to the shapes of today, one step at a time.

A step takes the decoded JSON of one version and returns that of the next, with `type` set to its tag. Steps are total and pure.
"""

from collections.abc import Callable, Mapping

Payload = dict[str, object]
Upcaster = Callable[[Payload], Payload]


def _stored_1(payload: Payload) -> Payload:
    """The first version had no automatic tags and no probation, which is what their defaults say."""
    return {**payload, "type": "memory.stored@2"}


def _repeated_1(payload: Payload) -> Payload:
    """The first version had no tags, which is what their default says."""
    return {**payload, "type": "memory.repeated@2"}


UPCASTERS: dict[str, Upcaster] = {"memory.stored@1": _stored_1, "memory.repeated@1": _repeated_1}


def upcast(payload: Payload, upcasters: Mapping[str, Upcaster]) -> Payload:
    """Apply steps until none applies to the payload's tag."""
    while step := upcasters.get(str(payload["type"])):
        payload = step(payload)
    return payload
