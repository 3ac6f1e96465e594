"""Who goes first for the model, and that everybody goes."""

from collections import deque
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.embedding.jobs import PASSED_OVER_MAX, WAITING_MAX, Job, JobQueue, Urgency
from omegad.runtime.errors import Overloaded


def order(*waiting: Urgency) -> list[str]:
    """Return how jobs that all wait from the beginning are taken out, named by urgency and place."""
    queue, places = JobQueue(), dict.fromkeys(Urgency, 0)
    with ExitStack() as stack:
        for urgency in waiting:
            places[urgency] += 1
            stack.enter_context(queue.waiting(Job(f"{urgency.name} {places[urgency]}"), urgency))
        return [job.text for _ in waiting if (job := queue.pop())]


def test_the_most_urgent_goes_first_and_of_these_the_oldest() -> None:
    assert order(Urgency.BACKLOG, Urgency.STORE, Urgency.QUERY, Urgency.STORE, Urgency.QUERY) == [
        "QUERY 1",
        "QUERY 2",
        "STORE 1",
        "STORE 2",
        "BACKLOG 1",
    ]


def test_what_hooks_ask_goes_before_all_that_is_asked_but_keeps_it_waiting_only_so_long() -> None:
    assert order(*[Urgency.QUERY] * 16, Urgency.STORE, Urgency.HOOK)[0] == "HOOK 1"
    assert order(*[Urgency.HOOK] * 20, Urgency.QUERY).index("QUERY 1") == PASSED_OVER_MAX[Urgency.QUERY]


def test_questions_without_end_keep_no_store_waiting() -> None:
    found = order(*[Urgency.QUERY] * 20, *[Urgency.STORE] * 2, Urgency.BACKLOG)
    assert [found.index(name) for name in ("STORE 1", "STORE 2")] == [4, 9]
    assert found.index("BACKLOG 1") == 16


@given(st.lists(st.sampled_from([*Urgency, None]), max_size=200))
def test_nobody_is_passed_over_more_often_than_said(steps: list[Urgency | None]) -> None:
    queue, waiting = JobQueue(), {urgency: deque[Job]() for urgency in Urgency}
    passed = dict.fromkeys(Urgency, 0)
    with ExitStack() as stack:
        for number, urgency in enumerate([*steps, *[None] * len(steps)]):
            if urgency is not None:
                waiting[urgency].append(Job(str(number)))
                stack.enter_context(queue.waiting(waiting[urgency][-1], urgency))
                continue
            job = queue.pop()
            assert (job is None) == (not any(waiting.values()))
            if job is None:
                continue
            went = next(urgency for urgency, jobs in waiting.items() if jobs and jobs[0] is job)
            waiting[went].popleft()
            passed[went] = 0
            for other in Urgency:
                passed[other] = passed[other] + 1 if waiting[other] and other > went else passed[other]
                # One more for each kind that is less urgent, and whose turn it may be at the same time.
                assert passed[other] <= PASSED_OVER_MAX[other] + len(Urgency)
    assert len(queue) == 0


def test_only_so_many_may_wait() -> None:
    queue = JobQueue()
    with ExitStack() as stack:
        for number in range(WAITING_MAX):
            stack.enter_context(queue.waiting(Job(str(number)), Urgency.QUERY))
        with pytest.raises(Overloaded):
            stack.enter_context(queue.waiting(Job("one more"), Urgency.QUERY))
        stack.enter_context(queue.waiting(Job("a store"), Urgency.STORE))
    assert len(queue) == 0
