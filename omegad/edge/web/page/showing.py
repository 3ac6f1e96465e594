"""How pages are written: by templates that escape whatever is put into them, in which nothing is hidden and
nothing turns the direction of the text around it.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from omegad.edge.cli import printing
from omegad.edge.web.page.asked import Query

PLACE = Path(__file__).parent
MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400
RECENT_DAYS = 7

# What a reader does not see, or what turns the text: shown by its name instead of obeyed. Tabs and line feeds
# stay, and so do the joiners that emoji and scripts need.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e0fff]"
)


_GIVEN = re.compile(r'\{"(?:command|file_path|path|pattern|query|url)":"([^"\\]*)"\}')


def visible(value: object) -> object:
    """Return what a template puts out, with what is unseen in it spelt out; nothing for None."""
    if value is None:
        return ""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return _UNSEEN.sub(lambda sign: f"⟨U+{ord(sign[0]):04X}⟩", value.replace("\r\n", "\n"))
    return value


def short(text: object, characters: int = 160) -> str:
    """Return the beginning of a text on one line."""
    flat = " ".join(str(text or "")[: 4 * characters].split())
    return flat if len(flat) <= characters else f"{flat[: characters - 1].rstrip()}…"


def title(text: object, characters: int = 120) -> str:
    """Return the first line of a text, shortened."""
    return short(str(text or "").lstrip()[: 4 * characters].partition("\n")[0], characters)


def rest(text: str, characters: int) -> str:
    """Return what a text says beyond the title that is so long: its other lines, or all of it where the title
    is cut.
    """
    first, _, others = text.lstrip().partition("\n")
    return text if len(first) > characters else others.strip()


def ago(moment: str) -> str:
    """Return how long ago an RFC 3339 time is, as a day where that is long."""
    then = datetime.fromisoformat(moment)
    seconds = (datetime.now(UTC) - then).total_seconds()
    for most, unit, name in ((90, 1, "s"), (90 * MINUTE_S, MINUTE_S, "min"), (36 * HOUR_S, HOUR_S, "h")):
        if abs(seconds) < most:
            count = round(abs(seconds) / unit)
            return "now" if not count else f"{count} {name} ago" if seconds > 0 else f"in {count} {name}"
    days = round(abs(seconds) / DAY_S)
    if days <= RECENT_DAYS:
        return f"{days} d ago" if seconds > 0 else f"in {days} d"
    return then.strftime("%-d %b %Y" if then.year != datetime.now(UTC).year else "%-d %b")


def clock(moment: str) -> str:
    """Return the time of day of an RFC 3339 time."""
    return moment[11:16]


def day(moment: str) -> str:
    """Return the day of an RFC 3339 time in words."""
    return datetime.fromisoformat(moment[:10]).strftime("%A, %-d %B %Y")


def call(text: str) -> str:
    """Return what a tool was given as people would say it: its command or file, where it names one alone."""
    said, arrow, result = text.partition(" → ")
    found = _GIVEN.fullmatch(said)
    return f"{found[1]}{arrow}{result}" if found else text


def hides(text: str) -> bool:
    """Say whether a text has characters that nobody sees."""
    return bool(_UNSEEN.search(text))


@cache
def templates() -> Environment:
    """Return the templates."""
    # Templates are files of ours, read once, in which each value is escaped.
    known = Environment(
        loader=FileSystemLoader(PLACE / "templates"),
        autoescape=True,
        finalize=visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    known.filters |= {
        "short": short,
        "title": title,
        "rest": rest,
        "ago": ago,
        "clock": clock,
        "day": day,
        "size": printing.size,
        "duration": printing.duration,
        "call": call,
        "hides": hides,
    }
    known.globals["q"] = lambda method, **params: Query(method, params)
    return known


def fragment(name: str, values: Mapping[str, object]) -> str:
    """Return a page's HTML."""
    return templates().get_template(f"{name}.html").render(values)
