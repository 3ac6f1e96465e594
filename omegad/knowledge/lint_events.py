"""What people say to the findings of the lint."""

from omegad.log.event import Event, FreeText, GivenName


class FindingDismissed(Event, frozen=True, kw_only=True, tag="finding.dismissed@1"):
    """Somebody said that a rule's finding about these memories, theses, entities or questions needs nothing done."""

    rule: GivenName
    ids: tuple[FreeText, ...]
