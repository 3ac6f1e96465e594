"""What a text says holds no more: what it names beside "no longer", behind "from" where something moved, or
behind "instead of".

In the languages of the lists, of which none has rules of its own.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import compress, pairwise, product
from typing import NamedTuple

from omegad.text.calendars import time_words
from omegad.text.evidence.sense import root
from omegad.text.evidence.word_lists import WORDS
from omegad.text.languages import ENGLISH, Language, language_of

SENTENCES = 3
"""So many sentences at the beginning of a text are read."""

KEPT = 64
"""What so many texts give up is remembered, since each is compared with several."""

WORD_MIN = 2
"""Words of fewer letters are passed over."""

SPARE = 6
"""Where no name is given up, the words that are must be one in so many of the older text's, at least."""

_SENTENCE = re.compile(r"(?<=[.!?\u061f\u0964])\s+|(?<=[\u3002\uff01\uff1f])")
_ASKS = ("?", "\uff1f", "\u061f")
_LATIN = "A-Za-z0-9\u00c0-\u024f\u1e00-\u1eff"
_HAN = "\u4e00-\u9fff"
_UNSPACED = re.compile(f"[\u3040-\u30ff{_HAN}]")
_JOINED = re.compile(f"[\u3040-\u30ff{_HAN}\uac00-\ud7a3]")
_WORD = re.compile(
    f"`[^`]+`|[{_LATIN}]+(?:[.+#/_@-][{_LATIN}]+)*|[\u0400-\u052f]+|[\u0620-\u065f\u066e-\u06d3]+"
    f"|[\u0900-\u0963\u0966-\u097f]+|[{_HAN}]+|[\u30a1-\u30ff]+|[\uac00-\ud7a3]+"
)
_FILE = re.compile(r"[\w./-]+\.[a-z]\w{0,4}")
_TURKISH_CASE = re.compile(r"'(?:n?[\u0131iu\u00fc]n|[dt][ae]n?|y?[ae\u0131iu\u00fc]|yl[ae])\b")
_STRAIGHT = str.maketrans("\u2018\u2019", "''")
_CASELESS = frozenset(("ar", "hi", "ur", "bn", "zh", "ja", "ko", "th", "he"))
"""Languages whose names in their own letters look as all words do; and so they do where nouns are written
as names are."""
_OF_NOUNS = _CASELESS | {"de"}
_HEAD_FIRST = ("ar", "he")
"""Languages in which what belongs to a name stands before it."""
_OF_NO_AMOUNT = rf"(?!\s+(?!(?:{'|'.join(sorted(WORDS['of_no_amount']))})\b)\w)"


class Ending(NamedTuple):
    """What one clause of a text gives up: words as they are compared, and each of them with the one behind
    it, where only such a part is given up; what else it speaks of, and which of that limits what stands right
    behind it ("test orders"); the names in it but for what takes their place, the words for that, all that
    says what its subject is, and the language.
    """

    words: frozenset[str]
    parts: frozenset[tuple[str, str]]
    around: frozenset[str]
    limits: frozenset[tuple[str, str]]
    names: frozenset[str]
    new: frozenset[str]
    subject: frozenset[str]
    language: Language


class _Said(NamedTuple):
    """A word, where it stands, and what it is compared by: the last of its terms, where it is one word;
    whether it is a name, or may be one, as all nouns of German.
    """

    start: int
    end: int
    terms: tuple[str, ...]
    is_name: bool
    may_name: bool


def _any(phrases: Iterable[str]) -> str:
    """Return the pattern of some phrases, the longest first; those between spaces are tried where a word
    begins.
    """
    joined, apart, suffixes = list[str](), list[str](), list[str]()
    for phrase in sorted(phrases, key=lambda one: (-len(one), one)):
        found = re.escape(phrase.strip("~")).replace("_", r"\s+").replace("…", ".{1,60}?")
        is_suffix = phrase.startswith(("~'", "n't"))
        kind = joined if _JOINED.search(phrase) else suffixes if is_suffix else apart
        found += _OF_NO_AMOUNT if phrase.endswith("any_more") else ""
        kind.append(found.replace(r"\*", r"[\w'-]*"))
    end = r"(?:(?<=')|(?!\w))"
    of_words = [rf"{start}{_either(kind)}{end}" for start, kind in ((r"\b", apart), ("", suffixes)) if kind]
    return "|".join([*of_words, *([_either(joined)] if joined else [])])


def _either(patterns: Sequence[str]) -> str:
    """Return the pattern of any of several: by what they begin with, so that few are tried at a place."""
    groups = dict[str, list[str]]()
    for one in patterns:
        groups.setdefault(one[0] if one[0] not in "\\[.(" else "", []).append(one)
    found = (
        start + "(?:" + "|".join(one[len(start) :] for one in group) + ")" for start, group in groups.items()
    )
    return "(?:" + "|".join(found) + ")"


def _cue(*kinds: str) -> re.Pattern[str]:
    return re.compile(_any(set[str]().union(*(WORDS[kind] for kind in kinds))))


class _Mark:
    """What stands before or after a word and says what it is."""

    def __init__(self, kind: str) -> None:
        before = _any(one for one in WORDS[kind] if one.endswith("~")) or "(?!)"
        after = _any(one for one in WORDS[kind] if one.startswith("~")) or "(?!)"
        self._before = re.compile(rf"(?:{before})\s*(?:(?:{_any(WORDS['articles'])})\s*)?`?$")
        self._after = re.compile(rf"`?\s*(?:{after})")

    def among(self, folded: str, words: Sequence[_Said]) -> list[_Said]:
        """Return the words of a clause, which is in lower case, at which it stands, with the names right
        beside them; where there are names, nothing else.
        """
        marked = [
            bool(self._before.search(folded[: word.start]) or self._after.match(folded, word.end))
            for word in words
        ]
        pairs = list(pairwise(words))
        for places in (range(len(pairs)), reversed(range(len(pairs)))):
            for at in places:
                one, other = pairs[at]
                is_close = not folded[one.end : other.start].strip(" `")
                if is_close and other.is_name and (marked[at] or (marked[at + 1] and one.is_name)):
                    marked[at] |= one.is_name
                    marked[at + 1] = True
        found = list(compress(words, marked))
        return [word for word in found if word.is_name] or found


_GIVEN_UP, _MOVED, _DISPLACED = map(_cue, ("given_up", "moved", "displaced"))
_UNSURE = _cue("undecided", "reported")
_TOO, _DENIED_ELSEWHERE, _DENIED_BEHIND = map(_cue, ("too", "denied_elsewhere", "denied_behind"))
_OURS, _BACK, _LEADING = map(_cue, ("ours", "back", "leading"))
_TEAM = re.compile(rf"(?:^\W*|(?:{_any(WORDS['articles'])})\s*)(?:{'|'.join(sorted(WORDS['team']))})\b")
"""Beside another word it is one of several: "the other team"."""
_OF_USER = re.compile(r"\b(?:the )?user (?:said|says)(?: that)? ", re.IGNORECASE)
"""Whose word counts, unlike what others are said to say."""
_TURNS = _cue("given_up", "moved", "displaced", "instead_of")
_NOT_YET = re.compile(
    "|".join(
        (
            _any((WORDS["denials"] - WORDS["lacking"] - {"no"}) | WORDS["denied_elsewhere"]),
            r"n't\b",
            r"\bno(?:\s+(?:se|hemos|han|he|ha|fue|lo|la))?\s*$",  # elsewhere it is Portuguese for "in the"
        )
    )
)
"""What stands before a verb and denies it."""
_SAID = re.compile(rf"(?:{_any(WORDS['that'])})\s*(?:\S+\s+)?(?:{_TURNS.pattern})")
_DENYING = WORDS["denials"] | WORDS["ending"]
_IN_THE = re.compile(r"(?:(?<=mos)|(?<=[ae]m)|(?<=\u00e3o)|\b[A-Z]\w+) no\b")
"""Portuguese: behind a verb, where nothing is denied."""
_NO_VERB = re.compile(r"\b[Nn]o [^\W\dA-Z_]")
"""Spanish: what denies a verb stands before it. Portuguese, which is taken for it, has names there."""
_HAS = re.compile(r"\b(?:hat|haben|heeft|hebben)\b")
_FROM, _TO, _FAVOURED = map(_Mark, ("moved_from", "new_place", "favoured"))
_INSTEAD, _OBJECT = map(_Mark, ("instead_of", "object"))
_CLAUSE = re.compile(
    rf"[,;:](?=\s|$|[{_HAN}])|[()\uff0c\uff1b\uff1a\u3001\u060c\u061b\u2013\u2014]|\s-\s|"
    + _any(WORDS["rather"] | WORDS["reasons"])
)
_REASON = _cue("reasons")
_SAYS_NOTHING = _cue(
    "given_up", "moved", "displaced", "instead_of", "employing", "beside", "new_place", "moved_from"
)
_PARTS = frozenset(
    part.strip("~")
    for kind in (
        "given_up",
        "moved",
        "displaced",
        "instead_of",
        "employing",
        "beside",
        "new_place",
        "moved_from",
    )
    for phrase in WORDS[kind]
    for part in re.split("[_…]", phrase)
)
_EMPTY = _PARTS | WORDS["small"] | WORDS["light"] | WORDS["articles"] | WORDS["ours"] | WORDS["team"]
_STEMMED = re.compile("|".join(one[:-1] for one in _PARTS if one.endswith("*") and one[:-1].isalpha()))


def speaks_of_ending(text: str) -> bool:
    """Say whether a text may give something up, or put something in its place."""
    return _TURNS.search(text.translate(_STRAIGHT).lower()) is not None


def is_unsure(text: str) -> bool:
    """Say whether it is only planned, supposed or said by others what a text says, or not so."""
    folded = text.translate(_STRAIGHT).lower()
    return _UNSURE.search(folded) is not None or _SAID.search(folded) is not None


@lru_cache(maxsize=KEPT)
def endings(line: str) -> tuple[Ending, ...]:
    """Return what the first sentences of a text give up, clause by clause."""
    if not speaks_of_ending(line):
        return ()
    language = language_of(line, is_met=True)
    found, files = list[Ending](), frozenset[str]()
    for sentence in _sentences(line):
        if sentence.rstrip().endswith(_ASKS) or is_unsure(_REASON.split(sentence)[0] or sentence):
            continue
        start = 0
        for clause in _CLAUSE.split(_without_lead(sentence, language)):
            words = _words(clause, language, is_first=start == 0)
            start += len(clause) + 1
            files |= {word.terms[-1] for word in words if _FILE.fullmatch(word.terms[-1])}
            ending = _ending(clause.lower(), words, language)
            # What came back, or takes another's place again, has not ended.
            back = ending.new if ending else frozenset(word.terms[-1] for word in words)
            if ending or (found and _BACK.search(clause.lower())):
                found = [one for one in found if not one.words <= back]
            if ending:
                found.append(ending._replace(names=ending.names | files))
    return tuple(found)


def _without_lead(sentence: str, language: Language) -> str:
    """Return a sentence from where it says that we do something, without a beginning that says why or since
    when: "After two outages we no longer use".
    """
    folded = sentence.lower()
    ours, turn = _ours(folded, language), _TURNS.search(folded)
    if not ours or not turn or turn.start() < ours.start() or not _LEADING.match(folded):
        return sentence
    return sentence if "," in folded[: ours.start()] else sentence[ours.start() :]


def _ours(folded: str, language: Language) -> re.Match[str] | None:
    """Find who speaks in a text in lower case: "on" does in French alone."""
    ours = (one for one in _OURS.finditer(folded) if one[0] != "on" or language.code == "fr")
    return next(ours, None) or _TEAM.search(folded)


def _ending(folded: str, words: list[_Said], language: Language) -> Ending | None:
    """Return what a clause gives up."""
    given_up, new = _replaced(folded, words)
    parts = {} if language.code in _HEAD_FIRST else _parts(given_up, folded, words)
    whole = [word for word in given_up if word not in parts]
    given_up = whole or given_up
    if not given_up or _TOO.search(folded) or _is_denied(folded):
        return None
    new = [word for word in new if word not in given_up]
    apart = [*given_up, *new, *_parts(new, folded, words).values()]
    left = [word for word in words if word not in apart]
    of_old = [word for word in left if not new or word.end <= new[0].start]
    limits = [
        (one.terms[-1], other.terms[-1])
        for one, other in pairwise(words)
        if one in of_old and other in of_old and one.end < other.start and _are_joined(one, other, folded)
    ]
    return Ending(
        frozenset(word.terms[-1] for word in given_up),
        frozenset((name.terms[-1], part.terms[-1]) for name, part in parts.items() if not whole),
        frozenset(word.terms[-1] for word in left),
        frozenset(limits),
        frozenset(word.terms[-1] for word in (*given_up, *left) if word.is_name),
        frozenset(word.terms[-1] for word in new),
        frozenset() if _ours(folded, language) else _subject(folded, left),
        language,
    )


def _is_denied(folded: str) -> bool:
    """Say whether a clause says that something has not ended."""
    before, turn, behind = _TURNS.sub("\n", folded).rpartition("\n")
    is_denied = _NOT_YET.search(before) is not None or _DENIED_BEHIND.search(behind) is not None
    return bool(turn) and is_denied


def _subject(folded: str, left: Sequence[_Said]) -> frozenset[str]:
    """Return what a clause speaks of before it says what has ended, where that is not us: "The customer no
    longer uses", "Uploads of customers are no longer".
    """
    turn = _TURNS.search(folded)
    if turn is None:
        return frozenset()
    return frozenset(word.terms[-1] for word in left if word.end <= turn.start())


def _parts(names: Sequence[_Said], folded: str, words: list[_Said]) -> dict[_Said, _Said]:
    """Return those of some names that only tell whose what stands behind them is, and that: "Sentry emails",
    "Celery's backend".
    """
    found = dict[_Said, _Said]()
    for name in names:
        behind = next((word for word in words if word.start >= name.end), None)
        if name.is_name and behind is not None and not behind.is_name and _are_joined(name, behind, folded):
            found[name] = behind
    return found


def _are_joined(one: _Said, other: _Said, text: str) -> bool:
    return text[one.end : other.start].strip(" `") in {"", "'s"}


def _replaced(folded: str, words: list[_Said]) -> tuple[list[_Said], list[_Said]]:
    """Return the words of a clause for what is given up in it, and those for what takes its place."""
    names = [word for word in words if word.is_name]
    if _GIVEN_UP.search(folded):
        new = [word for word in _FAVOURED.among(folded, words) if word.is_name]
        left = [word for word in names if word not in new]
        return (left, new) if left else (names or words, [])  # "dropped support for Python 3.8"
    new = _TO.among(folded, words)
    if found := _INSTEAD.among(folded, words):
        others = [word for word in words if word not in found]
        before = [word for word in others if word.start < found[0].start]
        return found, (
            _last_named(folded, before) or [word for word in others if word.is_name] or before or others
        )
    if _MOVED.search(folded) and (found := _FROM.among(folded, words)):
        return found, new
    verb = _DISPLACED.search(folded)
    if verb and (found := [word for word in _OBJECT.among(folded, words) if word.may_name]):
        return found, [word for word in names if word not in found]
    # "Nginx reemplazó a Apache": what follows at once is what was replaced.
    is_object = verb and new and folded[verb.end() : new[0].start].strip() == "a"
    if verb and any(word.may_name for word in new) and not is_object:
        left = [word for word in words if word not in new]
        return [word for word in left if word.is_name] or left, new
    return _displaced(folded, words, verb.span()) if verb else ([], [])


def _last_named(folded: str, words: Sequence[_Said]) -> list[_Said]:
    """Return the last of some words that is a name, with the names that are listed with it."""
    found = list[_Said]()
    for word in reversed(words):
        is_listed = not found or len(folded[word.end : found[0].start].split()) <= 1
        if word.is_name and is_listed:
            found.insert(0, word)
        elif found:
            break
    return found


def _displaced(folded: str, words: list[_Said], verb: tuple[int, int]) -> tuple[list[_Said], list[_Said]]:
    """Return the words for what is replaced by what the subject of a verb says, and those for that."""
    before = [word for word in words if word.end <= verb[0]]
    behind = [word for word in words if word.start >= verb[0]]
    if objects := [word for word in behind if word.is_name] or [word for word in behind if word.may_name][:1]:
        return objects, before
    # The verb stands last: "Rollup hat Webpack im Shop abgelöst", "Hier hat Rollup Webpack abgelöst".
    has = _HAS.search(folded, 0, verb[0])
    is_ahead = has is not None and any(word.end <= has.start() for word in before)
    after = [word for word in before if has and word.start >= has.end()]
    is_behind = bool(after[1:]) and not folded[after[0].end : after[1].start].strip() and after[1].may_name
    objects = [word for word in (after[is_behind:] if is_ahead else before[-1:]) if word.may_name][:1]
    left = [word for word in before if word not in objects]
    return (objects, left) if left else ([], [])


def gives_up(new: Sequence[Ending], old: str) -> bool:
    """Say whether what is given up is what an older text speaks of, and does not deny itself."""
    if not new:
        return False
    folded = old.translate(_STRAIGHT).lower()
    likely = [ending for ending in new if all(name in folded for name in ending.names)]
    if not likely:
        return False
    given_up = frozenset[str]().union(*(ending.words for ending in likely))
    said = " ".join(
        clause for clause in _CLAUSE.split(old) if any(word in clause.lower() for word in given_up)
    )
    denying = _DENYING.intersection(re.findall(r"\w+", _IN_THE.sub(" ", said).lower()))
    spoken = language_of(old, is_met=True).code
    has_no = spoken == ENGLISH or (spoken == "es" and _NO_VERB.search(said) is not None)
    is_no = denying == {"no"} and not has_no  # but "in the"
    denies = (denying and not is_no) or _DENIED_ELSEWHERE.search(said.lower())
    if denies or old.rstrip().endswith(_ASKS) or _GIVEN_UP.search(folded):
        return False
    ended = frozenset(term for ending in endings(old) for term in ending.words)
    return any(_is_of(ending, old, ended) for ending in likely)


def _is_of(ending: Ending, old: str, ended: frozenset[str]) -> bool:
    words, joined = list[_Said](), set[tuple[str, str]]()
    for part in _sentences(old):
        found = _words(part, ending.language, is_first=True)
        for one, other in pairwise(found):
            if ending.parts and _are_joined(one, other, part):
                joined.update(product(one.terms, other.terms))
        words += found
    terms = frozenset(term for word in words for term in word.terms)
    hit, shared = (ending.words & terms) - ended, ending.around & terms
    if ending.new and ending.new <= terms:  # of two it says already which is meant
        return False
    if not (ending.subject <= terms and ending.parts <= joined):
        return False
    if any(other in terms and one not in terms for one, other in ending.limits):
        return False
    if not hit or not ending.names <= terms or 2 * len(shared) < len(ending.around):
        return False
    named = ending.names
    if len(ending.words) == 1:
        named |= {term for word in words if word.is_name for term in word.terms}
    if hit & named:
        return True
    is_all = ending.words <= terms and shared == ending.around
    said = ending.words | shared
    return is_all and (ending.language.code in _OF_NOUNS or len(said) > 1) and SPARE * len(said) >= len(words)


def _sentences(line: str) -> list[str]:
    return _SENTENCE.split(_OF_USER.sub("", line.translate(_STRAIGHT)))[:SENTENCES]


def _words(text: str, language: Language, *, is_first: bool) -> list[_Said]:
    """Return the words of a text that say something, of Chinese characters each two in a row."""
    found = list[_Said]()
    is_cased = language.code not in _CASELESS and language.code != "ru"
    for place, match in enumerate(_WORD.finditer(text)):
        written = match[0].strip("`")
        folded, start, end = written.lower(), match.start(), match.end()
        if _UNSPACED.match(written):
            bare = _SAYS_NOTHING.sub(" ", text[start:end])
            for small in sorted(language.small, key=len, reverse=True):
                bare = bare.replace(small, " ")
            for part in bare.split():
                pairs = [part[at : at + 2] for at in range(len(part) - 1)]
                found += [_Said(start, end, (pair,), is_name=False, may_name=False) for pair in pairs]
            continue
        if len(folded) < WORD_MIN or folded in language.small or folded in _EMPTY or _STEMMED.match(folded):
            continue
        if folded in time_words() or _TURKISH_CASE.match(text, start - 1 if start else 0):
            continue
        is_latin = re.match(f"[{_LATIN}]", written) is not None
        is_name = (
            match[0][0] == "`"
            or any(sign.isupper() or sign.isdigit() or sign in "._/#" for sign in written[1:])
            or (is_latin and not is_cased)
            or (written[0].isupper() and _TURKISH_CASE.match(text, end) is not None)
            or (written[0].isupper() and not (is_first and place == 0) and language.code != "de")
        )
        may_name = is_name or (language.code == "de" and written[0].isupper())
        stem = root(folded) if language.is_english else language.stem(folded)
        found.append(_Said(start, end, (stem, folded) if is_name else (folded, stem), is_name, may_name))
    return found
