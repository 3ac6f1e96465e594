"""No bytes on the socket crash the daemon, keep others waiting or grow its memory without bound; whatever
can be answered is, once.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest

from omegad.catalog.methods import SERVED as METHODS
from omegad.runtime.errors import OmegadError
from tests.acceptance.conftest import PATIENCE_S, Home, Raw, homes_in, refusal, until
from tests.fuzz.values import ANSWERED, METHOD, PARAMS, PARSE, REQUEST, RIGHT, VALUES

MEGABYTE = 1024 * 1024
CONTENT_BYTES_MAX = 256 * 1024
PING_EVERY_S = 0.02
PING_WITHIN_S = 30.0  # of a busy machine; a daemon that is kept from answering is kept for longer
REFUSED_WITHIN_S = 20.0  # to work on what is refused takes half a minute
AT_ONCE = 32
RSS_GROWTH_MAX = 100 * MEGABYTE  # of one test


class Pinger(threading.Thread):
    """A client that goes about its business beside everything."""

    def __init__(self, home: Home) -> None:
        super().__init__(daemon=True)
        self.pings = 0
        self.failures: list[OmegadError] = []
        self._home = home
        self._is_over = threading.Event()

    def run(self) -> None:
        while not self._is_over.wait(PING_EVERY_S):
            try:
                with self._home.client(timeout_s=PING_WITHIN_S) as client:
                    while not self._is_over.wait(PING_EVERY_S):
                        assert client.call("system.ping")["ok"]
                        self.pings += 1
            except OmegadError as error:
                self.failures.append(error)

    def check(self) -> None:
        failures, self.failures = self.failures, []
        assert failures == []

    def stop(self) -> None:
        self._is_over.set()
        self.join(PATIENCE_S)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """One daemon for all of it: what one test does to it must not matter to the next."""
    with homes_in(tmp_path_factory.mktemp("bad")) as make:
        yield make().start()


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """Another for what is taken as well as refused, whose views are proved in the end."""
    with homes_in(tmp_path_factory.mktemp("other")) as make:
        yield (home := make().start())
        home.check()


@pytest.fixture(scope="module")
def pinger(daemon: Home) -> Iterator[Pinger]:
    pinger = Pinger(daemon)
    pinger.start()
    until(lambda: pinger.pings > 0)
    yield pinger
    pinger.stop()
    pinger.check()


@pytest.fixture(autouse=True)
def _nobody_else_notices(daemon: Home, pinger: Pinger) -> Iterator[None]:
    before = daemon.call("system.status")["rss_bytes"]
    yield
    pinger.check()
    status = daemon.call("system.status")
    assert status["pid"] == daemon.process.pid
    assert status["rss_bytes"] - before < RSS_GROWTH_MAX
    assert [view for view in status["views"].values() if view["state"] == "failed"] == []


NESTED = b"[" * 200_000 + b"]" * 200_000


@pytest.mark.parametrize(
    ("line", "code", "answered_id"),
    [
        (b"this is not JSON", PARSE, None),
        (b'{"jsonrpc":"2.0","id":7,"method":"system.ping"', PARSE, None),
        (b'{"jsonrpc":"2.0","id":7,"method":"system.ping"}}', PARSE, None),
        (b'{"jsonrpc":"2.0","id":7,"method":"system.ping","params":{"a":\0}}', PARSE, None),
        (b"\xff\xfe\x00", PARSE, None),
        (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":7,"method":"system.ping"}', PARSE, None),
        (b'{"jsonrpc":"2.0","id":7,"method":"system.ping","params":{"a":NaN}}', PARSE, None),
        (NESTED, PARSE, None),
        (b'{"jsonrpc":"2.0","id":7,"method":"memory.store","params":{"content":"caf\xe9"}}', PARSE, None),
        (b'{"jsonrpc":"2.0","id":7,"method":"system.ping","params":' + NESTED + b"}", PARSE, 7),
        (
            b'{"jsonrpc":"2.0","id":7,"method":"tool.record","params":{"tool_input":' + NESTED + b"}}",
            PARSE,
            7,
        ),
        (b"null", REQUEST, None),
        (b"17", REQUEST, None),
        (b'"system.ping"', REQUEST, None),
        (b"{}", REQUEST, None),
        (b"[]", REQUEST, None),
        (b"[" + b",".join([b"1"] * 101) + b"]", REQUEST, None),
        (b'{"id":7,"method":"system.ping"}', REQUEST, 7),
        (b'{"jsonrpc":"1.0","id":7,"method":"system.ping"}', REQUEST, 7),
        (b'{"jsonrpc":"2.0","id":7}', REQUEST, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":5}', REQUEST, 7),
        (b'{"jsonrpc":"2.0","id":{},"method":"system.ping"}', REQUEST, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"system.ping"}', REQUEST, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"system.ping"}', REQUEST, None),
        (b'{"jsonrpc":"2.0","id":7,"method":"system.ping","params":"text"}', REQUEST, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"system.ping","params":5}', REQUEST, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"memory.forget"}', METHOD, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":""}', METHOD, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"memory.store\\u0000"}', METHOD, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"memory.store","params":["text"]}', PARAMS, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"system.ping","params":[]}', PARAMS, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"rpc.cancel","params":{}}', PARAMS, 7),
    ],
    ids=lambda value: repr(value[:60]) if isinstance(value, bytes) else None,
)
def test_a_line_that_is_no_request_gets_one_answer_that_says_so(
    daemon: Home, line: bytes, code: int, answered_id: int | None
) -> None:
    with daemon.raw() as connection:
        answer = connection.say(line)
    assert (answer["error"]["code"], answer["id"]) == (code, answered_id)
    assert answer["error"]["message"]
    assert answer["error"]["data"]["hint"]


def test_a_line_of_20_mb_is_refused_and_the_connection_lives_on(daemon: Home) -> None:
    line = (
        b'{"jsonrpc":"2.0","id":7,"method":"memory.store","params":{"content":"'
        + b"a" * (20 * MEGABYTE)
        + b'"}}'
    )
    with daemon.raw() as connection:
        for _ in range(5):
            answer = connection.say(line)
            assert (answer["error"]["code"], answer["id"]) == (REQUEST, None)


def test_lines_just_short_of_the_limit_leave_no_memory_taken(daemon: Home) -> None:
    line = b'{"content":"' + b"a" * (15 * MEGABYTE) + b'"}'
    with daemon.raw() as connection:
        for _ in range(RSS_GROWTH_MAX // len(line) + 2):
            assert connection.ask("memory.store", line)["error"]["code"] == PARAMS


def test_a_batch_is_answered_as_one_whatever_is_in_it(daemon: Home) -> None:
    entries = [
        b"1",
        b'{"jsonrpc":"2.0","id":1,"method":"system.ping"}',
        b'{"jsonrpc":"2.0","method":"no.such"}',
        b'{"jsonrpc":"2.0","id":2,"method":"x"}',
    ]
    with daemon.raw() as connection:
        answers = connection.say(b"[" + b",".join(entries) + b"]")
    assert sorted((str(answer["id"]), answer.get("error", {}).get("code")) for answer in answers) == [
        ("1", None),
        ("2", METHOD),
        ("None", REQUEST),
    ]


@pytest.mark.parametrize(
    ("method", "params", "named"),
    [
        ("memory.store", {}, "content"),
        ("memory.store", {"content": 5}, "content"),
        ("memory.store", {"content": None}, "content"),
        ("memory.store", {"content": ""}, "content"),
        ("memory.store", {"content": " \n\t"}, "content"),
        ("memory.store", {"content": "a", "colour": "red"}, "colour"),
        ("memory.store", {"content": "a", "tags": [f"tag{number}" for number in range(33)]}, "tags"),
        ("memory.store", {"content": "a", "tags": ["x" * 65]}, "tags"),
        ("memory.store", {"content": "a", "tags": "red"}, "tags"),
        ("memory.store", {"content": "a", "priority": 6}, "priority"),
        ("memory.store", {"content": "a", "priority": "3"}, "priority"),
        ("memory.store", {"content": "a", "priority": 2.5}, "priority"),
        ("memory.store", {"content": "a", "confidence": 1.01}, "confidence"),
        ("memory.store", {"content": "a", "ttl_seconds": 0}, "ttl_seconds"),
        ("memory.store", {"content": "a", "metadata": []}, "metadata"),
        ("memory.store", {"content": "a", "metadata": {"a": "x" * 16_384}}, "metadata"),
        ("memory.store", {"content": "a", "referenced_date": "yesterday"}, "referenced_date"),
        ("memory.store", {"content": "a", "referenced_date": "2026-02-30"}, "referenced_date"),
        ("memory.store", {"content": "a", "referenced_date": "2026-01-31T10:00:00"}, "referenced_date"),
        ("memory.store", {"content": "a", "referenced_date": 1_700_000_000}, "referenced_date"),
        ("memory.store", {"content": "a", "event_type": "decisoin"}, "decisoin"),
        ("memory.store", {"content": "a", "session_id": ""}, "session_id"),
        ("memory.store", {"content": "a", "session_id": "s" * 257}, "session_id"),
        ("memory.store", {"content": "a", "ack": "maybe"}, "ack"),
        ("memory.query", {}, "text"),
        ("memory.query", {"text": ""}, "text"),
        ("memory.query", {"text": "a" * 8_193}, "text"),
        ("memory.query", {"text": "a", "limit": 0}, "limit"),
        ("memory.query", {"text": "a", "limit": 101}, "limit"),
        ("memory.query", {"text": "a", "mode": "fuzzy"}, "mode"),
        ("memory.query", {"text": "a", "since": "tomorrow"}, "since"),
        ("memory.query", {"text": "a", "until": "2026-13-01"}, "until"),
        ("memory.query", {"text": "a", "event_types": ["fact"]}, "fact"),
        ("memory.query", {"text": "a", "min_position": 10**9}, "min_position"),
        ("upkeep.undo", {"done_at": 10**30}, "done_at"),
        ("memory.list", {"cursor": "page two"}, "page two"),
        ("memory.list", {"cursor": "-1"}, "-1"),
        ("memory.list", {"limit": 1_001}, "limit"),
        ("memory.get", {}, "memory_id"),
        ("memory.get", {"memory_id": 5}, "memory_id"),
        ("memory.delete", {"memory_id": ""}, "memory_id"),
        ("tool.record", {"tool_name": "Bash"}, "session_id"),
        ("tool.record", {"session_id": "s", "tool_name": "Bash", "status": "fine"}, "status"),
        ("tool.record", {"session_id": "s", "tool_name": "Bash", "duration_ms": -1}, "duration_ms"),
        ("log.read", {"after": -1}, "after"),
        ("log.read", {"limit": 10_001}, "limit"),
        ("log.follow", {"after": 10**9}, str(10**9)),
        ("views.rebuild", {"name": "everything"}, "everything"),
        ("views.verify", {"name": "everything"}, "everything"),
        ("system.hello", {"protocol": 2}, "protocol"),
        ("system.ping", {"loudly": True}, "loudly"),
    ],
    ids=lambda value: json.dumps(value)[:60] if isinstance(value, dict) else None,
)
def test_a_wrong_parameter_is_refused_by_name_and_nothing_is_written(
    daemon: Home, method: str, params: dict[str, Any], named: str
) -> None:
    head = _head(daemon)
    error = refusal(lambda: daemon.call(method, **params))
    assert (error.code, error.kind) == (PARAMS, "invalid")
    assert named in str(error)
    assert error.hint
    assert _head(daemon) == head


def _head(home: Home) -> int:
    return int(home.call("system.status")["log"]["head"])


def test_clients_that_give_no_name_share_their_request_ids_and_a_conflict_says_so(daemon: Home) -> None:
    sent = {"content": "The pier is closed on Mondays", "request_id": "pier-1"}
    first = daemon.call("memory.store", **sent)
    assert daemon.call("memory.store", **sent) == first, (
        "whoever tries again does so on a connection of its own"
    )
    with daemon.client(name="somebody") as client:
        assert client.call("memory.store", **sent)["outcome"] == "duplicate"
    refused = refusal(lambda: daemon.call("memory.store", content="The pier is open", request_id="pier-1"))
    assert refused.kind == "conflict"
    assert "system.hello" in refused.hint


def test_an_unknown_type_is_refused_with_the_types_there_are(daemon: Home) -> None:
    error = refusal(lambda: daemon.call("memory.store", content="a", event_type="decisoin"))
    assert "did you mean 'decision'?" in error.hint
    assert all(name in error.hint for name in ("memory", "lesson_learned", "checkpoint", "constraint"))


def test_an_unknown_view_is_refused_with_the_views_there_are(daemon: Home) -> None:
    assert "memories" in refusal(lambda: daemon.call("views.rebuild", name="everything")).hint


@pytest.mark.parametrize("letter", ["a", "\N{SNOWMAN}", "\N{GRINNING FACE}"])
def test_content_one_byte_over_the_limit_is_refused_and_at_the_limit_taken(daemon: Home, letter: str) -> None:
    size = len(letter.encode())
    most = letter * (CONTENT_BYTES_MAX // size) + "b" * (CONTENT_BYTES_MAX % size)
    head = _head(daemon)
    assert str(CONTENT_BYTES_MAX) in str(refusal(lambda: daemon.call("memory.store", content=most + "a")))
    assert _head(daemon) == head
    stored = daemon.call("memory.store", content=most)
    assert daemon.call("memory.get", memory_id=stored["memory_id"])["content"] == most


def test_content_of_10_mb_is_refused_before_any_work(daemon: Home) -> None:
    content = "words of all kinds " * (10 * MEGABYTE // 19)
    started = time.monotonic()
    assert refusal(lambda: daemon.call("memory.store", content=content)).code == PARAMS
    assert time.monotonic() - started < REFUSED_WITHIN_S


@pytest.mark.parametrize(
    "content",
    [
        "a nul \0 in the middle of nulcontent",
        "\0nulcontent at the start",
        "nulcontent at the end\0",
        "nulcontent\0\0twice",
    ],
)
def test_content_with_nul_bytes_is_stored_whole_and_found(daemon: Home, content: str) -> None:
    stored = daemon.call(
        "memory.store", content=content, tags=["nul\0tag"], metadata={"nul\0": "\0"}, project="nul\0project"
    )
    found = daemon.call("memory.get", memory_id=stored["memory_id"])
    assert (found["content"], found["tags"], found["metadata"], found["project"]) == (
        content,
        ["nul\0tag"],
        {"nul\0": "\0"},
        "nul\0project",
    )
    results = daemon.call("memory.query", text="nulcontent", mode="keyword", limit=50)["results"]
    assert content in [result["content"] for result in results]
    listed = daemon.call("memory.list", project="nul\0project", tags=["nul\0tag"])["memories"]
    assert content in [memory["content"] for memory in listed]
    daemon.call("memory.query", text="\0")


@pytest.mark.parametrize("half", [b"\\ud83d", b"\\udE00", b"\xed\xa0\xbd"], ids=repr)
def test_text_that_was_cut_inside_a_character_is_stored_without_the_half_of_it(
    daemon: Home, half: bytes
) -> None:
    text = b'"%d cut here: %s"' % (hash(half), half)
    with daemon.raw() as connection:
        stored = connection.ask(
            "memory.store", b'{"content":%s,"tags":["cut %s"],"metadata":{"said":%s}}' % (text, half, text)
        )["result"]
    found = daemon.call("memory.get", memory_id=stored["memory_id"])
    assert found["content"].endswith("cut here: \N{REPLACEMENT CHARACTER}")
    assert (found["tags"], found["metadata"]) == (
        ["cut \N{REPLACEMENT CHARACTER}"],
        {"said": found["content"]},
    )


HUGE = b"9" * 40


@pytest.mark.parametrize(
    "params",
    [
        b'{"content":"a huge time to live","ttl_seconds":%s}' % HUGE,
        b'{"content":"a long time to live","ttl_seconds":9223372036854775807}',
        b'{"content":"a longer time to live","ttl_seconds":9223372036854775808}',
        b'{"content":"huge metadata","request_id":"huge","metadata":{"a":[%s,-%s]}}' % (HUGE, HUGE),
        b'{"content":"digits without end","metadata":{"a":%s}}' % (b"9" * 5_000),
        b'{"content":"a huge exponent","metadata":{"a":1e400}}',
        b'{"content":"the end of time","referenced_date":"9999-12-31T23:59:59.999999Z"}',
        b'{"content":"beyond the end of time","referenced_date":"9999-12-31T23:59:59-14:00"}',
        b'{"content":"before time","referenced_date":"0001-01-01T00:00:00+14:00"}',
    ],
    ids=lambda params: repr(params[:70]),
)
def test_a_memory_beyond_all_measure_is_taken_or_refused_and_spoils_no_view(
    other: Home, params: bytes
) -> None:
    with other.raw() as connection:
        answer = connection.ask("memory.store", params)
    assert "result" in answer or answer["error"]["code"] in ANSWERED, answer
    _nothing_is_spoilt(other)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("memory.query", b'{"text":"huge","limit":%s}' % HUGE),
        ("memory.query", b'{"text":"huge","min_position":%s}' % HUGE),
        (
            "memory.query",
            b'{"text":"time","since":"9999-12-31T23:59:59.999999Z","until":"0001-01-01T00:00:00+14:00"}',
        ),
        ("memory.list", b'{"cursor":"%s"}' % HUGE),
        ("memory.list", b'{"cursor":"%s"}' % (b"9" * 5_000)),
        ("memory.list", '{"cursor":"²"}'.encode()),
        ("tool.record", b'{"session_id":"s","tool_name":"t","tool_input":%s,"result":[-%s]}' % (HUGE, HUGE)),
        ("tool.record", b'{"session_id":"s","tool_name":"t","duration_ms":%s}' % HUGE),
        ("log.read", b'{"after":%s}' % HUGE),
        ("log.follow", b'{"after":%s}' % HUGE),
        ("views.verify", b'{"progress_token":%s,"name":"no such view"}' % HUGE),
        ("system.hello", b'{"protocol":%s}' % (b"9" * 4_000)),
        ("rpc.cancel", b'{"id":%s}' % HUGE),
    ],
    ids=lambda value: repr(value[:70]) if isinstance(value, bytes) else None,
)
def test_a_question_beyond_all_measure_has_an_answer(daemon: Home, method: str, params: bytes) -> None:
    with daemon.raw() as connection:
        answer = connection.ask(method, params)
    assert "result" in answer or answer["error"]["code"] in ANSWERED, answer


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")], ids=["arrays", "objects"])
def test_deeply_nested_parameters_are_taken_or_refused_and_spoil_no_view(
    other: Home, opening: bytes, closing: bytes
) -> None:
    for depth in (50, 100, 200, 300, 400, 500, 700, 900, 970, 1_000):
        name, nested = b"%d %d" % (ord(closing), depth), opening * depth + b"1" + closing * depth
        with other.raw() as connection:
            answers = [
                connection.ask("memory.store", b'{"content":"deep %s","metadata":{"a":%s}}' % (name, nested)),
                connection.ask(
                    "memory.store",
                    b'{"content":"deeper %s","request_id":"%s","metadata":{"a":%s}}' % (name, name, nested),
                ),
                connection.ask("tool.record", b'{"session_id":"s","tool_name":"t","tool_input":%s}' % nested),
            ]
        assert [
            (depth, answer)
            for answer in answers
            if "error" in answer and answer["error"]["code"] not in ANSWERED
        ] == []
    _nothing_is_spoilt(other)


def _nothing_is_spoilt(home: Home) -> None:
    stored = home.call(
        "memory.store", content=f"All is well with the views of {home.call('log.read')['head']} events"
    )
    listed = [memory["memory_id"] for memory in home.call("memory.list", limit=1_000)["memories"]]
    assert stored["memory_id"] in listed
    assert all(home.call("memory.get", memory_id=memory_id)["content"] for memory_id in listed[:20])


def test_clients_that_vanish_in_the_middle_of_an_answer_hurt_nobody(daemon: Home) -> None:
    for number in range(30):
        daemon.call("tool.record", session_id="s", tool_name="Read", tool_input=f"{number} " + "x" * 8_000)
    for _ in range(30):
        with daemon.raw() as connection:
            for number in range(20):
                connection.send(
                    b'{"jsonrpc":"2.0","id":%d,"method":"log.read","params":{"limit":1000}}' % number
                )
            connection.connection.recv(100)
    _connections_come_down(daemon)


def test_clients_that_vanish_in_the_middle_of_a_request_hurt_nobody(daemon: Home) -> None:
    head = _head(daemon)
    line = b'{"jsonrpc":"2.0","id":1,"method":"memory.store","params":{"content":"Never said to the end"}}'
    for length in range(0, len(line), 3):
        with daemon.raw() as connection:
            connection.connection.sendall(line[:length])
    _connections_come_down(daemon)
    assert _head(daemon) == head


def test_what_a_client_asked_before_it_stopped_writing_is_answered(daemon: Home) -> None:
    with daemon.raw() as connection:
        connection.connection.sendall(
            b'{"jsonrpc":"2.0","id":1,"method":"system.ping"}\n{"jsonrpc":"2.0","id":2,"method":"system.ping"}'
        )
        connection.finish_writing()
        assert {connection.receive()["id"], connection.receive()["id"]} == {1, 2}
        assert connection.receive() is None


def _connections_come_down(home: Home) -> None:
    """Wait until only the pinger, and whoever asks, is connected."""
    until(
        lambda: home.call("system.status")["connections"] <= 2,
        lambda: f"{home.call('system.status')['connections']} connections are still there",
    )


def test_300_idle_connections_keep_nobody_from_working(daemon: Home) -> None:
    with ExitStack() as stack:
        idle = [stack.enter_context(daemon.raw()) for _ in range(300)]
        until(lambda: daemon.call("system.status")["connections"] >= 300)
        with daemon.client() as client:
            for number in range(50):
                stored = client.call(
                    "memory.store", content=f"Stored beside {number} of 300 idle connections"
                )
                assert (
                    client.call("memory.get", memory_id=stored["memory_id"])["position"] >= stored["position"]
                )
        assert idle[150].ask("system.ping", b"{}")["result"]["ok"]
    _connections_come_down(daemon)


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A daemon whose log is some 240 kB long."""
    with homes_in(tmp_path_factory.mktemp("busy")) as make:
        home = make().start()
        for number in range(30):
            home.call("tool.record", session_id="s", tool_name="Read", tool_input=f"{number} " + "y" * 8_000)
        yield home


@pytest.mark.parametrize("method", ["log.read", "system.ping", "log.follow", "no.such"])
def test_a_client_that_sends_for_ever_and_reads_nothing_is_not_read_for_ever(busy: Home, method: str) -> None:
    line = b'{"jsonrpc":"2.0","id":%%d,"method":"%s","params":{%s}}\n' % (
        method.encode(),
        b'"after":0' if method.startswith("log") else b"",
    )
    before = busy.call("system.status")["rss_bytes"]
    with busy.raw() as connection:
        connection.connection.settimeout(0.5)
        _send_until_it_is_not_read(connection, line)
        with busy.client(timeout_s=PING_WITHIN_S) as client:
            for number in range(50):
                client.call(
                    "memory.store",
                    content=f"Stored beside someone who sends {method} and never reads, {number}",
                )
        assert busy.call("system.status")["rss_bytes"] - before < RSS_GROWTH_MAX / 2
    until(lambda: busy.call("system.status")["connections"] == 1)


def _send_until_it_is_not_read(connection: Raw, line: bytes) -> None:
    for number in range(1_000_000):
        try:
            connection.connection.sendall(line % number)
        except TimeoutError:
            return
    raise AssertionError("whatever is sent is read")


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A daemon whose log is long."""
    with homes_in(tmp_path_factory.mktemp("long")) as make:
        home = make().start()
        with home.raw() as connection:
            for number in range(4_000):
                params = b'{"session_id":"s","tool_name":"Read","tool_input":"%d %s"}' % (
                    number,
                    b"lorem ipsum " * 120,
                )
                connection.send(
                    b'{"jsonrpc":"2.0","id":%d,"method":"tool.record","params":%s}' % (number, params)
                )
                if number % 50 == 49:
                    for _ in range(50):
                        assert "result" in connection.receive()
        yield home


@pytest.mark.parametrize("is_batch", [True, False])
def test_pages_of_the_log_that_nobody_reads_take_little_memory(long: Home, *, is_batch: bool) -> None:
    before = long.call("system.status")["rss_bytes"]
    asked = [
        b'{"jsonrpc":"2.0","id":%d,"method":"log.read","params":{"limit":10000}}' % number
        for number in range(100)
    ]
    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(long.raw()).send(
                b"[" + b",".join(asked) + b"]" if is_batch else b"\n".join(asked)
            )
        largest = 0
        for _ in range(100):
            largest = max(largest, long.call("system.status")["rss_bytes"])
            time.sleep(0.02)
        assert largest - before < RSS_GROWTH_MAX
        page = long.call("log.read", limit=10_000)
        assert 0 < len(page["events"]) < page["head"]
    assert len(long.events()) == page["head"]


def test_more_connections_than_are_served_are_told_so(homes: Callable[..., Home]) -> None:
    home = homes(OMEGAD_CONNECTIONS_MAX="20").start()
    with ExitStack() as stack:
        first = stack.enter_context(home.raw())
        until(lambda: first.ask("system.status", b"{}")["result"]["connections"] == 1)
        for connection in [stack.enter_context(home.raw()) for _ in range(19)]:
            assert connection.ask("system.ping", b"{}")["result"]["ok"]
        with home.raw() as late:
            error = late.receive()["error"]
            assert (error["code"], error["data"]["kind"]) == (-32004, "overloaded")
            assert late.receive() is None
    until(home.answers)


class Questioner:
    """Sends one request after another, and sees that each has one answer and no more."""

    def __init__(self, connection: Raw) -> None:
        self._connection = connection
        self._number = 0

    def ask(self, method: str, params: object) -> Any:
        self._number += 2
        asked, after = self._number, self._number + 1
        self._connection.send(
            json.dumps({"jsonrpc": "2.0", "id": asked, "method": method, "params": params}).encode()
        )
        stop = {
            "jsonrpc": "2.0",
            "id": after,
            "method": "rpc.cancel" if method == "log.follow" else "system.ping",
            "params": {"id": asked},
        }
        if method != "log.follow":
            del stop["params"]
        self._connection.send(json.dumps(stop).encode())
        answers: dict[int | None, Any] = {}
        while len(answers) < 2:
            message = self._connection.receive()
            assert message, "the connection was closed"
            if "method" not in message:
                assert message["id"] in {asked, after, None} - set(answers), message
                answers[message["id"]] = message
        del answers[after]
        return answers.popitem()[1]

    def ask_at_once(self, method: str, those: Sequence[object]) -> Iterator[tuple[object, Any]]:
        """Ask some things before the first of them is answered; return each with its answer."""
        asked = dict(enumerate(those, self._number + 1))
        self._number += len(asked)
        for number, params in asked.items():
            self._connection.send(
                json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()
            )
        while asked:
            message = self._connection.receive()
            assert message, "the connection was closed"
            if "method" not in message:
                yield asked.pop(message["id"]), message
        assert self.ask("system.ping", {})["result"]["ok"]


WANT_MORE = {
    "claim.branch",
    "claim.release",
    "memory.erase",
    "memory.restore",
    "memory.unlink",
    "message.send",
    "receipts.list",
    "reminder.dismiss",
    "share.choose",
    "share.withdraw",
    "thesis.retract",
    "upkeep.undo",
}
WANT_MORE |= {"log.follow"}
"""Methods that want one of several parameters, or something that `_filled` does not make; and one that
ends when it is told to.
"""


def _filled(home: Home, place: str) -> dict[str, object]:
    """Store something of each noun, and return `RIGHT` with the ids of that."""
    one, other = (
        home.call("memory.store", content=f"The {thing} of {place} is lit at night")["memory_id"]
        for thing in ("pier", "lighthouse")
    )
    thesis = home.call("thesis.state", statement=f"The pier of {place} is rebuilt by May")["thesis_id"]
    first, second = (
        home.call("task.create", title=f"Paint the {thing}")["task_id"] for thing in ("pier", "lighthouse")
    )
    home.call("tool.record", session_id=RIGHT["session_id"], tool_name="Read")
    ids = {
        "memory_id": one,
        "target_id": other,
        "superseded_by": other,
        "memory_ids": [one],
        "ids": [one],
        "thesis_id": thesis,
    }
    return (
        RIGHT
        | ids
        | {
            "project": place,
            "team": f"the crew of {place}",
            "person": "Ada",
            "task_id": first,
            "depends_on": second,
            "statement": f"The lamps of {place} are LEDs by June",
        }
    )


def test_a_method_that_is_given_what_it_requires_does_it(other: Home) -> None:
    refused = {}
    with other.raw() as connection:
        questioner = Questioner(connection)
        for method in sorted(set(METHODS) - {"system.shutdown"}):
            right, fields = _filled(other, method), msgspec.structs.fields(METHODS[method].params)
            answer = questioner.ask(
                method, {field.encode_name: right[field.encode_name] for field in fields if field.required}
            )
            if "error" in answer:
                refused[method] = answer["error"]
    assert set(refused) == WANT_MORE, refused


OF_THE_WHOLE_LOG = {"log.verify", "views.rebuild", "views.verify"}


def _is_decoded(method: str, params: object) -> bool:
    """Say whether a method gets to see some parameters; the others are refused for all methods in the same
    place.
    """
    try:
        msgspec.json.decode(json.dumps(params), type=METHODS[method].params)
    except msgspec.MsgspecError:
        return False
    return True


EACH_METHOD = pytest.mark.parametrize("method", sorted(set(METHODS) - {"system.shutdown"}))
SAMPLED = 7  # of so many values one: over the parameters of a method, each in its turn


@EACH_METHOD
def test_each_parameter_is_answered_whatever_its_value(
    homes: Callable[..., Home], other: Home, method: str
) -> None:
    _ask_each(homes, other, method, SAMPLED)


@pytest.mark.long
@EACH_METHOD
def test_each_parameter_is_answered_with_each_value(
    homes: Callable[..., Home], other: Home, method: str
) -> None:
    _ask_each(homes, other, method, 1)


def _ask_each(homes: Callable[..., Home], other: Home, method: str, step: int) -> None:
    home = (
        homes().start() if method in OF_THE_WHOLE_LOG else other
    )  # of few events, since each value takes them all
    fields = msgspec.structs.fields(METHODS[method].params)
    required = {
        field.encode_name: RIGHT.get(field.encode_name, "mem-0") for field in fields if field.required
    }
    many: list[dict[str, object]] = []
    for number, (name, value) in enumerate(product([field.encode_name for field in fields], VALUES)):
        unique = (
            {"content": f"Memory number {number} of {method}"} if "content" in required else {}
        )  # a duplicate takes none of its values
        many.append(required | unique | {name: value})
    taken = [params for params in many if _is_decoded(method, params)]
    assert len(taken) < len(many) or not fields
    taken = taken[:: max(step, 10) if method in {"views.rebuild", "views.verify"} else step]  # a process each
    with home.raw() as connection:
        questioner = Questioner(connection)
        for start in range(0, len(taken), AT_ONCE):
            those = taken[start : start + AT_ONCE]
            answers = (
                [(params, questioner.ask(method, params)) for params in those]
                if method == "log.follow"
                else questioner.ask_at_once(method, those)
            )
            for params, answer in answers:
                assert ("result" in answer) != ("error" in answer), (params, answer)
                if error := answer.get("error"):
                    assert error["code"] in ANSWERED, (params, answer)
                    assert error["message"], (params, answer)
                    assert error["data"]["hint"], (params, answer)
    _nothing_is_spoilt(home)


SECRET = "ghp_" + "a1B2" * 10
OF_SECRETS: tuple[object, ...] = (SECRET, [SECRET], {SECRET: SECRET}, {"password": [SECRET]})
HOOKS: dict[str, dict[str, object]] = {
    "SubagentStart": {"agent_id": SECRET, "agent_type": SECRET},
    "PreToolUse": {"tool_name": "Agent", "tool_input": {"prompt": SECRET, "subagent_type": SECRET}},
    "SubagentStop": {"agent_id": SECRET, "agent_type": SECRET, "last_assistant_message": SECRET},
    "PostToolUse": {
        "tool_name": SECRET,
        "tool_use_id": SECRET,
        "tool_input": {SECRET: SECRET},
        "tool_response": SECRET,
    },
    "SessionStart": {"source": SECRET, "model": SECRET, "cwd": f"/{SECRET}"},
}


def test_no_parameter_of_any_method_brings_a_secret_to_the_disk(homes: Callable[..., Home]) -> None:
    home = homes().start()
    right, done = _filled(home, "harbour"), 0
    with home.raw() as connection:
        questioner = Questioner(connection)
        for method in sorted(set(METHODS) - {"system.shutdown", *OF_THE_WHOLE_LOG, "log.follow"}):
            fields = msgspec.structs.fields(METHODS[method].params)
            needed = {field.encode_name: right[field.encode_name] for field in fields if field.required}
            asked = [needed | {field.encode_name: value} for field in fields for value in OF_SECRETS]
            done += sum(
                "result" in questioner.ask(method, params) for params in asked if _is_decoded(method, params)
            )
        for event, payload in HOOKS.items():
            told = {"session_id": SECRET, "hook_event_name": event} | payload
            done += "result" in questioner.ask(
                "hook.dispatch",
                {"event": event, "host": SECRET, "delivery_id": SECRET + event, "payload": told},
            )
    until(home.caught_up)
    assert done > len(METHODS)
    assert home.stop() == 0
    files = [path for path in home.path.rglob("*") if path.is_file()]
    assert home.paths.log in files
    assert [path.name for path in files if SECRET.encode() in path.read_bytes()] == []


TOLD = {
    "mot de passe : Azerty9123": "Azerty9123",
    "\u5bc6\u7801\uff1aHunter2024\uff0c\u8bf7\u4fdd\u5b58": "Hunter2024",
    "my card is 4111 1111 1111 1111, exp 12/27": "4111 1111 1111 1111",
}


def test_what_people_tell_reaches_no_file(homes: Callable[..., Home], tmp_path: Path) -> None:
    """What is stored, asked, prompted, called, answered, failed with and refused, and copies of it."""
    home = homes().start()
    for number, text in enumerate(TOLD):
        stored = home.call(
            "memory.store", content=f"The archive {number}: {text}", metadata={"note": text}, tags=[text]
        )
        assert stored["redacted"]
        home.call("memory.query", text=f"what of {text}?")
        home.call("task.create", title=f"Change it: {text}")
        home.call("message.send", text=text, to_project="shop", session_id="s-1")
        hooks: list[dict[str, object]] = [
            {"hook_event_name": "UserPromptSubmit", "prompt": text},
            {
                "hook_event_name": "PostToolUse",
                "tool_name": "Bash",
                "tool_input": {"command": f"echo '{text}'"},
                "tool_response": {"stdout": text},
                "tool_use_id": f"u-{number}",
            },
            {
                "hook_event_name": "PostToolUseFailure",
                "tool_name": "Bash",
                "tool_use_id": f"f-{number}",
                "tool_input": {"command": "login"},
                "error": f"refused: {text}",
            },
        ]
        for at, hook in enumerate(hooks):
            payload = {"session_id": "s-1", "cwd": "/srv/shop"} | hook
            event, delivery = hook["hook_event_name"], f"d-{number}-{at}"
            home.call("hook.dispatch", event=event, host="claude-code", payload=payload, delivery_id=delivery)
        with home.raw() as connection:
            for params in ({"content": [text]}, {text: 1}, {"content": "x", "event_type": text}):
                assert "error" in Questioner(connection).ask("memory.store", params)
    until(home.caught_up)
    assert home.verb("backup", str(tmp_path / "copy.db")).returncode == 0
    assert home.stop() == 0
    files = {
        path.name: path.read_bytes()
        for path in (*home.path.rglob("*"), tmp_path / "copy.db")
        if path.is_file()
    }
    assert "copy.db" in files
    assert [
        (name, secret) for name, data in files.items() for secret in TOLD.values() if secret.encode() in data
    ] == []
