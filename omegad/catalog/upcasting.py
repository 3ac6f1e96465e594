"""The steps that lift payloads which older versions wrote to the shapes of today, one version at a time."""

from omegad.log.codec import Payload, Upcaster


def _by_defaults(payload: Payload) -> Payload:
    """The first versions had no tags, of a stored memory no automatic ones, and no probation, which is what
    the defaults of the second say.
    """
    return {**payload, "type": str(payload["type"]).replace("@1", "@2")}


UPCASTERS: dict[str, Upcaster] = {"memory.stored@1": _by_defaults, "memory.repeated@1": _by_defaults}
