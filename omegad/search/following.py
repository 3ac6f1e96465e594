"""Whether a newer memory speaks of the same thing as an older one that a question names, or denies it."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from omegad.index.terms import bare_version
from omegad.search.question import Question, like
from omegad.storage.driver import Connection

_DENIED = """
SELECT n.id, m.id FROM memories AS m JOIN memories AS n ON n.node_id = m.contradicted_by
WHERE m.id IN (SELECT value FROM json_each(?))
"""


def denied(connection: Connection, rows: Sequence[int]) -> list[tuple[int, int]]:
    """Return the row of what denies one of some memories, with that one's."""
    return connection.execute(_DENIED, (str(list(rows)),)).fetchall()


def as_matrix(pairs: Iterable[tuple[int, int]], rows: Sequence[int]) -> npt.NDArray[np.bool_]:
    """Return which of some rows are a pair with which others."""
    places = {row: place for place, row in enumerate(rows)}
    found: npt.NDArray[np.bool_] = np.zeros((len(rows), len(rows)), np.bool_)
    for one, other in pairs:
        if one in places and other in places:
            found[places[one], places[other]] = True
    return found


def may_lack(texts: Sequence[str], lacks: npt.NDArray[np.bool_], question: Question) -> npt.NDArray[np.bool_]:
    """Return where each of some texts may speak of the matter of each other one although it *lacks* what the
    question names exactly: where it names nothing of that kind that the other does not.

    What lacks the number that is asked for speaks of another matter.
    """
    may: npt.NDArray[np.bool_] = np.zeros((len(texts), len(texts)), np.bool_)
    by_number = any(name.isdigit() or bare_version(name) for name in question.identifiers)
    if by_number or not lacks.any() or lacks.all():
        return may
    told = [like(question.identifiers, text) for text in texts]
    for place in np.flatnonzero(lacks).tolist():
        may[place] = [told[place] <= other for other in told]
    return may
