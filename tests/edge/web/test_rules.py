"""Who is answered, tried on a real process with everything that it can serve."""

import http.client
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from omegad.edge.web.rules import BODY_BYTES_MAX, CONTENT_POLICY
from tests.acceptance.conftest import PATIENCE_S
from tests.edge.web.conftest import Site

NOBODY = 65_534
PATHS = ("/", "/memory", "/rpc/system.ping", "/mcp", "/openapi.json", "/nowhere")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "host",
    ["evil.test", "evil.test:PORT", "127.0.0.1", "127.0.0.1:1", "127.0.0.1:PORT.evil.test", "[::2]:PORT"],
)
def test_a_name_that_was_made_to_lead_here_is_not_served(site: Site, host: str, path: str) -> None:
    """It is refused with the token and without, before anything else."""
    named = host.replace("PORT", str(site.port))
    for verb in ("GET", "POST"):
        for token in (site.own["authorization"], None):
            headers = {"host": named, "authorization": token}
            assert site.refusal(verb, path, headers=headers) == (421, "refused")


@pytest.mark.parametrize("host", ["127.0.0.1:PORT", "localhost:PORT", "LocalHost:PORT", "[::1]:PORT"])
def test_the_names_of_this_machine_are_served(site: Site, host: str) -> None:
    assert site.ask("GET", "/memory", {"host": host.replace("PORT", str(site.port))}).status_code == 200


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "origin": "http://127.0.0.1:PORT"},
        {"origin": "https://evil.test"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": "null"},
        {"origin": "https://127.0.0.1:PORT"},
        {"origin": "http://127.0.0.1:PORT.evil.test"},
    ],
    ids=str,
)
def test_a_page_of_another_site_is_answered_nothing(site: Site, headers: dict[str, str], path: str) -> None:
    sent = {name: value.replace("PORT", str(site.port)) for name, value in headers.items()}
    for verb in ("GET", "POST", "OPTIONS"):
        assert site.refusal(verb, path, headers=sent) == (403, "refused")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"sec-fetch-site": "none"},
        {"sec-fetch-site": "same-origin", "origin": "null"},  # as browsers send it of a page without referrer
        {"origin": "http://127.0.0.1:PORT"},
    ],
    ids=str,
)
def test_ones_own_page_and_programs_are_answered(site: Site, headers: dict[str, str]) -> None:
    sent = {name: value.replace("PORT", str(site.port)) for name, value in headers.items()}
    assert site.ask("POST", "/rpc/system.ping", sent).status_code == 200


def test_a_link_on_another_page_leads_to_the_frame_of_ours_and_to_nothing_else(site: Site) -> None:
    """As the file does that the browser is opened with; no frame, image or script may do the same."""
    tab = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert site.ask("GET", "/", {**tab, "authorization": None}).status_code == 200
    for changed in (
        {"sec-fetch-dest": "iframe"},
        {"sec-fetch-dest": "empty", "sec-fetch-mode": "no-cors"},
        {"host": "evil.test"},
    ):
        assert site.ask("GET", "/", {**tab, **changed, "authorization": None}).status_code in {403, 421}
    for verb, path in (("GET", "/memory"), ("POST", "/rpc/system.ping"), ("POST", "/")):
        assert site.refusal(verb, path, headers=tab) == (403, "refused")


@pytest.mark.parametrize(
    "shown",
    [None, "", "Bearer", "Bearer x", "Basic TOKEN", "TOKEN", "Bearer TOKENx", "Bearer OKEN", "Bearer tOKEN"],
)
def test_who_does_not_show_the_token_is_shown_nothing(site: Site, shown: str | None) -> None:
    other = ("b" if site.token[0] == "a" else "a") + site.token[1:]
    said = {"tOKEN": other, "TOKEN": site.token, "OKEN": site.token[1:]}
    name = next((one for one in said if shown and one in shown), "")
    headers = {"authorization": shown and shown.replace(name, said.get(name, ""))}
    for verb, path in (
        ("GET", "/memory"),
        ("POST", "/rpc/system.ping"),
        ("POST", "/mcp"),
        ("GET", "/openapi.json"),
        ("DELETE", "/memory/mem-1"),
    ):
        answer = site.ask(verb, path, headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert site.refusal("GET", "/nowhere", headers=headers) == (404, "refused")
    assert site.ask("GET", "/", headers).status_code == 200  # the frame of the page, which shows nothing


def test_a_token_in_a_cookie_or_in_the_address_counts_for_nothing(site: Site) -> None:
    """Cookies are sent to every port of a host, and addresses are kept in histories."""
    for headers, path in (
        ({"cookie": f"token={site.token}; authorization=Bearer {site.token}"}, "/memory"),
        ({}, f"/memory?token={site.token}"),
        ({}, f"/memory?authorization=Bearer%20{site.token}"),
    ):
        answer = site.ask("GET", path, {**headers, "authorization": None})
        assert answer.status_code == 401
    assert "set-cookie" not in site.ask("GET", "/memory").headers


def test_another_user_without_the_token_gets_nothing(site: Site) -> None:
    script = f"""
import os, socket
if os.geteuid() == 0:
    os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
    try:
        os.open({str(site.home.paths.web_token)!r}, os.O_RDONLY)
    except PermissionError:
        pass
    else:
        raise SystemExit("the token can be read")
for line in ("GET /memory", "POST /rpc/system.shutdown", "POST /mcp"):
    with socket.socket() as one:
        one.settimeout(30)
        one.connect(("127.0.0.1", {site.port}))
        one.sendall(f"{{line}} HTTP/1.1\\r\\nHost: {site.at}\\r\\nAuthorization: Bearer guessed\\r\\n\\r\\n".encode())
        print(one.recv(100)[9:12].decode())
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["401"] * 3
    assert site.call("system.ping")["ok"]


def test_every_answer_carries_the_headers_that_keep_it_apart(site: Site) -> None:
    for verb, path, headers in (
        ("GET", "/", {}),
        ("GET", "/memory", {}),
        ("GET", "/memory/mem-none", {}),
        ("GET", "/nowhere", {}),
        ("GET", "/memory", {"host": "evil.test"}),
        ("GET", "/memory", {"authorization": None}),
        ("PATCH", "/memory", {}),
        ("POST", "/mcp", {}),
    ):
        answer = site.ask(verb, path, headers)
        assert answer.headers["content-security-policy"] == CONTENT_POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in answer.headers
        assert "server" not in answer.headers


def test_what_is_too_large_is_refused_whether_it_says_so_or_not(site: Site) -> None:
    body = b'{"content": "' + b"x" * BODY_BYTES_MAX + b'"}'
    for path in ("/rpc/memory.store", "/mcp"):
        assert site.refusal("POST", path, content=body) == (413, "refused")

        def parts() -> Iterator[bytes]:
            yield from (body[at : at + 65_536] for at in range(0, len(body), 65_536))

        assert site.refusal("POST", path, content=parts()) == (413, "refused")
    assert site.refusal("GET", "/memory?text=" + "x" * 20_000) == (431, "refused")
    assert site.call("system.ping")["ok"]


def test_each_request_of_several_in_one_piece_is_judged_by_itself(site: Site) -> None:
    """What shows the token says nothing of what comes behind it, nor of what is for everybody."""

    def head(path: str, *lines: str) -> bytes:
        return "\r\n".join([f"GET {path} HTTP/1.1", f"Host: {site.at}", *lines, "\r\n"]).encode()

    own = f"Authorization: Bearer {site.token}"
    for first, second, statuses in (
        (head("/memory", own), head("/memory", own), [b"200", b"200"]),
        (head("/memory", own), head("/memory"), [b"200", b"401"]),
        (head("/"), head("/memory"), [b"200", b"401"]),
        (head("/"), head("/memory", own), [b"200", b"200"]),
        (head("/memory", own), head("/memory", own, "Sec-Fetch-Site: cross-site"), [b"200", b"403"]),
        (head("/memory", own), head("/memory", own).replace(b"127.0.0.1", b"evil.test"), [b"200", b"421"]),
    ):
        last = head("/memory", own, "Connection: close")
        answered = site.say(first + second + last)
        found = [part[:3] for part in answered.split(b"HTTP/1.1 ")[1:]]
        assert found[:2] == statuses
        assert found[2:] == ([b"200"] if statuses[1] == b"200" else [])


@pytest.mark.parametrize(
    "lines",
    [
        ["Host: 127.0.0.1:PORT", " evil.test"],
        ["Host: 127.0.0.1:PORT", "Host: evil.test"],
        ["Host: evil.test", "Host: 127.0.0.1:PORT"],
        ["Host : 127.0.0.1:PORT"],
        [],
    ],
    ids=str,
)
def test_a_host_that_can_be_read_two_ways_is_no_host(site: Site, lines: list[str]) -> None:
    sent = [line.replace("PORT", str(site.port)) for line in lines]
    said = ["GET /memory HTTP/1.1", *sent, f"Authorization: Bearer {site.token}", "\r\n"]
    assert site.say("\r\n".join(said).encode())[9:12] in {b"400", b"421"}


@pytest.mark.parametrize(
    "path",
    ["/static/../memory", "/static/%2e%2e/memory", "//memory", "/./memory", "/%2e/memory", "/;/memory"],
)
def test_no_way_round_leads_to_what_needs_the_token(site: Site, path: str) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", site.port, timeout=PATIENCE_S)) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        assert answer.status in {401, 404}
        assert "memories" not in json.loads(answer.read())


def test_the_head_of_events_that_do_not_end_is_answered_whole(site: Site) -> None:
    answer = site.say(
        f"HEAD /data/events?after=0 HTTP/1.1\r\nHost: {site.at}\r\nAuthorization: Bearer {site.token}\r\n"
        "Connection: close\r\n\r\n".encode()
    )
    assert answer.startswith(b"HTTP/1.1 200 ")


def test_who_sends_half_a_head_is_told_that_the_rest_did_not_come(site: Site) -> None:
    """After ten seconds, though bytes go on coming."""
    with socket.create_connection(("127.0.0.1", site.port), PATIENCE_S) as connection:
        connection.sendall(f"GET /memory HTTP/1.1\r\nHost: {site.at}\r\nX: ".encode())
        connection.settimeout(1.0)
        answer = b""
        while not answer:
            connection.sendall(b"x")
            with suppress(TimeoutError):
                answer = connection.recv(65_536)
    assert answer.startswith(b"HTTP/1.1 408 ")
