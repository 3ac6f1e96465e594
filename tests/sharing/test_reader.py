"""What a team holds, folded and searched at the post: the same as its facts say, for members alone, and gone with
what is erased.
"""

import os
import secrets
import zlib
from collections.abc import Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import msgspec
import numpy as np
import psycopg
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import given, settings
from hypothesis import strategies as st

from omegad.catalog.events import CODEC
from omegad.edge.cli import main
from omegad.log.chain import payload_hash
from omegad.log.codec import tag_of
from omegad.log.event import Erased, Event
from omegad.memory.events import (
    MemoryDeleted,
    MemoryEdited,
    MemoryErased,
    MemoryRated,
    MemoryRepeated,
    MemoryRestored,
    MemoryStored,
    MemorySuperseded,
)
from omegad.memory.types import MemoryTypes
from omegad.runtime.errors import Invalid, OmegadError
from omegad.sharing.fact import Fact
from omegad.sharing.incoming import Heard
from omegad.sharing.post import administration, reading
from omegad.sharing.post.address import Address
from omegad.sharing.post.leaving import leave
from omegad.sharing.post.post import NO_HEAD, Head, Post
from omegad.sharing.post.reading import HeldAtPost, Reading
from omegad.sharing.reader import Model, QueryTeam, Reader, TeamAnswer
from omegad.sharing.wording import Wording
from tests.sharing import agreement
from tests.sharing.homes import all_held
from tests.sharing.posts import DEADLINES, HLC, TEAM, Posted

TYPES = MemoryTypes({})
TEXTS = st.sampled_from(["alpha", "Größe ü", "nul\0l \\u0000 \\", 'a "quoted" b', "x" * 300, "日本語のメモ"])
NUMBERS = st.one_of(st.none(), st.integers(0, 2**40))
SHARES = st.one_of(st.none(), st.sampled_from([0.5, 0.25, 1.0]))
TAGS = st.lists(st.sampled_from(["a", "b", "ü", "z z"]), max_size=3, unique=True).map(tuple)
DATA: st.SearchStrategy[dict[str, object]] = st.dictionaries(
    st.sampled_from(["k", "l"]), st.one_of(st.integers(-5, 5), st.booleans(), st.text("ab"))
)


def told(origin: str, seq: int, event: Event, *, hlc: int | None = None, project: str = "shop") -> Fact:
    """Return a fact that tells of an event."""
    salt, body = secrets.token_bytes(16), CODEC.encode(event)
    return Fact(
        origin=origin,
        seq=seq,
        hlc=HLC + (seq << 16) if hlc is None else hlc,
        event_id=f"{origin}-{seq:06}",
        tag=tag_of(type(event)),
        subject=str(getattr(event, "memory_id", "")),
        occurred_at=1_764_000_000_000_000 + seq,
        tz_offset=-300,
        project=project,
        agent="claude-code",
        position=seq * 3,
        payload_hash=payload_hash(salt, body),
        salt=salt,
        body=body,
    )


def stored(memory_id: str, content: str, **other: Any) -> MemoryStored:
    return MemoryStored(
        memory_id=memory_id,
        content=content,
        content_key="0" * 64,
        event_type=other.pop("event_type", "decision"),
        **other,
    )


async def tell(post: Post, origin: str, events: Sequence[Event], head: Head = NO_HEAD, **other: Any) -> Head:
    """Push facts of events, on from a head."""
    return await post.push(
        origin, [told(origin, seq, event, **other) for seq, event in enumerate(events, head.seq + 1)], head
    )


@asynccontextmanager
async def asking(address: Address, team: str = TEAM) -> Any:
    async with reading.connected(address, team, DEADLINES) as made:
        yield made


class OneHot:
    """Embeds a text as a vector in the directions of its words."""

    def embed(self, text: str) -> bytes:
        found = np.zeros(384, np.float32)
        for word in text.lower().split():
            found[sum(word.encode()) % 384] += 1.0
        return (found / (np.linalg.norm(found) or 1.0)).astype("<f4").tobytes()


class Scattered:
    """Embeds a text as a direction of its own."""

    def embed(self, text: str) -> bytes:
        found = np.random.default_rng(zlib.crc32(text.encode())).standard_normal(384)
        return (found / np.linalg.norm(found)).astype("<f4").tobytes()


MODEL = Model("one-hot", "", OneHot())


async def asked(at_post: Reading, text: str, model: Model | None = MODEL, **other: Any) -> TeamAnswer:
    return await Reader(at_post, model, TYPES).answer(QueryTeam(text=text, **other))


def found(answer: TeamAnswer) -> list[str]:
    return [one.memory_id for one in answer.results]


def as_held(one: HeldAtPost) -> agreement.Held:
    return agreement.Held(
        memory_id=one.memory_id,
        event_type=one.event_type,
        project=one.project,
        entity_id=one.entity_id,
        created_us=one.created_us,
        wording=Wording(
            content=one.content,
            tags=tuple(one.tags),
            priority=one.priority,
            metadata=msgspec.json.decode(one.metadata),
            referenced_at=one.referenced_us,
            source=one.source,
            confidence=one.confidence,
        ),
        status=one.status,
        superseded_by=one.superseded_by,
        rating=one.rating,
    )


@st.composite
def histories(draw: st.DrawFn, number: int) -> list[tuple[str, Event, int]]:
    """Return what is told, by whom, and at which logical time, which is behind what others said before as often as
    not. Each memory is stored once; what is said of it may come before that.
    """
    ids = [f"mem-{number}-{one}" for one in range(draw(st.integers(1, 4)))]
    events: list[Event] = [
        stored(
            one, draw(TEXTS), tags=draw(TAGS), priority=draw(st.integers(1, 5)), metadata=draw(DATA),
            referenced_at=draw(NUMBERS), source=draw(st.one_of(st.none(), TEXTS)), confidence=draw(SHARES),
            entity_id=draw(st.sampled_from([None, "api"])), ttl_seconds=draw(st.sampled_from([None, 60])),
        )
        for one in ids
    ]  # fmt: skip
    for _ in range(draw(st.integers(0, 12))):
        one = draw(st.sampled_from(ids))
        kind = draw(
            st.sampled_from(["edit", "edit", "supersede", "delete", "restore", "rate", "repeat", "erase"])
        )
        match kind:
            case "edit":
                edit = MemoryEdited(
                    memory_id=one, content=draw(TEXTS), content_key="1" * 64, tags=draw(TAGS),
                    priority=draw(st.integers(1, 5)), metadata=draw(DATA), referenced_at=draw(st.integers(1, 9)),
                    source=draw(st.sampled_from(["s", "t"])), confidence=draw(st.sampled_from([0.1, 0.9])),
                )  # fmt: skip
                events.append(edit)
            case "supersede":
                by = draw(st.sampled_from(ids))
                events.append(MemorySuperseded(memory_id=one, superseded_by=by, reason="newer"))
            case "rate":
                events.append(MemoryRated(memory_id=one, rating="helpful", points=draw(st.integers(-2, 1))))
            case "repeat":
                events.append(MemoryRepeated(memory_id=one, likeness="exact", similarity=1.0))
            case "delete":
                events.append(MemoryDeleted(memory_id=one))
            case "restore":
                events.append(MemoryRestored(memory_id=one))
            case _:
                events.append(MemoryErased(memory_id=one))
    return [
        (draw(st.sampled_from(["ann", "ben", "bob"])) + f"-{number}", event, HLC + draw(st.integers(0, 6)))
        for event in draw(st.permutations(events))
    ]


class Folding:
    """A post that is told many histories, each of its own project, and asked."""

    def __init__(self, posted: Posted) -> None:
        self.ada = posted.member("Ada", is_admin=True)
        self.numbers = count()

    async def run(self, *, task_status: Any) -> None:
        async with asking(self.ada) as self.at_post:
            task_status.started()
            await anyio.sleep_forever()

    async def live(self, number: int, history: list[tuple[str, Event, int]], pieces: list[int]) -> None:
        """Tell a history, folding pieces of it in between, and see what is held in the end."""
        at_post, project = self.at_post, f"project-{number}"
        heads, facts = dict[str, Head](), list[Fact]()
        for (origin, event, hlc), piece in zip(history, pieces, strict=False):
            head = heads.get(origin) or await at_post.post.enrol(origin, "desk")
            facts.append(told(origin, head.seq + 1, event, hlc=hlc, project=project))
            heads[origin] = await at_post.post.push(origin, facts[-1:], head)
            if piece:
                await at_post.fold(piece)
        while await at_post.fold(3):
            pass
        assert await at_post.unfolded() == 0
        whole = [
            msgspec.structs.replace(one, wording=_without_nul(one.wording))
            for one in agreement.of_facts([Heard(fact=fact, event=_said(fact)) for fact in facts])
        ]
        assert sorted(map(as_held, await all_held(at_post, project)), key=lambda one: one.memory_id) == whole


@pytest.fixture(scope="module")
def folding(server: Any, template: str) -> Iterator[tuple[BlockingPortal, Folding]]:
    posted = Posted.made(server, template)
    made = Folding(posted)
    with start_blocking_portal() as portal:
        running, _ = portal.start_task(made.run)
        yield portal, made
        running.cancel()
    posted.drop()


@settings(max_examples=int(os.environ.get("FOLDED_HISTORIES", "100")))
@given(st.data())
def test_what_is_folded_is_what_the_facts_say(
    folding: tuple[BlockingPortal, Folding], data: st.DataObject
) -> None:
    portal, made = folding
    number = next(made.numbers)
    history = data.draw(histories(number))
    pieces = data.draw(st.lists(st.integers(0, 4), min_size=len(history), max_size=len(history)))
    portal.call(made.live, number, history, pieces)


def _said(fact: Fact) -> Event | Erased:
    event = CODEC.decode(fact.tag, fact.body)
    assert isinstance(event, Event | Erased)
    return event


def _without_nul(wording: Wording) -> Wording:
    return msgspec.structs.replace(
        wording,
        content=wording.content.replace("\0", ""),
        source=wording.source and wording.source.replace("\0", ""),
    )


async def test_who_is_no_member_reads_nothing(posted: Posted) -> None:
    ann, bob = posted.member("Ann", is_admin=True), posted.member("Bob")
    administration.create_team(posted.admin, "other")
    eve = posted.member("Eve", team="other")
    async with asking(ann) as hers:
        await hers.post.enrol("ann-1", "desk")
        await tell(hers.post, "ann-1", [stored("mem-1", "the retries of payments are three")])
        assert found(await asked(hers, "how many retries of payments?")) == ["mem-1"]
        number = (await all_held(hers, "shop"))[0].number
        team = hers.post.team
    tables = ("held", f"held_{team}", "vectors", f"vectors_{team}", "folded", "folding")
    functions = (
        f"omegad.fold({team}, 10)",
        f"omegad.refold({team}, ARRAY['mem-1'])",
        f"omegad.refold_all({team}, ARRAY['mem-1'])",
        f"omegad.lock_folding({team})",
        f"omegad.scope({team}, '{{}}')",
        f"omegad.count_held({team}, '{{}}', 10)",
        f"omegad.count_words({team}, '{{}}', ARRAY['retries'], 10, 10)",
        f"omegad.best_by_words({team}, '{{}}', 'retries', ARRAY['retries'], ARRAY[1.0], 10)",
        f"omegad.without_vectors({team}, 'other', 10)",
        f"omegad.nearest({team}, '{{}}', 'one-hot', '[{','.join(['1'] * 384)}]', 10, false)",
        f"omegad.keep_vectors({team}, 'x', ARRAY[{number}], ARRAY[0], ARRAY[0], ARRAY['{'0' * 64}'], ARRAY['[1]'])",
    )
    with psycopg.connect(**bob.parameters(), autocommit=True) as his:  # type: ignore[arg-type]
        assert his.execute("SELECT content FROM omegad.held").fetchall() != []
        administration.remove_member(posted.admin, TEAM, bob.user)
        with pytest.raises(psycopg.OperationalError):
            his.execute("SELECT content FROM omegad.held")
    with psycopg.connect(**eve.parameters(), autocommit=True) as hostile:  # type: ignore[arg-type]
        for table in tables:
            with suppress(psycopg.errors.InsufficientPrivilege):
                assert hostile.execute(f"SELECT * FROM omegad.{table}".encode()).fetchall() == []
        for call in functions:
            with pytest.raises((psycopg.errors.RaiseException, psycopg.Error)) as refused:
                hostile.execute(f"SELECT * FROM {call}".encode())
            assert refused.value.sqlstate in {"OM001", "42501"}
        for statement in (
            f"INSERT INTO omegad.folded VALUES ({team}, 'ann-1', 99)",
            f"DELETE FROM omegad.held WHERE team = {team}",
            f"SELECT FROM omegad.folding WHERE team = {team} FOR UPDATE",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                hostile.execute(statement.encode())


async def test_what_is_erased_leaves_words_and_vectors_at_once(posted: Posted) -> None:
    async with asking(posted.member("Ann")) as hers:
        await hers.post.enrol("ann-1", "desk")
        head = await tell(
            hers.post,
            "ann-1",
            [stored("mem-1", "the password is in the safe"), stored("mem-2", "the safe is red")],
        )
        assert set(found(await asked(hers, "where is the safe"))) == {"mem-1", "mem-2"}
        assert posted.sql("SELECT count(*) FROM omegad.vectors") == [(2,)]
        await tell(hers.post, "ann-1", [MemoryErased(memory_id="mem-1")], head)
        assert posted.sql("SELECT memory_id FROM omegad.held") == [("mem-2",)]
        assert posted.sql("SELECT count(*) FROM omegad.vectors") == [(1,)]
        assert found(await asked(hers, "where is the safe")) == ["mem-2"]


async def test_who_leaves_with_facts_takes_the_words_along(posted: Posted) -> None:
    async with asking(posted.member("Ann")) as hers, asking(posted.member("Bob")) as his:
        await hers.post.enrol("ann-1", "desk")
        await his.post.enrol("bob-1", "laptop")
        await tell(hers.post, "ann-1", [stored("mem-1", "tea at four")])
        edit = MemoryEdited(memory_id="mem-1", content="coffee at five", content_key="1" * 64)
        await tell(his.post, "bob-1", [edit, stored("mem-2", "cake at six")], hlc=HLC + (9 << 16))
        await hers.fold(1_000)
        assert [one.content for one in await all_held(hers, "shop")] == ["coffee at five", "cake at six"]
        await leave(his.post, ["bob-1"], with_facts=True)
        assert [one.content for one in await all_held(hers, "shop")] == ["tea at four"]


async def test_what_is_reworded_loses_its_vectors_and_gets_others(posted: Posted) -> None:
    async with asking(posted.member("Ann")) as hers:
        await hers.post.enrol("ann-1", "desk")
        head = await tell(hers.post, "ann-1", [stored("mem-1", "deploys go out on monday")])
        await asked(hers, "deploys")
        before = await hers.vectors("one-hot", [(await all_held(hers, "shop"))[0].number])
        (lacking,) = [await hers.without_vectors("another", 9)][0]
        edit = MemoryEdited(memory_id="mem-1", content="releases go out on friday", content_key="1" * 64)
        await tell(hers.post, "ann-1", [edit], head)
        await hers.fold(1_000)
        assert posted.sql("SELECT count(*) FROM omegad.vectors") == [(0,)]
        # What was embedded of the words before comes too late.
        await hers.keep("one-hot", before, {lacking.number: lacking.mark})
        assert posted.sql("SELECT count(*) FROM omegad.vectors") == [(0,)]
        assert found(await asked(hers, "when are releases")) == ["mem-1"]
        assert posted.sql("SELECT count(*) FROM omegad.vectors") == [(1,)]


async def test_filters_leave_what_they_name(posted: Posted) -> None:
    async with asking(posted.member("Ann")) as hers, asking(posted.member("Bob")) as his:
        await hers.post.enrol("ann-1", "desk")
        await his.post.enrol("bob-1", "laptop")
        head = await tell(
            hers.post,
            "ann-1",
            [
                stored("mem-1", "retries are three", tags=("net",)),
                stored("mem-2", "retries are four", entity_id="api"),
            ],
        )
        await tell(hers.post, "ann-1", [stored("mem-3", "retries are five")], head, project="mill")
        lesson = stored("mem-4", "retries are six", event_type="lesson_learned")
        old = stored("mem-5", "retries are seven", ttl_seconds=60)
        await tell(
            his.post,
            "bob-1",
            [lesson, old, stored("mem-6", "retries are eight"), MemoryDeleted(memory_id="mem-6")],
        )
        every = {"mem-1", "mem-2", "mem-3", "mem-4"}  # 5 is over, 6 is deleted
        for mode in ("hybrid", "keyword", "semantic"):
            for given_, wanted in (
                ({}, every),
                ({"project": "mill"}, {"mem-3"}),
                ({"tags": ("net", "x")}, {"mem-1"}),
                ({"entity_id": "api"}, {"mem-2"}),
                ({"event_types": ("lesson_learned", "memory")}, {"mem-4"}),
                ({"person": "Bob"}, {"mem-4"}),
                ({"agent": "claude-code"}, every),
                ({"agent": "x"}, set()),
                ({"since": "2025-11-24"}, every),
                ({"until": "2025-11-24"}, set()),
                ({"project": "shop' OR true --"}, set()),
                ({"tags": ("net', 'x",)}, set()),
                ({"limit": 1, "project": "mill"}, {"mem-3"}),
            ):
                answer = await asked(hers, "retries are", mode=mode, **given_)
                assert set(found(answer)) == wanted, (mode, given_)
        (one,) = (await asked(hers, "retries", person="Bob")).results
        assert (one.person, one.machine, one.agent, one.project) == ("Bob", "laptop", "claude-code", "shop")
        for wrong in ({"session_id": "s"}, {"widen": True}):
            with pytest.raises(Invalid, match="cannot be asked of a post"):
                await asked(hers, "retries", **wrong)


async def test_what_is_far_less_likely_is_counted_and_shown_where_all_is_asked_for(posted: Posted) -> None:
    async with asking(posted.member("Ann")) as hers:
        await hers.post.enrol("ann-1", "desk")
        told_ = ["the till is kept in the hall at night", *(f"number {n} of the list" for n in range(8))]
        await tell(hers.post, "ann-1", [stored(f"mem-{n}", text) for n, text in enumerate(told_)])
        question = "the till is kept in the hall at night"
        answer = await asked(hers, question)
        everything = await asked(hers, question, all=True)
        assert found(answer) == ["mem-0"]
        assert (answer.more, everything.more) == (len(everything.results) - 1, 0)
        assert answer.more > 0


@pytest.mark.parametrize("model", [MODEL, None])
async def test_a_time_that_nothing_is_of_is_said(posted: Posted, model: Model | None) -> None:
    async with asking(posted.member("Ann")) as hers:
        await hers.post.enrol("ann-1", "desk")
        await tell(hers.post, "ann-1", [stored("mem-1", "tea is at four"), stored("mem-2", "milk is cold")])
        for text, project, nothing_of in (
            ("tea", None, None),
            ("tea in November 2025", None, None),
            ("lemons in November 2025", None, None),
            ("tea in November 2025", "mill", "2025-11-01 to 2025-11-30"),
            ("tea in 1999", None, "1999-01-01 to 1999-12-31"),
        ):
            assert (await asked(hers, text, model, project=project)).nothing_of == nothing_of, text
        never = await asked(hers, "what happened to us in 1999?", model)
        assert (found(never), never.nothing_of) == ([], "1999-01-01 to 1999-12-31")


async def test_an_index_of_many_vectors_misses_nothing_that_a_filter_leaves(
    posted: Posted, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, scattered = posted.member("Ann"), Model("scattered", "", Scattered())
    async with asking(ann) as hers:
        await hers.post.enrol("ann-1", "desk")
        said = [
            stored(f"mem-{n}", f"retries are w{n}", tags=("rare",) if n % 100 == 0 else ())
            for n in range(1_000)
        ]
        await tell(hers.post, "ann-1", said)
        await asked(hers, "retries", scattered)
        assert not hers.is_indexed
        exact = await hers.nearest(
            {"now": 1, "tags": ["rare"]}, "scattered", scattered.session.embed("retries w0"), 10
        )
    assert administration.install(posted.admin) == (administration.SCHEMA, administration.SCHEMA)
    async with asking(ann) as hers:
        assert not hers.is_indexed  # there are few
    monkeypatch.setattr(administration, "INDEXED_FROM", 1_000)
    administration.install(posted.admin)
    administration.install(posted.admin)  # which has it already
    async with asking(ann) as hers:
        assert hers.is_indexed
        assert await hers.post.rows("SHOW hnsw.iterative_scan", ()) == [("relaxed_order",)]
        await hers.post.rows("SELECT set_config('enable_seqscan', 'off', false)", ())
        await hers.post.rows("SELECT set_config('enable_sort', 'off', false)", ())
        near = await hers.nearest(
            {"now": 1, "tags": ["rare"]}, "scattered", scattered.session.embed("retries w0"), 10
        )
        assert near.keys() == exact.keys()
        answer = await asked(hers, "retries are w0", scattered, tags=("rare",), all=True)
        assert (answer.approximate, len(answer.results)) == (True, 10)


async def test_signs_of_every_language_are_harmless(posted: Posted) -> None:
    async with asking(posted.member("Ann")) as hers:
        await hers.post.enrol("ann-1", "desk")
        said = "getUserName in src/app.py returns evt_1PQ of ann@example.com's c++ ' \\ & | ! :* <->"
        await tell(hers.post, "ann-1", [stored("mem-1", said)])
        for text in (
            "getUserName",
            "user name",
            "app.py",
            "src/app.py",
            "evt_1",
            "c++",
            "' \\ & | !",
            "example.com",
        ):
            answer = await asked(hers, text, None, mode="keyword")
            assert found(answer) == (["mem-1"] if text != "' \\ & | !" else []), text
        assert found(await asked(hers, "src/app.py returns", mode="phrase")) == ["mem-1"]
        assert found(await asked(hers, "app.py src", mode="phrase")) == []


async def test_what_cannot_be_read_keeps_nothing_else_from_being_found(posted: Posted) -> None:
    async with asking(posted.member("Ann")) as hers:
        head = await hers.post.enrol("ann-1", "desk")
        bad = [
            b"", b"\xff\xfe", b"[]", b"null", b'{"type":"memory.stored@2"}', b'{"type":"memory.edited@1"}',
            b'{"type":"memory.stored@2","content":"x","content_key":"0","event_type":"memory","priority":"much"}',
            b'{"type":"memory.stored@2","content":"x","content_key":"0","event_type":"memory","tags":7}',
            b'{"type":"memory.stored@2","content":"x","content_key":"0","event_type":"memory","referenced_at":1e300}',
        ]  # fmt: skip
        facts = [
            msgspec.structs.replace(told("ann-1", seq, stored(f"mem-bad-{seq}", "x")), body=body)
            for seq, body in enumerate(bad, 1)
        ]
        head = await hers.post.push("ann-1", facts, head)
        await tell(hers.post, "ann-1", [stored("mem-1", "tea is at four")], head)
        assert found(await asked(hers, "when is tea")) == ["mem-1"]


async def test_without_pgvector_it_searches_by_words_and_says_so(posted: Posted) -> None:
    posted.sql("DROP TABLE omegad.vectors")
    async with asking(posted.member("Ann")) as hers:
        await hers.post.enrol("ann-1", "desk")
        await tell(hers.post, "ann-1", [stored("mem-1", "tea is at four")])
        answer = await asked(hers, "when is tea")
        assert (found(answer), answer.degraded) == (["mem-1"], "keyword")
        assert answer.because
        assert "pgvector" in answer.because
        without = await asked(hers, "when is tea", None)
        assert without.because
        assert "omegad model install" in without.because
        assert (await asked(hers, "tea", mode="keyword")).degraded is None


async def test_two_fold_at_once(posted: Posted) -> None:
    ann = posted.member("Ann")
    async with asking(ann) as one, asking(ann) as other:
        head = await one.post.enrol("ann-1", "desk")
        for start in range(0, 600, 100):
            head = await tell(
                one.post, "ann-1", [stored(f"mem-{n}", f"said {n}") for n in range(start, start + 100)], head
            )

        async def all_of(at_post: Reading) -> None:
            while await at_post.fold(50):
                pass

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(all_of, one)
            tasks.start_soon(all_of, other)
        assert len(await all_held(one, "shop")) == 600
        assert await one.unfolded() == 0


async def test_a_post_of_the_first_schema_is_shared_by_and_not_asked(server: Any) -> None:
    posted = Posted.of_schema(server, 1)
    ann = posted.member("Ann")
    async with posted.at(ann) as hers:
        await tell(hers, "ann-1", [stored("mem-1", "tea is at four")], await hers.enrol("ann-1", "desk"))
        assert (await hers.check()).schema == 1
    with pytest.raises(OmegadError, match="schema is 1"):
        async with asking(ann):
            pass
    assert administration.install(posted.admin) == (1, administration.SCHEMA)
    async with asking(ann) as hers:
        assert found(await asked(hers, "when is tea")) == ["mem-1"]
    posted.drop()


async def test_the_verb_asks_without_a_home(
    posted: Posted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ann = posted.member("Ann")
    async with asking(ann) as hers:
        await hers.post.enrol("ann-1", "desk")
        await tell(hers.post, "ann-1", [stored("mem-1", "tea is at four"), stored("mem-2", "tea is hot")])
    secret = tmp_path / "secret"
    secret.write_text(ann.password + "\n")
    monkeypatch.setenv("OMEGAD_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("OMEGAD_MODEL", "none")
    monkeypatch.delenv("OMEGAD_SHARE_URL", raising=False)

    async def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = await anyio.to_thread.run_sync(main, ["share", "query", *words])
        return (code, *capsys.readouterr())

    of_post = ("--url", ann.url, "--password-file", str(secret))
    code, out, err = await run("tea at four", *of_post, "--team", TEAM, "--limit", "1")
    assert (code, "mem-1" in out, "mem-2" in out, "omegad model install" in err) == (0, True, False, True)
    _, out, _ = await run("tea in 1999", *of_post)
    assert "nothing is of 1999-01-01 to 1999-12-31" in out
    monkeypatch.setenv("OMEGAD_SHARE_URL", ann.url)
    code, out, _ = await run(
        "tea", "--password-file", str(secret), "--person", "Ann", "--mode", "keyword", "--json"
    )
    told_ = msgspec.json.decode(out)
    assert told_["more"] == 0
    assert {one["memory_id"] for one in told_["results"]} == {"mem-1", "mem-2"}
    assert (code, told_["degraded"], told_["results"][0]["person"]) == (0, None, "Ann")
    for wrong, says in (
        (("tea", "--mode", "odd"), "odd"),
        (("tea", "--team", "elsewhere"), "not a member of the team elsewhere"),
        (("",), "what to look for"),
        (("tea", "--person", "Nobody"), "nobody in the team is called Nobody"),
    ):
        code, _, err = await run(*wrong, "--password-file", str(secret))
        assert (code != 0, says in err) == (True, True), err
    monkeypatch.delenv("OMEGAD_SHARE_URL")
    code, _, err = await run("tea")
    assert (code != 0, "--url" in err) == (True, True)
    assert not (tmp_path / "none").exists()
