"""How memories are found: candidates from meaning and words, both scores for each of them, one order, and how sure the answer is.

`recipe` names the steps, and is the place to start. What a question tells is in `question`, the time it names in `periods`. Candidates
are put together in `gathering`, from `words` (full text, whose language is `terms`), `mirror` and `columns` (vectors) and `surroundings`
(sessions and edges); `details` is what is known of each. The formulas, pure, are in `ranking`, `renewal` and `calibration`; `judging` reads
what the last of them asks for.
"""

from omegad.queries.search.gathering import Sources
from omegad.queries.search.recipe import VIEWS, Answer, Explanation, Matches, QueryMemory, Result, position, search

__all__ = ["VIEWS", "Answer", "Explanation", "Matches", "QueryMemory", "Result", "Sources", "position", "search"]
