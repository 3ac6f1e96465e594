"""Texts as comparable terms: sentences, clauses, stems, details and polarity.

English first: words of other languages and scripts come through as they are, so that they agree only where they are equal.
Pure, and linear in the length of the text.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from omegad.evidence.markup import plain

STEMS_MAX = 16_384
"""How many stems are kept at hand; most words of a text occur again."""

INFLECTED_MIN = 4
"""Shorter words, in letters, are taken as they are."""

EDGE = ".,;:!?\"'`()[]{}\N{IDEOGRAPHIC FULL STOP}\N{FULLWIDTH COMMA}\N{IDEOGRAPHIC COMMA}\N{FULLWIDTH EXCLAMATION MARK}\N{FULLWIDTH QUESTION MARK}"

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+|\n|;\s+|(?<=[\u3002\uff01\uff1f\uff1b])")
_CLAUSE_END = re.compile(
    r"""[,:]\s+ | (?<!\s)\s+[\u2014\u2013-]{1,2}\s+ | (?<=\uff0c)
      | (?<!\s)\s+(?=(?:and|but|because|which|while|although|though|unless|except|whereas)\s)""",
    re.VERBOSE,
)
_CODE_SIGNS = frozenset('^~|&(){}[]!?:;"`')
_DENIED = re.compile(r"[(\[{\"'`]*!\w")
_VOWEL = re.compile(r"[aeiouy]")
_SPELLINGS = (
    (re.compile(r"isation(s?)$"), r"ization\1"),
    (re.compile(r"(?<=[a-z]{3})is(e|es|ed|ing)$"), r"iz\1"),
    (re.compile(r"(?<=[a-z]{3})our(s|ed|ing|al)?$"), r"or\1"),
    (re.compile(r"(?<=[a-z]{3})tre(s?)$"), r"ter\1"),
    (re.compile(r"(?<=[a-z]{4})ogue(s?)$"), r"og\1"),
)


def listed(words: str) -> frozenset[str]:
    """Return the words of a list that is written as a text."""
    return frozenset(words.split())


_QUOTES = dict.fromkeys("\u2018\u2019\u201a", "'") | dict.fromkeys("\u201c\u201d\u201e", '"')
_DASHES = frozenset(("-", "--", "\u2013", "\u2014"))
_STRAIGHT = str.maketrans(_QUOTES | {"\u2026": "..."} | {sign: f"{sign} " for sign in "\u3002\uff01\uff1f\uff1b\uff0c"})
_CONTRACTED = {"n't": "not", "'re": "are", "'ve": "have", "'ll": "will", "'m": "is", "'s": "", "'d": "would"}
_NEGATED = {"can't": "can", "cannot": "can", "won't": "will"}
_IRREGULAR = {
    "using": "use",
    "used": "used",
    "needs": "need",
    "note": "note",
    "notes": "note",
    "noted": "note",
    "none": "none",
    "are": "is",
    "am": "is",
    "be": "is",
    "being": "is",
    "each": "every",
    "does": "do",
    "has": "have",
}
_UNSTEMMED = listed("this always his its was across less news status series https")

_OPPOSITES = """enable/disable enabled/disabled allow/deny allow/forbid allowed/forbidden permit/forbid allow/prohibit allow/block accept/reject
on/off required/optional mandatory/optional works/fails works/broken pass/fail succeed/fail success/failure true/false synchronous/asynchronous
sync/async public/private open/closed start/stop include/exclude add/remove added/removed increase/decrease more/less up/down before/after
above/below first/last left/right old/new safe/unsafe valid/invalid sorted/unsorted ascending/descending stable/unstable supported/unsupported
mutable/immutable blocking/nonblocking strict/lenient fast/slow like/dislike like/hate love/hate prefer/dislike prefer/hate prefer/avoid
use/avoid with/without encrypted/unencrypted compressed/uncompressed cached/uncached stateless/stateful signed/unsigned minimum/maximum
min/max always/never locked/unlocked online/offline reachable/unreachable possible/impossible approved/rejected verbose/terse short/long
concise/detailed concise/verbose brief/detailed light/dark tabs/spaces eager/lazy keep/remove keep/delete done/pending
manual/automatic manually/automatically local/remote red/green merged/unmerged"""

_TURNING = """cannot disable deny forbid reject remove instead unlike against fail false off enable allow accept add on true before after more less
    increase decrease up down first last succeed pass start open close above below old new left right always only except unless until must may
    optional required sync async synchronous asynchronous public private minimum maximum min max all some every any most least both"""


def straight(text: str) -> str:
    """Return a text with straight apostrophes, and with a space after signs that end a sentence or clause without one."""
    return text.translate(_STRAIGHT)


def all_words(text: str) -> list[str]:
    """Return the words of a text in order, case-folded, contractions whole."""
    return [match.group() for match in _WORD.finditer(straight(text.casefold()))]


@lru_cache(maxsize=STEMS_MAX)
def stem(word: str) -> str:
    """Return a word without its inflection, in one spelling: `retries` and `retried` are `retry`, `normalised` is `normaliz`.

    Words that are not plain ASCII letters stay as they are, and so does `used`, which tells of the past.
    """
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) < INFLECTED_MIN or word in _UNSTEMMED or not (word.isascii() and word.isalpha()):
        return word
    for pattern, spelling in _SPELLINGS:
        word = pattern.sub(spelling, word)
    word = re.sub(r"(?<=..)(?:ies|ied)$", "y", word)
    word = re.sub(r"(?<=ss)es$|(?<=[^su\Wi])s$", "", word)
    for ending in ("ing", "ed"):
        trunk = word.removesuffix(ending)
        if trunk != word and len(trunk) >= 2 + (ending == "ed") and _VOWEL.search(trunk):
            word = trunk
            break
    word = re.sub(r"([^aeiou])\1$", r"\1", word)
    return word[:-1] if len(word) >= INFLECTED_MIN and word.endswith("e") else word


def terms(text: str) -> list[str]:
    """Return the words of a text in order as stems; numbers, paths, identifiers and signs stay whole, contractions are written out."""
    return [term for part in straight(text.casefold()).split() if (token := part.strip(EDGE)) for term in _terms_of(token)]


def sentences(text: str) -> list[str]:
    """Return the sentences of a text in order, lines and list items among them."""
    return [part for piece in _SENTENCE_END.split(text) if (part := piece.strip())]


def clauses(sentence: str) -> list[str]:
    """Return the clauses of a sentence in order, without the signs between them; conjunctions stay with what they open."""
    return [part for piece in _CLAUSE_END.split(sentence) if (part := piece.strip(" ,"))]


def content(all_terms: Iterable[str]) -> list[str]:
    """Return the terms that say something, in order."""
    return [term for term in all_terms if term not in EMPTY]


def details(text: str) -> list[str]:
    """Return the numbers, versions, paths, identifiers, operators and non-ASCII words of a text, sorted, as they are written.

    The marks of lists, headings and emphasis are none; a capital letter that stands alone is one where it need not be the article.
    """
    found: list[str] = []
    for line in plain(straight(text)).splitlines():
        parts = line.split()
        for place, part in enumerate(parts):
            is_first = place == 0 or parts[place - 1][-1] in ".!?"
            if detail := _detail(part, is_first=is_first, is_last=place == len(parts) - 1):
                found.append(detail)
    return sorted(found)


def is_operator(token: str) -> bool:
    """Say whether a token is nothing but ASCII signs and is no dash: `&&`, `:=`, a separator."""
    return token.isascii() and token not in _DASHES and bool(token.strip(".!?")) and not any(sign.isalnum() for sign in token)


def polarity(all_terms: Iterable[str]) -> list[str]:
    """Return the terms on which the sense of a statement turns, sorted."""
    return sorted(term for term in all_terms if term in TURNING)


@lru_cache(maxsize=STEMS_MAX)
def _terms_of(token: str) -> tuple[str, ...]:
    if _has_sign(token):
        return (token,)
    return tuple(term for match in _WORD.finditer(token) for term in _terms_of_word(match.group()))


def _terms_of_word(word: str) -> Iterator[str]:
    if auxiliary := _NEGATED.get(word):
        yield from (auxiliary, "not")
        return
    ending = next((ending for ending in _CONTRACTED if word.endswith(ending)), "")
    yield from (stem(part) for part in (word.removesuffix(ending), _CONTRACTED.get(ending, "")) if part)


def _has_sign(token: str) -> bool:
    return any(sign.isdigit() or sign in "_/\\.@#$%=<>*+" for sign in token) or (token.startswith("-") and len(token) > 1)


def _detail(part: str, *, is_first: bool, is_last: bool) -> str:
    """Return the detail that a word of a line is, as it is written; empty where it is none."""
    word = part.strip(EDGE)
    if part in _DASHES or word in {"I", "I'm"}:
        return ""
    if not any(sign.isalnum() for sign in part) and part.isascii():  # what ends a line may only end what it says
        return "" if is_last and not is_operator(part) else part
    if len(word) == 1 and word.isupper():
        return "" if is_first and word == "A" else word
    if _DENIED.match(part):
        return f"!{word}"
    return word if _is_detail(word) else ""


def _is_detail(token: str) -> bool:
    """Say whether a token is a number, version, date, path, URL, option, operator, call, dotted, snake_case or CamelCase name, or not ASCII."""
    has_inner_sign = any(sign in _CODE_SIGNS for sign in token) or not any(sign.isalnum() for sign in token)
    return not token.isascii() or has_inner_sign or _has_sign(token) or token[0] == "-" or any(sign.isupper() for sign in token[1:])


def stems(words: str) -> frozenset[str]:
    """Return the stems of the words of a list that is written as a text."""
    return frozenset(stem(word) for word in words.split())


EMPTY = stems(
    """a an the this that these those it its i we you my our your me us there here is so very really just quite rather please
    note remember basically actually simply currently now today also too but then well hey oh okay ok yes"""
)
"""Words that say nothing of their own: articles, pronouns, the copula in the present, fillers; as stems."""

NEGATORS = stems("no not never none nothing nobody neither nor without avoid hardly rarely stop")
"""Words that turn a claim into its opposite, as stems."""

_FOREIGN_NEGATORS = stems(
    """kein keine keinen keinem keiner keines nicht nie niemals nichts ohne pas jamais aucun aucune sans nunca jam\u00e1s ning\u00fan ninguna
    sin tampoco n\u00e3o nem sem nenhum nenhuma non mai nessun nessuno nessuna senza niet geen nooit niets zonder
    \u043d\u0435 \u043d\u0435\u0442 \u043d\u0438\u043a\u043e\u0433\u0434\u0430 \u043d\u0435\u043b\u044c\u0437\u044f \u0431\u0435\u0437"""
)

TURNING = NEGATORS | _FOREIGN_NEGATORS | stems(_TURNING)
"""Words on which the sense of a statement turns, as stems: negators, directions, quantities, permissions."""


def _opposites() -> frozenset[tuple[str, str]]:
    pairs = (pair.split("/") for pair in _OPPOSITES.split())
    stems = [(stem(one), stem(other)) for one, other in pairs]
    return frozenset(stems) | frozenset((other, one) for one, other in stems)


OPPOSITES = _opposites()
"""Pairs of stems of which a claim can hold only one, either way round."""


def with_opposites(said: Iterable[str]) -> frozenset[str]:
    """Return terms with the opposites of each."""
    ours = frozenset(said)
    return ours | frozenset(other for one, other in OPPOSITES if one in ours)
