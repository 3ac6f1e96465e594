"""Changing JSON as text: whatever the document and its layout, all bytes that are not omegad's stay, and
it means what it meant.
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.edge.setup import entries, jsonc
from omegad.edge.setup.commands import is_ours
from omegad.runtime.errors import Invalid, Refused

COMMAND = "/v/bin/python -I -S /x/omegad/hook_client.py"
WANTED: dict[str, Any] = {
    "hooks": {
        "Start": [{"hooks": [{"type": "command", "command": f"{COMMAND} Start", "timeout": 5}]}],
        "Stop": [{"command": f"{COMMAND} Stop"}],
    },
    "mcpServers": {"omegad": {"command": "/v/bin/python", "args": ["-I", "-S", "/x/omegad/mcp_bridge.py"]}},
}
SPACES = ["", "", " ", "\n", "\n  ", "\r\n\t", "/* , ] } */", '  // "{[,\n', "\n// x\r\n\t"]
KEYS = st.sampled_from(["a", "b", "hooks", "mcpServers", "Start", "Stop", "other", 'é\\"', "omegad ", ""])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
EVENTS = st.dictionaries(
    st.sampled_from(["Start", "Stop", "Other"]),
    st.lists(st.dictionaries(KEYS, SCALARS, max_size=2), max_size=3),
)
SERVERS = st.dictionaries(st.sampled_from(["x", "y"]), st.dictionaries(KEYS, SCALARS, max_size=3))
DOCUMENTS = st.builds(
    lambda others, known: {**{key: value for key, value in others.items() if key not in WANTED}, **known},
    st.dictionaries(KEYS, VALUES, max_size=4),
    st.fixed_dictionaries({}, optional={"hooks": EVENTS, "mcpServers": SERVERS}),
)


@st.composite
def laid_out(draw: st.DrawFn, value: Any) -> str:
    """Write *value* with space, comments and commas before the end wherever they may stand."""

    def space() -> str:
        return draw(st.sampled_from(SPACES))

    def written(one: Any) -> str:
        if not isinstance(one, dict | list):
            return json.dumps(one, ensure_ascii=draw(st.booleans()))
        pairs = [(f"{json.dumps(key)}{space()}:{space()}" if isinstance(one, dict) else "") for key in one]
        inner = [
            f"{space()}{pair}{written(item)}{space()}"
            for pair, item in zip(pairs, one.values() if isinstance(one, dict) else one, strict=True)
        ]
        tail = space() if not inner else "," + space() if draw(st.sampled_from([False, True])) else ""
        opening, closing = "{}" if isinstance(one, dict) else "[]"
        return opening + ",".join(inner) + tail + closing

    mark = draw(st.sampled_from(["", "", jsonc.BYTE_ORDER_MARK]))
    return mark + space() + written(value) + space()


TEXTS = DOCUMENTS.flatmap(lambda value: st.tuples(st.just(value), laid_out(value)))


def joined(document: dict[str, Any]) -> dict[str, Any]:
    """Return what a document means once omegad's entries are in it."""
    hooks, servers = document.get("hooks", {}), document.get("mcpServers", {})
    events = {**hooks, **{event: [*hooks.get(event, []), *ours] for event, ours in WANTED["hooks"].items()}}
    return {**document, "hooks": events, "mcpServers": {**servers, **WANTED["mcpServers"]}}


@given(TEXTS)
def test_entries_go_in_once_and_come_out_without_a_trace(drawn: tuple[dict[str, Any], str]) -> None:
    document, text = drawn
    assert jsonc.parse(text).value == document
    changed = entries.put(text, WANTED)
    assert jsonc.parse(changed).value == joined(document)
    assert entries.put(changed, WANTED) == changed
    left = entries.take_out(changed, WANTED, document)
    assert jsonc.parse(left).value == document
    assert "".join(left.split()) == "".join(text.split())


@given(TEXTS, st.dictionaries(KEYS, VALUES, max_size=2))
def test_what_is_added_between_stays(drawn: tuple[dict[str, Any], str], more: dict[str, Any]) -> None:
    document, text = drawn
    changed = entries.put(text, WANTED)
    for key, value in more.items():
        changed = jsonc.insert(changed, jsonc.parse(changed), f"more {key}", value)
    left = entries.take_out(changed, WANTED, document)
    assert jsonc.parse(left).value == {**document, **{f"more {key}": value for key, value in more.items()}}


@given(TEXTS)
def test_older_entries_are_replaced_where_they_are(drawn: tuple[dict[str, Any], str]) -> None:
    document, text = drawn
    older = json.loads(json.dumps(WANTED).replace("/v/bin", "/older/bin"))
    assert jsonc.parse(entries.put(entries.put(text, older), WANTED)).value == joined(document)


@given(st.text(alphabet='{}[]",:/*\n \t0123456789.eE+-truefalsnu\\\ufeff', max_size=40))
def test_what_json_takes_is_taken_and_the_rest_is_refused(text: str) -> None:
    try:
        strict = json.loads(text, parse_constant=lambda name: 1 / 0 if name else None)
    except (ValueError, ZeroDivisionError):
        strict = None
    try:
        ours = jsonc.parse(text).value
    except Invalid:
        assert strict is None
    else:
        assert strict is None or ours == strict


@given(VALUES.filter(lambda value: not isinstance(value, dict)), st.sampled_from(["hooks", "mcpServers"]))
def test_nothing_is_written_over(value: Any, key: str) -> None:
    with pytest.raises(Refused):
        entries.put(json.dumps({key: value}), WANTED)


def test_what_is_ours_in_the_samples_is_ours() -> None:
    assert is_ours(WANTED["hooks"]["Start"][0])
    assert is_ours(WANTED["mcpServers"]["omegad"])
