"""Questions about whether the views equal the log, and the wish to have them built again."""

import msgspec

from omegad.method import ServiceMethod
from omegad.queries.query import Query

ProgressToken = str | int


class RebuildViews(Query, frozen=True, kw_only=True, tag="views.rebuild"):
    """Build one view, or all, again from the log beside the live ones, then swap."""

    name: str | None = None
    progress_token: ProgressToken | None = None


class VerifyViews(Query, frozen=True, kw_only=True, tag="views.verify"):
    """Replay the log and compare it with one view, or all."""

    name: str | None = None
    progress_token: ProgressToken | None = None


class ViewsReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was found, for each view."""

    ok: bool
    views: dict[str, object]


METHODS = (
    ServiceMethod(params=RebuildViews, answer=ViewsReport),
    ServiceMethod(params=VerifyViews, answer=ViewsReport),
)
