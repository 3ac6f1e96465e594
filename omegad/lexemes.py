"""What a text can be found by beside its words: the parts of identifiers, and the characters of scripts that write no spaces. Pure.

A tokenizer that splits at everything but letters and digits finds `fjord_amber.py` by its words, but takes `PaymentGateway` for one
word, and a sentence of Chinese for one, too. Full text keeps what this file makes of them in a column of its own, and a question is
broken up in the same way.
"""

import re
import unicodedata
from collections.abc import Iterator

TEXT_CHARACTERS_MAX = 65_536  # of one text that is broken up
GLUED_CHARACTERS_MAX = 64
NAME_CHARACTERS_MAX = 128  # what is longer is no name

# Han, Hiragana, Katakana, Hangul, Thai, Lao, Khmer, Myanmar: what is written without spaces, or compounds freely.
_SIGNS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff"
)
_UNSPACED = re.compile(f"[{_SIGNS}]+")
_BEFORE, _AFTER = re.compile(r"[!-~]+\Z"), re.compile(r"[!-~]+")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_CAMEL = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def humps(name: str) -> tuple[str, ...]:
    """Return the words of a CamelCase name, in lower case: `HTTPServerError2` is http, server, error, 2."""
    return tuple(part.lower() for part in _HUMP.findall(name))


def camel_names(text: str) -> Iterator[str]:
    """Yield the CamelCase names in a text, as they are written."""
    for name in _NAME.findall(text[:TEXT_CHARACTERS_MAX]):
        if not name.islower() and _is_camel(name):
            yield name


def _is_camel(name: str) -> bool:
    return len(name) <= NAME_CHARACTERS_MAX and _CAMEL.search(name) is not None


def bigrams(run: str) -> tuple[str, ...]:
    """Return each two neighbouring characters of a run without spaces; the run itself where it is shorter than that."""
    folded = unicodedata.normalize("NFKC", run)
    return tuple(folded[i : i + 2] for i in range(len(folded) - 1)) or (folded,)


def unspaced_runs(text: str) -> Iterator[str]:
    """Yield the runs of characters whose script writes no spaces."""
    for match in _UNSPACED.finditer(text[:TEXT_CHARACTERS_MAX]):
        yield match.group()


def lexemes(text: str) -> str:
    """Return what a text can be found by beside its words, as words.

    These are the parts of CamelCase names, bigrams of unspaced runs, and what is written in other letters right beside such a run.
    """
    found = dict.fromkeys(" ".join(parts) for name in camel_names(text) if len(parts := humps(name)) > 1)
    glued = dict.fromkeys(_glued(text[:TEXT_CHARACTERS_MAX]))
    runs = (" ".join((*bigrams(run), *run)) for run in unspaced_runs(text))
    return " ".join((*found, *glued, *runs))


def _glued(text: str) -> Iterator[str]:
    """Yield what stands right before and after the unspaced runs of a text, up to `GLUED_CHARACTERS_MAX` of it."""
    for run in _UNSPACED.finditer(text):
        before = _BEFORE.search(text[max(0, run.start() - GLUED_CHARACTERS_MAX) : run.start()])
        after = _AFTER.match(text[run.end() : run.end() + GLUED_CHARACTERS_MAX])
        yield from (found.group() for found in (before, after) if found)
