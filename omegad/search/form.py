"""What questions have in common, whatever they ask.

To the model for all languages a question is nearer to any question than to statements that have as little
to do with it: turns of a chat that ask are found for everything. So a question's vector is brought to where
statements are, in the direction in which the two differ in the mean.
"""

from functools import cache
from importlib import resources

import msgspec
import numpy as np
import numpy.typing as npt

from omegad.index.vector_indexes import VectorIndexes, Vectors


class Form(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A `direction`, of length 1, in which questions and statements differ, and how far along it the
    `statements` are, in the mean; `provenance` says of what they were made.
    """

    provenance: str
    statements: float
    direction: tuple[float, ...]

    def stated(self, vector: bytes) -> bytes:
        """Return a question's unit vector (float32) as that of a statement; one of another length stays."""
        asked: npt.NDArray[np.float64] = np.frombuffer(vector, "<f4").astype(np.float64)
        if len(asked) != len(self.direction):
            return vector
        along = np.array(self.direction)
        moved = asked + (self.statements - asked @ along) * along
        unit: npt.NDArray[np.float32] = (moved / np.linalg.norm(moved)).astype("<f4")
        return unit.tobytes()


@cache
def fitted() -> Form:
    """Return what is in force, made by `python -m tests.retrieval.fit_languages`."""
    said = resources.files("omegad.search").joinpath("form.json").read_bytes()
    return msgspec.json.decode(said, type=Form)


def stated(vectors: Vectors, indexes: VectorIndexes) -> Vectors:
    """Return a question's vectors; those of the model for all languages as if it were a statement."""
    return {
        name: fitted().stated(vector) if indexes.is_multilingual({name: vector}) else vector
        for name, vector in vectors.items()
    }
