"""Makes what the vectors of the multilingual model have in common, whatever the texts say:
`python -m tests.retrieval.mean Django-5.2-py3-none-any.whl` writes `omegad/embedding/mean.json`, the mean of
sentences of many languages, and `directions.json`, in which directions the same sentences differ by their
language.

The sentences are those that Django (BSD-3-Clause) says in as many languages; `pip download --no-deps
django==5.2` gets the wheel. Each language counts the same.
"""

import gettext
import io
import json
import re
import sys
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt

from omegad.embedding.catalogue import DIRECTIONS, E5_SMALL, MEAN, Manifest, folder_of, read_manifest
from omegad.embedding.session import Session
from omegad.runtime.config import find_paths

LANGUAGES = (
    *("ar", "bn", "cs", "da", "de", "el", "es", "fa", "fi", "fr", "he", "hi", "hu", "id", "it", "ja", "ko"),
    *("nb", "nl", "pl", "pt_BR", "ro", "ru", "sv", "th", "tr", "uk", "ur", "vi", "zh_Hans"),
)
CATALOGUES = ("conf", "contrib/admin", "contrib/auth")
CHARACTERS = (15, 200)  # of an English sentence that is taken
SENTENCES = 60  # of a language
COMMON = 120  # sentences that most of the languages have
IN_MOST = 24  # of the languages
KEPT = 20  # of as many directions as there are languages; from 16 to all but one do equally well
PLACES = 5
HOLE = re.compile(
    r"%\(\w+\)[sd]|%[sd]|\{\w*\}|\N{LEFT DOUBLE QUOTATION MARK}|\N{RIGHT DOUBLE QUOTATION MARK}"
)


def said_by(wheel: zipfile.ZipFile, name: str) -> dict[str, str]:
    """Return what a catalogue of the wheel says, by what that is in English, but what has several lines."""
    known = gettext.GNUTranslations(io.BytesIO(wheel.read(name)))._catalog  # type: ignore[attr-defined]
    return {key: other for key, other in known.items() if isinstance(key, str) and "\n" not in key}


def sentences(wheel: zipfile.ZipFile, language: str) -> dict[str, str]:
    """Return what is said in a language, by what that is in English."""
    names = [f"django/{catalogue}/locale/{language}/LC_MESSAGES/django.mo" for catalogue in CATALOGUES]
    said = [said_by(wheel, name) for name in names if name in wheel.namelist()]
    return {
        HOLE.sub("", english): HOLE.sub("", other)
        for one in said
        for english, other in one.items()
        if CHARACTERS[0] < len(english) < CHARACTERS[1]
    }


def mean(session: Session, wheel: zipfile.ZipFile) -> npt.NDArray[np.float64]:
    """Return the mean of the languages' means."""
    means, english = [], set[str]()
    for language in LANGUAGES:
        said = sentences(wheel, language)
        chosen = sorted(said)[:: max(1, len(said) // SENTENCES)][:SENTENCES]
        english.update(chosen)
        means.append(np.mean([session.uncentred(said[one]) for one in chosen], axis=0))
        sys.stderr.write(f"{language}: {len(chosen)} of {len(said)}\n")
    means.append(
        np.mean([session.uncentred(one) for one in sorted(english)[:: len(english) // SENTENCES]], axis=0)
    )
    return np.asarray(np.mean(means, axis=0))


def directions(session: Session, wheel: zipfile.ZipFile) -> npt.NDArray[np.float64]:
    """Return the directions in which sentences that say the same differ by their language, by how much the
    languages differ in each, most first: shape (`KEPT`, 384), at right angles and of length 1.
    """
    said = {language: sentences(wheel, language) for language in LANGUAGES}
    counts = Counter(one for known in said.values() for one, other in known.items() if other != one)
    common = sorted(one for one, count in counts.items() if count >= IN_MOST)
    common = common[:: max(1, len(common) // COMMON)][:COMMON]
    said["en"] = dict(zip(common, common, strict=True))
    vectors = [
        {
            one: session.uncentred(known[one])
            for one in common
            if language == "en" or known.get(one, one) != one
        }
        for language, known in said.items()
    ]
    middle = {one: np.mean([known[one] for known in vectors if one in known], axis=0) for one in common}
    apart = [np.mean([vector - middle[one] for one, vector in known.items()], axis=0) for known in vectors]
    return np.asarray(np.linalg.svd(np.array(apart), full_matrices=False)[2][:KEPT])


def installed() -> tuple[Path, Manifest]:
    """Return the installed model and its folder."""
    folder = folder_of(find_paths().models, E5_SMALL.name)
    manifest = read_manifest(folder)
    if manifest is None:
        sys.exit(f"{E5_SMALL.name} is not installed: `omegad model install {E5_SMALL.name}`")
    return folder, manifest


if __name__ == "__main__":
    with zipfile.ZipFile(sys.argv[1]) as archive:
        session = Session(*installed())
        for name, numbers in ((MEAN, mean(session, archive)), (DIRECTIONS, directions(session, archive))):
            target = Path(__file__).parents[2] / "omegad" / "embedding" / name
            target.write_text(json.dumps(numbers.round(PLACES).tolist()) + "\n", encoding="utf-8")
