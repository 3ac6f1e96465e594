"""What a text can be found by beside its words. Pure.

These are the parts of identifiers, the characters of scripts that write no spaces, and what is the same in
another guise: full-width letters, ligatures, invisible characters, emoji. A tokenizer that splits at
everything but letters and digits finds `fjord_amber.py` by its words, but takes `PaymentGateway` for one
word, a sentence of Chinese for one, too, and a soft hyphen for the end of one. Full text keeps what this file
makes of them in a column of its own, and a question is broken up in the same way. What is shown stays as it
was written.
"""

import re
import unicodedata
from collections.abc import Iterator

from omegad.text.languages import language_of

TEXT_CHARACTERS_MAX = 65_536  # of one text that is broken up
GLUED_CHARACTERS_MAX = 64
NAME_CHARACTERS_MAX = 128  # what is longer is no name

# Han, Hiragana, Katakana, Hangul, Thai, Lao, Khmer, Myanmar: what is written without spaces, or compounds
# freely.
_SIGNS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff"
)
_UNSPACED = re.compile(f"[{_SIGNS}]+")
_BEFORE, _AFTER = re.compile(r"[!-~]+\Z"), re.compile(r"[!-~]+")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_CAMEL = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PART, _RUN = re.compile(r"\S+"), re.compile(r"[^\W_]+")

# What shows nothing: soft hyphens, joiners, marks of direction, variation selectors, the modifiers of an
# emoji's skin.
_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u2064"
    "\u2066-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001f3fb-\U0001f3ff"
    "\U000e0000-\U000e0fff"
)
# The vowels of Hebrew and Arabic, which are written or not, and what stretches a word.
_POINTS = (
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u08d3-\u08ff"
)
_UNSAID = re.compile(f"[{_INVISIBLE}{_POINTS}]+")
_POINTED = {ord(alef): "\u0627" for alef in "\u0622\u0623\u0625\u0671"}
# The symbols that Unicode shows as emoji, by and large (UTS #51), a flag being two of them.
_EMOJI = re.compile(
    "[\U0001f1e6-\U0001f1ff]{2}|[\u231a\u231b\u2328\u23cf\u23e9-\u23f3\u23f8-\u23fa\u2600-\u27bf"
    "\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\U0001f000-\U0001faff]"
)
_MARKS = re.compile(
    "(?<![\u0400-\u04ff])[\u0300-\u036f]+|(?<=\u0435)\u0308"
)  # in Cyrillic they make another letter, but for \u0451
_MARKS_OF_LATIN = re.compile("(?<=[a-z])[\u0300-\u036f]+")
_LETTERS = str.maketrans(
    {
        "\u00e6": "ae",
        "\u0153": "oe",
        "\u00f8": "o",
        "\u0142": "l",
        "\u0111": "d",
        "\u00f0": "d",
        "\u00fe": "th",
        "\u0131": "i",
    }
)


def comparable(text: str) -> str:
    """Return a text in the form in which its words are told apart: what looks the same is the same, what is
    invisible is gone, emoji are words.

    Case and accents stay, since names are broken up by the one, and languages differ by the other.
    """
    if text.isascii():
        return text
    said = _UNSAID.sub("", unicodedata.normalize("NFKC", text)).translate(_POINTED)
    return _EMOJI.sub(lambda emoji: f" {''.join(f'u{ord(sign):x}' for sign in emoji[0])} ", said)


def folded(word: str) -> str:
    """Return a word of a `comparable` text without case and accents: `Straße` is `strasse`, `Øre` is
    `ore`.
    """
    if word.isascii():
        return word.lower()
    bare = _MARKS.sub("", unicodedata.normalize("NFD", word.casefold()))
    return unicodedata.normalize("NFC", bare).translate(_LETTERS)


def _guises(text: str) -> Iterator[str]:
    """Yield the words that the tokenizer of full text does not see in a text as it is written."""
    for part in _PART.findall(text):
        if not part.isascii():
            plain = unicodedata.normalize(
                "NFC", _MARKS_OF_LATIN.sub("", unicodedata.normalize("NFD", part.lower()))
            )
            seen = set(_RUN.findall(plain))
            yield from (
                word
                for word in map(folded, _RUN.findall(comparable(part)))
                if word not in seen and not _UNSPACED.search(word)
            )


def humps(name: str) -> tuple[str, ...]:
    """Return the words of a CamelCase name, in lower case: `HTTPServerError2` is http, server, error, 2."""
    return tuple(part.lower() for part in _HUMP.findall(name))


def camel_names(text: str) -> Iterator[str]:
    """Yield the CamelCase names in a text, as they are written."""
    for name in _NAME.findall(text[:TEXT_CHARACTERS_MAX]):
        if not name.islower() and len(name) <= NAME_CHARACTERS_MAX and _CAMEL.search(name):
            yield name


def bigrams(run: str) -> tuple[str, ...]:
    """Return each two neighbouring characters of a run without spaces; the run itself where it is shorter
    than that.
    """
    folded = unicodedata.normalize("NFKC", run)
    return tuple(folded[i : i + 2] for i in range(len(folded) - 1)) or (folded,)


def unspaced_runs(text: str) -> Iterator[str]:
    """Yield the runs of characters whose script writes no spaces."""
    for match in _UNSPACED.finditer(text[:TEXT_CHARACTERS_MAX]):
        yield match.group()


def _stems(text: str) -> dict[str, None]:
    language = language_of(text)
    if language.is_english:
        return {}
    words = {word: folded(word) for word in _RUN.findall(comparable(text).lower())}
    stems = {word: folded(language.stem(word)) for word in words}
    return dict.fromkeys(stem for word, stem in stems.items() if stem != words[word])


def lexemes(text: str) -> str:
    """Return what a text can be found by beside its words, as words.

    These are the parts of CamelCase names, what is written in other letters right beside an unspaced run,
    words that are written in another guise, bigrams of unspaced runs, and in another language than English
    the stems of words.
    """
    stems = _stems(text[:TEXT_CHARACTERS_MAX])
    guises = () if text.isascii() else dict.fromkeys(_guises(text[:TEXT_CHARACTERS_MAX]))
    text = comparable(text[:TEXT_CHARACTERS_MAX])
    found = dict.fromkeys(" ".join(parts) for name in camel_names(text) if len(parts := humps(name)) > 1)
    if text.isascii():
        return " ".join((*found, *guises, *stems))  # there are none that are written without spaces
    glued = dict.fromkeys(
        beside.group()
        for run in _UNSPACED.finditer(text[:TEXT_CHARACTERS_MAX])
        for beside in (
            _BEFORE.search(text[max(0, run.start() - GLUED_CHARACTERS_MAX) : run.start()]),
            _AFTER.match(text[run.end() : min(run.end() + GLUED_CHARACTERS_MAX, TEXT_CHARACTERS_MAX)]),
        )
        if beside
    )
    runs = (" ".join((*bigrams(run), *run)) for run in unspaced_runs(text))
    return " ".join((*found, *glued, *guises, *runs, *stems))
