"""The verbs that start the process that speaks HTTP."""

import asyncio
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import anyio
import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from omegad.edge.web.asking import Asking
from omegad.edge.web.serving import Part, Web
from tests.acceptance.conftest import PATIENCE_S, Home, homes_in, until
from tests.edge.web.conftest import Host, Site, free_port, listens, serving

OPENED = re.compile(r"http://127\.0\.0\.1:(\d+)/#t=([\w-]{43})")

IDLE_S = 2.0


def run(home: Home, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "omegad", *words]
    return subprocess.run(
        command, env=home.environ, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )


@contextmanager
def begun(home: Home, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Run a verb until the block ends."""
    command = [sys.executable, "-m", "omegad", *words]
    with subprocess.Popen(command, env=home.environ, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def test_nothing_is_served_until_it_is_said_what(tmp_path: Path) -> None:
    with homes_in(tmp_path) as make:
        home = make()
        refused = run(home, "web", "--port", str(free_port()))
        assert refused.returncode == 2
        assert 'web = ["page", "api", "mcp"]' in refused.stderr
        home.paths.config.write_text('web = ["pages"]\n', encoding="utf-8")
        assert "web[0] cannot be 'pages': it is one of 'page', 'api', 'mcp'" in run(home, "web").stderr
        assert not home.paths.lock.exists()


def test_no_more_is_served_than_is_switched_on(tmp_path: Path) -> None:
    with homes_in(tmp_path) as make:
        home = make().start()
        for parts, served in (
            (["api"], {"/memory": 200, "/": 404, "/mcp": 404}),
            (["page"], {"/memory": 404, "/": 200, "/mcp": 404, "/rpc/system.ping": 404}),
            (["mcp"], {"/memory": 404, "/": 404, "/mcp": 400}),
        ):
            with serving(home, *parts) as site:
                assert {path: site.ask("GET", path).status_code for path in served} == served


def test_a_home_has_one_such_process_and_the_next_takes_its_place(tmp_path: Path) -> None:
    with homes_in(tmp_path) as make:
        home = make().start()
        with serving(home, "api") as site:
            assert site.call("system.ping")["ok"]
            port = free_port()
            with begun(home, "web", "--port", str(port)):
                until(lambda: listens(port))
                until(lambda: not listens(site.port))
                assert run(home, "web", "--token").stdout == f"{site.token}\n"


def test_who_tells_it_to_end_again_while_it_does_changes_nothing(tmp_path: Path) -> None:
    with homes_in(tmp_path) as make:
        home, port = make().start(), free_port()
        home.paths.config.write_text('web = ["mcp"]\n', encoding="utf-8")
        with begun(home, "web", "--port", str(port)) as served:
            until(lambda: listens(port))
            httpx2.get(f"http://127.0.0.1:{port}/", timeout=PATIENCE_S)  # it listens before it is loaded
            until_s = time.monotonic() + PATIENCE_S
            while served.poll() is None and time.monotonic() < until_s:
                served.terminate()
            assert served.returncode == 0


def test_the_page_has_a_token_of_its_own_which_is_in_no_request_and_no_file(tmp_path: Path) -> None:
    with homes_in(tmp_path) as make:
        home = make().start()
        with serving(home, "api") as site, begun(home, "page", "--no-browser") as page:
            opened = OPENED.fullmatch(first_line(page))
            assert opened
            with closing(Site(home, int(opened[1]), opened[2])) as shown:
                assert shown.ask("GET", "/").status_code == 200
                assert shown.ask("GET", "/", {"authorization": None}).status_code == 200
                assert shown.refusal("GET", "/rpc/system.ping")[0] == 404  # no more than the page
                assert site.ask("GET", "/memory", shown.own).status_code == 401
            assert listens(site.port)  # beside which it is served
            held = [path for path in home.path.rglob("*") if path.is_file()]
            assert held
            assert [path for path in held if opened[2].encode() in path.read_bytes()] == []
            page.terminate()
            assert page.wait(PATIENCE_S) == 0


def test_the_browser_is_given_a_file_that_leads_to_the_page_because_arguments_are_public(
    tmp_path: Path,
) -> None:
    given, browser = tmp_path / "given", tmp_path / "browser"
    script = f'#!/bin/sh\n(printf "%s " "$1"; cat "${{1#file://}}") > {given}.new && mv {given}.new {given}\n'
    browser.write_text(script, encoding="ascii")
    browser.chmod(0o700)
    with homes_in(tmp_path) as make:
        home = make().start()
        home.environ["BROWSER"] = f"{browser} %s"
        with begun(home, "page") as page:
            url = first_line(page)
            until(given.exists)
            address, _, text = given.read_text().partition(" ")
            (file,) = home.path.glob("*.html")
            assert address == file.as_uri()
            assert file.stat().st_mode & 0o777 == 0o600
            assert f"url={url}" in text
        assert list(home.path.glob("*.html")) == []


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with homes_in(tmp_path) as make, socket.create_server(("127.0.0.1", 0)) as taken:
        refused = run(make(), "page", "--no-browser", "--port", str(taken.getsockname()[1]))
        assert refused.returncode == 1
        assert "--port N" in refused.stderr


def test_a_daemon_that_ends_is_started_for_the_next_request(host: Host) -> None:
    with serving(host.home, "api") as site:
        before = site.call("system.ping")["pid"]
        host.kill_daemon()
        assert site.call("system.ping")["pid"] != before
        stored = site.call("memory.store", content="Stored after it had ended")
        assert site.ask("GET", f"/memory/{stored['memory_id']}").status_code == 200


async def test_it_ends_after_so_long_without_a_request_of_the_owner(tmp_path: Path) -> None:
    """Whom it waits for as long as something is answered to; strangers keep nothing open."""
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    is_read, token = anyio.Event(), "t" * 43

    async def answer(request: Request) -> PlainTextResponse:
        if request.query_params:
            await is_read.wait()
        return PlainTextResponse("answered")

    part = Part([Route("/", answer)], frozenset({"/"}))
    web = Web(listener, token, Asking(tmp_path / "none", lambda: None, "test"), [part])
    with anyio.fail_after(PATIENCE_S):
        async with httpx2.AsyncClient(timeout=PATIENCE_S) as client, anyio.create_task_group() as tasks:
            tasks.start_soon(web.serve, asyncio.Event(), IDLE_S)
            headers = {"authorization": f"Bearer {token}"}
            tasks.start_soon(partial(client.get, f"{url}?slowly", headers=headers))
            await anyio.sleep(2 * IDLE_S)
            assert (await client.get(url)).status_code == 200
            is_read.set()
            while await answers(client, url):
                pass


async def answers(client: httpx2.AsyncClient, url: str) -> bool:
    await anyio.sleep(IDLE_S / 20)
    try:
        return (await client.get(url)).status_code == 200
    except httpx2.TransportError:
        return False


@pytest.mark.parametrize("verb", ["web", "page"])
def test_what_is_missing_is_named_with_the_extra_that_brings_it(tmp_path: Path, verb: str) -> None:
    script = f"""
import sys
from importlib import util
found = util.find_spec
util.find_spec = lambda name, *more: None if name == "uvicorn" else found(name, *more)
from omegad.edge.cli import main
sys.exit(main([{verb!r}]))
"""
    with homes_in(tmp_path) as make:
        home = make()
        home.paths.config.write_text('web = ["api"]\n', encoding="utf-8")
        ran = subprocess.run(
            [sys.executable, "-c", script], env=home.environ, capture_output=True, text=True, check=False
        )
    assert ran.returncode == 1
    assert "uvicorn" in ran.stderr
    assert f"{sys.executable} -m pip install 'omegad[web]'" in ran.stderr
