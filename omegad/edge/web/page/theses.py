"""Theses: how strongly each is believed and was, by which evidence, and how predictions came out."""

import asyncio
from collections.abc import Mapping

from omegad.edge.web.page import drawing
from omegad.edge.web.page.asked import Asking

DRAWN_MAX = 20
ENOUGH = 30
"""Of fewer outcomes nothing can be told."""


async def page(ask: Asking) -> Mapping[str, object]:
    """Show all theses, and whether what was held probable came true."""
    listed, *scored = await asyncio.gather(
        ask("thesis.list", project=ask.text("project"), standing=ask.text("standing"), limit=100),
        *(ask("thesis.calibration", of=of) for of in ("theses", "answers", "memories")),
    )
    whole = await asyncio.gather(
        *(ask("thesis.get", thesis_id=one["thesis_id"]) for one in listed["theses"][:DRAWN_MAX])
    )
    names = ("predictions of theses", "answers of searches", "confidence of memories")
    return {
        "theses": listed["theses"],
        "total": listed["total"],
        "lines": {one["thesis_id"]: drawing.belief(one["history"], 320, 72) for one in whole},
        "scored": list(zip(names, ("theses", "answers", "memories"), scored, strict=True)),
        "enough": ENOUGH,
        "reliability": drawing.reliability,
    }


async def thesis(ask: Asking) -> Mapping[str, object]:
    """Show one thesis."""
    told = await ask("thesis.get", thesis_id=ask.given["id"])
    return {"thesis": told, "line": drawing.belief(told["history"], 900, 260)}
