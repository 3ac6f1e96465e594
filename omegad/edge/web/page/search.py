"""Search: a box, what each result's score is made of, and how it was answered at an earlier moment."""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from omegad.edge.web.page.asked import Asking
from omegad.runtime.json_types import Json

SAMPLES = 48
"""Positions whose time the slider knows."""
LEAST = 0.005
"""A stage that contributes less is told together with the others like it."""
ROW, BARS, WIDTH = 18, 180, 360
FOUND_MAX = 20


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
    head = (await ask("log.read", after=0, limit=1))["head"]
    found = None
    if text:
        filters = {name: ask.text(name) for name in ("project", "person", "since", "until", "mode")}
        kind = ask.text("event_types")
        found = await ask(
            "memory.query",
            text=text,
            limit=FOUND_MAX,
            all=True,
            explain=True,
            **filters,
            event_types=[kind] if kind else None,
            as_of=int(as_of) if as_of and as_of.isdigit() else as_of,
        )
    results = found["results"] if found else []
    steps = [step for one in results for step in running(one)]
    scale = BARS / ((max(steps) - min(steps)) or 1.0) if steps else 1.0, min(steps, default=0.0)
    return {
        "found": found,
        "bars": {one["memory_id"]: bars(one, scale) for one in results},
        "days": await days(ask, head),
        "head": head,
        "as_of": int(as_of) if as_of and as_of.isdigit() else None,
        "row": ROW,
        "width": WIDTH,
        "left": WIDTH - BARS,
    }


async def days(ask: Asking, head: int) -> Sequence[tuple[str, int]]:
    """Return the time of some positions that lie evenly over the log, first to last."""
    places = sorted({round(head * place / SAMPLES) for place in range(SAMPLES)})
    read = await asyncio.gather(*(ask.unnamed("log.read", after=place, limit=1) for place in places))
    events = [event for page in read for event in page["events"]]
    return [(event["recorded_at"][:16], event["position"]) for event in events]


def running(result: Json) -> Sequence[float]:
    """Return what a result's stages come to, one after the other, from 0 to its score."""
    return [0.0, *accumulate(share for _, share in told(result))]


def told(result: Json) -> Sequence[tuple[str, float]]:
    """Return a result's stages that say something, the greatest first, and the others together."""
    stages = sorted(result["explanation"]["stages"].items(), key=lambda stage: -abs(stage[1]))
    named = [one for one in stages if abs(one[1]) >= LEAST]
    rest = result["score"] - sum(share for _, share in named)
    return [*named, ("others", rest)] if abs(rest) >= LEAST / 10 else named


def bars(result: Json, scale: tuple[float, float]) -> Sequence[Bar]:
    """Return the bars of a result's stages, each of which begins where the one before ends, and last that of
    their sum, the score. *scale* is how long 1 is, and where the picture begins.
    """
    long, low = scale
    ends = running(result)
    parts = [*zip(told(result), pairwise(ends), strict=True), (("sum", result["score"]), (0.0, ends[-1]))]
    return [
        Bar(name, share, round((min(pair) - low) * long, 1), round(max(abs(share) * long, 1), 1), place * ROW)
        for place, ((name, share), pair) in enumerate(parts)
    ]
