"""Pictures as numbers that templates draw: what is around a memory, a belief over time, a calibration curve.
The same answers give the same picture.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import ModuleType
from typing import TYPE_CHECKING, Any

from omegad.edge.web.page.showing import title
from omegad.runtime.json_types import Json

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

WIDTH, HEIGHT = 1_080, 620
BOX, LINE = 168, 24
NAME_CHARACTERS = 24
ROUNDS = 120
SEED = 4
NEAR = 1.2
"""Of the size of a box: nearer than that two boxes lie upon each other."""


def neighbourhood(nodes: Sequence[Json], edges: Sequence[Json], most: int) -> Mapping[str, Any]:
    """Return boxes and lines, by where they are, of the memories around one, which is the first: the nearest,
    and of these the best connected, as many as *most*. Takes a tenth of a second for 60, and a thread of its
    own is right for it.
    """
    import numpy as np  # noqa: PLC0415  which no other page needs

    degree = Counter(end for edge in edges for end in (edge["source_id"], edge["target_id"]))
    order = sorted(nodes, key=lambda one: (one["hop"], -degree[one["memory_id"]], one["memory_id"]))[:most]
    place = {one["memory_id"]: number for number, one in enumerate(order)}
    drawn = [one for one in edges if one["source_id"] in place and one["target_id"] in place]
    count = len(order)
    height = max(120, min(1_500, HEIGHT * count // 40))
    angle = np.arange(count) * 2.399963
    reach = np.array([0.0, 0.45, 0.95])[[min(one["hop"], 2) for one in order]] + np.random.default_rng(
        SEED
    ).normal(0, 0.02, count)
    at = np.stack([np.cos(angle) * reach * WIDTH / 2, np.sin(angle) * reach * height / 2], axis=1)
    ends = np.array([(place[one["source_id"]], place[one["target_id"]]) for one in drawn]).reshape(-1, 2)
    for cooled in np.linspace(1.0, 0.05, ROUNDS):
        push = _pushed(at, np)
        if len(ends):
            pull = (at[ends[:, 1]] - at[ends[:, 0]]) * 0.02
            np.add.at(push, ends[:, 0], pull)
            np.add.at(push, ends[:, 1], -pull)
        at += np.clip(push, -30, 30) * cooled
        at[0] = 0.0
        at[:, 0] = np.clip(at[:, 0], -(WIDTH - BOX) / 2 + 4, (WIDTH - BOX) / 2 - 4)
        at[:, 1] = np.clip(at[:, 1], -(height - LINE) / 2 + 4, (height - LINE) / 2 - 4)
    gap, turn = np.array([BOX + 6.0, LINE + 6.0]), (np.arange(count)[:, None] - np.arange(count)) * 1e-6
    for _ in range(ROUNDS):  # until hardly a box lies upon another, however tall that makes it
        apart = at[:, None, :] - at[None, :, :]
        over = np.clip(gap - np.abs(apart), 0.0, None)
        at[:, 1] += ((over[:, :, 0] > 0) * over[:, :, 1] * np.sign(apart[:, :, 1] + turn)).sum(axis=1) * 0.5
    at = np.round(at + np.array([WIDTH / 2, LINE - at[:, 1].min()]), 1)
    height = int(at[:, 1].max()) + LINE
    boxes = [
        {**one, "name": title(one["content"], NAME_CHARACTERS), "x": x, "y": y}
        for one, (x, y) in zip(order, at.tolist(), strict=True)
    ]
    lines = [
        {**edge, "ends": (*at[one].tolist(), *at[other].tolist())}
        for edge, (one, other) in zip(drawn, ends.tolist(), strict=True)
    ]
    frame = {"of": len(nodes), "width": WIDTH, "height": height, "box": BOX, "line": LINE}
    return {"nodes": boxes, "lines": lines, **frame}


def _pushed(at: "Array", np: ModuleType) -> "Array":
    """Return how boxes push each other, most where they lie upon each other."""
    scaled = (at[:, None, :] - at[None, :, :]) / np.array([BOX + 16.0, LINE + 16.0])
    far = np.maximum(np.sqrt((scaled**2).sum(axis=2)), 0.05)
    np.fill_diagonal(far, 9.0)
    force = np.where(far < NEAR, (NEAR - far) * 40, 0.9 / far**2)
    pushed: Array = (scaled / far[:, :, None] * force[:, :, None]).sum(axis=1)
    return pushed


def belief(history: Sequence[Json], width: int, height: int) -> Mapping[str, Any]:
    """Return a step line of how strongly a thesis was believed over time, where a confidence holds until the
    next event: the points of a polyline, its marks with what happened there, and what stands at the axes.
    """
    left, top, bottom = (34, 10, 24) if height > 100 else (0, 6, 6)  # noqa: PLR2004  room for words at the axes
    times = [datetime.fromisoformat(one["at"]).timestamp() for one in history]
    first, last = times[0], max(times[-1], times[0] + 1)
    span = width - left - 8

    def x(at: float) -> float:
        return round(left + (at - first) / (last - first) * span, 1)

    def y(confidence: float) -> float:
        return round(top + (1 - confidence) * (height - top - bottom), 1)

    points, marks = list[str](), list[dict[str, object]]()
    for at, one in zip(times, history, strict=True):
        points += [f"{x(at)},{y(one['before'])}", f"{x(at)},{y(one['confidence'])}"]
        counts = f"{one['for_count']} for, {one['against_count']} against"
        told = f"{one['at'][:16].replace('T', ' ')}: {one['what']}, {one['confidence']:.2f} ({counts})"
        side = one["side"] or one["what"]
        marks.append({"x": x(at), "y": y(one["confidence"]), "side": side, "told": told})
    points.append(f"{width - 8 + 4},{y(history[-1]['confidence'])}")
    return {
        "points": " ".join(points[1:]),
        "marks": marks,
        "frame": (width, height, left, y(0.5)),
        "days": (history[0]["at"][:10], history[-1]["at"][:10]),
        "scale": [(y(value), f"{value:g}") for value in (0.0, 0.25, 0.5, 0.75, 1.0)],
    }


def reliability(curve: Sequence[Json], side: int = 140) -> Sequence[tuple[float, float, float, str]]:
    """Return where each tenth of a calibration stands (x, y, radius, words): on the diagonal where what was
    said came true as often as said.
    """
    most = max((one["n"] for one in curve), default=1)
    return [
        (
            round(one["said"] * side, 1),
            round((1 - one["came_true"]) * side, 1),
            round(2 + 5 * (one["n"] / most) ** 0.5, 1),
            f"said {one['said']:.2f}, came true {one['came_true']:.2f}, n = {one['n']}",
        )
        for one in curve
    ]
