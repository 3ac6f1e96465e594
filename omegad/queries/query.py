"""What every query has in common."""

import msgspec


class Query(msgspec.Struct, frozen=True, kw_only=True, tag_field="method", forbid_unknown_fields=True):
    """Base of every query; its tag is the method's name."""
