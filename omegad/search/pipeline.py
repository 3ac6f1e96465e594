"""The pipeline of a search: what is asked, step by step what is done about it, and what is answered."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import compress
from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta

from omegad.index import words
from omegad.index.filters import Filters
from omegad.index.scope import Scope
from omegad.index.vector_indexes import VectorIndexes, Vectors
from omegad.index.words import Vocabulary
from omegad.memory.types import MemoryTypes
from omegad.requests.query import One
from omegad.search import confidence, features, folding, following, near_names, ranking, results
from omegad.search.candidates import Candidates, SearchRequest, by_words, gathered, has_any_of, linked, span
from omegad.search.features import (
    COVERAGE,
    EARLY,
    FEATURES,
    IDENTIFIERS,
    MATCHING,
    MEANING,
    PRIOR,
    SHOWN,
    Observed,
)
from omegad.search.folding import Saying
from omegad.search.model import RankingModel, fitted, multilingual
from omegad.search.question import ASKS, Question, understood
from omegad.search.ranking import Ranked, Statements
from omegad.search.results import Result
from omegad.storage.driver import Connection
from omegad.storage.readers import check

# Of the best matches, or as many as are asked for, that are looked at closely; all of them where the question
# names a time
SHORTLIST = 24
BY_ITSELF = 5  # of the best by words, and by meaning, whatever stands beside them, that are looked at as well
ELSEWHERE = (40, 10)  # the two in other languages than English, where matches alone tell what is likely
COMPARED = 12  # of the best, each with each, for which is the newest of the same matter
USUAL_COVERAGE = 0.5  # of a question by the best candidate, as long as that is not known
HELD_MIN = 0.3  # of what an older one holds of the question's words, that a newer of the same matter holds
UNSURE, LIKELY = 0.3, 0.5  # an answer below the first gives way to one of another project from the second on
LINKED = 5  # of the best results, whose edges are followed where that is asked for

BY_WORDS = frozenset({"keyword", "phrase"})
"""Modes that need no model, and are answered with whatever has the words."""

Mode = Literal["hybrid", "semantic", "keyword", "phrase"]


PROVED, PROBATION = (len(SHOWN) + PRIOR.index(name) for name in ("rating", "probation"))


class Sources(msgspec.Struct, frozen=True):
    """What is searched beside the words: the vectors of the question and of the memories, None without a
    model. Where only the question has none, the index tells which memories pass the filters.

    The question's may be what waits for it, and returns None where it does not come. `types` are the known
    types, `model` has the weights of all that is found, `nearness` tells how near the question is to a
    passage word by word, None where it cannot.
    """

    vector: Vectors | Callable[[], Vectors | None] | None
    index: VectorIndexes | None
    types: MemoryTypes
    model: RankingModel = msgspec.field(default_factory=fitted)
    nearness: Callable[[str], float | None] | None = None

    @property
    def meets_languages(self) -> bool:
        """Whether other languages than English have been met."""
        return self.index is not None and self.index.meets_languages


class NotEmbedded(Exception):
    """The question's vector did not come: it is to be searched for by its words alone."""


class QueryMemory(Filters, frozen=True, kw_only=True, tag="memory.query"):
    """Find memories by meaning and by words. Modes are both (`hybrid`), meaning, any of the words, and the
    words in a row (`phrase`).

    `or_others` answers from all projects where the one that is named does not, or is unsure where another
    is likely to.
    `widen` also answers with what the edges of the best lead to; it must pass the filters as everything does.
    What is far less likely to answer than the first is left out, and what says the same is one result, unless
    `all` is asked for; modes of words alone leave nothing out.
    `asked_in` is the session that asks, for receipts and what use proves; `session_id` is a filter like the
    others.
    """

    text: Annotated[str, Meta(min_length=1, max_length=8_192, description="what to look for")]
    limit: Annotated[int, Meta(ge=1, le=100, description="how many at most")] = 10
    mode: Annotated[
        Mode,
        Meta(description="by meaning and words, by meaning, by any of the words, or by the words in a row"),
    ] = "hybrid"
    asked_in: Annotated[One | None, Meta(description="the session that asks, for receipts")] = None
    explain: Annotated[bool, Meta(description="say what each score is made of")] = False
    or_others: Annotated[
        bool, Meta(description="of all projects, where the one that is named hardly answers")
    ] = False
    widen: Annotated[bool, Meta(description="also answer with what the edges of the best lead to")] = False
    all: Annotated[
        bool,
        Meta(
            description="answer with as many as the limit allows, however unlikely they are beside the first"
        ),
    ] = False


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What was found.

    `confidence` is the probability that the first result answers, and its score; below a floor there are no
    results, and it says how likely the best one was. `unembedded` counts the candidates that had no vector
    yet, and were compared by their words alone. `more` counts the results within the limit that are left out
    because they hardly answer beside the first, `beyond` what of all that was looked at only the limit leaves
    out. `floor` is that probability; modes that want words alone do without. `nothing_of` is the time that
    the question names where no memory that it is asked of is, or was until it was replaced, of then.
    `unchecked` says that nobody could look which later memories may deny what is found, since the view
    `conflicts` has failed.
    `position` is that of the views that answered, `stale_by` how many acknowledged events they did
    not show yet. `query_id` is empty where the answer is as of an earlier moment, since no receipt
    is kept of it.
    """

    results: list[Result]
    abstained: bool
    confidence: float
    floor: float
    degraded: str | None
    unembedded: int
    more: int
    nothing_of: str | None
    query_id: str
    position: int
    stale_by: int
    took_ms: float
    unchecked: bool = False
    beyond: int = 0


class Matches(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a search, how likely the best of them answers and how likely it must be, how many
    candidates had no vector to be compared by, how many more there are within the limit and beyond it, how
    many memories were looked among, and of which time that the question names none of them is.
    """

    results: list[Result]
    confidence: float
    floor: float
    unembedded: int = 0
    more: int = 0
    beyond: int = 0
    memories: int = 0
    nothing_of: str | None = None


def search(connection: Connection, query: QueryMemory, sources: Sources, now_us: int) -> Matches:
    """Return the best memories for *query*; without vectors by words alone. All reads are of one moment of
    the views. Raises `NotEmbedded`.
    """
    seen = observed(connection, query, sources, now_us)
    found = answered(connection, query, seen, sources, now_us)
    if not query.or_others or query.project is None or (found.results and found.confidence >= UNSURE):
        return found
    known = msgspec.structs.replace(sources, vector=seen.sought.vector)
    anywhere = msgspec.structs.replace(query, project=None)
    further = answered(connection, anywhere, observed(connection, anywhere, known, now_us), known, now_us)
    if not found.results:
        return further if further.results else found
    is_elsewhere = bool(further.results) and further.results[0].project not in {None, query.project}
    return further if is_elsewhere and further.confidence >= LIKELY else found


def answered(
    connection: Connection, query: QueryMemory, seen: Observed, sources: Sources, now_us: int
) -> Matches:
    """Return the best of what was looked at in these views."""
    is_any_of = partial(has_any_of, connection, query, now_us)
    return answers_of(connection, query, seen, sources, now_us, is_any_of=is_any_of)


def answers_of(
    connection: Connection,
    query: QueryMemory,
    seen: Observed,
    sources: Sources,
    now_us: int,
    *,
    is_any_of: Callable[[tuple[int, int]], bool],
) -> Matches:
    """Return the best of what was looked at, unless it is too unlikely that any of it answers; *is_any_of*
    says whether any of all that is asked was said from and until then.
    """
    nothing_of = _nothing_of(query, seen, now_us, is_any_of)
    unembedded = 0 if sources.vector is None else int(np.count_nonzero(~seen.candidates.is_embedded))
    best = ranking.raised(ordered(connection, seen, sources.model))
    floor = sources.model.floor
    if not best:
        return Matches(results=[], confidence=0.0, floor=floor, unembedded=unembedded, nothing_of=nothing_of)
    if query.widen:
        best = ranking.widened(best, linked(connection, [one.id for one in best[:LINKED]], seen.sought.scope))
    signs = confidence_features(connection, best, seen)
    judged = [one.id for one in best[: confidence.JUDGED]]
    is_of_none = nothing_of is not None and confidence.tells_nothing_of(judged, seen)
    sure = 0.0 if is_of_none or seen.question.asks_nothing else confidence.confidence(signs, sources.model)
    floor = confidence.floor(signs, sources.model, seen.sought.scope.count)
    # Who asks for words alone is told of whatever has one of them.
    is_answer = query.mode in BY_WORDS or sure >= floor
    answers, same, beyond = best[: query.limit], dict[int, tuple[int, ...]](), 0
    if not query.all and query.mode not in BY_WORDS and seen.sought.vector is not None:
        likely = ranking.beside(best, sources.model.beside, belonging(best[0].id, seen))
        within = {one.id for one in answers}
        shown = [one for one in likely if one.id in within]
        answers, same = _folded(connection, shown, seen)
        beyond = len(likely) - len(shown)
    more = min(query.limit, len(best)) - len(answers) - sum(map(len, same.values()))
    scale = sure / best[0].score
    explained = (
        results.explanations(connection, answers, scale, seen, types=sources.types, now_us=now_us)
        if query.explain
        else {}
    )
    return Matches(
        results=(
            results.read(connection, answers, scale, seen, explained=explained, same=same)
            if is_answer
            else []
        ),
        confidence=round(sure, 6),
        floor=floor,
        unembedded=unembedded,
        more=more if is_answer else 0,
        beyond=beyond if is_answer else 0,
        memories=seen.sought.scope.count,
        nothing_of=nothing_of,
    )


def belonging(row: int, seen: Observed) -> set[int]:
    """Return what is shown however far behind the best it is: of a question that asks for whatever is of a
    time, all of then; else the turns of a conversation that follow at once on the best, if it ends in a
    question, since who asks for the same is likely to be answered by them.
    """
    if seen.question.asks_whatever:
        return seen.then
    turn, known = seen.shown.get(row), seen.candidates
    if turn is None or not turn.is_spoken or not turn.text.rstrip().endswith(ASKS):
        return set()
    return set(known.ids[known.before == known.ids.searchsorted(row)].tolist())


def _nothing_of(
    query: QueryMemory, seen: Observed, now_us: int, is_any_of: Callable[[tuple[int, int]], bool]
) -> str | None:
    """Return the time that a question names, as its days, where nothing is of then; None where something is,
    and for a time to come, of which nothing can be. What was told right after that is of then as well, but
    where whatever is of then is asked for.
    """
    named = seen.question.period
    if named is None or named.start_us > now_us or query.mode in BY_WORDS:
        return None
    is_whatever = seen.question.asks_whatever
    is_seen = bool(seen.then) and not is_whatever
    return None if is_seen or is_any_of(span(named, is_whatever=is_whatever)) else named.days


def observed(connection: Connection, query: QueryMemory, sources: Sources, now_us: int) -> Observed:
    """Return all that the ranking of a search is decided on.

    Where no memory holds a name of the question, or an English word, it is asked once more with that as the
    likeliest of the candidates spell it.
    """
    seen = _observed(connection, query, sources, now_us)
    unheard, names = seen.sought.vocabulary.unheard(), seen.question.plain_names
    if not unheard or query.mode in BY_WORDS:
        return seen
    texts = [seen.shown[row].text for row in seen.rows]
    spelled = near_names.spellings([one for one in unheard if one in names], texts)
    if seen.question.language.is_english:
        left = [one for one in unheard if one.isalpha() and one not in {*names, *spelled}]
        spelled |= near_names.corrections(left, texts)
    if not spelled:
        return seen
    again = msgspec.structs.replace(query, text=near_names.respelled(query.text, spelled))
    known = msgspec.structs.replace(sources, vector=seen.sought.vector)
    seen = _observed(connection, again, known, now_us)
    doubted = {one.written.lower(): 1 - one.likeness for one in spelled.values()}
    vocabulary = msgspec.structs.replace(seen.sought.vocabulary, doubted=doubted)
    return seen._replace(sought=msgspec.structs.replace(seen.sought, vocabulary=vocabulary))


def _observed(connection: Connection, query: QueryMemory, sources: Sources, now_us: int) -> Observed:
    scope = Scope(connection, query, now_us, sources.index)  # by which the index is up to this moment
    question = understood(query.text, now_us, is_met=sources.meets_languages)
    check()
    sought = _sought(query, question, sources, scope)
    named = by_words(connection, sought)
    if sources.vector is not None:  # all that needs no vector is done while it is being computed
        vector = sources.vector() if callable(sources.vector) else sources.vector
        if vector is None:
            raise NotEmbedded
        sought = msgspec.structs.replace(sought, vector=vector)
    check()
    found = gathered(connection, sought, named)
    check()
    return looked_at(connection, question, sought, found, sources)


def looked_at(
    connection: Connection, question: Question, sought: SearchRequest, found: Candidates, sources: Sources
) -> Observed:
    """Return what the likeliest of the candidates show."""
    now_us = sought.scope.selection.now_us
    told, length = features.told(connection, found, question, sources.index)
    early = np.hstack([features.matching(found, question), told])
    names: tuple[str, ...] = EARLY
    assumed, (most, by_itself) = length, (SHORTLIST, BY_ITSELF)
    if sought.is_multilingual:  # what is told of turns and lengths was fitted to English
        names, assumed, (most, by_itself) = MATCHING, 0.0, ELSEWHERE
    weighed = sources.model.contributions(early[:, : len(names)], names, assumed, USUAL_COVERAGE)
    scores = weighed.sum(axis=1)
    count = len(found.ids) if question.period else max(most, sought.wanted)
    chosen: set[int] = set(np.lexsort((found.ids, -np.round(scores, 9)))[:count].tolist())
    for values in (found.bm25, found.cosine):
        chosen.update(np.lexsort((found.ids, -values))[:by_itself].tolist())
    if found.denials:
        denying = following.denying(found.ids[[*chosen]].tolist(), found.denials)
        chosen.update(np.flatnonzero(np.isin(found.ids, [*denying])).tolist())
    places = sorted(chosen)
    rows = found.ids[places].tolist()
    rarity = features.telling(sought.vocabulary.rarity, sought.scope.count)
    show = partial(
        features.shown, connection, question=question, rarity=rarity, types=sources.types, now_us=now_us
    )
    shown = show(rows)
    if replaced := [(row, old) for row, old in found.replaced if row in shown]:
        former = show([old for _, old in replaced])
        for row, old in replaced:  # and holds what that held of the question
            if old in former:
                held = shown[row].features[: features.HELD]
                np.maximum(held, former[old].features[: features.HELD], out=held)
    # The index may be a moment ahead of this reader.
    places = [place for place in places if int(found.ids[place]) in shown]
    rows = found.ids[places].tolist()
    closely = np.array([shown[row].features for row in rows]).reshape(len(rows), len(SHOWN) + len(PRIOR))
    return Observed(question, sought, found, rows, np.hstack([early[places], closely]), shown, length)


def ordered(connection: Connection, seen: Observed, model: RankingModel) -> list[Ranked]:
    """Return the shortlist best first."""
    if seen.sought.is_multilingual:
        model = multilingual().weighing(model)
    covered = float(seen.features[:, COVERAGE].max(initial=0.0))
    weighed = model.contributions(seen.features, FEATURES, seen.length, covered)
    best = ranking.ranked(seen.rows, weighed, FEATURES)
    if seen.question.is_past or not best:
        return best
    # What denies one of the first is compared with them, however far behind.
    first, rest = best[:COMPARED], best[COMPARED:]
    denials = seen.candidates.denials
    denying = following.denying([one.id for one in first], denials)
    first += [one for one in rest if one.id in denying]
    rest = [one for one in rest if one.id not in denying]
    return ranking.renewed([*first, *rest], _statements(connection, first, seen, denials), model.newness)


def confidence_features(connection: Connection, best: Sequence[Ranked], seen: Observed) -> dict[str, float]:
    """Return what tells whether any of the best results is an answer."""
    rows = [one.id for one in best[: confidence.JUDGED]]
    return confidence.features(connection, rows, seen, lead=ranking.lead(best))


def _sought(query: QueryMemory, question: Question, sources: Sources, scope: Scope) -> SearchRequest:
    """Return what is looked for; in full text nothing where meaning alone is wanted and can be had."""
    index = sources.index if sources.vector is not None else None
    named = question.period
    dated = named.undated if named and index is not None else ()
    if query.mode == "phrase":
        wanted = words.of_phrase(query.text)
    else:
        wanted = words.of_question(query.text, dated, is_met=sources.meets_languages)
    vocabulary = Vocabulary(counts={}, latest={}, holders={}, rarity={})
    if wanted:
        wanted = words.completed(scope.fulltext, wanted, question.proper)
        vocabulary = words.vocabulary(wanted, scope, named)
    return SearchRequest(
        scope=scope,
        vector=None,
        index=index,
        words=None if query.mode == "semantic" and index is not None else wanted,
        vocabulary=vocabulary,
        period=named,
        wanted=query.limit,
        is_phrase=query.mode == "phrase",
        nearness=sources.nearness,
    )


def _statements(
    connection: Connection, best: Sequence[Ranked], seen: Observed, denials: Sequence[tuple[int, int]]
) -> Statements:
    rows = [one.id for one in best]
    known = [seen.shown[row] for row in rows]
    index, vector = seen.sought.index, seen.sought.vector
    alike = np.zeros((len(rows), len(rows)))
    if index is not None and vector is not None:
        alike = index.likeness(connection, vector, rows)
    stated = np.array([not one.is_spoken for one in known], np.bool_)
    session = [
        row if one.session_id is None else one.session_id for row, one in zip(rows, known, strict=True)
    ]
    apart = np.array([[one != other for other in session] for one in session], np.bool_)
    order = sorted(range(len(rows)), key=lambda place: (known[place].said_us, rows[place]))
    said = np.empty(len(rows))
    said[order] = np.arange(len(rows))
    # What holds but a part of what is asked for speaks of another thing of that name.
    named = np.array([one.features[IDENTIFIERS] for one in known])
    as_much = (named[:, None] >= named[None, :]) | following.may_lack(
        [one.text for one in known], named == 0, seen.question
    )
    places = {row: place for place, row in enumerate(seen.rows)}
    shows = seen.features[[places[row] for row in rows]]
    held = shows[:, COVERAGE]
    # Who asks for whatever was then is near to nothing; and across languages cosines tell less.
    is_told = not (seen.question.asks_whatever or seen.sought.is_multilingual)
    denies = following.as_matrix(denials, rows)
    if not following.names_number(seen.question):
        as_much |= denies
    as_much &= (held[:, None] >= HELD_MIN * held[None, :]) | (alike >= folding.SAME_COSINE) | denies
    may_follow = (apart | denies) & stated[:, None] & stated[None, :] & as_much
    return Statements(
        said=said,
        cosine=alike,
        near=shows[:, MEANING] if is_told else np.ones(len(rows)),
        may_follow=may_follow,
        denies=denies,
        texts=[one.text for one in known],
    )


def _folded(
    connection: Connection, best: Sequence[Ranked], seen: Observed
) -> tuple[list[Ranked], dict[int, tuple[int, ...]]]:
    """Return the results of which none says the same as another, each in the place and with the score of the
    first that says so; and, by row, the rows for which one stands.
    """
    rows = [one.id for one in best if one.id in seen.shown and not seen.shown[one.id].is_spoken]
    index, vector = seen.sought.index, seen.sought.vector
    if index is None or vector is None or not rows[1:]:
        return list(best), {}
    alike = index.likeness(connection, vector, rows)
    is_near = alike >= folding.SAME_COSINE
    np.fill_diagonal(is_near, val=False)
    has_near = np.asarray(is_near.any(axis=0))
    if not has_near.any():
        return list(best), {}
    rows, alike = [*compress(rows, has_near.tolist())], alike[np.ix_(has_near, has_near)]
    sql = (
        "SELECT m.id, m.content, m.node_id, m.contradicted_by FROM memories AS m"
        " WHERE m.id IN (SELECT value FROM json_each(?))"
    )
    said = {row: rest for row, *rest in connection.execute(sql, (str(rows),))}
    sayings = [
        Saying(
            said[row][0],
            float(seen.shown[row].features[[PROVED, PROBATION]] @ (1, -1)),
            seen.shown[row].said_us,
            memory_id=said[row][1],
            denied_by=said[row][2],
        )
        for row in rows
    ]
    by_id, fronts, same = {one.id: one for one in best}, list[Ranked](), dict[int, tuple[int, ...]]()
    groups = folding.groups(sayings, alike)
    first = {rows[min(group)]: group for group in groups}
    for one in best:
        if one.id in first:
            front, *others = (rows[place] for place in first[one.id])
            raised = one.score - by_id[front].score
            fronts.append(ranking.with_stage(by_id[front], "same", raised))
            if others:
                same[front] = tuple(others)
        elif one.id not in said:
            fronts.append(one)
    return fronts, same
