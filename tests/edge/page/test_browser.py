"""The page in a real Chromium: every page, keys, what happens live, changes and their undoing, and hostile
memories, with nothing refused by the content security policy.
"""

import importlib.util
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.acceptance.conftest import Home, homes_in, until
from tests.edge.page.browser import browser_path, chromium, page_of
from tests.edge.page.filling import HOSTILE

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(browser_path() is None, reason="no Chromium is installed (apt install chromium)"),
    pytest.mark.skipif(
        importlib.util.find_spec("playwright") is None,
        reason="Playwright is missing (pip install '.[browser]')",
    ),
]

PAGES = ("now", "search", "search?text=export", "memory", "timeline", "theses", "review", "work")
WAITS_MS = 30_000


class Open(NamedTuple):
    """A home, its page in a browser's tab, and what went wrong there."""

    home: Home
    origin: str
    tab: Any
    wrong: list[str]

    def go(self, path: str) -> None:
        self.tab.goto(self.origin + path)
        self.settled()

    def settled(self) -> None:
        self.tab.wait_for_selector("main:not([aria-busy]) .page")

    def store(self, content: str, **more: object) -> str:
        given = {"project": "shop", "event_type": "decision", "session_id": "s-1", **more}
        return str(self.home.call("memory.store", content=content, **given)["memory_id"])

    def status(self, memory_id: str) -> str:
        return str(self.home.call("memory.get", memory_id=memory_id)["status"])


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Home, str]]:
    with homes_in(tmp_path_factory.mktemp("page")) as make:
        home = make().start()
        with page_of(home.environ, "--write") as address:
            yield home, address


@pytest.fixture(scope="module")
def context() -> Iterator[Any]:
    with chromium(viewport={"width": 1280, "height": 860}, reduced_motion="reduce") as opened:
        opened.set_default_timeout(WAITS_MS)
        yield opened


@pytest.fixture
def page(served: tuple[Home, str], context: Any) -> Iterator[Open]:
    home, address = served
    wrong = list[str]()
    tab = context.new_page()
    tab.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("dialog", lambda dialog: wrong.append(dialog.message))
    tab.on("response", lambda answer: wrong.append(answer.url) if answer.status >= 400 else None)
    tab.goto(address)
    opened = Open(home, address.partition("/#")[0], tab, wrong)
    opened.settled()
    yield opened
    tab.close()
    assert not wrong, "\n".join(wrong)


def test_the_token_leaves_the_address_and_outlives_a_reload(page: Open) -> None:
    assert page.tab.evaluate("location.hash") == ""
    assert page.tab.context.cookies() == []
    page.go("/page/work")
    page.tab.reload()
    page.settled()
    assert page.tab.title().startswith("Work ")
    page.tab.evaluate("sessionStorage.clear()")
    page.tab.reload()
    page.tab.wait_for_selector("text=needs its token")


@pytest.mark.parametrize("width", [360, 1280, 2000])
def test_every_page_is_shown_as_wide_as_its_window(page: Open, width: int) -> None:
    page.store("The export times out " + "unless_the_fetch_size_is_small_" * 20)
    page.tab.set_viewport_size({"width": width, "height": 800})
    for name in PAGES:
        page.go(f"/page/{name}")
        assert page.tab.locator("main h1").count() == 1
        assert page.tab.evaluate("document.documentElement.scrollWidth") <= width, name


def test_keys_lead_everywhere(page: Open) -> None:
    memory_id = page.store("Keys lead to the memory of the quick heron")
    keys = page.tab.keyboard
    keys.press("?")
    assert page.tab.locator("dialog[open] h2").inner_text() == "Keys"
    keys.press("Escape")
    keys.press("3")
    page.tab.wait_for_url("**/page/memory")
    page.tab.wait_for_selector(".rows li")
    keys.press("j")
    keys.press("j")
    keys.press("k")
    assert page.tab.locator("[data-item].chosen").count() == 1
    assert page.tab.locator("[data-item]").first.get_attribute("class") == "chosen"
    keys.press("Enter")
    page.tab.wait_for_url(f"**/page/memory/{memory_id}")
    keys.press("/")
    page.tab.wait_for_url("**/page/search")
    page.tab.wait_for_selector("#text:focus")
    keys.type("quick heron")
    keys.press("Enter")
    page.tab.wait_for_selector(f".results a[href='/page/memory/{memory_id}']")
    page.tab.go_back()
    page.tab.wait_for_selector(".none")


def test_what_happens_is_shown_as_it_happens_and_not_while_the_tab_is_hidden(page: Open) -> None:
    page.tab.wait_for_selector("#is-live[data-state=on]")
    first = page.store("A first thing that happens")
    page.tab.wait_for_selector(f"#events a[href='/page/memory/{first}']")
    page.tab.evaluate(
        "Object.defineProperty(document, 'hidden', {value: true, configurable: true});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    page.tab.wait_for_selector("text=paused")
    second = page.store("A second thing, that nobody sees")
    assert page.tab.locator(f"#events a[href='/page/memory/{second}']").count() == 0
    page.tab.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    page.tab.wait_for_selector(f"#events a[href='/page/memory/{second}']")


def test_review_is_done_by_keys_and_undone_by_one(page: Open) -> None:
    kept, dropped = (
        page.store(f"Somebody said {what}", probation=True) for what in ("this of herons", "that of eels")
    )
    page.go("/page/review?kind=probation")
    for memory_id, key, becomes in ((dropped, "d", "deleted"), (kept, "y", "active")):
        page.tab.wait_for_selector(f".inbox .chosen a[href='/page/memory/{memory_id}']")
        page.tab.keyboard.press(key)
        until(lambda memory_id=memory_id, becomes=becomes: page.status(memory_id) == becomes)  # type: ignore[misc]
        page.tab.wait_for_selector("#toast button")
        if becomes == "deleted":
            page.tab.wait_for_selector(f".inbox:not(:has(a[href='/page/memory/{dropped}']))")
    page.tab.keyboard.press("u")
    until(lambda: page.status(kept) == "probation")
    page.tab.wait_for_selector("text=undone")
    page.tab.keyboard.press("u")
    until(lambda: page.status(dropped) == "probation")


def test_what_nothing_takes_back_waits_and_can_be_stopped(page: Open) -> None:
    new = page.store("The cellar keeps herons for 90 days")
    old = page.store("The cellar keeps herons for 30 days")
    page.home.call("memory.link", memory_id=new, target_id=old, edge_type="contradicts")
    page.go("/page/review?kind=contradiction")
    page.tab.wait_for_selector(".inbox .chosen")
    before = page.home.call("system.status")["log"]["head"]
    page.tab.keyboard.press("y")
    page.tab.wait_for_selector("text=done in 8 s")
    page.tab.keyboard.press("u")
    page.tab.wait_for_selector("text=nothing was changed")
    dismissed = [one for one in page.home.events()[before:] if one["tag"].startswith("finding.")]
    assert dismissed == []
    assert page.tab.locator(".inbox [data-item]:visible").count() == 1


def test_a_memory_is_fixed_and_that_is_undone(page: Open) -> None:
    memory_id = page.store("We deploy on Mondays, said somebody")
    page.go(f"/page/memory/{memory_id}")
    page.tab.click("text=Fix what it says")
    page.tab.fill("#content", "We deploy on Tuesdays, said somebody else")
    page.tab.click("form[data-change] button")
    page.tab.wait_for_selector("h1:has-text('Tuesdays')")
    page.tab.wait_for_selector("text=1 earlier wording")
    page.tab.keyboard.press("u")
    page.tab.wait_for_selector("h1:has-text('Mondays')")


def test_the_slider_asks_as_things_stood_then(page: Open) -> None:
    page.store("The moment before the eel")
    later = page.store("The moment after the eel")
    page.go("/page/search?text=moment+eel&mode=keyword")
    page.tab.wait_for_selector(f".results a[href='/page/memory/{later}']")
    page.tab.locator("#as_of").focus()
    page.tab.keyboard.press("Home")
    page.tab.wait_for_url("**as_of=1**")
    page.tab.wait_for_selector("text=Nothing is answered")
    assert page.tab.locator("#as_of_told").inner_text().startswith("position 1")


def test_hostile_memories_are_text_on_every_page_and_nothing_runs(page: Open) -> None:
    ids = [
        page.store(text, project="<b>hostile\u202e</b>", tags=["<u>tag</u>"], probation=True)
        for text in (*HOSTILE, "wide " * 50_000)
    ]
    for path in (*PAGES, "search?text=memory&mode=keyword", *(f"memory/{one}" for one in ids)):
        page.go(f"/page/{path}")
        assert page.tab.title().endswith(" omegad")
        assert page.tab.locator("main script, main img, main u, main iframe").count() == 0
    page.go(f"/page/memory/{ids[0]}")
    assert "<script>document.title='owned'</script>" in page.tab.locator("main h1").inner_text()
    page.go(f"/page/memory/{ids[1]}")
    assert "⟨U+202E⟩gnp.tseb⟨U+202C⟩" in page.tab.locator("main h1").inner_text()


def test_each_page_is_had_as_json_too(page: Open) -> None:
    page.go("/page/theses")
    page.tab.click("text=as JSON")
    page.tab.wait_for_selector("pre.json:has-text('thesis.list')")


def test_a_page_whose_process_has_ended_and_one_without_its_token_say_what_to_do(
    served: tuple[Home, str], context: Any
) -> None:
    home, other = served
    memory_id = home.call("memory.store", content="A page is left open", event_type="decision")["memory_id"]
    tab = context.new_page()
    with page_of(home.environ, "--write") as address:
        origin = address.partition("/#")[0]
        tab.goto(f"{origin}/page/memory/{memory_id}")
        tab.wait_for_selector("text=needs its token")
        tab.goto(f"{origin}/page/memory/{memory_id}#t={other.partition('=')[2]}")
        tab.wait_for_selector("text=no longer, valid")
        tab.goto(f"{origin}/page/memory/{memory_id}#{address.partition('#')[2]}")
        tab.wait_for_selector("main:not([aria-busy]) .page")
    tab.click("button.deed[data-key=d]")
    tab.wait_for_selector("#toast >> text=omegad page")
    tab.keyboard.press("1")
    tab.wait_for_selector("main >> text=omegad page")
    tab.close()


def test_what_waits_is_carried_out_where_the_page_is_closed(page: Open) -> None:
    new = page.store("The loft keeps eels for 90 days")
    old = page.store("The loft keeps eels for 30 days")
    page.home.call("memory.link", memory_id=new, target_id=old, edge_type="contradicts")
    page.go("/page/review?kind=contradiction")
    item = page.tab.locator(f".inbox li:has(a[href='/page/memory/{new}'])")
    item.locator("button[data-key=y]").click()
    page.tab.wait_for_selector("text=done in 8 s")
    page.tab.goto("about:blank")
    until(lambda: any(one["tag"].startswith("finding.dismissed") for one in page.home.events()))
