"""The plain methods that a memory system has to be better than: BM25, cosine, and a blend of both.

All texts are scored by both, the whole of them in memory. BM25 stems English words, drops the words that
questions are made of, and takes writing without spaces in pairs of signs; the cosine is that of all-MiniLM-L6-v2,
of a long text the best of its passages; the blend is 0.7 of the cosine and 0.3 of BM25 as a share of the best.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import Stemmer

from omegad.embedding import catalogue
from omegad.embedding.catalogue import MINILM
from omegad.embedding.passages import passages
from omegad.embedding.session import Session
from omegad.index.terms import STOP_WORDS
from tests.bench.recall.scores import Found
from tests.bench.recall.sets import Question, Text

Embed = Callable[[str], bytes]
Scores = npt.NDArray[np.float64]

K1, B = 1.2, 0.75
COSINE, WORDS = 0.7, 0.3
VECTORS_KEPT = 100_000

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+|[^\W_]+")
_UNSPACED = re.compile(r"[\u3040-\ud7af]")
_stemmer = Stemmer.Stemmer("english")


def embedder(models: Path) -> Embed:
    """Return what embeds a text by the installed model for English; raises `FileNotFoundError` without it."""
    manifest = catalogue.installed(models, MINILM.name)
    if manifest is None:
        raise FileNotFoundError(f"no {MINILM.name} in {models}; `omegad model install` fetches it")
    return lru_cache(VECTORS_KEPT)(Session(models / manifest.name, manifest).embed)


def terms(text: str) -> list[str]:
    """Return what BM25 compares."""
    found = list[str]()
    for word in _WORD.findall(text.lower()):
        if _UNSPACED.match(word):
            found += ["".join(pair) for pair in pairwise(word)] or [word]
        elif word not in STOP_WORDS:
            found.append(_stemmer.stemWord(word))
    return found


class Plain:
    """The three methods, over the texts put so far."""

    def __init__(self, embed: Embed) -> None:
        self._embed = embed
        self._texts: list[Text] = []
        self._lengths: list[int] = []
        self._postings: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        self._vectors: list[npt.NDArray[np.float32]] = []
        self._owners: list[int] = []

    def put(self, text: Text) -> None:
        """Take a text in."""
        row, counted = len(self._texts), Counter(terms(text.content))
        self._texts.append(text)
        self._lengths.append(counted.total())
        for term, count in counted.items():
            self._postings[term].append((row, count))
        for passage in passages(text.content.strip()):
            self._vectors.append(np.frombuffer(self._embed(passage), np.float32))
            self._owners.append(row)

    def ask(self, question: Question, limit: int) -> dict[str, Found]:
        """Return each method's results, by its name."""
        inside = np.array([question.project in (None, text.project) for text in self._texts], bool)
        if not inside.any():
            return dict.fromkeys(("BM25", "cosine", "blend"), ())
        words, cosines = self._bm25(question.text, inside), self._cosines(question.text)
        blended = COSINE * cosines + WORDS * words / (words.max() or 1.0)
        return {
            "BM25": self._ranked(words, inside & (words > 0), limit),
            "cosine": self._ranked(cosines, inside, limit),
            "blend": self._ranked(blended, inside, limit),
        }

    def _bm25(self, question: str, inside: npt.NDArray[np.bool_]) -> Scores:
        lengths, scores = np.array(self._lengths, float), np.zeros(len(self._texts))
        longer = K1 * (1 - B + B * lengths / max(1.0, lengths[inside].mean()))
        for term in sorted(set(terms(question)) & self._postings.keys()):
            rows, counts = np.array(self._postings[term]).T
            holding = inside[rows].sum()
            rarity = np.log(1 + (inside.sum() - holding + 0.5) / (holding + 0.5))
            scores[rows] += rarity * counts * (K1 + 1) / (counts + longer[rows])
        scores[~inside] = 0
        return scores

    def _cosines(self, question: str) -> Scores:
        asked = np.frombuffer(self._embed(question), np.float32)
        best = np.full(len(self._texts), -1.0)
        np.maximum.at(best, self._owners, (np.array(self._vectors) @ asked).astype(float))
        return best

    def _ranked(self, scores: Scores, possible: npt.NDArray[np.bool_], limit: int) -> Found:
        order = [row for row in np.argsort(-scores, kind="stable").tolist() if possible[row]]
        return [frozenset([self._texts[row].key]) for row in order[:limit]]
