"""The steps that lift payloads which older versions wrote to the shapes of today, one version at a time."""

from omegad.log.codec import Payload, Upcaster


def _stored_1(payload: Payload) -> Payload:
    """The first version had no automatic tags and no probation, which is what their defaults say."""
    return {**payload, "type": "memory.stored@2"}


def _repeated_1(payload: Payload) -> Payload:
    """The first version had no tags, which is what their default says."""
    return {**payload, "type": "memory.repeated@2"}


UPCASTERS: dict[str, Upcaster] = {"memory.stored@1": _stored_1, "memory.repeated@1": _repeated_1}
