"""Makes `omegad/text/letters.json`, what three letters tell of a word's language:
`python -m tests.retrieval.letters Django-5.2-py3-none-any.whl wordfreq-3.1.1-py3-none-any.whl`.

It is fitted to what Django (BSD-3-Clause) says in the languages in Latin letters, and to words drawn as often
as people say them, by wordfreq (its data CC BY-SA 4.0); `pip download --no-deps django==5.2 wordfreq==3.1.1`
gets the wheels. English is what Django, the docstrings of Python's standard library and this project's
documentation say, and what its own set holds and is asked, too. Half of what is drawn in another language has English words in it, as those of software, and some
of the English rare words of others, as names: so small words tell more than rare ones. Each language counts
the same, and all others together as much as English. `pip install -e '.[fit]'` gets what fits.
"""

import ast
import gzip
import json
import re
import sys
import sysconfig
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from omegad.embedding.catalogue import MINILM, TOKENIZER, folder_of
from omegad.runtime.config import find_paths
from omegad.text.languages import ENGLISH, STEP, language, language_of, telling, threes
from tests.retrieval.dataset import load_memories, load_questions
from tests.retrieval.mean import HOLE, said_by

ROOT = Path(__file__).parents[2]
NAMED = {"no": "nb"}  # as the wheels have it
IN_DJANGO = NAMED | {"pt": "pt_BR"}
OTHERS = (
    "de",
    "fr",
    "es",
    "pt",
    "it",
    "nl",
    "sv",
    "da",
    "no",
    "fi",
    "pl",
    "cs",
    "ro",
    "hu",
    "tr",
    "id",
    "vi",
)
LETTERS_MIN = 4  # of a word of the vocabulary that is taken
WORDS_MIN = 2  # of a sentence of the documentation that is taken
OF_VOCABULARY = 0.15  # what its words weigh, beside what is said in English
DRAWN, DRAWN_ENGLISH, WORDS_MAX = 8_000, 40_000, 8
FLAT = 0.85  # the power that how often words are said is taken to, so that rarer ones come as well
CONTENT, RARE = 150, (1_000, 12_000)  # of the words, most frequent first: those that are not small; names
CONTENT_FLAT, OF_VOCABULARY_DRAWN = 0.75, 0.3
ENGLISH_MIXED, ENGLISH_SHARE = 0.5, 0.6  # of what is drawn in another language, and of its words at most
CONTENT_ONLY, RARE_MIXED, RARE_SHARE = (
    0.35,
    0.35,
    0.7,
)  # of what is drawn in English, and of the latter's words
BORROWED = 8  # times as often in English: no word of the other language
TEXTS_MIN, KEPT = 12, 4_000  # that three letters occur in; how many of them are kept, beside small words
RIDGE, FIRST, LAST = 1e-6, 40, 120  # steps of the fit with all, and with what is kept
NOTHING, MOST = 80, 46  # the sign of what tells nothing, and how far the others are from it at most
_WORD = re.compile(r"(?<![\w./@$=-])[^\W\d_]+(?![\w/@=-])")
_SAID = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)
Array = npt.NDArray[np.float64]


class Words(NamedTuple):
    """The words of a language, most frequent first, and how often each is said."""

    words: list[str]
    often: Array


class Texts(NamedTuple):
    """What is fitted to: what tells the language of each text, its language, and what it weighs."""

    told: list[Counter[str]]
    language: list[int]
    weight: list[float]

    def add(self, number: int, texts: Sequence[str], weight: float) -> None:
        """Add texts in a language, by its number, which weigh so much together."""
        for text in texts:
            self.told.append(
                Counter(three for word in telling(_WORD.findall(text)) for three in threes(word))
            )
            self.language.append(number)
            self.weight.append(weight / len(texts))


def english() -> list[str]:
    """Return sentences of this project in English."""
    files = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CHANGELOG.md"]
    texts = [re.sub(r"```.*?```", " ", path.read_text(encoding="utf-8"), flags=re.DOTALL) for path in files]
    texts += [memory.content for memory in load_memories()] + [question.text for question in load_questions()]
    said = (part for text in texts if language_of(text).is_english for part in re.split(r"[.;:|\n]+", text))
    return sorted({part.strip() for part in said if len(part.split()) >= WORDS_MIN})


def docstrings() -> list[str]:
    """Return sentences of the docstrings of Python's standard library."""
    paths = Path(sysconfig.get_path("stdlib")).glob("*.py")
    nodes = (node for path in paths for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    said = (ast.get_docstring(one) or "" for one in nodes if isinstance(one, DOCUMENTED))
    parts = (" ".join(part.split()) for text in said for part in re.split(r"[.;:|]+\s|\n\s*\n", text))
    return sorted({part for part in parts if len(part.split()) >= WORDS_MIN})


def vocabulary() -> list[str]:
    """Return the words that the model for English has a piece for each."""
    path = folder_of(find_paths().models, MINILM.name) / TOKENIZER
    if not path.exists():
        sys.exit(f"{MINILM.name} is not installed: `omegad model install {MINILM.name}`")
    pieces = json.loads(path.read_text(encoding="utf-8"))["model"]["vocab"]
    return sorted(
        piece for piece in pieces if len(piece) >= LETTERS_MIN and piece.isascii() and piece.isalpha()
    )


def translations(wheel: zipfile.ZipFile, code: str) -> dict[str, str]:
    """Return all that Django says in a language, by what that is in English."""
    inside = f"/locale/{IN_DJANGO.get(code, code)}/LC_MESSAGES/django.mo"
    said = [said_by(wheel, name) for name in wheel.namelist() if name.endswith(inside)]
    return {HOLE.sub(" ", one): HOLE.sub(" ", other) for pairs in said for one, other in pairs.items()}


def frequent(wheel: zipfile.ZipFile, code: str) -> Words:
    """Return the words of a language by how often they are said."""
    packed = wheel.read(f"wordfreq/data/small_{NAMED.get(code, code)}.msgpack.gz")
    _, *by_centibel = msgspec.msgpack.decode(gzip.decompress(packed))
    found = [
        (word, step) for step, words in enumerate(by_centibel) for word in words if _SAID.fullmatch(word)
    ]
    return Words([word for word, _ in found], np.array([10 ** (-step / 100) for _, step in found]))


class Drawing:
    """Sentences of a few words, drawn as often as people say them."""

    def __init__(self, by_language: dict[str, Words], pieces: list[str]) -> None:
        """Take the words of each language, and those of the model for English."""
        self._chance = np.random.default_rng(1)
        self._by_language, self._pieces = by_language, pieces
        said = by_language[ENGLISH]
        self._english = dict(zip(*said, strict=True))
        kept = [place for place in range(CONTENT, len(said.words)) if said.words[place].isascii()]
        often = said.often[kept] ** CONTENT_FLAT
        self._content = Words([said.words[place] for place in kept], often / often.sum())
        self._rare = [by_language[code].words[slice(*RARE)] for code in OTHERS]

    def sentences(self, code: str, count: int) -> Iterator[str]:
        """Yield sentences in a language."""
        words, often = self._by_language[code]
        if code != ENGLISH:
            in_english = np.array([self._english.get(word, 0.0) for word in words])
            often = np.where(in_english > BORROWED * often, 0.0, often)
        shares = often**FLAT / (often**FLAT).sum()
        lengths = self._chance.integers(1, WORDS_MAX + 1, count)
        drawn = iter(self._chance.choice(len(words), int(lengths.sum()), p=shares).tolist())
        for length in lengths.tolist():
            said = [words[next(drawn)] for _ in range(length)]
            yield " ".join(self._in_english(said) if code == ENGLISH else self._mixed(said))

    def _in_english(self, said: list[str]) -> list[str]:
        kind = self._chance.random()
        if kind < CONTENT_ONLY:
            return [self._plain() for _ in said[:5]]
        if kind > CONTENT_ONLY + RARE_MIXED:
            return said
        share = RARE_SHARE * self._chance.random()
        return [self._name() if self._chance.random() < share else word for word in said]

    def _mixed(self, said: list[str]) -> list[str]:
        if self._chance.random() > ENGLISH_MIXED:
            return said
        share = ENGLISH_SHARE * self._chance.random()
        is_other = [self._chance.random() < share for _ in said]
        is_other[0] &= not all(is_other)
        return [self._plain() if other else word for word, other in zip(said, is_other, strict=True)]

    def _plain(self) -> str:
        if self._chance.random() < OF_VOCABULARY_DRAWN:
            return self._pieces[self._chance.integers(len(self._pieces))]
        return self._content.words[self._chance.choice(len(self._content.words), p=self._content.often)]

    def _name(self) -> str:
        words = self._rare[self._chance.integers(len(self._rare))]
        return words[self._chance.integers(len(words))]


def fitted(texts: Texts) -> dict[str, str]:
    """Return what the three letters that tell most, and all small words, add to the log-odds of each
    language.
    """
    held = Counter(three for told in texts.told for three in told)
    known = sorted(three for three, count in held.items() if count >= TEXTS_MIN)
    first = _weights(texts, known, FIRST, np.zeros((len(known), 1 + len(OTHERS))))
    tells = np.abs(first).max(axis=1) * np.sqrt([held[three] for three in known])
    small = {f"^{word}$" for code in (ENGLISH, *OTHERS) for word in language(code).small}
    is_small = np.array([three in small for three in known])
    places = np.flatnonzero(is_small | (tells >= np.sort(tells)[-KEPT]))
    kept = [known[place] for place in places]
    steps = np.clip(np.rint(_weights(texts, kept, LAST, first[places]) / STEP), -MOST, MOST).astype(int)
    return {
        three: "".join(chr(NOTHING + step) for step in row) for three, row in zip(kept, steps, strict=True)
    }


def _weights(texts: Texts, known: Sequence[str], most: int, begun: Array) -> Array:
    place = {three: number for number, three in enumerate(known)}
    cells = [
        (number, place[three], count)
        for number, told in enumerate(texts.told)
        for three, count in told.items()
        if three in place
    ]
    rows, columns, counts = zip(*cells, strict=True)
    size, each = len(texts.told), np.arange(len(texts.told))
    table = csr_matrix((np.array(counts, np.float64), (rows, columns)), shape=(size, len(known)))
    turned, weight = table.T.tocsr(), np.array(texts.weight) / sum(texts.weight)
    wanted = np.zeros((size, 1 + len(OTHERS)))
    wanted[each, texts.language] = 1

    def loss(flat: Array) -> tuple[float, Array]:
        odds: Array = np.asarray(table @ flat.reshape(begun.shape))
        odds[:, 0] += np.log(len(OTHERS))
        shares = np.exp(odds - odds.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        missed = -float(weight @ np.log(shares[each, texts.language] + 1e-12))
        slope = turned @ ((shares - wanted) * weight[:, None])
        return missed + RIDGE * float(flat @ flat), slope.ravel() + 2 * RIDGE * flat

    found = minimize(loss, begun.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": most})
    weights = np.asarray(found.x).reshape(begun.shape)
    return np.asarray(weights - weights.mean(axis=1, keepdims=True))


def read(django: Path, wordfreq: Path) -> Texts:
    """Return what is fitted to, from the two wheels."""
    with zipfile.ZipFile(django) as archive:
        said = {code: translations(archive, code) for code in OTHERS}
    with zipfile.ZipFile(wordfreq) as archive:
        by_language = {code: frequent(archive, code) for code in (ENGLISH, *OTHERS)}
    pieces = vocabulary()
    drawing, texts, as_all = Drawing(by_language, pieces), Texts([], [], []), len(OTHERS)
    for number, code in enumerate(OTHERS, start=1):
        texts.add(number, [*drawing.sentences(code, DRAWN)], 1)
        texts.add(number, [other for one, other in said[code].items() if one != other], 1)
    texts.add(0, [*drawing.sentences(ENGLISH, DRAWN_ENGLISH)], as_all)
    texts.add(0, sorted({*english(), *(one for pairs in said.values() for one in pairs)}), as_all / 2)
    texts.add(0, docstrings(), as_all / 2)
    texts.add(0, pieces, OF_VOCABULARY * as_all)
    return texts


if __name__ == "__main__":
    made = {"languages": " ".join((ENGLISH, *OTHERS)), "told": fitted(read(*map(Path, sys.argv[1:3])))}
    target = ROOT / "omegad" / "text" / "letters.json"
    target.write_text(json.dumps(made, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
