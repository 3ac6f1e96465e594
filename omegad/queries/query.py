"""What every query has in common."""

import msgspec

PAGE_BYTES_MAX = 1024 * 1024  # of the events or contents on a page, which ends earlier where they are large


class Query(msgspec.Struct, frozen=True, kw_only=True, tag_field="method", forbid_unknown_fields=True):
    """Base of every query; its tag is the method's name."""
