import math
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from omegad.rpc.protocol import (
    BATCH_LENGTH_MAX,
    Batch,
    Fault,
    Lines,
    LineTooLong,
    Message,
    Receiver,
    Request,
    encode_error,
    encode_request,
    encode_result,
    parse,
    parse_cancel,
)
from omegad.runtime.errors import Invalid, NotFound, Unavailable

PING = b'{"jsonrpc":"2.0","id":1,"method":"system.ping"}'


def receive_all(receiver: Receiver, *pieces: bytes) -> list[Message]:
    found = []
    for piece in pieces:
        receiver.feed(piece)
        while (message := receiver.next_message()) is not None:
            found.append(message)
    return found


def described(message: Message) -> object:
    match message:
        case Request():
            return (message.id, message.method, bytes(message.params))
        case Fault():
            return (message.id, message.error.code, str(message.error))
        case Batch():
            return [described(entry) for entry in message.entries]


def fault_in(line: bytes) -> Fault:
    fault = parse(line)
    assert isinstance(fault, Fault)
    return fault


def test_a_request_carries_its_params_as_they_were_written() -> None:
    request = parse(b'{"jsonrpc": "2.0", "id": "x", "method": "memory.get", "params": {"memory_id" :  "m1"}}')
    assert isinstance(request, Request)
    assert (request.id, request.method, bytes(request.params)) == (
        "x",
        "memory.get",
        b'{"memory_id" :  "m1"}',
    )


def test_a_request_without_an_id_is_a_notification_and_one_with_null_is_not() -> None:
    assert parse(b'{"jsonrpc":"2.0","method":"a"}') == Request("2.0", "a", UNSET)
    assert parse(b'{"jsonrpc":"2.0","method":"a","id":null}') == Request("2.0", "a", None)


def test_params_of_null_are_no_params() -> None:
    assert parse(b'{"jsonrpc":"2.0","method":"a","id":1,"params":null}') == Request("2.0", "a", 1)


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense",
        b"{",
        b'{"jsonrpc":"2.0","id":1,"method":"a"} x',
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"a"}',
        b'{"jsonrpc":"2.0","id":1,"method":"a\x00"}',
        b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
        b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":"\xff"}}',
        b"[1, 2",
        b'[{"jsonrpc":"2.0","method":"a"}] []',
        b"[" * 200_000,
        b"[" * 200_000 + b"]" * 200_000,
        b'{"a":' * 200_000 + b"1" + b"}" * 200_000,
        b"\x00",
        b"\xff\xfe",
    ],
    ids=lambda line: repr(line[:60]),
)
def test_what_is_not_json_is_a_parse_error_without_an_id(line: bytes) -> None:
    fault = fault_in(line)
    assert (fault.error.code, fault.id) == (-32700, None)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (rb"\ud83d", "\ufffd"),
        (rb"\uDE00 \uD83D", "\ufffd \ufffd"),
        (rb"\ud83d\ude00 whole", "\U0001f600 whole"),
        (rb"\ud83d\ud83d\ude00\ude00", "\ufffd\U0001f600\ufffd"),
        (rb"\\ud83d\udc00", "\\ud83d\ufffd"),
        (rb"\\\ud83d\n\u00e9", "\\\ufffd\n\u00e9"),
        (b"\xed\xa0\xbd", "\ufffd"),
        (b"\xed\xa0\xbd\xed\xb8\x80 \xed\xb8\x80", "\U0001f600 \ufffd"),
    ],
)
def test_half_a_character_is_read_as_a_replacement_and_all_else_as_it_is(written: bytes, read: str) -> None:
    request = parse(b'{"jsonrpc":"2.0","id":"%s","method":"a","params":{"x":"%s"}}' % (written, written))
    assert isinstance(request, Request)
    assert (request.id, msgspec.json.decode(request.params)) == (read, {"x": read})


@pytest.mark.parametrize(
    ("line", "recovered"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"a","params":%s}', 1),
        (b'{"id" : "\\u00e9","jsonrpc":"2.0","method":"a","params":%s}', "é"),
        (b'{"method":"a","params":%s,"jsonrpc":"2.0", "id":-3}', -3),
        (b'{"jsonrpc":"2.0","id":007,"method":"a","params":%s}', None),
        (b'{"jsonrpc":"2.0","method":"a","params":%s}', None),
        (b'{"jsonrpc":"2.0","method":"a","params":{"id":5,"x":%s}}', None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"a","params":%s}]', None),
    ],
)
def test_what_is_nested_too_deeply_is_refused_under_the_id_that_stands_at_its_ends(
    line: bytes, recovered: object
) -> None:
    fault = fault_in(line % (b"[" * 200_000 + b"]" * 200_000))
    assert (fault.error.code, fault.id) == (-32700, recovered)


@pytest.mark.parametrize(
    ("line", "recovered"),
    [
        (b"1", None),
        (b'"text"', None),
        (b"null", None),
        (b"{}", None),
        (b'{"jsonrpc":"2.0","id":7}', 7),
        (b'{"id":7,"method":"a"}', 7),
        (b'{"jsonrpc":"1.0","id":"seven","method":"a"}', "seven"),
        (b'{"jsonrpc":2.0,"id":7,"method":"a"}', 7),
        (b'{"jsonrpc":"2.0","id":7,"method":null}', 7),
        (b'{"jsonrpc":"2.0","id":7,"method":["a"]}', 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"a","params":"text"}', 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"a","params":1}', 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"a","params":false}', 7),
        (b'{"jsonrpc":"2.0","method":1,"params":"bar"}', None),
        (b'{"jsonrpc":"2.0","id":true,"method":"a"}', None),
        (b'{"jsonrpc":"2.0","id":1.0,"method":"a"}', None),
        (b'{"jsonrpc":"2.0","id":1e3,"method":"a"}', None),
        (b'{"jsonrpc":"2.0","id":[1],"method":"a"}', None),
        (b'{"jsonrpc":"2.0","id":{},"method":"a"}', None),
        (b'{"jsonrpc":"2.0","id":' + b"9" * 5_000 + b',"method":"a"}', None),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_json_that_is_no_request_is_invalid_under_the_id_it_came_with(line: bytes, recovered: object) -> None:
    fault = fault_in(line)
    assert (fault.error.code, fault.id) == (-32600, recovered)


@pytest.mark.parametrize(
    "request_id", [0, -1, 2**53, 2**63, 2**64, -(2**70), "", "1", "é\n\u2028\u0000", "🧠" * 100, None]
)
def test_an_id_comes_back_exactly(request_id: object) -> None:
    request = parse(msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "method": "a"}))
    assert isinstance(request, Request)
    assert request.id is not UNSET
    answer = msgspec.json.decode(encode_result(request.id, 1))
    assert answer == {"jsonrpc": "2.0", "id": request_id, "result": 1}
    assert type(answer["id"]) is type(request_id)


def test_a_batch_keeps_its_good_requests_beside_its_bad_ones() -> None:
    batch = parse(b' [1, {"jsonrpc":"2.0","id":1,"method":"a"}, {"jsonrpc":"2.0","id":2}, []] '.strip())
    assert isinstance(batch, Batch)
    assert described(batch) == [
        (None, -32600, "Expected `object`, got `int`"),
        (1, "a", b""),
        (2, -32600, "Object missing required field `method`"),
        (None, -32600, "Expected `object`, got `array`"),
    ]


@pytest.mark.parametrize("line", [b"[]", b"[ ]"])
def test_an_empty_batch_is_one_invalid_request(line: bytes) -> None:
    assert fault_in(line).error.code == -32600


def test_a_batch_holds_a_hundred_requests_and_not_one_more() -> None:
    full = parse(b"[" + b",".join([PING] * BATCH_LENGTH_MAX) + b"]")
    assert isinstance(full, Batch)
    assert len(full.entries) == BATCH_LENGTH_MAX == 100
    assert fault_in(b"[" + b",".join([PING] * (BATCH_LENGTH_MAX + 1)) + b"]").error.code == -32600


def test_blank_lines_are_no_messages() -> None:
    assert [described(one) for one in receive_all(Receiver(1000), b"\n \t\r\n" + PING + b"\r\n\n")] == [
        (1, "system.ping", b"")
    ]


def test_the_last_line_counts_without_a_newline_once_the_stream_has_ended() -> None:
    receiver = Receiver(1000)
    assert receive_all(receiver, PING) == []
    receiver.end()
    assert [described(one) for one in receive_all(receiver, b"")] == [(1, "system.ping", b"")]


def test_a_line_that_is_too_long_is_answered_once_and_the_next_one_is_read() -> None:
    receiver = Receiver(100)
    messages = receive_all(receiver, b"x" * 80, b"x" * 80, b"x" * 800, b"x\n" + PING + b"\n")
    assert [
        one.error.code if isinstance(one, Fault) else one.method
        for one in messages
        if not isinstance(one, Batch)
    ] == [-32600, "system.ping"]


def test_a_long_line_is_told_off_before_it_ends() -> None:
    lines = Lines(100)
    lines.feed(b"x" * 101)
    with pytest.raises(LineTooLong):
        lines.next()
    assert lines.next() is None


def test_a_line_may_be_as_long_as_the_limit_and_no_longer() -> None:
    lines = Lines(10)
    lines.feed(b"x" * 10 + b"\n" + b"y" * 11 + b"\n" + b"z\n")
    assert lines.next() == b"x" * 10
    with pytest.raises(LineTooLong):
        lines.next()
    assert lines.next() == b"z"


def test_a_line_that_never_ends_is_not_kept() -> None:
    lines = Lines(1000)
    lines.feed(b"x" * 1001)
    with pytest.raises(LineTooLong):
        lines.next()
    for _ in range(200):
        lines.feed(b"x" * 65_536)
        assert lines.next() is None
        assert len(lines._buffer) <= 1000
    lines.feed(b"\nshort\n")
    assert lines.next() == b"short"


texts = st.text(st.characters(exclude_categories=["Cs"]))
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
ids = st.none() | st.integers(-(2**70), 2**70) | texts
requests = st.builds(
    lambda request_id, method, params: msgspec.json.encode(
        {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    ),
    ids,
    texts,
    st.dictionaries(texts, json_values, max_size=3) | st.lists(json_values, max_size=3),
)
some_lines = st.one_of(
    requests,
    st.lists(requests, max_size=3).map(lambda entries: b"[" + b",".join(entries) + b"]"),
    json_values.map(msgspec.json.encode),
    st.binary(max_size=40).map(lambda data: data.replace(b"\n", b"")),
    st.sampled_from(
        [
            b"",
            b"x" * 300,
            b'{"jsonrpc":"2.0","method":"a","params":{"x":"\\ud800"}}',
            b"[[[[",
            b"\xef\xbb\xbf{}",
            b"\x00",
        ]
    ),
)


@given(st.lists(some_lines, max_size=6), st.data())
def test_how_the_bytes_are_cut_makes_no_difference(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=12)))
    pieces = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    whole = [described(one) for one in receive_all(Receiver(200), stream)]
    assert [described(one) for one in receive_all(Receiver(200), *pieces)] == whole
    assert len(whole) == sum(bool(line.strip(b" \t\r")) for line in lines)


def test_every_single_cut_of_a_conversation_gives_the_same_messages() -> None:
    stream = (
        b"\n".join([PING, b"x" * 90, b"[" + PING + b"," + PING + b"]"[:1], b"[]", "é".encode(), PING]) + b"\n"
    )
    whole = [described(one) for one in receive_all(Receiver(80), stream)]
    for cut in range(len(stream)):
        assert [described(one) for one in receive_all(Receiver(80), stream[:cut], stream[cut:])] == whole
    single_bytes = [stream[i : i + 1] for i in range(len(stream))]
    assert [described(one) for one in receive_all(Receiver(80), *single_bytes)] == whole


@given(st.binary(max_size=300))
@example(b"\n" * 50)
def test_no_bytes_raise(data: bytes) -> None:
    receive_all(Receiver(64), data, b"\n")


@given(json_values)
def test_no_json_raises(value: object) -> None:
    assert isinstance(parse(msgspec.json.encode(value)), Request | Fault | Batch)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(("jsonrpc", "id", "method", "params"), json_values)))
def test_members_of_any_type_are_a_request_or_an_invalid_one(members: dict[str, Any]) -> None:
    message = parse(msgspec.json.encode(members | {"jsonrpc": members.get("jsonrpc", "2.0")}))
    assert isinstance(message, Request) or (isinstance(message, Fault) and message.error.code == -32600)
    given_id = members.get("id")
    if isinstance(message, Fault) and isinstance(given_id, int | str) and not isinstance(given_id, bool):
        assert message.id == given_id


@given(ids, json_values)
def test_an_answer_is_one_line_that_says_what_was_answered(
    request_id: int | str | None, result: object
) -> None:
    line = encode_result(request_id, result)
    assert b"\n" not in line
    assert msgspec.json.decode(line) == {"jsonrpc": "2.0", "id": request_id, "result": result}


def test_a_raw_result_over_several_lines_is_sent_on_one() -> None:
    assert (
        encode_result(1, Raw(b'{\n  "a": "x\\ny"\n}'))
        == b'{"jsonrpc":"2.0","id":1,"result":{   "a": "x\\ny" }}'
    )


def test_an_empty_raw_result_is_null() -> None:
    assert encode_result(1, Raw(b"")) == b'{"jsonrpc":"2.0","id":1,"result":null}'


def test_a_request_with_half_a_surrogate_pair_is_invalid() -> None:
    with pytest.raises(Invalid, match="half of a surrogate pair is no text"):
        encode_request(1, "memory.store", {"content": "a \ud800"})


@pytest.mark.parametrize("result", [object(), "\ud800", {(1, 2): 3}])
def test_a_result_that_is_not_json_is_not_half_written(result: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        encode_result(1, result)


def test_a_float_that_json_cannot_hold_is_null() -> None:
    assert encode_result(1, [math.nan, math.inf]) == b'{"jsonrpc":"2.0","id":1,"result":[null,null]}'


def test_an_error_travels_with_its_kind_tag_and_hint() -> None:
    assert msgspec.json.decode(encode_error("x", NotFound("no memory m1"))) == {
        "jsonrpc": "2.0",
        "id": "x",
        "error": {
            "code": -32000,
            "message": "no memory m1",
            "data": {"kind": "not_found", "tag": "MEMORY", "hint": NotFound.hint},
        },
    }


def test_an_error_about_a_file_name_that_is_not_utf8_can_be_sent() -> None:
    error = Unavailable("cannot open 'a\udcff'", hint="rename 'a\udcff'")
    assert msgspec.json.decode(encode_error(1, error))["error"]["message"] == "cannot open 'a\\udcff'"


def test_a_request_written_here_is_read_here() -> None:
    assert described(parse(encode_request(3, "a", {"x": 1}))) == (3, "a", b'{"x":1}')
    assert described(parse(encode_request(None, "a", {}))) == (UNSET, "a", b"{}")


@pytest.mark.parametrize("params", [b"", b"{}", b"[1]", b'{"id":true}', b'{"id":1.5}', b'{"id":"\xff"}'])
def test_a_cancellation_that_names_no_id_is_invalid(params: bytes) -> None:
    with pytest.raises(Invalid):
        parse_cancel(Raw(params))


def test_a_cancellation_names_an_id() -> None:
    assert [parse_cancel(Raw(params)) for params in (b'{"id":1}', b'{"id":"a"}', b'{"id":null}')] == [
        1,
        "a",
        None,
    ]
