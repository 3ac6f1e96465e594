"""A sentence as words, of which each is asserted or denied: "the user wants tabs, not spaces" asserts tabs
and denies spaces.

English: the lists know the words on which a sentence turns. Other languages come through as words.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise, repeat
from typing import NamedTuple

from omegad.text.evidence.numbers import SPELLED, in_digits
from omegad.text.evidence.word_lists import WORDS
from omegad.text.stems import LETTERS_MAX, stem

TERMS_MAX = 8_192
"""How many words are kept at hand with what they are compared by; most occur again."""


class Word(NamedTuple):
    """A word that says something. `term` is its stem, or what is written where it is a name, a number
    or code, which `names` says; `is_light` is a verb that two sentences of one fact may differ
    in; `is_subject` stands before the first verb that says how something is.
    """

    term: str
    is_denied: bool
    names: bool
    is_light: bool
    is_small: bool
    is_subject: bool


class Sense(NamedTuple):
    """A sentence: its words in order, all its words as written but folded, how many of them turn it, and
    whether its verb is denied.
    """

    words: tuple[Word, ...]
    folded: frozenset[str]
    denials: int
    is_question: bool
    is_denial: bool


_REPLACING = frozenset(
    (("rather", "than"), ("instead", "of"), ("opposed", "to"), ("place", "of"), ("no", "longer"))
)


_IRREGULAR = {
    "kept": "keep", "sent": "send", "ran": "run", "went": "go", "took": "take", "made": "make", "wrote":
    "write", "written": "write", "built": "build", "held": "hold", "chose": "choose", "chosen": "choose",
    "read": "read", "said": "say", "told": "tell", "found": "find", "got": "get", "gave": "give", "given":
    "give", "left": "leave", "lost": "lose", "met": "meet", "paid": "pay", "spent": "spend", "stood":
    "stand", "thought": "think", "broke": "break", "broken": "break", "began": "begin", "begun": "begin",
    "came": "come", "drew": "draw", "drove": "drive", "fell": "fall", "grew": "grow", "hidden": "hide",
    "knew": "know", "known": "know", "led": "lead", "meant": "mean", "rose": "rise", "saw": "see", "seen":
    "see", "shown": "show", "shut": "shut", "slept": "sleep", "stored": "store", "taught": "teach", "threw":
    "throw", "thrown": "throw", "won": "win", "users": "user", "success": "succeed", "failure": "fail",
    "men": "man", "women": "woman", "children": "child", "people": "person", "indices": "index",
}  # fmt: skip
_NUMBERS = {"zero": "0", "one": "1", "single": "1", "once": "1", "double": "2", "twice": "2", "thrice": "3"}
_TOKEN = re.compile(
    r"`[^`\s]+`|\d{1,2}(?::\d\d){1,2}(?:[ap]m)?(?![\w:/\u2013-])|[^\s,;:()\[\]{}\"\u201c\u201d!?]+|[,;:()!?]"
)
_TIME = re.compile(r"^0?(\d{1,2}:\d\d)(?::00)?(?=$|[ap]m)")
"""Of a day, which "02:00:00" names as "2:00" does."""
_NUMBER = re.compile(r"[~<>=\u2264\u2265$\u20ac\u00a3v]*\d[\d.,:/_-]*(?:[a-z%\u20ac]{0,4})", re.IGNORECASE)
_STRAIGHT = str.maketrans({"\u2018": "'", "\u2019": "'"})
_LONG = (("can't", "can not"), ("cannot", "can not"), ("won't", "will not"), ("n't", " not"))
_NO_ONE = re.compile(r"\bno[ -]one\b", re.IGNORECASE)
_EITHER = re.compile(r"(?<!\s)\s+or(?:\s+(?:may|might|can|will|is|are|do|does))?\s+not\b", re.IGNORECASE)
"""As in "may or may not"."""
_OWNED = re.compile(r"'s\b")
_BREAKS = frozenset(",;:()!?")
_TURNS_BACK = WORDS["turns_back"]
_RANKED_BY = {
    word: frozenset(("over", "to"))
    if word.startswith(("prefer", "favo", "like", "love"))
    else frozenset(("over",))
    for word in WORDS["preferring"] | WORDS["using"]
}
_TURNING = frozenset(
    {"not", *(one for one, _ in _REPLACING)}.union(
        *(WORDS[kind] for kind in ("negators", "ranking", "ending", "stopping", "failing"))
    )
)
"""Words that may turn what follows."""
_ENDING = WORDS["ending"] | WORDS["stopping"] | WORDS["failing"]
_STIRRING = _TURNING.union(_RANKED_BY, WORDS["replaced"], {"from"})
"""Words without which nothing is denied: those, and what may put what follows behind others."""
_SPECIAL = _STIRRING | {"on", "more"}


def root(word: str) -> str:
    """Return what a folded word is compared by: the stem of its plain form."""
    word = _IRREGULAR.get(word, word)
    return stem(word) if len(word) <= LETTERS_MAX else word


def read(sentence: str) -> Sense:
    """Return a sentence as words."""
    text = sentence.translate(_STRAIGHT)
    for short, long in _LONG:
        text = text.replace(short, long)
    text = _EITHER.sub("", _NO_ONE.sub("nobody", text))
    found = _TOKEN.findall(_OWNED.sub("", text))
    tokens = [_TIME.sub(r"\1", token).rstrip(".'") if len(token) > 1 else token for token in found]
    folded = [token.casefold() for token in tokens]
    if not SPELLED.keys().isdisjoint(folded):
        tokens = in_digits(tokens)
        folded = [token.casefold() for token in tokens]
    words, denials = _plain(tokens, folded) if _SPECIAL.isdisjoint(folded) else _turned(tokens, folded)
    if folded[-1:] == ["too"]:
        folded.pop()
    is_denial = "not" in folded and any(
        before in WORDS["auxiliary"] and word == "not" for before, word in pairwise(folded)
    )
    return Sense(tuple(words), frozenset(folded), denials, sentence.rstrip().endswith("?"), is_denial)


def _plain(tokens: Sequence[str], folded: Sequence[str]) -> tuple[list[Word], int]:
    """As `_turned`, where nothing is denied, nor means another thing beside its neighbour."""
    states = WORDS["states"]
    verb = next((place for place, word in enumerate(folded) if word in states), len(folded))
    words = [
        _known(token, is_first=place == 0, is_subject=place < verb, is_denied=False)
        for place, token in enumerate(tokens)
        if token not in _BREAKS
    ]
    return words, 0


def _turned(tokens: Sequence[str], folded: Sequence[str]) -> tuple[list[Word], int]:
    """Return the words that say something, and how many turn the sense."""
    words = list[Word]()
    denials, is_subject, states = 0, True, WORDS["states"]
    for place, (token, word, (is_denied, turns)) in enumerate(
        zip(tokens, folded, _denied(tokens, folded), strict=True)
    ):
        denials += turns
        is_subject = is_subject and word not in states
        is_more = word == "more" and folded[place - 1 : place] == ["any"]
        if token in _BREAKS or (turns and word not in WORDS["ending"]) or is_more:
            continue
        said = _known(token, is_first=place == 0, is_subject=is_subject, is_denied=is_denied)
        if word == "on" and (
            folded[place - 1] in WORDS["switching"]
            or (
                folded[place - 1] in WORDS["switched"]
                and WORDS["at_all"].issuperset(folded[place + 1 : place + 2])
            )
        ):
            said = said._replace(is_small=False)
        words.append(said)
    return words, denials


def _denied(tokens: Sequence[str], folded: Sequence[str]) -> Iterator[tuple[bool, bool]]:
    """Yield of each token whether it is denied, and whether it is what turns the sense: a negation, or
    what puts the words after it behind others.
    """
    is_denied = is_source = False
    ranked_by = frozenset[str]()  # by which words what follows is put behind: "prefer … to", "use … over"
    goals = WORDS["goals"].intersection(folded)
    stirred = next((place for place, word in enumerate(folded) if word in _STIRRING), len(folded))
    yield from repeat((False, False), stirred)
    around = zip(folded[stirred:], (*folded[stirred + 1 :], ""), strict=False)
    for place, (word, after) in enumerate(around, stirred):
        turns = (word in _TURNING and _turns(word, after)) or (
            word in ranked_by and not (word == "to" and _is_wish(folded, place))
        )
        takes_side = word == "and" and (after in WORDS["preferring"] or after in WORDS["negators"])
        goes_on = is_denied and word in WORDS["going_on"] and folded[1:2] in (["of"], ["than"])
        if tokens[place] in _BREAKS or word in _TURNS_BACK or takes_side or goes_on:
            is_denied = is_source = False
        elif turns:
            is_denied = not is_denied or word not in _ENDING  # "never dropped"
        elif (goals and word in WORDS["replaced"]) or (
            # What follows "from" holds no more where it was left for something, or taken over.
            word == "from"
            and (
                (goals and not WORDS["changing"].isdisjoint(folded[:place]))
                or {"took", "over"}.issubset(folded[:place])
            )
        ):
            is_denied = is_source = turns = True
        elif is_source and word in goals:
            is_denied = is_source = False
        ranked_by = ranked_by | _RANKED_BY.get(word, frozenset())
        yield is_denied and not turns, turns


def _is_wish(folded: Sequence[str], place: int) -> bool:
    """Say whether the "to" at a place leads to a verb: "we prefer to use tabs", where "tabs are preferred to
    spaces" ranks them.
    """
    before, after = folded[:place][-2:], "".join(folded[place + 1 : place + 2])
    if before[-1:] and before[-1] not in WORDS["preferring"]:
        return False
    is_ranked = before[-1:] == ["preferred"] and before[0] in WORDS["auxiliary"]
    return not is_ranked or after in WORDS["light"] or after in WORDS["states"]


def _turns(word: str, after: str) -> bool:
    if word == "not":
        return after not in {"only", "just"}
    return (
        word in WORDS["negators"]
        or word in WORDS["ranking"]
        or (word in WORDS["ending"] and bool(after) and after not in {"into", "onto", "off"})
        or (word in WORDS["stopping"] and after.endswith("ing"))
        or (word in WORDS["failing"] and after == "to")
        or (word, after) in _REPLACING
    )


@lru_cache(maxsize=TERMS_MAX)
def _known(token: str, *, is_first: bool, is_subject: bool, is_denied: bool) -> Word:
    """Return a token as a word."""
    word = token.casefold()
    term, names = _term(token, is_first=is_first)
    is_light = word in WORDS["ending"] or (word in WORDS["light"] and (not names or token.islower()))
    is_small = word in WORDS["small"] and not (token.isupper() and len(token) > 1)
    return Word(term, is_denied, names, is_light, is_small, is_subject)


def _term(token: str, *, is_first: bool) -> tuple[str, bool]:
    """Return what a token is compared by, and whether it is a name, a number or code."""
    folded = token.casefold()
    if token[:1] == "`":
        return token.strip("`"), True
    if number := _NUMBERS.get(folded):
        return number, True
    if _NUMBER.fullmatch(token):
        return folded.strip("~.,:"), True
    is_plain = folded.replace("-", "").replace("'", "").isalpha()
    if not is_plain or any(sign.isupper() for sign in token[1:]):
        return folded, True
    return root(folded), token[:1].isupper() and not is_first
