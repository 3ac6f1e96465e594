r"""Passwords in columns: of a table in Markdown or as databases print it, of CSV, and of SQL's INSERT.

A line of names, one of them a password's, heads the lines below it that have as many cells. Lines may end
with `\n`, and cells with `\t`, as JSON writes them.
"""

import re
from collections.abc import Container
from itertools import islice, pairwise

from omegad.text.redaction import spoken, values
from omegad.text.redaction.values import Span

LINE_CHARACTERS = 2_000
BEGINNING = 400
CELLS_MAX = 100
ODD_MAX = 2  # lines in a table that are none of it: blank, a remark, or cut by a line end in a cell
PASSWORD_MIN = 4
WORD_MIN = 5  # of letters alone, beside a user

WEAK_MIN = 6  # beside a person's or host's name, under a word that says other things as well
PIN_DIGITS = (4, 8)

NEEDLES = ("pass", "pw")
# These only in tables with lines of hyphens, or where a text begins.
_WEAK_NEEDLES = ("secret", "token", "key", "cred", "pin")
_PASSWORD = "|".join(
    [
        "passw?or[dt]",
        "passwd|passphrase|passcode|pwd|mot de passe|palavra-passe",
        *map(re.escape, spoken.STEMS),
    ]
)
_OF = r"(?:[^\W_]{1,24}[ _.-]){0,5}"
_IS_PASSWORD = re.compile(rf"{_OF}[a-z]{{0,12}}(?:{_PASSWORD})(?: ?\([^()]{{1,24}}\))?")
_IS_USER = re.compile(
    r"user|login|mail|account|usu[aá]rio|utili[sz]a|identifi|benutzer|użytkownik|gebruiker|anv[aä]ndar"
    r"|bruger|bruker|k[aä]ytt[aä]j|utente|konto|用户|账号|帳號|ユーザ|пользоват|логин|사용자|아이디"
)
# What says other things as well, and a password only beside a name.
_IS_WEAK = re.compile(
    rf"{_OF}(?:pass|pw|pin|secret|token|api[ _-]?key|cred(?:ential)?s?)(?: ?\([^()]{{1,24}}\))?"
)
_IS_NAME = re.compile(rf"{_OF}(?:host(?:name)?|server|machine|name|person|who)")
HEADS = re.compile(
    r"(?:pass(?:wor[dt]|wd|phrase|code|ord|e)?|pwd?|secret|token"
    r"|(?:(?<=api)|(?<=api[ _-]))key|cred(?:ential)?s?"
    r"|(?<![^\W_])pin)"
    r"(?=[ \t\"'`*\\]{0,40}(?:\([^()\r\n]{1,24}\)[ \t\"'`*]{0,40})?(?:[|,;\t\r\n]|\\[nrt])|  )"
)
# Behind words of other languages; commas and line ends, which are everywhere, only where a text begins.
_FOREIGN = tuple(
    (sign, spoken.signed(re.escape(sign)), at_most)
    for sign, at_most in (
        ("|", None),
        (";", None),
        ("\t", None),
        (",", BEGINNING),
        ("\n", BEGINNING),
        ("\\", BEGINNING),
    )
)
_LINE_END = re.compile(r"\r?\n|(?:\\r)?\\n")
_NAME = re.compile(r"[\s\"'`*_\\]{0,40}(?:[^\W\d][\w .()/#-]{0,48}|#|№)[\s\"'`*_\\]{0,40}")
_COLUMN_NAME = re.compile(r"[^\W\d][\w()/#-]{0,24}(?: [\w()/#-]{1,24}){0,2}")
_NAME_LAST = re.compile(r"(?:[^\W\d_][\w .()/#-]{0,48}|[\"'])\Z")
_BETWEEN = re.compile(r"[-+:|= \t]{3,}")
_SEPARATORS = ("|", "\t", "\\t", ";", ",")
_SPACES = "  "  # two and more part columns where nothing else does
_COLUMN = re.compile(r"[^ ]+(?: [^ ]+)*")
ODD_BARS = 2  # by which a row that is one cell off has more or less of them than its head has names
ROW_LINES = 16  # of a row whose cells have line ends
ALIGNED_MAX = 16  # columns that spaces part
_CELLS = {
    sign: re.compile(
        rf" ?(?P<quote>\\?\")(?:(?!(?P=quote)).|(?P=quote){{2}}){{0,500}}(?P=quote) ?(?={sign}|\Z)"
        rf"|[^{sign}]*",
        re.DOTALL,
    )
    for sign in ";,"
}
_AROUND, _AROUND_BAR = " \t\r\"'\\", " \t\r\"'\\`*_"
_INSERTED = re.compile(r"values\s{0,40}(?=\()")
_UNESCAPED = re.compile(r"(?<!\\)\"")
_SAYS = re.compile(r"\w")  # a cell, and not what JSON has behind a row
_GAP = re.compile(r"\s|\\[nrt]")
_SQL = re.compile(
    r"'(?P<said>(?:[^'\\\r\n]|'{2}|\\{1,64}+(?!')|\\(?:\\\\){0,31}+'|(?:\\\\){1,31}+(?:'(?=[0-9A-Za-z])|(?=')))"
    r"{0,500})'|\\?\"(?P<other>(?:(?!\\?\").|\"{2}){0,500})\\?\"|[(),;]"
)


class _Head:
    """The names that head a table: what parts them, how many there are, and which are a password's."""

    def __init__(self, separator: str, names: list[str]) -> None:
        self.separator, self.names, self.count = separator, names, len(names)
        self.passwords = [at for at, name in enumerate(names) if _IS_PASSWORD.fullmatch(name)]
        self.has_users = any(_IS_USER.search(name) for name in names)
        self.has_names = self.has_users or any(map(_IS_NAME.fullmatch, names))
        self.starts: list[int] = []  # where columns begin that spaces part
        self.weak = [at for at, name in enumerate(names) if self.has_names and _IS_WEAK.fullmatch(name)]
        self.passwords = [at for at in self.passwords if at not in self.weak]
        self.secrets = sorted([*self.passwords, *self.weak])


def passwords(text: str, folded: str, needles: Container[str]) -> list[Span]:
    """Return where passwords stand in columns; *folded* is *text* in lower case, and *needles* are those of
    `NEEDLES` that are in it.
    """
    spans: list[Span] = []
    done, closed = 0, -1
    has_lines = "\n" in folded or "\\n" in folded
    for at in _places(folded, needles) if has_lines else ():
        if at < done:
            continue
        start, end, below = _line(folded, at)
        done = below
        above = folded[max(0, start - LINE_CHARACTERS) : start].rstrip("\r\n").removesuffix("\\n")
        line = folded[start:end] if end - start <= LINE_CHARACTERS else ""
        head = _head(line, at - start, above[above.rfind("\n") + 1 :])
        if head:
            last = len(text)
            if text.endswith("\\n", 0, below):  # lines that end as JSON writes it are a string's
                closed = _closed(text, below) if closed < below else closed
                last = closed
            found, done = _below(text, below, last, head)
            spans += found
    return sorted([*spans, *_inserted(text, folded)]) if "pass" in needles else spans


def _places(folded: str, needles: Container[str]) -> list[int]:
    """Return places in lines that may be heads, in order."""
    is_ruled = "|" in folded and ("---" in folded or "|--" in folded)
    found = [
        at
        for part, names in (
            (folded, NEEDLES),
            (folded if is_ruled else folded[:BEGINNING], _WEAK_NEEDLES),
        )
        for needle in names
        if needle == "pin" or needle in needles
        for at in values.places(part, needle)
        if HEADS.match(folded, at)
    ]
    for sign, pattern, at_most in _FOREIGN:
        if sign in folded:
            found += [match.start() - 1 for match in pattern.finditer(folded, 0, at_most or len(folded))]
    return sorted(found)


def _line(text: str, at: int) -> tuple[int, int, int]:
    """Return where the line around a place begins and ends, and where the next one begins; one that is too
    long ends somewhere.
    """
    first = max(0, at - LINE_CHARACTERS)
    escaped = text.rfind("\\n", first, at)
    start = max(text.rfind("\n", first, at) + 1, escaped + 2 if escaped >= 0 else 0, first)
    found = _LINE_END.search(text, at, at + LINE_CHARACTERS)
    last = min(len(text), at + LINE_CHARACTERS)
    return (start, found.start(), found.end()) if found else (start, last, last)


def _head(line: str, at: int, above: str) -> _Head | None:
    """Return what a line in lower case is the head of, as the password's name in it says that begins or ends
    around a place; None where the line *above* is one of the same table.
    """
    for separator in _SEPARATORS:
        if separator in line and (
            _BETWEEN.fullmatch(above) or above.count(separator) != line.count(separator)
        ):
            cells = line.split(separator)
            place = line.count(separator, 0, at)
            names = _names(cells, place, separator)
            head = _Head(separator, names) if len(names) > 1 else None
            if head and head.secrets:
                return head
    return _aligned_head(line, at)


def _aligned_head(line: str, at: int) -> _Head | None:
    """Return what a line is the head of whose columns spaces part, as `column -t` prints them."""
    skipped = line.rfind('"') + 1  # of JSON, before its first line
    line = line[skipped:]
    if _SPACES not in line.strip() or "," in line:
        return None
    columns = [(match.start(), match[0]) for match in _COLUMN.finditer(line)]
    if not 1 < len(columns) <= ALIGNED_MAX or not all(_COLUMN_NAME.fullmatch(name) for _, name in columns):
        return None
    head = _Head(_SPACES, [name.replace("_", " ") for _, name in columns])
    head.starts = [start for start, _ in columns]
    return head if head.has_names and skipped <= at and head.secrets else None


def _names(cells: list[str], place: int, separator: str) -> list[str]:
    """Return the names around one of a line's cells; none where the line does not end with them."""
    first = last = min(place, len(cells) - 1)
    while first >= 0 and _NAME.fullmatch(cells[first]):
        first -= 1
    while last < len(cells) and _NAME.fullmatch(cells[last]):
        last += 1
    if first == last or len(cells) > CELLS_MAX or "".join(cells[last:]).strip(_AROUND_BAR):
        return []
    names = cells[first + 1 : last]
    # What a line of JSON, or a search's answer, has before its first name.
    if (
        first >= 0
        and (separator != "|" or '"' in cells[first])
        and (found := _NAME_LAST.search(cells[first]))
    ):
        names = [found[0], *names]
    return [name.strip(_AROUND_BAR) for name in names]


def _closed(text: str, at: int) -> int:
    """Return where a string of JSON ends that a place is in."""
    found = _UNESCAPED.search(text, at)
    return found.start() if found else len(text)


def _below(text: str, at: int, last: int, head: _Head) -> tuple[list[Span], int]:
    """Return where the passwords stand in the lines between two places, and where the table ends."""
    spans: list[Span] = []
    odd, ends = 0, at
    while at < last:
        found = _LINE_END.search(text, at, min(last, at + LINE_CHARACTERS))
        end = found.start() if found else last
        if end - at > LINE_CHARACTERS:
            break
        line = text[at:end]
        if found and head.separator in _CELLS and line.count('"') % 2 and (row := _row(text, at, last, head)):
            line, found = row
        if head.separator not in {"|", _SPACES} or not _BETWEEN.fullmatch(line):
            cells = _cells(line, head)
            inner = [
                span for place in head.secrets if cells and (span := _value(line, cells[place], head, place))
            ] or _displaced(line, head)
            odd = 0 if cells or inner else odd + 1
            if odd > ODD_MAX:
                break
            spans += [(at + first, at + end) for first, end in inner]
        at = found.end() if found else last
        ends = at if not odd else ends
    return sorted(spans), ends


def _row(text: str, at: int, last: int, head: _Head) -> tuple[str, re.Match[str]] | None:
    """Return a row with line ends in its cells, and the one behind it; None where a quote has no other."""
    quotes, first = 0, at
    for found in islice(_LINE_END.finditer(text, at, min(last, at + LINE_CHARACTERS)), ROW_LINES):
        quotes, first = quotes + text.count('"', first, found.start()), found.end()
        if quotes % 2 == 0:
            line = text[at : found.start()]
            return (line, found) if _cells(line, head) else None
    return None


def _cells(line: str, head: _Head) -> list[Span]:
    """Return where the cells of a line are; none where it is no line of that table."""
    separator = head.separator
    if separator == _SPACES:
        cells = [match.span() for match in _COLUMN.finditer(line)]
        return cells if [start for start, _ in cells] == head.starts else []
    cells = []
    at = 0
    while at <= len(line) and len(cells) <= CELLS_MAX:
        found = _CELLS[separator].match(line, at) if separator in _CELLS and '"' in line else None
        end = found.end() if found else line.find(separator, at)
        end = len(line) if end < 0 else end
        cells.append((at, end))
        at = end + len(separator)
    if separator == "|":
        if not line[slice(*cells[-1])].strip(_AROUND_BAR):
            cells.pop()
        return cells[-head.count :] if head.count <= len(cells) <= head.count + 1 else []
    return cells if len(cells) == head.count else []


def _displaced(line: str, head: _Head) -> list[Span]:
    """Return where passwords stand in a row that is one place off its head: with a cell more or less between
    bars, or with columns that begin one sign beside where the head's do. They are told by themselves alone.
    """
    if head.separator == _SPACES:
        cells = [match.span() for match in _COLUMN.finditer(line)]
        is_near = len(cells) == head.count and all(
            abs(start - wanted) <= 1 for (start, _), wanted in zip(cells, head.starts, strict=True)
        )
        near = [(place, place) for place in head.secrets] if is_near else []
    elif head.separator == "|":
        skipped = not head.names[0]  # of JSON, before its first bar
        bars = [at for at, sign in enumerate(line) if sign == "|"]
        bounds = [-1, *bars, len(line)] if abs(len(bars) - head.count) <= ODD_BARS else []
        cells = [(first + 1, end) for first, end in pairwise(bounds) if _SAYS.search(line, first + 1, end)]
        more = len(cells) - head.count + skipped
        near = [
            (place, beside)
            for place in head.secrets
            for beside in (place - skipped, place - skipped + more)
            if abs(more) == 1 and 0 <= beside < len(cells)
        ]
    else:
        return []
    found = {_value(line, cells[beside], head, place) for place, beside in near}
    return sorted(
        span
        for span in found
        if span and span[1] - span[0] >= WEAK_MIN and values.is_mixed(line[slice(*span)])
    )


def _value(line: str, cell: Span, head: _Head, place: int) -> Span | None:
    """Return where a cell's password is; None where it tells none."""
    around = _AROUND_BAR if head.separator == "|" else _AROUND
    cell_text = line[slice(*cell)]
    value = cell_text.lstrip(around)
    first = cell[1] - len(value)
    if '"' not in cell_text[: first - cell[0]]:
        value = value.partition('"')[0]
    value = value.rstrip(around)
    is_one = _is_chosen(value, head.names[place]) if place in head.weak else _is_password(value, head)
    return (first, first + len(value)) if is_one else None


def _is_chosen(value: str, name: str) -> bool:
    if name.endswith("pin"):
        return value.isdecimal() and PIN_DIGITS[0] <= len(value) <= PIN_DIGITS[1]
    return len(value) >= WEAK_MIN and values.is_mixed(value)


def _is_password(value: str, head: _Head) -> bool:
    if value.isdecimal():
        return head.has_users and len(value) >= PASSWORD_MIN
    if (
        len(value) < PASSWORD_MIN
        or values.is_stand_in(value)
        or values.is_word(value)
        or values.is_prose(value)
        or values.is_code(value, "")
        or _IS_PASSWORD.fullmatch(value.lower().replace("_", " "))
    ):
        return False
    if " " in value:
        return head.separator != "|" and values.is_phrase(value)
    if values.looks_chosen(value):
        return head.has_users or not values.has_word(value)
    return head.has_users and value.isascii() and len(value) >= WORD_MIN


def _inserted(text: str, folded: str) -> list[Span]:
    """Return where passwords stand in the values that SQL inserts."""
    spans: list[Span] = []
    done = 0
    for match in _INSERTED.finditer(folded):
        before = folded[max(done, match.start() - LINE_CHARACTERS) : match.start()].rstrip()
        opened = before.rfind("(")
        if match.start() < done or opened < 0 or not before.endswith(")"):
            continue
        head = _Head(",", [name.strip(_AROUND_BAR) for name in before[opened + 1 : -1].split(",")])
        if head.passwords:
            found, done = _tuples(text, match.end(), head)
            spans += found
    return spans


def _tuples(text: str, at: int, head: _Head) -> tuple[list[Span], int]:
    """Return where passwords stand in the tuples from a place on, and where these end."""
    spans: list[Span] = []
    depth = place = 0
    for match in _SQL.finditer(text, at):
        sign = match[0]
        if sign == ";" or (depth == 0 and (sign not in "(," or _GAP.sub("", text[at : match.start()]))):
            break
        at = match.end()
        if sign == "(":
            depth += 1
        elif sign == ")":
            depth -= 1
            place = place if depth else 0
        elif sign == ",":
            place += depth == 1
        elif place in head.passwords and _is_inserted(match["said"] or match["other"] or ""):
            spans.append(match.span("said" if match["said"] else "other"))
    return spans, at


def _is_inserted(value: str) -> bool:
    return len(value) >= PASSWORD_MIN and not (
        values.is_stand_in(value) or values.is_word(value) or values.is_prose(value)
    )
