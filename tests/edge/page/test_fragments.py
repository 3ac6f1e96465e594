"""What the page's fragments say, asked of a served home; without a browser."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from starlette.applications import Starlette

from omegad.edge.web.page import PAGES, drawing, routes, search, showing
from omegad.edge.web.page.asked import Query
from omegad.runtime.config import Config, Paths
from omegad.runtime.errors import OmegadError
from tests.builders import FakeClock, Served, served
from tests.edge.page.filling import HOSTILE
from tests.sharing.foreign import ForeignHome, join

UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\U000e0000-\U000e0fff]")
SAID = {"project": "shop", "event_type": "decision", "session_id": "s-1"}


class Read(HTMLParser):
    """The elements of a fragment, with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


class Asked:
    """The page of a home, asked without a browser."""

    def __init__(self, home: Served, client: httpx2.AsyncClient) -> None:
        self.call = home.caller.call
        self._client = client

    async def get(self, path: str, status: int = 200) -> Read:
        answer = await self._client.get(f"/data/{path}")
        assert answer.status_code == status, answer.text
        return Read(answer.text)

    async def json(self, path: str) -> Any:
        return (await self._client.get(f"/data/{path}")).json()["asked"]

    async def do(self, method: str, **params: object) -> Any:
        answer = await self._client.post("/data/do", json={"method": method, "params": params})
        answer.raise_for_status()
        return answer.json()

    async def undo(self, done: Any) -> None:
        assert done["undo"], "nothing takes it back"
        for one in done["undo"]:
            await self.do(one["method"], **one["params"])


@asynccontextmanager
async def asked(paths: Paths, clock: FakeClock, *, may_write: bool = False) -> AsyncIterator[Asked]:
    async with served(paths, clock, Config(model="none")) as home:
        app = Starlette(routes=routes(may_write))
        app.state.ask = home.caller.call
        async with httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=app), base_url="http://127.0.0.1"
        ) as client:
            yield Asked(home, client)


async def a_session(page: Asked, session_id: str = "s-1") -> None:
    for event, payload in (
        ("SessionStart", {"source": "startup", "model": "opus"}),
        ("UserPromptSubmit", {"prompt": "fix the importer"}),
    ):
        told = {"hook_event_name": event, "session_id": session_id, "cwd": "/src/shop", **payload}
        await page.call("hook.dispatch", event=event, payload=told)


async def stored(page: Asked, content: str, **more: object) -> str:
    return str((await page.call("memory.store", content=content, **(SAID | more)))["memory_id"])


@pytest.mark.parametrize("name", [one for one in PAGES if one not in ("session", "thesis", "query", "today")])
async def test_every_page_is_there_for_an_empty_home_with_its_heading_and_as_json(
    name: str, paths: Paths, clock: FakeClock
) -> None:
    async with asked(paths, clock) as page:
        shown = await page.get(name)
        assert len(shown.all("h1")) == 1
        as_json = await page.json(f"{name}.json")
        assert as_json
        assert all(one["command"].startswith("omegad ") and one["answer"] is not None for one in as_json)


async def test_every_number_leads_to_the_query_that_it_came_by(paths: Paths, clock: FakeClock) -> None:
    async with asked(paths, clock) as page:
        await a_session(page)
        await stored(page, "We deploy with canaries")
        numbers = [one for one in (await page.get("now")).all("a") if one.get("class") == "n"]
        assert numbers
        for one in numbers:
            href = one["href"] or ""
            assert (one["title"] or "").startswith("omegad ")
            assert (await page.get(href.removeprefix("/page/"))).text


async def test_now_says_in_words_what_is_not_well_and_what_each_agent_was_shown(
    paths: Paths, clock: FakeClock
) -> None:
    async with asked(paths, clock) as page:
        await a_session(page)
        memory_id = await stored(page, "The importer needs Python 3.12")
        await page.call("memory.query", text="importer", asked_in="s-1")
        shown = await page.get("now")
        assert "search goes by words alone" in shown.text
        assert "not as it should be" in shown.text
        assert re.search(r"Was shown 1 memory, about 14 tokens", " ".join(shown.text.split()))
        assert any(one["href"] == f"/page/memory/{memory_id}" for one in shown.all("a"))


async def test_the_bars_of_a_result_add_up_to_its_score(paths: Paths, clock: FakeClock) -> None:
    async with asked(paths, clock) as page:
        for text in ("We deploy with canaries since May", "Deploys are announced", "Lunch is at noon"):
            await stored(page, text)
        answer = await page.call("memory.query", text="how do we deploy", explain=True)
        assert answer["results"]
        for result in answer["results"]:
            *parts, whole = search.bars(result, (100.0, min(0.0, *search.running(result))))
            assert sum(one.share for one in parts) == pytest.approx(result["score"])
            assert whole.share == result["score"]
            assert max(one.x + one.width for one in parts) >= whole.x + whole.width - 1
        shown = await page.get("search?text=how+do+we+deploy")
        assert "+0." in shown.text
        assert len([one for one in shown.all("rect") if one["class"] == "sum"]) == len(answer["results"])


async def test_a_search_as_things_stood_answers_from_then_and_an_abstention_says_why(
    paths: Paths, clock: FakeClock
) -> None:
    async with asked(paths, clock) as page:
        await stored(page, "We deploy with canaries since May")
        before = (await page.call("system.status"))["log"]["head"]
        later = await stored(page, "We deploy with balloons since June")
        links = [one.get("href") for one in (await page.get(f"search?text=deploy&as_of={before}")).all("a")]
        assert f"/page/memory/{later}" not in links
        in_vain = await page.get("search?text=the+colour+of+the+moon+rocket")
        assert "Nothing is answered" in in_vain.text
        assert re.search(r"probability of\s+\d+%", in_vain.text)


async def test_a_memory_shows_its_wordings_its_life_and_who_was_shown_it(
    paths: Paths, clock: FakeClock
) -> None:
    async with asked(paths, clock) as page:
        memory_id = await stored(page, "We deploy on Mondays")
        other = await stored(page, "Deploys are announced in the channel")
        await page.call("memory.link", memory_id=memory_id, target_id=other, weight=0.8)
        await page.call("memory.edit", memory_id=memory_id, content="We deploy on Tuesdays", reason="moved")
        await page.call("memory.query", text="when do we deploy", asked_in="s-1")
        shown = await page.get(f"memory/{memory_id}")
        text = " ".join(shown.text.split())
        assert "1 earlier wording" in text
        assert "We deploy on Mondays" in text
        assert "2 of 2 memories within two steps are drawn" in text
        assert [one.get("data-method") for one in shown.all("button")] == []
        assert any(one.get("href") == "/page/session/s-1" for one in shown.all("a"))


async def test_a_session_is_told_step_by_step(paths: Paths, clock: FakeClock) -> None:
    async with asked(paths, clock) as page:
        await a_session(page)
        await page.call(
            "tool.record", session_id="s-1", tool_name="Bash", status="error", result="exit 1",
            tool_input={"command": "make"},
        )  # fmt: skip
        await stored(page, "make needs GNU make 4")
        shown = " ".join((await page.get("session/s-1")).text.split())
        for word in ("fix the importer", "failed Bash", "make → exit 1", "make needs GNU make 4"):
            assert word in shown
        assert "There is no such thing" in (await page.get("session/s-2", 404)).text


async def test_review_has_each_thing_once_and_changes_nothing_unless_it_may(
    paths: Paths, clock: FakeClock
) -> None:
    async with asked(paths, clock) as page:
        memory_id = await stored(page, "Somebody said something", probation=True)
        shown = await page.get("review")
        assert sum(one.get("href") == f"/page/memory/{memory_id}" for one in shown.all("a")) == 1
        assert not shown.all("button")
        refused = await page._client.post("/data/do", json={"method": "memory.delete", "params": {}})
        assert refused.status_code in (404, 405)


@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("memory.promote", {}),
        ("memory.delete", {}),
        ("memory.edit", {"content": "otherwise"}),
        ("memory.rate", {"rating": "helpful"}),
        ("memory.rate", {"rating": "unhelpful"}),
        ("memory.rate", {"rating": "outdated"}),
        ("memory.supersede", {"superseded_by": None}),
        ("memory.link", {"target_id": None, "edge_type": "related", "weight": 0.5}),
        ("memory.settle", {"target_id": None, "verdict": "supersedes"}),
    ],
)
async def test_each_change_can_be_taken_back(
    method: str, more: dict[str, Any], paths: Paths, clock: FakeClock
) -> None:
    async with asked(paths, clock, may_write=True) as page:
        memory_id = await stored(page, "Deploys go out by hand", probation=True)
        other = await stored(page, "Lunch is at noon", event_type="memory")
        names = ("content", "status", "rating", "superseded_by", "edges")

        async def stands() -> list[Any]:
            known = [await page.call("memory.get", memory_id=one) for one in (memory_id, other)]
            return [
                [
                    [edge for edge in one[name] if edge["edge_type"] != "superseded_by"] if name == "edges" else one[name]
                    for name in names
                ]
                for one in known
            ]  # fmt: skip

        before = await stands()
        params = {name: other if value is None else value for name, value in more.items()}
        done = await page.do(method, memory_id=memory_id, **params)
        assert await stands() != before
        assert done["command"].startswith("omegad ")
        await page.undo(done)
        assert await stands() == before


async def test_what_is_hostile_is_text_on_every_page(paths: Paths, clock: FakeClock) -> None:
    async with asked(paths, clock, may_write=True) as page:
        named = {"project": "<b>p\u202e</b>", "session_id": "<i>s\u202e</i>", "tags": ["<u>t</u>"]}
        ids = [
            await stored(page, text, **named, entity_id='"><img src=x>', probation=True)
            for text in (*HOSTILE, "long " * 50_000)
        ]
        thesis = await page.call("thesis.state", statement=HOSTILE[0], domain="<b>d</b>")
        await page.call(
            "thesis.evidence", thesis_id=thesis["thesis_id"], memory_id=ids[1], side="for", why=HOSTILE[3]
        )
        told = {
            "hook_event_name": "UserPromptSubmit",
            "session_id": "<i>s\u202e</i>",
            "prompt": HOSTILE[0],
            "cwd": "/<b>",
        }
        await page.call("hook.dispatch", event="UserPromptSubmit", payload=told)
        await page.call("task.create", title=HOSTILE[3], project="<b>")
        await page.call("message.send", text=HOSTILE[2], to_project="<b>")
        places = [
            *(name for name in PAGES if name not in ("session", "thesis", "query")),
            *(f"memory/{memory_id}" for memory_id in ids),
            f"thesis/{thesis['thesis_id']}",
            "session/%3Ci%3Es%E2%80%AE%3C%2Fi%3E",
            "search?text=%3Cscript%3Ememory&mode=keyword",
            "query?method=memory.list",
        ]
        for place in places:
            shown = await page.get(place)
            tags = {name for name, _ in shown.elements}
            assert not tags & {"script", "img", "u", "i", "style", "iframe", "object"}, place
            for tag, attributes in shown.elements:
                assert not any(name.startswith("on") or name == "style" for name in attributes), (place, tag)
                assert not (attributes.get("href") or "").startswith("javascript:"), place
            assert not UNSEEN.search(shown.text), place
        assert "⟨U+202E⟩gnp.tseb⟨U+202C⟩" in (await page.get(f"memory/{ids[1]}")).text
        assert "<script>document.title='owned'</script>" in (await page.get(f"memory/{ids[0]}")).text


async def test_a_page_that_is_not_there_and_a_number_that_is_none_are_refused_with_a_hint(
    paths: Paths, clock: FakeClock
) -> None:
    async with asked(paths, clock) as page:
        assert "the pages are: now" in (await page.get("nothing", 404)).text
        assert "days is a number" in (await page.get("timeline?days=many", 400)).text
        assert "no memory mem-0" in (await page.get("memory/mem-0", 404)).text
        assert "does not ask memory.delete" in (await page.get("query?method=memory.delete", 409)).text
        for params, wrong in (
            ('{"method": "log.read"}', "log.read"),
            ('{"self": 1}', "self is not known here"),
            ('{"text": ' + "[" * 8_000, "params is a JSON object"),
        ):
            shown = await page.get(f"query?method=memory.query&params={quote(params, safe='[')}", 400)
            assert wrong in shown.text, params
        with pytest.raises(OmegadError, match="no memory"):
            await page.json("memory/mem-0.json")


@pytest.mark.parametrize(
    ("query", "command"),
    [
        (Query("memory.get", {"memory_id": "mem-1"}), "omegad get mem-1"),
        (Query("memory.query", {"text": "why; rm -rf", "limit": 3, "explain": True}), "omegad query 'why; rm -rf' --limit 3 --explain"),
        (Query("memory.list", {"event_types": ["decision"]}), "omegad list --event-type decision"),
        (Query("log.read", {"after": 4}), "omegad log --after 4"),
        (Query("system.status", {}), "omegad status"),
    ],
)  # fmt: skip
def test_a_query_is_told_as_the_command_that_asks_it(query: Query, command: str) -> None:
    assert query.command == command


def test_a_neighbourhood_is_drawn_alike_each_time_within_its_frame_and_says_of_how_many() -> None:
    nodes = [
        {"memory_id": f"mem-{n}", "hop": min(n, 2), "content": f"memory {n}", "event_type": "memory", "status": "active"}
        for n in range(200)
    ]  # fmt: skip
    edges = [
        {"source_id": "mem-0", "target_id": f"mem-{n}", "edge_type": "related", "weight": 0.5} for n in range(1, 200)
    ]  # fmt: skip
    picture = drawing.neighbourhood(nodes, edges, 60)
    assert picture == drawing.neighbourhood(nodes, edges, 60)
    assert (len(picture["nodes"]), picture["of"], picture["nodes"][0]["memory_id"]) == (60, 200, "mem-0")
    upon = [
        (one["memory_id"], other["memory_id"])
        for place, one in enumerate(picture["nodes"])
        for other in picture["nodes"][:place]
        if abs(one["x"] - other["x"]) < picture["box"] and abs(one["y"] - other["y"]) < picture["line"]
    ]
    assert upon == []
    for one in picture["nodes"]:
        assert picture["box"] / 2 <= one["x"] <= picture["width"] - picture["box"] / 2
        assert picture["line"] / 2 <= one["y"] <= picture["height"] - picture["line"] / 2


def test_a_belief_is_a_step_line_that_holds_until_the_next_event() -> None:
    fields = {"what": "evidenced", "for_count": 1, "against_count": 0}
    history = [
        {"at": "2026-01-01T00:00:00Z", "before": 0.0, "confidence": 0.0, "side": None, **fields},
        {"at": "2026-01-02T00:00:00Z", "before": 0.0, "confidence": 0.5, "side": "for", **fields},
    ]
    line = drawing.belief(history, 308, 72)
    points = [tuple(map(float, one.split(","))) for one in line["points"].split()]
    assert points == [(0.0, 66.0), (300.0, 66.0), (300.0, 36.0), (304.0, 36.0)]
    assert [mark["side"] for mark in line["marks"]] == ["evidenced", "for"]


@pytest.mark.parametrize("text", ["a\u202eb", "a\x00b", "a\x1b[0m", "a\u2066b", "a\U000e0041b"])
def test_what_is_unseen_is_told_by_its_name(text: str) -> None:
    shown = showing.visible(text)
    assert isinstance(shown, str)
    assert "⟨U+" in shown
    assert not UNSEEN.search(shown)
    assert showing.hides(text)


async def test_review_shows_what_the_lint_finds_last_and_does_not_wait_for_it(
    paths: Paths, clock: FakeClock
) -> None:
    async with asked(paths, clock) as page:
        new = await stored(page, "The cellar keeps herons for 90 days")
        old = await stored(page, "The cellar keeps herons for 30 days")
        await page.call("memory.link", memory_id=new, target_id=old, edge_type="contradicts")
        await page.call("memory.link", memory_id=new, target_id=old, edge_type="related", weight=0.95)
        await stored(page, "Somebody said something", probation=True)
        at_once, whole = await page.json("review.json"), await page.json("review/all.json")
        assert "lint.report" in {one["method"] for one in whole} - {one["method"] for one in at_once}
        first, then = await page.get("review"), await page.get("review/all")
        assert "Which of these holds?" not in first.text
        assert "Does the newer" not in then.text
        assert 0 < then.text.index("Worth keeping?") < then.text.index("Which of these holds?")


async def test_the_page_says_who_said_what_and_asks_by_it(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, Config(model="none")) as home:
        await join(home)
        await home.caller.call("memory.store", content="Exports are Parquet files", **SAID)
        await ForeignHome(home, "<b>Grace").stores(
            "mem-1", "Retries of exports back off", event_type="decision"
        )
        app = Starlette(routes=routes(may_write=False))
        app.state.ask = home.caller.call
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            page = Asked(home, client)
            for path in ("memory", "memory/mem-1", "search?text=exports&mode=keyword", "timeline"):
                assert "<b>Grace, grace-desktop" in (await page.get(path)).text
            for path in (
                "memory?person=%3Cb%3EGrace",
                "search?text=exports&mode=keyword&person=%3Cb%3EGrace",
            ):
                text = (await page.get(path)).text
                assert "Retries" in text
                assert "Parquet" not in text
