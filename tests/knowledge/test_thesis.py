"""Theses through the service: stated, weighed by what is said and by hand, revised, predicted, resolved;
and the same again after a replay.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from omegad.knowledge.events import Effect, Touch
from omegad.knowledge.ripple_reaction import Ripple, RippleMemory, ripple
from omegad.knowledge.theses import STALE_US
from omegad.knowledge.thesis import OpenThesis, open_thesis
from omegad.log.decision import Proposal
from omegad.log.event import RecordedEvent
from omegad.memory.events import MemoryStored
from omegad.reactions.contract import Reader
from omegad.requests.command import Command
from omegad.runtime.config import Paths
from omegad.runtime.errors import Conflict, Invalid, NotFound, Refused
from projections import theses
from tests.builders import START_US, FakeClock, Served, recorded, served, show, stored, thesis_stated

pytestmark = pytest.mark.usefixtures("model")

BELIEF = "full text search of Postgres is enough for the shop"
AGREEING = (
    "full text search of Postgres is still enough for the shop",
    "full text search of Postgres is enough for the whole shop",
    "yesterday full text search of Postgres is enough for the shop",
)
DENYING = "full text search of Postgres is not enough for the shop"
DOUBTING = "we doubt that full text search of Postgres is enough for the shop"


async def state(it: Served, statement: str = BELIEF, **changes: Any) -> Any:
    return await it.caller.call(
        "thesis.state", **{"statement": statement, "project": "shop", "session_id": "author"} | changes
    )


async def say(it: Served, content: str, session_id: str | None, **changes: Any) -> str:
    told = {
        "content": content,
        "project": "shop",
        "event_type": "lesson_learned",
        "session_id": session_id,
    } | changes
    return str((await it.caller.call("memory.store", **told))["memory_id"])


async def get(it: Served, thesis_id: str) -> Any:
    """Return a thesis when all that follows from what was said has followed."""
    await it.worked_off()
    return await it.caller.call("thesis.get", thesis_id=thesis_id)


def sides(thesis: Any) -> tuple[int, int, int, int]:
    return thesis["for_count"], thesis["against_count"], thesis["mentions"], thesis["echoes"]


async def test_a_thesis_is_a_decision_with_a_confidence_that_evidence_moves(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock) as it:
        stated = await state(
            it,
            domain="architecture",
            prior=0.7,
            due="2027-03-31",
            criterion="p99 below 50 ms at a million rows",
        )
        memory = await it.caller.call("memory.get", memory_id=stated["memory_id"])
        assert (memory["content"], memory["event_type"], memory["metadata"]) == (
            BELIEF,
            "decision",
            {"thesis": True, "domain": "architecture"},
        )
        thesis = await get(it, stated["thesis_id"])
        assert (thesis["standing"], thesis["confidence"], thesis["probability"], thesis["due"]) == (
            "open",
            0.0,
            0.7,
            "2027-03-31T00:00:00.000000Z",
        )
        one, other = (
            await say(it, "a load test went well", "a"),
            await say(it, "a user complained of missing hits", "b"),
        )
        given = await it.caller.call(
            "thesis.evidence", thesis_id=stated["thesis_id"], memory_id=one, side="for"
        )
        await it.caller.call(
            "thesis.evidence", thesis_id=stated["thesis_id"], memory_id=other, side="against", why="recall"
        )
        thesis = await get(it, stated["thesis_id"])
        assert (thesis["confidence"], sides(thesis)) == (0.3333, (1, 1, 0, 0))
        assert [(one["what"], one["before"], round(one["confidence"], 4)) for one in thesis["history"]] == [
            ("stated", 0.0, 0.0),
            ("evidenced", 0.0, 0.5),
            ("evidenced", 0.5, 0.3333),
        ]
        await it.caller.call(
            "thesis.evidence", thesis_id=stated["thesis_id"], memory_id=other, side="mentions"
        )
        assert (await get(it, stated["thesis_id"]))["confidence"] == 0.5, (
            "the same memory takes back what was said of it"
        )
        await it.caller.call(
            "thesis.retract", thesis_id=stated["thesis_id"], evidence_id=given["evidence_id"]
        )
        thesis = await get(it, stated["thesis_id"])
        assert (thesis["confidence"], sides(thesis)) == (0.0, (0, 0, 1, 0))
        assert [one["retracted"] for one in thesis["evidence"]] == [None, ""]
        assert (await it.caller.call("views.verify"))["ok"]


async def test_three_sessions_raise_a_thesis_and_those_that_repeat_do_not(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock) as it:
        stated = await state(it)
        thesis_id = stated["thesis_id"]
        await say(it, BELIEF, None, event_type="decision")
        assert sides(await get(it, thesis_id)) == (
            0,
            0,
            0,
            0,
        ), "the same from nobody in particular is nobody else's"
        await say(it, AGREEING[0], "author")
        assert sides(await get(it, thesis_id)) == (0, 0, 0, 1), "its own session says nothing new"
        await it.caller.call("memory.query", text=BELIEF, project="shop", asked_in="reader")
        await it.daemon.services.log.settled()
        await say(it, AGREEING[1], "reader")
        assert sides(await get(it, thesis_id)) == (0, 0, 0, 2), "what a session was shown it echoes"
        for place, (content, session_id) in enumerate(zip(AGREEING, ("a", "b", "c"), strict=True), 1):
            await say(it, content, session_id)
            thesis = await get(it, thesis_id)
            assert (thesis["for_count"], thesis["confidence"]) == (
                place,
                round(0.5 * place / (0.5 * place + 1), 4),
            )
        await say(it, AGREEING[1], "c")
        thesis = await get(it, thesis_id)
        assert (thesis["for_count"], thesis["for_origins"]) == (3, 3), "who says it twice counts once"
        assert {one["given_by"] for one in thesis["evidence"]} == {"rule"}
        live = thesis["history"]
        await it.caller.call("views.rebuild")
        assert (await get(it, thesis_id))["history"] == live
        assert (await it.caller.call("views.verify"))["ok"]
        assert (await it.caller.call("log.verify"))["ok"]


async def test_what_is_unclear_is_a_mention_until_somebody_says_it_contradicts(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock) as it:
        thesis_id = (stated := await state(it))["thesis_id"]
        denial = await say(it, DOUBTING, "a")
        elsewhere = await say(it, AGREEING[0], "b", project="other")
        thesis = await get(it, thesis_id)
        assert (thesis["confidence"], sides(thesis)) == (
            0.0,
            (0, 0, 1, 0),
        ), "what another project says touches nothing"
        log = (await it.caller.call("memory.get", memory_id=denial))["ripple_log"]
        assert [
            (one["memory_id"], one["side"], [touch["thesis_id"] for touch in one["theses"]]) for one in log
        ] == [(stated["memory_id"], "mentions", [thesis_id])]
        assert (await it.caller.call("memory.get", memory_id=elsewhere))["ripple_log"] == []
        await it.caller.call(
            "memory.link", memory_id=elsewhere, target_id=stated["memory_id"], edge_type="contradicts"
        )
        assert sides(await get(it, thesis_id)) == (0, 1, 1, 0)
        await it.caller.call("memory.unlink", memory_id=elsewhere, target_id=stated["memory_id"])
        assert sides(await get(it, thesis_id)) == (0, 0, 1, 0)


OTHER_WAYS = (
    ("users prefer the dark theme over the light theme", "users prefer the light theme over the dark theme"),
    (
        "users prefer the dark theme over the light theme",
        "users hate the dark theme and love the light theme",
    ),
    (
        "search stays fast enough for the shop when all of its customers come at once",
        "search fails to stay fast enough for the shop when all of its customers come at once",
    ),
    (BELIEF, DENYING),
    ("the job queue runs on Postgres 14", "the job queue runs on Postgres 16"),
    ("telemetry is enabled by default", "telemetry is disabled by default"),
    ("the frontend uses React", "the frontend uses Vue, not React"),
)


@pytest.mark.parametrize(("belief", "said"), OTHER_WAYS)
async def test_what_says_the_opposite_counts_half_against_and_says_by_which_rule(
    paths: Paths, clock: FakeClock, belief: str, said: str
) -> None:
    async with served(paths, clock) as it:
        thesis_id = (stated := await state(it, belief, prior=0.6))["thesis_id"]
        denial = await say(it, said, "a")
        thesis = await get(it, thesis_id)
        assert sides(thesis) == (0, 1, 0, 0)
        evidence = thesis["evidence"][0]
        assert (evidence["side"], evidence["weight"], evidence["given_by"]) == ("against", 0.5, "rule")
        assert evidence["why"] in {"denied", "opposite", "another value", "places changed", "named as not"}
        log = (await it.caller.call("memory.get", memory_id=denial))["ripple_log"]
        assert [(one["memory_id"], one["side"]) for one in log] == [(stated["memory_id"], "against")]
        await say(it, said, "b")
        assert sides(await get(it, thesis_id))[:2] == (0, 2), "another session says it as well"


@pytest.mark.parametrize(
    "said",
    [
        DOUBTING,
        f"is {BELIEF.replace(' is', '')}?",
        "full text search of Postgres is too slow for the shop",
        "full text search of Postgres is far from enough for the shop",
        "full text search of Postgres is enough for the depot",
        "full text search of Elasticsearch is enough for the shop",
    ],
)
async def test_what_speaks_of_another_thing_or_doubts_counts_nowhere(
    paths: Paths, clock: FakeClock, said: str
) -> None:
    async with served(paths, clock) as it:
        thesis_id = (await state(it))["thesis_id"]
        await say(it, said, "a")
        thesis = await get(it, thesis_id)
        assert (sides(thesis)[:2], thesis["confidence"]) == ((0, 0), 0.0)


async def test_a_decision_says_in_its_metadata_that_it_is_a_thesis(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock) as it:
        seen = await say(it, "a load test went well", "a")
        metadata = {
            "thesis": True,
            "thesis_id": "thesis-search-2026",
            "domain": "search",
            "evidence_for": [seen, "nobody"],
            "evidence_against": 7,
        }
        metadata |= {"confidence": 0.7, "evidence_count": 5, "last_evaluated": "2025-04-08"}
        stored = await it.caller.call(
            "memory.store",
            content=BELIEF,
            event_type="decision",
            metadata=metadata,
            project="shop",
            session_id="author",
        )
        assert stored["unfound"] == ["nobody"]
        await it.caught_up()
        thesis = await get(it, "thesis-search-2026")
        assert thesis["probability"] == 0.7
        shown = (await it.caller.call("memory.get", memory_id=stored["memory_id"]))["metadata"]
        assert shown == metadata | {
            "confidence": thesis["confidence"],
            "evidence_count": 1,
            "evidence_for": [seen],
            "evidence_against": [],
            "last_evaluated": thesis["last_evaluated"][:10],
        }
        listed = (await it.caller.call("memory.list", event_types=["decision"]))["memories"]
        assert [one["metadata"] for one in listed] == [shown]
        assert (thesis["statement"], thesis["domain"], thesis["confidence"], sides(thesis)) == (
            BELIEF,
            "search",
            0.5,
            (1, 0, 0, 0),
        )


async def test_what_is_said_speaks_for_the_five_that_are_nearest(paths: Paths, clock: FakeClock) -> None:
    text = "the nightly export of the shop runs with a fetch size of five hundred rows"
    ends = ("again", "lately", "here", "there", "today", "mostly", "quietly")
    async with served(paths, clock) as it:
        names = [await say(it, f"{text} {end}", f"s-{end}", event_type="memory") for end in ends]
        last = await say(it, f"{text} slowly", "reader", event_type="memory")
        await it.worked_off()
        told = await it.caller.call("memory.get", memory_id=last)
        assert len(told["ripple_log"]) == 5
        assert {one["memory_id"] for one in told["ripple_log"]} <= set(names)
        drawn = [one for one in told["edges"] if (one["direction"], one["edge_type"]) == ("out", "related")]
        assert len(drawn) == 3
        assert (await it.caller.call("views.verify"))["ok"]


async def test_a_revised_thesis_starts_again_and_one_that_is_resolved_stays(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock) as it:
        stated = await state(it, prior=0.9)
        thesis_id = stated["thesis_id"]
        seen = await say(it, "a load test went well", "a")
        await it.caller.call("thesis.evidence", thesis_id=thesis_id, memory_id=seen, side="for")
        revised = await it.caller.call(
            "thesis.revise",
            thesis_id=thesis_id,
            statement="a search engine of its own pays off",
            why="it did not scale",
        )
        thesis = await get(it, thesis_id)
        assert (thesis["version"], thesis["memory_id"], thesis["probability"], thesis["confidence"]) == (
            2,
            revised["memory_id"],
            None,
            0.0,
        )
        assert [one["version"] for one in thesis["evidence"]] == [1]
        former = await it.caller.call("memory.get", memory_id=stated["memory_id"])
        assert (former["status"], former["superseded_by"]) == ("superseded", revised["memory_id"])
        await it.caller.call("thesis.predict", thesis_id=thesis_id, probability=0.2, due="2026-06-30")
        clock.us += STALE_US * 3
        thesis = await get(it, thesis_id)
        assert (thesis["standing"], thesis["is_due"]) == ("stale", True)
        await it.caller.call(
            "thesis.resolve", thesis_id=thesis_id, outcome="no", source="the load test of May"
        )
        assert (await get(it, thesis_id))["standing"] == "resolved"
        with pytest.raises(Refused, match="is resolved: no"):
            await it.caller.call("thesis.predict", thesis_id=thesis_id, probability=0.1)
        answer = await it.caller.call("thesis.calibration")
        assert (answer["overall"]["n"], answer["overall"]["brier"], answer["overall"]["is_enough"]) == (
            1,
            0.04,
            False,
        )
        assert [
            one["thesis_id"] for one in (await it.caller.call("thesis.list", standing="resolved"))["theses"]
        ] == [thesis_id]
        assert (await it.caller.call("views.verify"))["ok"]


async def test_what_cannot_be_is_refused_and_nothing_is_recorded(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock) as it:
        stated = await state(it)
        head = it.daemon.services.log.head
        refusals: tuple[tuple[type[Exception], str, dict[str, Any]], ...] = (
            (Conflict, "thesis.state", {"statement": BELIEF, "project": "shop", "session_id": "author"}),
            (Invalid, "thesis.state", {"statement": "x" * 5_000}),
            (Invalid, "thesis.state", {"statement": "it will hold", "due": "some day"}),
            (Invalid, "thesis.state", {"statement": "it will hold", "prior": 1.5}),
            (
                NotFound,
                "thesis.evidence",
                {"thesis_id": "nobody", "memory_id": stated["memory_id"], "side": "for"},
            ),
            (
                NotFound,
                "thesis.evidence",
                {"thesis_id": stated["thesis_id"], "memory_id": "nobody", "side": "for"},
            ),
            (
                Refused,
                "thesis.evidence",
                {"thesis_id": stated["thesis_id"], "memory_id": stated["memory_id"], "side": "for"},
            ),
            (
                Invalid,
                "thesis.evidence",
                {"thesis_id": stated["thesis_id"], "memory_id": stated["memory_id"], "side": "echo"},
            ),
            (NotFound, "thesis.retract", {"thesis_id": stated["thesis_id"], "evidence_id": "ev-1"}),
            (NotFound, "thesis.revise", {"thesis_id": "nobody", "statement": "another"}),
            (
                Conflict,
                "thesis.revise",
                {"thesis_id": stated["thesis_id"], "statement": BELIEF, "session_id": "author"},
            ),
            (Invalid, "thesis.predict", {"thesis_id": stated["thesis_id"], "probability": 2}),
            (NotFound, "thesis.get", {"thesis_id": "nobody"}),
        )
        for error, method, params in refusals:
            with pytest.raises(error):
                await it.caller.call(method, **params)
        assert it.daemon.services.log.head == head


async def test_a_session_that_repeats_what_it_was_shown_ends_no_probation(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock) as it:
        caught = await say(it, "retries need jitter", "first", source="auto_capture")
        await it.caller.call("memory.query", text="retries need jitter", project="shop", asked_in="second")
        await it.daemon.services.log.settled()
        await it.caught_up()
        assert await say(it, "retries need jitter", "second") == caught
        assert (await it.caller.call("memory.get", memory_id=caught))["status"] == "probation"
        assert await say(it, "retries need jitter", "third") == caught
        assert (await it.caller.call("memory.get", memory_id=caught))["status"] == "active"


async def test_what_was_shown_a_moment_ago_is_echoed_whatever_the_views_show_yet(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock) as it:
        caught = [
            await say(it, f"{word} need jitter and {word} limits", "first", source="auto_capture")
            for word in ("retries", "queues", "locks")
        ]
        asked = it.other("another")
        for number, memory_id in enumerate(caught):
            content = (await it.caller.call("memory.get", memory_id=memory_id))["content"]
            found = await asked.call(
                "memory.query", text=content, project="shop", asked_in=f"second-{number}"
            )
            assert memory_id in {one["memory_id"] for one in found["results"]}
            assert await say(it, content, f"second-{number}") == memory_id
            assert (await it.caller.call("memory.get", memory_id=memory_id))["status"] == "probation"
            assert await say(it, content, "third") == memory_id
            assert (await it.caller.call("memory.get", memory_id=memory_id))["status"] == "active"


@pytest.mark.parametrize("ack", ["related", "durable"])
async def test_evidence_is_whatever_is_near_enough_and_about_the_same_entity_elsewhere(
    paths: Paths, clock: FakeClock, ack: str
) -> None:
    """However much else is nearer, and in whichever project; of another entity there nothing is."""
    async with served(paths, clock) as it:
        stated = await state(it, entity_id="postgres")
        for number in range(12):
            await say(it, f"{AGREEING[0]} lately too", "author", entity_id=f"entity-{number}")
        before = sides(await get(it, stated["thesis_id"]))
        await say(it, f"{AGREEING[0]} lately too", "a", entity_id="another", ack=ack)
        assert sides(await get(it, stated["thesis_id"]))[0] == before[0] + 1
        await say(it, AGREEING[1], "b", project="depot", entity_id="postgres", ack=ack)
        assert sides(await get(it, stated["thesis_id"]))[0] == before[0] + 2
        await say(it, AGREEING[2], "c", project="depot", entity_id="mysql", ack=ack)
        await say(it, AGREEING[2], "d", project="depot", ack=ack)
        assert sides(await get(it, stated["thesis_id"]))[0] == before[0] + 2
        await it.caller.call("memory.query", text=BELIEF, project="shop", asked_in="reader")
        await say(it, f"{AGREEING[1]} lately too", "reader", entity_id="another", ack=ack)
        thesis = await get(it, stated["thesis_id"])
        assert (sides(thesis)[0], sides(thesis)[3] > before[3]) == (before[0] + 2, True)
        assert (await it.caller.call("views.verify"))["ok"]


async def test_metadata_of_any_shape_opens_a_thesis_of_what_is_sound_in_it(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock) as it:
        seen = await say(it, "a load test went well", "a")
        metadata = {
            "thesis": True,
            "thesis_id": "x" * 257,
            "domain": "",
            "prior": True,
            "due": 7,
            "criterion": ["none"],
            "evidence_for": [[1], {"a": 1}, None, 7, seen, seen],
            "evidence_against": {"a": 1},
        }
        memory_id = await say(
            it, "it holds for now. " * 1_000, "author", event_type="decision", metadata=metadata
        )
        await it.caught_up()
        (thesis,) = (await it.caller.call("thesis.list"))["theses"]
        assert (thesis["thesis_id"], thesis["memory_id"]) == (
            f"th-{memory_id.removeprefix('mem-')}",
            memory_id,
        )
        assert {thesis[name] for name in ("domain", "probability", "due", "criterion")} == {None}
        assert (len(thesis["statement"]), sides(thesis)) == (4_096, (1, 0, 0, 0))
        assert it.daemon.reactions.progress["ripple"].trouble is None


async def test_a_memory_whose_thesis_was_revised_or_resolved_meanwhile_opens_no_other(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock) as it:
        stated = await state(it)
        revised = await it.caller.call(
            "thesis.revise", thesis_id=stated["thesis_id"], statement="a search engine of its own pays off"
        )
        await it.caller.call("thesis.resolve", thesis_id=stated["thesis_id"], outcome="yes", source="seen")
        head = it.daemon.services.log.head
        late = OpenThesis(memory_id=stated["memory_id"], statement=BELIEF, metadata={"thesis": True})
        with pytest.raises(Refused, match="superseded"):
            await it.daemon.services.log.append(Proposal(decide=partial(open_thesis, late)))
        await it.caller.call("memory.restore", memory_id=stated["memory_id"])
        await it.daemon.services.log.append(Proposal(decide=partial(open_thesis, late)))
        assert (await it.caller.call("memory.get", memory_id=revised["memory_id"]))["metadata"] == {}
        assert [one["thesis_id"] for one in (await it.caller.call("thesis.list"))["theses"]] == [
            stated["thesis_id"]
        ]
        assert it.daemon.services.log.head == head + 1, "of the restored memory alone"


async def test_what_is_stored_far_from_everything_is_looked_at_only_while_a_thesis_is_open(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at, react = list[str](), Ripple.react

    def noting(self: Ripple, recorded: RecordedEvent, reader: Reader) -> Iterator[Command]:
        if isinstance(recorded.event, MemoryStored):
            looked_at.append(recorded.event.content)
        return react(self, recorded, reader)

    monkeypatch.setattr(Ripple, "react", noting)
    async with served(paths, clock) as it:
        for said in ("rye bread needs a sour dough", "the bridge is closed on Mondays"):
            await say(it, said, "a")
            await it.caught_up()
        stated = await state(it)
        await say(it, AGREEING[0], "b")
        assert sides(await get(it, stated["thesis_id"])) == (1, 0, 0, 0)
        await it.caller.call("thesis.resolve", thesis_id=stated["thesis_id"], outcome="yes", source="seen")
        for said in ("a kettle whistles when it boils", "owls hunt at night"):
            await say(it, said, "a")
            await it.caught_up()
    assert looked_at == [
        "rye bread needs a sour dough",  # after a start, when nothing is known of theses
        BELIEF,
        AGREEING[0],
        "a kettle whistles when it boils",  # when it is not known yet that none is open any more
    ]


def test_what_is_tried_again_on_views_of_before_does_not_hide_a_thesis_that_was_opened_since() -> None:
    reaction, earlier = Ripple(), recorded(stored("mem-1", "rye bread needs a sour dough"), 1)
    views = Reader(show(theses, []), START_US)
    reaction.react(earlier, views)
    assert reaction.passes_over(recorded(stored("mem-2", "owls hunt at night"), 2))
    assert not reaction.passes_over(recorded(thesis_stated(), 3))
    reaction.react(earlier, views)
    assert not reaction.passes_over(recorded(stored("mem-3", "the bridge is closed on Mondays"), 4))


async def test_evidence_for_a_former_version_does_not_reach_the_one_that_follows(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock) as it:
        thesis_id = (stated := await state(it))["thesis_id"]
        seen = await say(it, "a load test went well", "a")
        await it.caller.call(
            "thesis.revise", thesis_id=thesis_id, statement="a search engine of its own pays off"
        )
        touch = Touch(thesis_id=thesis_id, side="for", is_echo=False)
        effect = Effect(
            memory_id=stated["memory_id"], similarity=0.9, side="for", is_echo=False, theses=(touch,)
        )
        late = RippleMemory(memory_id=seen, origin="a", effects=(effect,), versions={thesis_id: 1})
        await it.daemon.services.log.append(Proposal(decide=partial(ripple, late)))
        assert (await get(it, thesis_id))["evidence"] == []


async def test_who_revised_a_thesis_gives_no_evidence_for_it(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock) as it:
        thesis_id = (await state(it, "our search needs nothing at all"))["thesis_id"]
        await it.caller.call("thesis.revise", thesis_id=thesis_id, statement=BELIEF, session_id="reviser")
        await say(it, AGREEING[0], "reviser")
        assert sides(await get(it, thesis_id)) == (0, 0, 0, 1)
        await say(it, AGREEING[1], "author")
        assert sides(await get(it, thesis_id)) == (
            1,
            0,
            0,
            1,
        ), "who stated another version said nothing of this one"
        assert (await it.caller.call("views.verify"))["ok"]


async def test_evidence_that_somebody_took_back_is_not_given_again_by_rule(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock) as it:
        thesis_id = (await state(it))["thesis_id"]
        agreeing = await say(it, AGREEING[0], "a")
        (given,) = (await get(it, thesis_id))["evidence"]
        await it.caller.call("thesis.retract", thesis_id=thesis_id, evidence_id=given["evidence_id"])
        assert await say(it, AGREEING[0], "a") == agreeing
        assert sides(await get(it, thesis_id)) == (0, 0, 0, 0)
        with pytest.raises(NotFound):
            await it.caller.call("thesis.retract", thesis_id=thesis_id, evidence_id=given["evidence_id"])
        await it.caller.call("thesis.evidence", thesis_id=thesis_id, memory_id=agreeing, side="for")
        assert (await get(it, thesis_id))["confidence"] == 0.5, "by hand it is"


@pytest.mark.parametrize("session_id", [None, "a"])
async def test_a_mention_counts_against_when_somebody_says_that_it_contradicts(
    paths: Paths, clock: FakeClock, session_id: str | None
) -> None:
    async with served(paths, clock) as it:
        thesis_id = (stated := await state(it))["thesis_id"]
        denial = await say(it, DOUBTING, session_id)
        assert sides(await get(it, thesis_id)) == (0, 0, 1, 0)
        ends = {"memory_id": denial, "target_id": stated["memory_id"]}
        for _ in range(2):
            await it.caller.call("memory.link", **ends, edge_type="contradicts")
            assert sides(await get(it, thesis_id)) == (0, 1, 0, 0)
            await it.caller.call("memory.unlink", **ends)
            assert sides(await get(it, thesis_id)) == (0, 0, 0, 0)


async def test_what_was_shown_and_is_stored_without_a_look_around_ends_no_probation(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock) as it:
        caught = await say(it, "retries need jitter", "first", source="auto_capture")
        await it.caller.call("memory.query", text="retries need jitter", project="shop", asked_in="second")
        await it.daemon.services.log.settled()
        await it.caught_up()
        assert await say(it, "retries need jitter", "second", ack="durable") == caught
        assert (await it.caller.call("memory.get", memory_id=caught))["status"] == "probation"


async def test_a_briefing_names_a_thesis_with_its_id_however_long_it_is(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock) as it:
        kept, dropped = (
            await state(it, f"{BELIEF}, {'and so on, ' * 40}"),
            await state(it, "nobody reads the logs"),
        )
        seen = await say(it, "a load test went well", "a")
        for one in (kept, dropped):
            await it.caller.call("thesis.evidence", thesis_id=one["thesis_id"], memory_id=seen, side="for")
        await it.caller.call("memory.delete", memory_id=dropped["memory_id"])
        await get(it, kept["thesis_id"])
        text = (await it.caller.call("session.briefing", project="shop", session_id="reader"))["text"]
        assert f"open 0.50 (1 for, 0 against, 0 echoes) {BELIEF}" in text
        assert f"[{kept['thesis_id']}]" in text
        assert dropped["thesis_id"] not in text
