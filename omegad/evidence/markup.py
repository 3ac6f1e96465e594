"""Text without the marks that only lay it out, and what its code says, of which every sign counts. Pure."""

import re

_BULLET = re.compile(r"^[ \t]*(?:(?:[-*+\u2022]|\d{1,3}[.)])[ \t]+)", re.MULTILINE)
_BOX = re.compile(r"^\[(?P<mark>[ xX])\][ \t]+", re.MULTILINE)
_HEADING = re.compile(r"^[ \t]*(?:#{1,6}|>)[ \t]+", re.MULTILINE)
_STRONG = re.compile(r"(?<![\w*])\*\*(?=\S)([^*\n]+?)(?<=\S)\*\*(?![\w*])")
_EMPHASIS = re.compile(r"(?<![\w*/])\*(?=\w)([^*\n]+?)(?<=[\w.,;:!?])\*(?![\w*/])")
_LINK = re.compile(r"\[([^\[\]\n]{1,200})\]\((\S{1,500}?)\)")
_FENCE = re.compile(r"^[ \t]*```[^\n]*\n(?P<code>.*?)(?:^[ \t]*```|\Z)", re.DOTALL | re.MULTILINE)
_NUMBERED = re.compile(r"(?:^|\s)\d{1,3}[.)]\s+\S")
_INDENTED = re.compile(r"^(?P<indent>[ \t]+)(?![-*+\u2022]\s|\d{1,3}[.)]\s)\S", re.MULTILINE)

DONE, TO_DO = "\u2611", "\u2610"


def plain(text: str) -> str:
    """Return a text without its bullets, numbers of steps, headings, emphasis and fences; boxes to tick are one sign each."""
    text = _BULLET.sub("", _HEADING.sub("", text.replace("```", "\n")))
    text = _BOX.sub(lambda box: f"{TO_DO if box['mark'] == ' ' else DONE} ", text)
    text = _STRONG.sub(r"\1", text)
    return _LINK.sub(r"\1 (\2)", _EMPHASIS.sub(r"\1", text))


def code(text: str) -> tuple[str, ...]:
    """Return the fenced blocks of a text, without the blanks that end their lines."""
    return tuple("\n".join(line.rstrip() for line in match["code"].rstrip().splitlines()) for match in _FENCE.finditer(text))


def without_code(text: str) -> str:
    """Return a text without its fenced blocks."""
    return _FENCE.sub("\n", text)


def indents(text: str) -> tuple[str, ...]:
    """Return the indents of the lines of a text that have one and are no items of a list."""
    return tuple(match["indent"] for match in _INDENTED.finditer(without_code(text).strip()))


def is_numbered(text: str) -> bool:
    """Say whether a text has numbered steps, whose order says something."""
    return len(_NUMBERED.findall(text)) > 1
