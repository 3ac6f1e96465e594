"""A sentence as words, of which each is asserted or denied: "the user wants tabs, not spaces" asserts tabs
and denies spaces.

English: the lists know the words on which a sentence turns. Other languages come through as words.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

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


def _listed(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SMALL = _listed(
    """a an the is are am be been being was were and or so then also too very really just quite rather
    please now currently well ok yes do does did of in on at for to with by as into onto per via
    from its it their they them our we us i my me you your he she his her this that these those
    there here which who whom what when where while will would shall can could may might must should
    always every each all any some both own same such still already today anymore longer more-than
    up out than over instead even today's nowadays duty daily-basis if has have had having about
    between after before during someone somebody anyone anybody everyone everybody"""
)
"""Words that say next to nothing of their own."""

_AUXILIARY = _listed(
    "is are am was were be do does did has have had can could will would should must may might"
)
_LIGHT = _listed(
    """go goes went going get gets got make makes made use uses used using work works worked working
    run runs ran running send sends sent put puts take takes takeover took give gives come comes do
    done let lets need needs needed support supports supported want wants wanted like likes liked
    love loves loved enjoy enjoys prefer prefers preferred favor favors favour favours choose
    chooses chose pick picks picked ask asks asked allow allows allowed permit permits permitted
    required require requires supposed move moves moved switch switches switched migrate migrates
    migrated change changes changed upgrade upgrades upgraded raise raises raised lower lowers
    lowered increase increases increased reduce reduces reduced rename renames renamed replace
    replaces replaced cut cuts able set sets become becomes became happen happens happened call
    calls called mean means meant say says said"""
)
"""Verbs that two sentences of one fact may differ in."""

_NEGATORS = _listed(
    """not no never none nothing nobody neither nor without hardly rarely seldom barely scarcely lack
    lacks lacked lacking missing avoid avoids avoided avoiding hate hates hated dislike dislikes
    disliked detest detests loathe loathes refuse refuses refused unable forbid forbids forbidden
    prohibited disallowed banned"""
)
_ENDING = _listed(
    """drop drops dropped abandon abandons abandoned ditch ditches ditched deprecate deprecates
    deprecated retire retires retired discontinue discontinued"""
)
"""Verbs after which what they name holds no more."""

_STOPPING = _listed("stop stops stopped quit quits")
_FAILING = _listed("fail fails failed")
_REPLACING = frozenset(
    (("rather", "than"), ("instead", "of"), ("opposed", "to"), ("place", "of"), ("no", "longer"))
)
_RANKING = _listed("than unlike versus")
_PREFERRING = _listed(
    """prefer prefers preferred preferring favor favors favour favours choose chooses chose chosen pick
    picks picked like likes love loves"""
)
_USING = _listed("use uses used using")
_TAKING_SIDES = _PREFERRING | _NEGATORS
_CHANGING = _listed(
    """move moved moves moving switch switched switches switching migrate migrated migrates migrating
    change changed changes changing went upgrade upgraded convert converted port ported rename
    renamed took raised lowered reduced increased handed transferred"""
)
_REPLACED = _listed("replace replaced replaces replacing")
_GOALS = _listed("to onto into with by")
_TAKEN_OVER = {"took", "over"}
_TURNS_BACK = _listed("but so because")
_STATES = _listed(
    """is are has have needs need uses use runs run listens listen takes expires expire keeps keep
    holds hold lasts requires require allows allow supports support serves serve costs cost stays
    lives starts start ends end retries retry waits wait sends returns return equals contains
    accepts accept binds bind defaults default caps capped limited kept raised upgraded moved
    changed lowered increased reduced must should gets get sleeps times polls checks stores store
    writes reads logs deploys deploy was were be remains"""
)
_SWITCHED = _listed("is are be was were stays stay turn turns turned switch switches switched")
_AT_ALL = _listed("in by for when again")
"""After and before which "on" says something, as "off" does."""

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
}  # fmt: skip
_NUMBERS = {
    word: str(number)
    for number, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
        ]
    )
} | {"single": "1", "twice": "2", "once": "1", "thrice": "3", "double": "2", "dozen": "12", "hundred": "100"}
_TOKEN = re.compile(r"`[^`\s]+`|[^\s,;:()\[\]{}\"\u201c\u201d!?]+|[,;:()!?]")
_NUMBER = re.compile(r"[~<>=\u2264\u2265$\u20ac\u00a3v]*\d[\d.,:/_-]*(?:[a-z%\u20ac]{0,4})", re.IGNORECASE)
_STRAIGHT = str.maketrans({"\u2018": "'", "\u2019": "'"})
_LONG = (("can't", "can not"), ("cannot", "can not"), ("won't", "will not"), ("n't", " not"))
_OWNED = re.compile(r"'s\b")
_BREAKS = frozenset(",;:()!?")
_TURNING = frozenset(
    {"not", *(one for one, _ in _REPLACING)}.union(_NEGATORS, _RANKING, _ENDING, _STOPPING, _FAILING)
)
"""Words that may turn what follows."""


def root(word: str) -> str:
    """Return what a folded word is compared by: the stem of its plain form."""
    word = _IRREGULAR.get(word, word)
    return stem(word) if len(word) <= LETTERS_MAX else word


def read(sentence: str) -> Sense:
    """Return a sentence as words."""
    text = sentence.translate(_STRAIGHT)
    for short, long in _LONG:
        text = text.replace(short, long)
    found = _TOKEN.findall(_OWNED.sub("", text))
    tokens = [token.rstrip(".'") if len(token) > 1 else token for token in found]
    folded = [token.casefold() for token in tokens]
    words = list[Word]()
    denials, is_subject = 0, True
    for place, (is_denied, turns) in enumerate(_denied(tokens, folded)):
        token, word = tokens[place], folded[place]
        denials += turns
        is_subject = is_subject and word not in _STATES
        is_more = word == "more" and folded[place - 1 : place] == ["any"]
        if token in _BREAKS or (turns and word not in _ENDING) or is_more:
            continue
        term, names, is_light, is_small = _known(token, is_first=place == 0)
        if (
            word == "on"
            and folded[place - 1] in _SWITCHED
            and _AT_ALL.issuperset(folded[place + 1 : place + 2])
        ):
            is_small = False
        words.append(Word(term, is_denied, names, is_light, is_small, is_subject))
    if folded[-1:] == ["too"]:
        folded.pop()
    is_denial = any(before in _AUXILIARY and word == "not" for before, word in pairwise(folded))
    return Sense(tuple(words), frozenset(folded), denials, sentence.rstrip().endswith("?"), is_denial)


def _denied(tokens: Sequence[str], folded: Sequence[str]) -> Iterator[tuple[bool, bool]]:
    """Yield of each token whether it is denied, and whether it is what turns the sense: a negation, or
    what puts     the words after it behind others.
    """
    is_denied = is_source = has_preferred = False
    goals = _GOALS.intersection(folded)
    for place, (before, word, after) in enumerate(
        zip(("", *folded), folded, (*folded[1:], ""), strict=False)
    ):
        turns = (word in _TURNING and _turns(word, after)) or (
            word in {"over", "to"} and has_preferred and before not in _PREFERRING
        )
        if tokens[place] in _BREAKS or word in _TURNS_BACK or (word == "and" and after in _TAKING_SIDES):
            is_denied = is_source = False
        elif turns:
            is_denied = True
        elif (word in _REPLACED and goals) or (word == "from" and _changes(folded[:place], goals)):
            is_denied = is_source = turns = True
        elif is_source and word in goals:
            is_denied = is_source = False
        has_preferred = has_preferred or word in _PREFERRING or word in _USING
        yield is_denied and not turns, turns


def _turns(word: str, after: str) -> bool:
    if word == "not":
        return after not in {"only", "just"}
    return (
        word in _NEGATORS
        or word in _RANKING
        or (word in _ENDING and bool(after))
        or (word in _STOPPING and after.endswith("ing"))
        or (word in _FAILING and after == "to")
        or (word, after) in _REPLACING
    )


def _changes(said: Sequence[str], goals: frozenset[str]) -> bool:
    """Say whether what follows "from" holds no more: it was left for something, or taken over."""
    return bool(goals and not _CHANGING.isdisjoint(said)) or _TAKEN_OVER.issubset(said)


@lru_cache(maxsize=TERMS_MAX)
def _known(token: str, *, is_first: bool) -> tuple[str, bool, bool, bool]:
    """Return what is known of a token wherever it stands: its term, and whether it names, is light, is
    small.
    """
    word = token.casefold()
    term, names = _term(token, is_first=is_first)
    is_light = word in _ENDING or (word in _LIGHT and (not names or token.islower()))
    return term, names, is_light, word in _SMALL and not (token.isupper() and len(token) > 1)


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
