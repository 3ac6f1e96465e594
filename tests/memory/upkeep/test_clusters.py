"""Which memories are alike enough to become one, and what that one says."""

from itertools import combinations, pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.memory.upkeep import clusters as made
from omegad.memory.upkeep.clusters import Member, clusters, summary
from omegad.text.evidence.statements import is_opposite
from omegad.text.evidence.statements import words as words_of

NOTES = (
    "The exporter is slow because it fetches one row alone",
    "The exporter is slow because it fetches one record alone",
    "The exporter is slow because it fetches one order alone",
)


def jaccard(one: str, other: str) -> float:
    ours, theirs = set(words_of(one)), set(words_of(other))
    return len(ours & theirs) / len(ours | theirs)


def member(memory_id: str, content: str, **changes: Any) -> Member:
    fields: dict[str, Any] = {"event_type": "advisor_insight", "project": "shop"}
    return Member(memory_id=memory_id, content=content, **fields | changes)


def members(*contents: str) -> list[Member]:
    return [member(f"m{number}", content) for number, content in enumerate(contents)]


def found(
    given_members: list[Member], threshold: float = 0.6, size_min: int = 3, limit: int = 50
) -> list[list[str]]:
    return [
        [one.memory_id for one in cluster] for cluster in clusters(given_members, threshold, size_min, limit)
    ]


def test_memories_that_say_much_the_same_are_a_cluster_and_others_are_not() -> None:
    assert found(members(NOTES[0], "Tests need a database", *NOTES[1:], "Use tabs")) == [["m0", "m2", "m3"]]


def test_a_cluster_has_a_smallest_size() -> None:
    assert found(members(*NOTES[:2])) == []
    assert found(members(*NOTES[:2]), size_min=2) == [["m0", "m1"]]


@pytest.mark.parametrize(
    "changes", [{"event_type": "memory"}, {"project": "other"}, {"project": None}, {"entity_id": "service"}]
)
def test_what_is_of_another_type_project_or_entity_stays_apart(changes: dict[str, Any]) -> None:
    first, second, _ = members(*NOTES)
    assert found([first, second, member("m2", NOTES[2], **changes)]) == []


WEEKLY = tuple(
    f"Weekly review: the {module} module had {count} flaky tests, most of them in {topic}, and reruns hide"
    " them from the team"
    for module, count, topic in (
        ("billing", 4, "retries"),
        ("search", 11, "paging"),
        ("import", 7, "encoding"),
        ("auth", 3, "tokens"),
    )
)


def test_what_differs_in_names_counts_and_topics_is_a_cluster_whose_summary_keeps_them_all() -> None:
    assert 0.6 <= min(jaccard(one, other) for one, other in combinations(WEEKLY, 2)) < 0.75
    (cluster,) = clusters(members(*WEEKLY), 0.6, 3, 50)
    said = summary(cluster)
    assert all(insight in said for insight in WEEKLY)


@pytest.mark.parametrize(
    "other",
    [
        "The exporter is never slow because it fetches one row alone",
        "The exporter isn't slow because it fetches one row alone",
    ],
)
def test_what_is_opposite_in_polarity_stays_apart(other: str) -> None:
    assert jaccard(NOTES[0], other) >= 0.6
    assert found(members(*NOTES[:2], other)) == []
    assert found(members(*NOTES, other)) == [["m0", "m1", "m2"]]


def test_likeness_is_not_passed_on_from_neighbour_to_neighbour() -> None:
    """Single link would make one cluster of the ends of a chain, which have nothing in common."""
    letters = [chr(ord("a") + place) * 3 for place in range(26)]
    chain = [" ".join(letters[start : start + 10]) for start in range(0, 16, 2)]
    assert all(jaccard(one, other) >= 0.6 for one, other in pairwise(chain))
    assert jaccard(chain[0], chain[-1]) == 0
    for cluster in clusters(members(*chain), 0.6, 2, 50):
        assert all(jaccard(one.content, other.content) >= 0.6 for one, other in combinations(cluster, 2))


def test_what_is_like_the_first_of_a_cluster_and_not_like_the_others_stays_out() -> None:
    shared = "one two three four five six"
    first, left, right = (
        f"{shared} seven eight nine ten",
        f"{shared} seven eight pear plum",
        f"{shared} nine ten fig kiwi",
    )
    assert min(jaccard(first, left), jaccard(first, right)) >= 0.6 > jaccard(left, right)
    assert found(members(first, left, right), size_min=2) == [["m0", "m1"]]


def test_the_largest_clusters_come_first_and_no_more_than_asked_for() -> None:
    small, large = (
        NOTES,
        [
            f"Payments retry {word} because the gateway drops idle connections"
            for word in ("often", "twice", "again", "slowly")
        ],
    )
    everything = members(*small, *large)
    assert found(everything) == [["m3", "m4", "m5", "m6"], ["m0", "m1", "m2"]]
    assert found(everything, limit=1) == [["m3", "m4", "m5", "m6"]]


def test_a_cluster_is_bounded_in_members() -> None:
    notes = members(*(f"The exporter is slow because it fetches one row alone {word}" for word in words(40)))
    assert [len(cluster) for cluster in found(notes)] == [16, 16, 8]


def test_a_document_is_no_member() -> None:
    longest = "exporter " * (made.CHARACTERS_MAX // 9) + "slow"
    assert len(longest) == made.CHARACTERS_MAX
    assert found(members(longest, longest[1:], longest[9:])) == [["m0", "m1", "m2"]]
    assert found(members(f"{longest}!", longest[1:], longest[9:])) == []


def words(count: int) -> list[str]:
    return [
        "".join(chr(ord("a") + (number // 26**place) % 26) for place in range(3)) for number in range(count)
    ]


# Words read as words
VOCABULARY = st.sampled_from("alpha beta gamma delta epsilon zeta eta theta never 7 fetch_all".split())  # noqa: SIM905
TEXTS = st.lists(st.lists(VOCABULARY, min_size=1, max_size=8).map(" ".join), min_size=2, max_size=30)


@given(contents=TEXTS, threshold=st.floats(0.4, 1))
def test_any_two_of_a_cluster_are_alike_and_none_is_in_two(contents: list[str], threshold: float) -> None:
    result = clusters(members(*contents), threshold, 2, 50)
    ids = [one.memory_id for cluster in result for one in cluster]
    assert len(ids) == len(set(ids))
    for cluster in result:
        assert [int(one.memory_id[1:]) for one in cluster] == sorted(
            int(one.memory_id[1:]) for one in cluster
        )
        for one, other in combinations(cluster, 2):
            assert jaccard(one.content, other.content) >= threshold - 1e-6
            assert not is_opposite(frozenset(words_of(one.content)), frozenset(words_of(other.content)))


@given(
    contents=st.lists(st.lists(VOCABULARY, min_size=4, max_size=8).map(" ".join), min_size=2, max_size=12),
    threshold=st.sampled_from([0.4, 0.6, 0.7, 1]),
)
def test_the_index_overlooks_no_memory_that_has_a_likeness(contents: list[str], threshold: float) -> None:
    """Of what is left alone, no two are alike: one of them would have led the other, but for their
    polarity.
    """
    groups = made._alike(members(*contents), threshold)
    alone = [group[0] for group in groups if len(group) == 1]
    bags = [frozenset(words_of(one.content)) for one in alone]
    assert not [
        pair
        for pair in combinations(bags, 2)
        if len(pair[0] & pair[1]) / len(pair[0] | pair[1]) >= threshold and not is_opposite(*pair)
    ]


def test_a_likeness_that_is_just_reached_is_seen() -> None:
    """0.55 * 100 is a little more than 55 in floating point."""
    less = " ".join(words(55))
    more = " ".join(f"own{word}" for word in words(45))
    assert found(members(less, f"{less} {more}"), threshold=0.55, size_min=2) == [["m0", "m1"]]


def test_the_right_cluster_is_found_among_hundreds_that_share_a_few_words() -> None:
    """Texts of one field share a small vocabulary, in which no word is rare."""
    chance, vocabulary = Random(1), words(60)  # noqa: S311  the same texts in every run
    texts = [" ".join(chance.sample(vocabulary, 20)) for _ in range(800)]
    assert {len(group) for group in made._alike(members(*texts, *texts, *texts), 0.9)} == {3}


def test_full_clusters_do_not_stand_in_the_way_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    many = members(*(f"The exporter is slow because it fetches one row alone {word}" for word in words(40)))
    monkeypatch.setattr(made, "POSTINGS_MAX", 1)
    assert [len(group) for group in made._alike(many, 0.6)] == [16, 16, 8]
    monkeypatch.undo()
    monkeypatch.setattr(made, "LEADERS_MAX", 1)
    last = "one two three four five six seven"
    assert [
        len(group)
        for group in made._alike(members(*[f"{last} eight"] * 16, f"{last} nine", f"{last} eight"), 0.6)
    ] == [16, 2]


def test_thousands_of_like_memories_are_compared_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    genuine = made._is_like

    def counting(one: frozenset[str], other: frozenset[str], threshold: float) -> bool:
        nonlocal calls
        calls += 1
        return genuine(one, other, threshold)

    monkeypatch.setattr(made, "_is_like", counting)
    count = 2_000
    notes = members(
        *(f"The exporter is slow because it fetches one row alone {word}" for word in words(count))
    )
    assert {len(group) for group in made._alike(notes, 0.6)} == {made.CLUSTER_MAX}
    assert calls <= count * made.CLUSTER_MAX
    calls = 0
    apart = members(
        *(" ".join([*words(9), *(f"{letter}{word}" for letter in "pqrstuvxy")]) for word in words(count))
    )
    assert clusters(apart, 0.4, 3, 5) == []
    assert count < calls <= count * made.LEADERS_MAX


def test_a_summary_says_what_all_say_and_nothing_twice() -> None:
    first = "Deploys go through the canary. The canary takes an hour."
    second = "Deploys go through the canary. Rollbacks are automatic."
    third = "Deploys go through the canary. The canary takes an hour. Alerts go to the channel."
    said = summary(members(second, first, third, first))
    for sentence in (
        "Deploys go through the canary.",
        "The canary takes an hour.",
        "Rollbacks are automatic.",
        "Alerts go to the channel.",
    ):
        assert said.count(sentence) == 1, said
    assert said.startswith(first)  # the most central one


def test_code_is_kept_whole() -> None:
    code = "Run this\n```\nmake all. Then wait\n```"
    said = summary(members("Run the build. Then wait.", code, "Run the build. Then wait for it."))
    assert said.count(code) == 1
    assert summary(members(code, code + "\n", "Run this")).count("```") == 2


def test_a_summary_is_never_word_for_word_what_one_of_the_members_says() -> None:
    """Else that one could not be restored beside it."""
    contents = (
        "Deploys go through the canary.",
        "deploys go through the canary",
        "Deploys go through the canary!",
    )
    said = summary(members(*contents))
    assert said not in contents
    assert said.startswith(contents[-1])


def test_what_does_not_fit_is_counted() -> None:
    def texts(kind: str) -> str:
        return f"{kind} comes first. " + " ".join(f"{kind} says {word}." for word in words(250))

    said = summary(members(*(texts(kind) for kind in ("Alpha", "Beta", "Gamma", "Delta"))))
    assert len(said) <= made.SUMMARY_CHARACTERS_MAX
    assert (
        said.splitlines()[-1] == "… and 3 more, see their ids"
        or said.splitlines()[-1] == "… and 2 more, see their ids"
    )
    left_out = int(said.splitlines()[-1].split()[2])
    assert left_out == sum(f"{kind} comes first" not in said for kind in ("Alpha", "Beta", "Gamma", "Delta"))


@given(contents=TEXTS)
def test_every_sentence_is_in_the_summary_or_counted(contents: list[str]) -> None:
    said = summary(members(*contents))
    assert len(said) <= made.SUMMARY_CHARACTERS_MAX
    assert said not in contents
    terms = set(said.split())
    assert all(set(content.split()) <= terms for content in contents)
