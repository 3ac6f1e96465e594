"""A measured figure, and how it is printed."""

import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal

import msgspec

from omegad.storage.driver import sqlite

Unit = Literal["ms", "s", "events/s", "facts/s", "calls/s", "MB"]
NAME_WIDTH = 44
VALUE_WIDTH = 18


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured, in its unit, and the goal and floors (by name, in the same unit) to hold it
    against.
    """

    name: str
    unit: Unit
    median: float
    p95: float | None = None
    runs: str
    """How many measurements the median is of."""
    goal: str = ""
    floors: dict[str, float] = {}
    note: str = ""

    def times(self, floor: float) -> float:
        """Return how many times the floor's cost this is, for rates as for durations and sizes."""
        return floor / self.median if self.unit.endswith("/s") else self.median / floor


class Effort(msgspec.Struct, frozen=True, kw_only=True):
    """How much to measure: more is steadier and takes longer."""

    quick: bool
    large: bool

    def pick(self, usual: int, quick: int) -> int:
        """Return *quick* where a quick run is wanted, else *usual*."""
        return quick if self.quick else usual


Report = Callable[[Figure], None]


class Timer:
    """Durations in milliseconds, one for each block measured."""

    def __init__(self) -> None:
        self.ms: list[float] = []

    @contextmanager
    def lap(self) -> Iterator[None]:
        """Add how long the block takes."""
        started = time.perf_counter_ns()
        yield
        self.ms.append((time.perf_counter_ns() - started) / 1e6)


def of_calls(
    name: str,
    ms: Sequence[float],
    *,
    goal: str = "",
    floors: Mapping[str, float] | None = None,
    note: str = "",
) -> Figure:
    """Return the figure of many single calls, each in milliseconds."""
    return Figure(
        name=name,
        unit="ms",
        median=statistics.median(ms),
        p95=p95(ms),
        runs=f"{len(ms)} calls",
        goal=goal,
        floors=dict(floors or {}),
        note=note,
    )


def of_rounds(
    name: str,
    unit: Unit,
    values: Sequence[float],
    *,
    goal: str = "",
    floors: Mapping[str, float] | None = None,
    note: str = "",
) -> Figure:
    """Return the figure of a few rounds, each of which measured it once."""
    spread = f"{shown(min(values), unit)} to {shown(max(values), unit)}" if len(values) > 1 else ""
    remarks = "; ".join(part for part in (spread, note) if part)
    median, runs = statistics.median(values), f"{len(values)} rounds"
    return Figure(
        name=name, unit=unit, median=median, runs=runs, goal=goal, floors=dict(floors or {}), note=remarks
    )


def p95(values: Sequence[float]) -> float:
    """Return the value that 95 of 100 do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, round(0.95 * len(ordered)) - 1)]


def shown(value: float, unit: Unit) -> str:
    """Write a value with three telling digits."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:,.{digits}f} {unit}"


def table_row(figure: Figure) -> str:
    """Write a figure as a line, with a line below for each floor and for the note."""
    tail = "" if figure.p95 is None else f"p95 {shown(figure.p95, figure.unit)}"
    lines = [
        f"{figure.name:{NAME_WIDTH}} {shown(figure.median, figure.unit):>{VALUE_WIDTH}}  {tail:16}"
        f" {figure.runs:>12}  {figure.goal}".rstrip()
    ]
    lines += [
        f"    {name:{NAME_WIDTH - 4}} {shown(floor, figure.unit):>{VALUE_WIDTH}}  {figure.times(floor):.2f} x"
        " the floor"
        for name, floor in figure.floors.items()
    ]
    return "\n".join([*lines, f"    ({figure.note})"] if figure.note else lines)


class Machine(msgspec.Struct, frozen=True):
    """What the figures were measured on, and how busy it was (runnable processes over 1, 5 and 15
    minutes).
    """

    cores: int
    load: tuple[float, float, float]
    system: str
    python: str
    sqlite: str

    def line(self) -> str:
        """Write it as one line."""
        load = " ".join(f"{one:.2f}" for one in self.load)
        return (
            f"{self.cores} cores, load average {load}, {self.system}, Python {self.python}, SQLite"
            f" {self.sqlite}"
        )


def machine() -> Machine:
    """Look at the machine."""
    system = f"{platform.system()} {platform.machine()}"
    return Machine(
        os.cpu_count() or 0, os.getloadavg(), system, platform.python_version(), sqlite.sqlite_version
    )
