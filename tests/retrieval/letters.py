"""Makes `omegad/text/letters.json`, what three letters tell of a word's language, English or another:
`python -m tests.retrieval.letters Django-5.2-py3-none-any.whl`.

The other languages are those that Django (BSD-3-Clause) speaks in Latin letters; `pip download --no-deps
django==5.2` gets the wheel. English is what it says itself, this project's documentation, and what its own set
holds and is asked. Each language counts the same, and all others together as much as English. `pip install -e
'.[fit]'` gets what fits.
"""

import json
import re
import sys
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import expit

from omegad.embedding.catalogue import MINILM, TOKENIZER, folder_of
from omegad.runtime.config import find_paths
from omegad.text.languages import language_of
from tests.retrieval.dataset import load_memories, load_questions
from tests.retrieval.mean import HOLE, said_by

ROOT = Path(__file__).parents[2]
LANGUAGES = (
    *("cs", "da", "de", "es", "fi", "fr", "hu", "id", "it", "nb", "nl", "pl", "pt_BR", "ro", "sv", "tr"),
    "vi",
)
LETTERS_MIN = 4  # of a word of the vocabulary that is taken
WORDS_MIN = 2  # of a sentence that is taken
TEXTS_MIN = 5  # that three letters occur in
OF_VOCABULARY = 0.15  # what its words weigh, beside what is said in English
KEPT = 1_500
RIDGE = 1e-4
PLACES = 1
_WORD = re.compile(r"(?<![\w./@$=-])[^\W\d_]+(?![\w/@=-])")


def english() -> list[str]:
    """Return sentences of this project in English."""
    files = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CHANGELOG.md"]
    texts = [re.sub(r"```.*?```", " ", path.read_text(encoding="utf-8"), flags=re.DOTALL) for path in files]
    texts += [memory.content for memory in load_memories()] + [question.text for question in load_questions()]
    said = (part for text in texts if language_of(text).is_english for part in re.split(r"[.;:|\n]+", text))
    return sorted({part.strip() for part in said if len(part.split()) >= WORDS_MIN})


def vocabulary() -> list[str]:
    """Return the words that the model for English has a piece for each."""
    path = folder_of(find_paths().models, MINILM.name) / TOKENIZER
    if not path.exists():
        sys.exit(f"{MINILM.name} is not installed: `omegad model install {MINILM.name}`")
    pieces = json.loads(path.read_text(encoding="utf-8"))["model"]["vocab"]
    return sorted(
        piece for piece in pieces if len(piece) >= LETTERS_MIN and piece.isascii() and piece.isalpha()
    )


def translations(wheel: zipfile.ZipFile, language: str) -> dict[str, str]:
    """Return all that Django says in a language, by what that is in English."""
    inside = f"/locale/{language}/LC_MESSAGES/django.mo"
    said = [said_by(wheel, name) for name in wheel.namelist() if name.endswith(inside)]
    return {HOLE.sub(" ", one): HOLE.sub(" ", other) for pairs in said for one, other in pairs.items()}


def threes(text: str) -> Counter[str]:
    """Return how often each three letters occur, `^` and `$` being a word's ends."""
    marked = [f"^{word}$" for word in _WORD.findall(text.lower())]
    return Counter(word[start : start + 3] for word in marked for start in range(len(word) - 2))


def fitted(texts: list[Counter[str]], is_other: list[bool], shares: list[float]) -> dict[str, float]:
    """Return what the three letters that tell most add to the log-odds of another language."""
    held = Counter(three for text in texts for three in text)
    known = sorted(three for three, count in held.items() if count >= TEXTS_MIN)
    tells = np.abs(_weights(texts, known, is_other, shares)) * np.sqrt([held[three] for three in known])
    kept = sorted(known[place] for place in np.argsort(-tells)[:KEPT])
    weights = _weights(texts, kept, is_other, shares).round(PLACES).tolist()
    return {three: weight for three, weight in zip(kept, weights, strict=True) if weight}


def _weights(
    texts: list[Counter[str]], known: list[str], is_other: list[bool], shares: list[float]
) -> npt.NDArray[np.float64]:
    place = {three: number for number, three in enumerate(known)}
    cells = [
        (number, place[three], count)
        for number, text in enumerate(texts)
        for three, count in text.items()
        if three in place
    ]
    rows, columns, counts = zip(*cells, strict=True)
    table, wanted, weight = (
        csr_matrix((counts, (rows, columns)), shape=(len(texts), len(known))),
        np.array(is_other, np.float64),
        np.array(shares),
    )

    def loss(weights: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        odds = expit(table @ weights)
        missed = -float(weight @ (wanted * np.log(odds + 1e-12) + (1 - wanted) * np.log(1 - odds + 1e-12)))
        slope = table.T @ (weight * (odds - wanted))
        return missed + RIDGE * float(weights @ weights), slope + 2 * RIDGE * weights

    found = minimize(loss, np.zeros(len(known)), jac=True, method="L-BFGS-B", options={"maxiter": 300})
    return np.asarray(found.x)


if __name__ == "__main__":
    with zipfile.ZipFile(sys.argv[1]) as archive:
        said = {language: translations(archive, language) for language in LANGUAGES}
    own = sorted({*english(), *(one for pairs in said.values() for one in pairs)})
    words = vocabulary()
    others = [(other, 1 / len(LANGUAGES) / len(pairs)) for pairs in said.values() for other in pairs.values()]
    found = fitted(
        [threes(text) for text in (*own, *words, *(other for other, _ in others))],
        [False] * (len(own) + len(words)) + [True] * len(others),
        [1 / len(own)] * len(own)
        + [OF_VOCABULARY / len(words)] * len(words)
        + [share for _, share in others],
    )
    target = ROOT / "omegad" / "text" / "letters.json"
    target.write_text(json.dumps(found, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
