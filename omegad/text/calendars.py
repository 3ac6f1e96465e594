"""How the languages beside English name months, and times that are told from today, put into English for
`periods`. Pure.

The names are those of Unicode's CLDR (`python -m tests.retrieval.calendars` takes them over). A word that
ends otherwise than there is the same one where its stem is the same.
"""

import re
from datetime import date
from functools import cache
from importlib import resources

import msgspec

from omegad.text.stems import OTHERS, stem_in

ENDING_MAX = 4  # letters of a word, in which it may differ
INFLECTED_MIN = 3
LONG = 5  # letters of a month's name that is hardly another word as well
BESIDE = 12  # characters
YEAR_DIGITS = 4
UNSPACED = ("zh", "ja", "ko", "th")
CAPITALS = ("en", "de", "id")  # languages that write months with a capital; in others that is another name
_LETTER = r"[\w\u0900-\u0963\u0966-\u0dff]"
_WORD = re.compile(r"(?:[^\W_]|[\u0900-\u0963\u0966-\u0dff])+")
_LETTERS = re.compile(r"(?:[^\W\d_]|[\u0900-\u0963\u0966-\u0dff])+")
_MONTH = "((?:January|February|March|April|May|June|July|August|September|October|November|December))"
_YEAR = r"((?:19|20)\d\d)"
_YEAR_FIRST = re.compile(rf"(?<!\d){_YEAR}\s*[年년.]?\s*{_MONTH}(?:\s*(\d{{1,2}})(?!\d)\s*[日號号일.]?)?")
_DAY_FIRST = re.compile(rf"(?<!\d)(\d{{1,2}})(?:\.|er|º|ª|°)?\s+(?:\w{{1,4}}\s+)?(?={_MONTH})")
_WITH_YEAR = re.compile(rf"{_MONTH}(?:\s+\w{{1,3}})?\s+{_YEAR}(?!\d)")
_ALONE = re.compile(rf"(?<!\d ){_MONTH}(?! \d)")
_ENGLISH_MONTHS = frozenset(
    ["january", "february", "march", "july", "september", "october", "november", "december"]
)
"""Those that are no people's names."""
_ERAS = {"令和": 2018, "平成": 1988, "昭和": 1925, "大正": 1911, "民国": 1911, "民國": 1911}
"""The year before the first of each."""
_EAST_ASIAN = re.compile(
    rf"(?:(?P<era>{'|'.join(_ERAS)})\s*)?(?<!\d)(?P<year>\d{{1,4}}|元)\s*[年년](?:\s*(?P<month>\d{{1,3}})\s*[月월]"
    r"(?:\s*(?P<day>\d{1,3})\s*[日號号일])?)?"
    r"|(?<!\d)(?P<month_alone>\d{1,3})\s*[月월]\s*(?P<day_alone>\d{1,3})\s*[日號号일]"
)
_LEAP_YEAR = 2024  # that has every day that any year has
_IN_YEAR = re.compile(rf"(?<!\S)(?:im|en|em|в|w|v|i)\s+{_YEAR}(?![\w-]|[.:/,]\d)", re.IGNORECASE)
_IN = re.compile(r"(?<!\S)(?:im|in|en|em|el|в|w|v|i)\s+$", re.IGNORECASE)
_IN_TURKISH = re.compile(r"(?<=[dt][ae])|['\u2019][dt][ae]\b|\s+ay(?:\u0131|da|\u0131nda)\b", re.IGNORECASE)
_NUMBER_BEFORE = re.compile(r"\d(?:\.|er|º|ª|°)?\s+(?:\w{1,4}\s+)?$")
_NUMBER_AFTER = re.compile(r"\s+(?:\w{1,3}\s+)?\d")


class Told(msgspec.Struct, frozen=True):
    """A question with its times in English, and the words, in lower case, that said them, and which of those
    are in no date; `undated_names` are what these say together, as it is written.
    """

    text: str
    words: frozenset[str]
    undated: frozenset[str]
    undated_names: tuple[str, ...]


class _Names(msgspec.Struct, frozen=True):
    """What finds the names of times in a language, each in a group, and of each group the name, and what it
    is in English.
    """

    pattern: re.Pattern[str]
    known: tuple[tuple[str, str], ...]

    @property
    def months(self) -> frozenset[str]:
        """What months are called."""
        return frozenset(name for name, english in self.known if english[0].isupper())


def in_english(question: str, code: str) -> Told | None:
    """Return a question in a language with the times that it names in English; None where it names none."""
    names = _names(code)
    words, undated, undated_names = set[str](), set[str](), list[str]()

    def told(match: re.Match[str]) -> str:
        (name, english), said = names.known[(match.lastindex or 1) - 1], match.group()
        is_month, number = english[0].isupper(), "".join(filter(str.isdigit, said))
        is_sure = not is_month or bool(number) or code in UNSPACED or _is_time(match)
        if _stems(code, name) != _stems(code, said) or not is_sure:
            return said
        own = _WORD.findall(said.lower())
        words.update(own)
        if not is_month and english != "year":
            undated.update(own)
            undated_names.append(said)
        return f" in {number} " if english == "year" else f" {english.replace('#', number)} "

    def phrase(match: re.Match[str]) -> str:
        said = match.group()
        if not (english := _phrases().get(said.lower())):  # signs that are alike in small letters alone
            return said
        undated.update(_WORD.findall(said.lower()))
        undated_names.append(said)
        return f" {english} "

    def month(match: re.Match[str]) -> str:
        english = _months().get(match.group().lower())
        if not english or not _is_dated(match):
            return match.group()
        words.add(match.group().lower())
        return english

    # What is looked for around a name takes its time over long gaps.
    question = _with_possible_dates(" ".join(question.split()), code)
    text = names.pattern.sub(told, question)
    if text == question:  # languages in one script are easily taken for each other
        text = _LETTERS.sub(month, _any_phrase().sub(phrase, question))
    text = _IN_YEAR.sub(r"in \1", text)
    if text == question:
        return None
    text = _YEAR_FIRST.sub(lambda said: f"{said[3] or ''} {said[2]} {said[1]}", text)
    text = _WITH_YEAR.sub(r"\1 \2", _DAY_FIRST.sub(r"\1 ", text))
    text = _ALONE.sub(r"in \1", " ".join(text.split()))
    return Told(text, frozenset(words | undated), frozenset(undated), tuple(undated_names))


def _with_possible_dates(question: str, code: str) -> str:
    return _EAST_ASIAN.sub(_possible, question) if code in UNSPACED else question


def _possible(match: re.Match[str]) -> str:
    """Return a date of East Asia with its year counted as elsewhere; nothing for one that no calendar has, or
    whose year is not told, of which a part would be another time.
    """
    era, year, *_ = match.groups()
    month, day = (match[name] or match[f"{name}_alone"] for name in ("month", "day"))
    first = 1 if year == "元" else int(year or _LEAP_YEAR)
    counted = first + _ERAS.get(era, 0)
    try:
        date(counted, int(month or 1), int(day or 1))
    except ValueError:
        return " "
    if year and month and len(str(counted)) != YEAR_DIGITS:
        return " "
    return match.group().replace(era, "", 1).replace(year, str(counted), 1) if era else match.group()


def in_month(question: str, code: str) -> str | None:
    """Return a question in a language with "in" before the first month that stands there without such a word;
    None where none does.
    """
    months = _names(code).months or _ENGLISH_MONTHS
    for match in _WORD.finditer(question):
        before = question[max(0, match.start() - BESIDE) : match.start()]
        said = match.group().lower() if code in CAPITALS else match.group()
        if said in months and not _IN.search(before):
            return f"{question[: match.start()]}in {question[match.start() :]}"
    return None


def languages_of(word: str) -> tuple[str, ...]:
    """Return the codes of the languages in which a word, in lower case, names a time."""
    return tuple(
        code for code, names in _all().items() if any(word in said.split("|") for said in names.values())
    )


def _is_time(match: re.Match[str]) -> bool:
    """Say whether a month's name is one: a short one may be another word, as "mai" in Romanian is."""
    before = match.string[max(0, match.start() - BESIDE) : match.start()]
    return (
        len(match.group()) >= LONG
        or _is_dated(match)
        or _IN.search(before) is not None
        or _IN_TURKISH.match(match.string, match.end()) is not None
    )


def _is_dated(match: re.Match[str]) -> bool:
    """Say whether a day or a year stands beside a month's name."""
    before = match.string[max(0, match.start() - BESIDE) : match.start()]
    after = match.string[match.end() : match.end() + BESIDE]
    return _NUMBER_BEFORE.search(before) is not None or _NUMBER_AFTER.match(after) is not None


@cache
def time_words() -> frozenset[str]:
    """Return the words that times are told by, in lower case, of all languages."""
    names = [name for known in _all().values() for one in known.items() for name in one]
    return frozenset(word.lower() for name in names for word in _WORD.findall(name) if len(word) > 1)


@cache
def _names(code: str) -> _Names:
    known = sorted(
        ((name, english) for english, said in _all().get(code, {}).items() for name in said.split("|")),
        key=lambda one: (-len(one[0]), one[0]),
    )
    before, after = (r"(?<!\d)", "") if code in UNSPACED else (rf"(?<!{_LETTER})", rf"(?!{_LETTER})")
    is_inflected = code in OTHERS
    either = "|".join(
        "(" + r"\s+".join(_pattern(word, is_inflected=is_inflected) for word in name.split()) + ")"
        for name, _ in known
    )
    return _Names(re.compile(f"{before}(?:{either or '(?!)'}){after}", re.IGNORECASE), tuple(known))


def _pattern(word: str, *, is_inflected: bool) -> str:
    """Return what finds a word of a name, a number for `#`, and a year for `@`."""
    if is_inflected and _LETTERS.fullmatch(word) and len(word) >= INFLECTED_MIN:
        return f"{word[:-1]}{_LETTER}{{0,{ENDING_MAX}}}"
    found = re.escape(word).replace(r"\#", r"\d{1,3}").replace("@", r"(?:19|20)\d\d")
    return found.replace("\u2019", "['\u2019]")


def _stems(code: str, said: str) -> list[str]:
    return [stem_in(code, word) for word in _LETTERS.findall(said.lower())]


@cache
def _phrases() -> dict[str, str]:
    """Return what times that are told from today are called in any language, in several words."""
    return {
        name: english
        for names in _all().values()
        for english, said in names.items()
        if english[0].islower()
        for name in said.split("|")
        if len(_WORD.findall(name)) > 1 and "#" not in name and "@" not in name
    }


@cache
def _any_phrase() -> re.Pattern[str]:
    either = "|".join(map(re.escape, sorted(_phrases(), key=len, reverse=True)))
    return re.compile(rf"(?<!{_LETTER})(?:{either})(?!{_LETTER})", re.IGNORECASE)


@cache
def _months() -> dict[str, str]:
    """Return what a month is called in any language, which is no other month in another."""
    return {
        name: english
        for names in _all().values()
        for english, said in names.items()
        if english[0].isupper()
        for name in said.split("|")
        if _LETTERS.fullmatch(name)
    }


@cache
def _all() -> dict[str, dict[str, str]]:
    """Return the names of times, by language and by what they are in English."""
    said = resources.files("omegad.text").joinpath("calendars.json").read_bytes()
    return msgspec.json.decode(said, type=dict[str, dict[str, str]])
