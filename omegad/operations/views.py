"""Questions about whether the views equal the log, and the wish to have them built again."""

from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.requests.method import ServiceMethod
from omegad.requests.query import Request

ProgressToken = Annotated[str | int, Meta(description="be sent `progress` notifications with this token")]


class RebuildViews(Request, frozen=True, kw_only=True, tag="views.rebuild"):
    """Build one view, or all and the decision state, again from the log beside the live ones, then swap."""

    name: Annotated[str | None, Meta(description="one view; all of them when left out")] = None
    progress_token: ProgressToken | None = None


class VerifyViews(Request, frozen=True, kw_only=True, tag="views.verify"):
    """Replay the log and compare it with one view, or all."""

    name: Annotated[str | None, Meta(description="one view; all of them when left out")] = None
    progress_token: ProgressToken | None = None


class ViewsReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was found, for each view."""

    ok: bool
    views: dict[str, object]


METHODS = (
    ServiceMethod(params=RebuildViews, answer=ViewsReport, verb=None),
    ServiceMethod(params=VerifyViews, answer=ViewsReport, verb=None),
)
