"""What becomes known of the person whose agents these are."""

from omegad.log.event import Event, FreeData


class ProfileUpdated(Event, frozen=True, kw_only=True, tag="profile.updated@1"):
    """Facts of the profile were set, each under a key of its own; those that are null are known no more."""

    facts: FreeData
