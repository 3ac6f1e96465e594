"""What a text says holds no more: what it names beside "no longer", behind "from" where something moved, or
behind "instead of".

In the languages of the lists, of which none has rules of its own.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import compress, pairwise
from typing import NamedTuple

from omegad.text.evidence.sense import root
from omegad.text.evidence.word_lists import WORDS
from omegad.text.languages import Language, language_of

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
_STRAIGHT = str.maketrans("\u2018\u2019", "''")
_CASELESS = frozenset(("ar", "hi", "ur", "bn", "zh", "ja", "ko", "th", "he"))
"""Languages whose names in their own letters look as all words do; and so they do where nouns are written
as names are."""
_OF_NOUNS = _CASELESS | {"de"}


class Ending(NamedTuple):
    """What one clause of a text gives up: words as they are compared, what else it speaks of, the names in
    it but for what takes their place, the words for that, and the language.
    """

    words: frozenset[str]
    around: frozenset[str]
    names: frozenset[str]
    new: frozenset[str]
    language: Language


class _Said(NamedTuple):
    """A word, where it stands, and what it is compared by: the last of its terms, where it is one word."""

    start: int
    end: int
    terms: tuple[str, ...]
    is_name: bool


def _any(phrases: Iterable[str]) -> str:
    """Return the pattern of some phrases, the longest first; those between spaces are tried where a word
    begins.
    """
    joined, apart, suffixes = list[str](), list[str](), list[str]()
    for phrase in sorted(phrases, key=lambda one: (-len(one), one)):
        found = re.escape(phrase.strip("~")).replace("_", r"\s+").replace("…", ".{1,60}?")
        kind = joined if _JOINED.search(phrase) else suffixes if phrase.startswith("~'") else apart
        kind.append(found.replace(r"\*", r"[\w'-]*"))
    of_words = [
        rf"{start}(?:{'|'.join(kind)})(?!\w)" for start, kind in ((r"\b", apart), ("", suffixes)) if kind
    ]
    return "|".join([*of_words, *joined])


def _cue(*kinds: str) -> re.Pattern[str]:
    return re.compile(_any(set[str]().union(*(WORDS[kind] for kind in kinds))))


class _Mark:
    """What stands before or after a word and says what it is."""

    def __init__(self, kind: str) -> None:
        before = _any(one for one in WORDS[kind] if one.endswith("~"))
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


_GIVEN_UP, _MOVED, _DISPLACED, _INSTEAD_CUE = map(_cue, ("given_up", "moved", "displaced", "instead_of"))
_UNDECIDED, _TOO, _DENIED_ELSEWHERE = map(_cue, ("undecided", "too", "denied_elsewhere"))
_FROM, _TO, _FAVOURED, _INSTEAD = map(_Mark, ("moved_from", "new_place", "favoured", "instead_of"))
_CLAUSE = re.compile(
    rf"[,;:](?=\s|$|[{_HAN}])|[()\uff0c\uff1b\uff1a\u3001\u060c\u061b\u2013\u2014]|\s-\s|"
    + _any(WORDS["rather"])
)
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
_EMPTY = _PARTS | WORDS["small"] | WORDS["light"] | WORDS["articles"]
_STEMMED = re.compile("|".join(one[:-1] for one in _PARTS if one.endswith("*") and one[:-1].isalpha()))


def speaks_of_ending(text: str) -> bool:
    """Say whether a text may give something up, or put something in its place."""
    folded = text.translate(_STRAIGHT).lower()
    return any(cue.search(folded) for cue in (_GIVEN_UP, _MOVED, _DISPLACED, _INSTEAD_CUE))


@lru_cache(maxsize=KEPT)
def endings(line: str) -> tuple[Ending, ...]:
    """Return what the first sentences of a text give up, clause by clause."""
    if not speaks_of_ending(line):
        return ()
    language = language_of(line, is_met=True)
    found, files = list[Ending](), frozenset[str]()
    for sentence in _sentences(line):
        if sentence.rstrip().endswith(_ASKS) or _UNDECIDED.search(sentence.lower()):
            continue
        start = 0
        for clause in _CLAUSE.split(sentence):
            words = _words(clause, language, is_first=start == 0)
            start += len(clause) + 1
            files |= {word.terms[-1] for word in words if _FILE.fullmatch(word.terms[-1])}
            if ending := _ending(clause.lower(), words, language):
                found.append(ending._replace(names=ending.names | files))
    return tuple(found)


def _ending(folded: str, words: list[_Said], language: Language) -> Ending | None:
    """Return what a clause gives up."""
    given_up, new = _replaced(folded, words)
    given_up = [word for word in given_up if not _is_of_a_part(word, folded, words)]
    if not given_up or _TOO.search(folded):
        return None
    left = [word for word in words if word not in given_up and word not in new]
    return Ending(
        frozenset(word.terms[-1] for word in given_up),
        frozenset(word.terms[-1] for word in left),
        frozenset(word.terms[-1] for word in (*given_up, *left) if word.is_name),
        frozenset(word.terms[-1] for word in new),
        language,
    )


def _is_of_a_part(name: _Said, folded: str, words: list[_Said]) -> bool:
    """Say whether a name only tells whose what behind it is: "Sentry emails", "Celery's backend"."""
    behind = next((word for word in words if word.start >= name.end), None)
    is_joined = behind is not None and folded[name.end : behind.start].strip(" `") in {"", "'s"}
    return name.is_name and behind is not None and not behind.is_name and is_joined


def _replaced(folded: str, words: list[_Said]) -> tuple[list[_Said], list[_Said]]:
    """Return the words of a clause for what is given up in it, and those for what takes its place."""
    names = [word for word in words if word.is_name]
    if _GIVEN_UP.search(folded):
        new = [word for word in _FAVOURED.among(folded, words) if word.is_name]
        return [word for word in names if word not in new] or words, new
    new = _TO.among(folded, words)
    if found := _INSTEAD.among(folded, words):
        others = [word for word in words if word not in found]
        before = [word for word in others if word.start < found[0].start]
        return found, [word for word in others if word.is_name] or before or others
    if _MOVED.search(folded) and (found := _FROM.among(folded, words)):
        return found, new
    verb = _DISPLACED.search(folded)
    # "Nginx reemplazó a Apache": what follows at once is what was replaced.
    is_object = verb and new and folded[verb.end() : new[0].start].strip() == "a"
    if verb and any(word.is_name for word in new) and not is_object:
        left = [word for word in words if word not in new]
        return [word for word in left if word.is_name] or left, new
    return _displaced(words, verb.span()) if verb else ([], [])


def _displaced(words: list[_Said], verb: tuple[int, int]) -> tuple[list[_Said], list[_Said]]:
    """Return the words for what is replaced by what the subject of a verb says, and those for that."""
    before = [word for word in words if word.end <= verb[0]]
    behind = [word for word in words if word.is_name and word.start >= verb[1]]
    if not behind and before[1:] and before[-1].is_name:  # as where the verb stands last
        behind = [before.pop()]
    return behind, before


def gives_up(new: Iterable[Ending], old: str) -> bool:
    """Say whether what is given up is what an older text speaks of, and does not deny itself."""
    folded = old.translate(_STRAIGHT).lower()
    likely = [ending for ending in new if all(name in folded for name in ending.names)]
    if not likely:
        return False
    denying = WORDS["denials"] | WORDS["ending"]
    denies = denying.intersection(re.findall(r"\w+", folded)) or _DENIED_ELSEWHERE.search(folded)
    if denies or old.rstrip().endswith(_ASKS) or _GIVEN_UP.search(folded):
        return False
    ended = frozenset(term for ending in endings(old) for term in ending.words)
    return any(_is_of(ending, old, ended) for ending in likely)


def _is_of(ending: Ending, old: str, ended: frozenset[str]) -> bool:
    words = [word for part in _sentences(old) for word in _words(part, ending.language, is_first=True)]
    terms = frozenset(term for word in words for term in word.terms)
    hit, shared = (ending.words & terms) - ended, ending.around & terms
    if ending.new and ending.new <= terms:  # of two it says already which is meant
        return False
    if not hit or not ending.names <= terms or 2 * len(shared) < len(ending.around):
        return False
    named = ending.names
    if len(ending.words) == 1:
        named |= {word.terms[-1] for word in words if word.is_name}
    if hit & named:
        return True
    is_all = ending.words <= terms and shared == ending.around
    said = ending.words | shared
    return is_all and (ending.language.code in _OF_NOUNS or len(said) > 1) and SPARE * len(said) >= len(words)


def _sentences(line: str) -> list[str]:
    return _SENTENCE.split(line.translate(_STRAIGHT))[:SENTENCES]


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
                found += [_Said(start, end, (pair,), is_name=False) for pair in pairs]
            continue
        if len(folded) < WORD_MIN or folded in language.small or folded in _EMPTY or _STEMMED.match(folded):
            continue
        is_latin = re.match(f"[{_LATIN}]", written) is not None
        is_name = (
            match[0][0] == "`"
            or any(sign.isupper() or sign.isdigit() or sign in "._/#" for sign in written[1:])
            or (is_latin and not is_cased)
            or (written[0].isupper() and not (is_first and place == 0) and language.code != "de")
        )
        stemmed = folded if is_name else root(folded) if language.is_english else language.stem(folded)
        found.append(_Said(start, end, (folded, stemmed), is_name))
    return found
