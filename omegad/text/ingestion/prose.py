"""The sentences that somebody says in their own words in a message: no code, quotes, logs, tables, or what a
host wraps in elements. Pure.

Time is linear in the text but for elements, whose number and names are bounded by its lines.
"""

import re
from collections.abc import Iterator

SENTENCE_CHARACTERS = range(24, 401)
WORDS_MIN = 5

_FENCE = re.compile(r"\s{0,16}(?:[-*+]\s)?\s{0,4}(`{3}|~{3})")
_ELEMENT = re.compile(r"<([A-Za-z][\w.:-]{0,63})(?:\s[^<>]{0,500})?>")
_WRAPPED_BY = re.compile(r"[-_:]")
"""What stands in the name of an element of a host or a memory service, and in that of no element of HTML."""
_NOT_SAID = re.compile(
    r"""(?:\ {4}|\t)\s{0,64}[^\s*+\d-]  # indented code
    # A quote, a table, a heading, a shell's prompt, a diff, a label, a test's result.
    |\s{0,64}(?:[>|\#$@]|[+-]{2}|\[[A-Z_]{3,40}\]|[✓✔✗✕●]\s)
    |\s{0,64}(?:[-*]\s)?(?:mem-[0-9a-f]{8}|at\s\S{1,200}\s?[(:]|File\s"|Traceback\s|npm\s|DOM\sPath:
      |\w{1,40}(?:Error|Exception|Warning):\s)
    |\s{0,64}(?:[+-]\s{1,64})?(?://|/\*)  # a comment of code
    |\s{0,64}\[?(?:\d{4}-\d\d-\d\d[T\s]|\d\d?:\d\d(?::\d\d)?\b  # a line of a log
      |(?i:error|warn(?:ing)?|info|debug|fatal)\s{0,4}[:\]|])
    |[A-Z][A-Za-z]{1,20}(?:-[A-Za-z]{1,20}){0,3}-[Bb]y:\s  # a trailer of a commit
    """,
    re.VERBOSE,
)
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+\S")
_ITEM = re.compile(r"\s{0,64}(?:[-*+•]|\d{1,3}[.)])\s+\S")
HEADINGS_MAX, ITEMS_MAX = 1, 15
"""How many headings and items of lists a message has that a person writes; what has more is a document."""
_HANDED_ON = re.compile(
    r"\s*(?:this session is being continued from|base directory for this skill:|implement the following plan:"
    r"|caveat: the messages below|<observed_from_primary_session>)",
    re.IGNORECASE,
)
"""How a message begins that a host has put together."""
_MARK = re.compile(r"\A\s{0,64}(?:[-*+•]|\d{1,3}[.)]|[✅❌⚠🎯🔧]\ufe0f?)\s{1,8}(?:\[[ xX]\]\s)?")
_EMPHASIS = re.compile(r"\*\*|__|(?<!\w)\*(?=\S)|(?<=\S)\*(?!\w)")
_END = re.compile(r"(?<=[.!?])[\"')*_`]{0,3}\s{1,4}(?=[\"'(*_`]{0,3}[A-Z0-9`])")
_IS_SPOKEN = re.compile(r"[A-Za-z']{2,}")


def sentences(
    text: str, characters: range = SENTENCE_CHARACTERS, words_min: int = WORDS_MIN
) -> Iterator[str]:
    """Yield the sentences of a message that state something, of 24 to 400 *characters* and five words at
    least, without emphasis and marks of lists.
    """
    for line in _said(text):
        for part in _END.split(_MARK.sub("", line)):
            sentence = " ".join(_EMPHASIS.sub("", part).replace("\u2019", "'").split()).rstrip(" \\")
            if (
                len(sentence) in characters
                and not (sentence[0] in "\"“'" and sentence.rstrip(".,")[-1] in "\"”'")  # a quotation
                and not sentence.rstrip("\"')").endswith(("?", ":"))
                and said_words(sentence) >= words_min
            ):
                yield sentence


def own_words(text: str) -> str:
    """Return what a person says in a message themselves: of one that brings a document, what stands before
    it; nothing of what their host put together.
    """
    if _HANDED_ON.match(text):
        return ""
    fence, start, headings, items = "", None, 0, 0
    lines = text.splitlines(keepends=True)
    for place, line in enumerate(lines):
        if found := _FENCE.match(line):
            fence = "" if fence == found[1] else fence or found[1]
        elif not fence and (is_heading := bool(_HEADING.match(line))) | bool(_ITEM.match(line)):
            start = place if start is None else start
            headings, items = headings + is_heading, items + (not is_heading)
    is_document = headings > HEADINGS_MAX or items > ITEMS_MAX
    return "".join(lines[:start]) if is_document else text


def said_words(sentence: str) -> int:
    """Return how many words a sentence has."""
    return len(_IS_SPOKEN.findall(sentence))


def _said(text: str) -> Iterator[str]:
    """Yield the lines that are neither in a block of code or an element, nor look like anything but
    speech.
    """
    fence, closing, at = "", "", 0
    for line in text.splitlines(keepends=True):
        at += len(line)
        if closing:
            closing = "" if closing in line else closing
        elif found := _FENCE.match(line):
            fence = "" if fence == found[1] else fence or found[1]
        elif fence or _NOT_SAID.match(line):
            continue
        elif found := _ELEMENT.search(line):
            closing = f"</{found[1]}>"
            if closing in line or (not _WRAPPED_BY.search(found[1]) and text.find(closing, at) < 0):
                closing = ""
        else:
            yield line
