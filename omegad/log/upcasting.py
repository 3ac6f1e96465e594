"""Lifts payloads that older versions wrote to the shapes of today, one step at a time.

A step takes the decoded JSON of one version and returns that of the next, with `type` set to its tag. Steps are total and pure.
"""

from collections.abc import Callable, Mapping

Payload = dict[str, object]
Upcaster = Callable[[Payload], Payload]

UPCASTERS: dict[str, Upcaster] = {}


def upcast(payload: Payload, upcasters: Mapping[str, Upcaster]) -> Payload:
    """Apply steps until none applies to the payload's tag."""
    while step := upcasters.get(str(payload["type"])):
        payload = step(payload)
    return payload
