"""`python -m tests.capture.fit FILE … [--write]`: fit which sentences are worth remembering, and as what.

Each file has a JSON object on a line: a sentence (`text`), who said it (`role`: user or assistant), how many
sentences its message had (`count`), and its type or `none` (`label`). The project's own are always among
them. Printed is how often those above a probability were typed rightly by a model that was fitted without
them; `--write` makes the model fitted to all the one in force. Cues and floors are set by hand in
`statements.json`.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import log_softmax

from omegad.text.ingestion import prose, statements
from omegad.text.ingestion.statements import Role, StatementModel, features, fitted, judged

Array = npt.NDArray[np.float64]

OWN = Path(__file__).with_name("sentences.jsonl")
TARGET = Path(statements.__file__).with_name("statements.json")
NONE = "none"
RIDGE = 0.002
OWN_WEIGHT = 3.0
"""How much each of the project's own sentences counts: they are few, and say outright what others say
seldom.
"""
FOLDS = 8
LEVELS = (0.4, 0.5, 0.6, 0.7, 0.8)
LEAST = 0.1
"""What a weight must be at least, for one of the types, to be kept."""


class Labelled(msgspec.Struct, frozen=True):
    """A sentence, who said it among how many, and what it is."""

    text: str
    role: Role
    count: int
    label: str


def read(path: Path) -> list[Labelled]:
    """Return the sentences of a file."""
    return [
        msgspec.json.decode(line, type=Labelled) for line in path.read_bytes().splitlines() if line.strip()
    ]


def _seen(one: Labelled) -> dict[str, float]:
    clean = next(prose.sentences(one.text), one.text)
    return features(clean, one.role, one.count)


def _weights(
    rows: Sequence[dict[str, float]], labels: Sequence[str], shares: Array, types: Sequence[str]
) -> dict[str, tuple[float, ...]]:
    """Return the weights of the greatest likelihood, less what a ridge takes; being none has weight 0."""
    names = sorted({name for row in rows for name in row})
    table = np.array([[row.get(name, 0.0) for name in names] for row in rows])
    classes = (NONE, *types)
    wanted = np.array([[label == each for each in classes] for label in labels], np.float64)
    share = (shares / shares.sum())[:, None]
    penalty = np.array([[RIDGE / 40 if name == "bias" else RIDGE] for name in names])

    def loss(flat: Array) -> tuple[float, Array]:
        weights = flat.reshape(len(names), len(classes))
        logs = log_softmax(table @ weights, axis=1)
        slope = table.T @ (share * (np.exp(logs) - wanted)) + 2 * penalty * weights
        return float(-(share * wanted * logs).sum() + (penalty * weights**2).sum()), slope.ravel()

    found = minimize(
        loss, np.zeros(len(names) * len(classes)), jac=True, method="L-BFGS-B", options={"maxiter": 2_000}
    ).x
    against = found.reshape(len(names), len(classes))
    relative = against[:, 1:] - against[:, :1]
    rounded = {
        name: tuple(round(float(value), 2) for value in row)
        for name, row in zip(names, relative, strict=True)
    }
    return {name: row for name, row in rounded.items() if max(map(abs, row)) >= LEAST}


def main() -> int:
    """Fit and print; return 0."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.capture.fit", description=(__doc__ or "").split("\n\n", 1)[1]
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="labelled sentences")
    parser.add_argument("--write", action="store_true", help="make the fitted model the one in force")
    options = parser.parse_args()
    model, own = fitted(), read(OWN)
    labelled = [*own, *(one for path in options.files for one in read(path))]
    shares = np.array([OWN_WEIGHT if place < len(own) else 1.0 for place in range(len(labelled))])
    rows, labels = [_seen(one) for one in labelled], [one.label for one in labelled]
    _cross_validate(model, labelled, rows, shares)
    if options.write:
        counts = ", ".join(f"{count} {label}" for label, count in Counter(labels).most_common())
        told = f"python -m tests.capture.fit; {len(labels)} sentences: {counts}"
        new = msgspec.structs.replace(
            model, provenance=told, weights=_weights(rows, labels, shares, model.types)
        )
        TARGET.write_bytes(msgspec.json.format(msgspec.json.encode(new), indent=1) + b"\n")
    return 0


def _cross_validate(
    model: StatementModel, labelled: Sequence[Labelled], rows: Sequence[dict[str, float]], shares: Array
) -> None:
    chance = random.Random(1)  # noqa: S311  folds, not a secret
    folds = [chance.randrange(FOLDS) for _ in labelled]
    found: list[tuple[float, str, Labelled]] = []
    for fold in range(FOLDS):
        kept = [place for place, other in enumerate(folds) if other != fold]
        weights = _weights(
            [rows[place] for place in kept],
            [labelled[place].label for place in kept],
            shares[kept],
            model.types,
        )
        part = msgspec.structs.replace(model, weights=weights)
        for place in (place for place, other in enumerate(folds) if other == fold):
            likely = judged(rows[place], part)
            best = max(range(len(likely)), key=likely.__getitem__)
            found.append((likely[best], model.types[best], labelled[place]))
    for role in ("user", "assistant"):
        for event_type in model.types:
            there = sum(one.label == event_type and one.role == role for one in labelled)
            told = list[str]()
            for level in LEVELS:
                chosen = [
                    one.label == event_type
                    for sure, named, one in found
                    if named == event_type and one.role == role and sure >= level
                ]
                told.append(f"{level}: {sum(chosen)} of {len(chosen)}")
            sys.stdout.write(f"{role:9} {event_type:16} {there:4} there; right above {', '.join(told)}\n")


if __name__ == "__main__":
    sys.exit(main())
