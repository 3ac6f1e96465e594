"""Search: a box, what each result's score is made of, and how it was answered at an earlier moment."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from omegad.edge.web.page.asked import Asking
from omegad.runtime.json_types import Json

DAYS = """
SELECT substr(created_at, 1, 10) AS day, max(id) AS position FROM memories GROUP BY 1 ORDER BY 1 DESC
"""
DAYS_MAX = 400
LEAST = 0.005
"""A stage that contributes less is told together with the others like it."""
ROW, BARS, WIDTH = 18, 180, 360
FOUND_MAX = 20
FILTERS = ("project", "event_types", "since", "until", "mode")


class Bar(NamedTuple):
    """What a stage contributes, and where its bar stands between the one before and the one after."""

    name: str
    share: float
    x: float
    width: float
    y: int


async def page(ask: Asking) -> Mapping[str, object]:
    """Show the box and, where something is asked, what is found."""
    text, as_of = ask.text("text"), ask.text("as_of")
    days = (await ask("audit.sql", sql=" ".join(DAYS.split()), limit=DAYS_MAX))["rows"][::-1]
    head = (await ask("log.read", after=0, limit=1))["head"]
    found = None
    if text:
        filters = {name: ask.text(name) for name in ("project", "since", "until", "mode")}
        kind = ask.text("event_types")
        found = await ask(
            "memory.query",
            text=text,
            limit=FOUND_MAX,
            explain=True,
            **filters,
            event_types=[kind] if kind else None,
            as_of=int(as_of) if as_of and as_of.isdigit() else as_of,
        )
    floor = 0.0
    if found is not None and found["abstained"]:
        # Costs numpy, which nobody needs who is answered
        from omegad.search.model import fitted  # noqa: PLC0415

        floor = fitted().floor
    results = found["results"] if found else []
    return {
        "found": found,
        "floor": floor,
        "bars": {one["memory_id"]: bars(one) for one in results},
        "days": days,
        "head": head,
        "as_of": int(as_of) if as_of and as_of.isdigit() else None,
        "row": ROW,
        "width": WIDTH,
        "left": WIDTH - BARS,
    }


def bars(result: Json) -> Sequence[Bar]:
    """Return a result's stages, the greatest first, each beginning where the one before ends, so that the
    last ends at the score.
    """
    stages = sorted(result["explanation"]["stages"].items(), key=lambda stage: -abs(stage[1]))
    told = [one for one in stages if abs(one[1]) >= LEAST]
    rest = result["score"] - sum(share for _, share in told)
    if abs(rest) >= LEAST / 10:
        told.append(("others", rest))
    ends, at = [0.0], 0.0
    for _, share in told:
        at += share
        ends.append(at)
    low, high = min(ends), max(*ends, 1e-9)
    scale = BARS / (high - low)
    return [
        Bar(name, share, round((min(before, after) - low) * scale, 1), round(max(abs(share) * scale, 1), 1), place * ROW)
        for place, ((name, share), before, after) in enumerate(zip(told, ends, ends[1:], strict=False))
    ]
