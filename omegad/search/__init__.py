"""How memories are found: candidates from meaning and words, both scores for each of them, one order, and how
sure the answer is.

`pipeline` names the steps, and is the place to start. What a question tells is in `question`, the time it
names in `periods`. `scope` says which memories it is about; `candidates` puts together those that may answer,
from `words` (full text, whose language is `terms`), `index` and `columns` (vectors) and the sessions. What
each shows is in `features`, what that weighs in `model` (fitted, with its numbers in `model.json`), what
follows in `ranking` and `confidence`, what is told of each in `results`.
"""

from omegad.index import VIEWS
from omegad.search.pipeline import Answer, Matches, QueryMemory, Sources, search
from omegad.search.results import Explanation, Result

__all__ = [
    "VIEWS",
    "Answer",
    "Explanation",
    "Matches",
    "QueryMemory",
    "Result",
    "Sources",
    "search",
]
