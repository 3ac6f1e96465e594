"""What people mark as private is in no file of the home, whichever way it comes."""

from pathlib import Path
from typing import Any

import pytest

from omegad.edge.transfer.found import Found
from omegad.edge.transfer.sources import instructions
from omegad.runtime.private import without_private
from tests.acceptance.conftest import Home, daemon, home, homes, until
from tests.edge.hook.conftest import fire, spooled

__all__ = ["daemon", "home", "homes"]

HIDDEN = "periwinkle"
SAID = f"Use the <private>{HIDDEN}1</private> marigold account."


def tell_all(home: Home, session: str) -> None:
    """Let a host tell the same at every hook that takes words."""
    fire(home, "UserPromptSubmit", session, prompt=SAID)
    fire(home, "UserPromptSubmit", session, prompt=f"From now on use the marigold <PRIVATE>{HIDDEN}2")
    given = {"command": f"echo '{SAID}'", "nested": [{"text": f'{{"a": "<private>{HIDDEN}3</private>"}}'}]}
    fire(
        home,
        "PostToolUse",
        session,
        tool_name="Bash",
        tool_input=given,
        tool_response={"stdout": f"marigold <private>{HIDDEN}4</private>"},
        tool_use_id=f"t-{session}",
    )
    fire(home, "Stop", session, last_assistant_message=f"As you said: <private>{HIDDEN}5</private> marigold.")


def holding(home: Home, word: str) -> list[str]:
    """Return the files of the home that have a word in them, in any case."""
    files = (path for path in home.path.rglob("*") if path.is_file())
    return [path.name for path in files if word.encode() in path.read_bytes().lower()]


def test_what_is_private_reaches_no_file_of_the_home(home: Home) -> None:
    tell_all(home, "before")
    assert len(spooled(home)) == 4
    assert holding(home, HIDDEN) == []
    home.start()
    until(lambda: not spooled(home))
    tell_all(home, "after")
    stored = home.call("memory.store", content=f"The marigold door: {SAID}")
    home.call("memory.query", text=f"marigold <private>{HIDDEN}6</private>")
    arguments: dict[str, Any] = {"action": "store", "content": f"The marigold gate: {SAID}"}
    home.call("tools.call", name="omega_memory", arguments=arguments)
    until(home.caught_up)
    content = home.call("memory.get", memory_id=stored["memory_id"])["content"]
    assert content == "The marigold door: Use the [private] marigold account."
    assert holding(home, HIDDEN) == []
    home.stop()
    assert holding(home, HIDDEN) == []
    assert "log.db" in holding(home, "marigold")


def test_of_instructions_that_are_imported_what_is_private_is_no_point(tmp_path: Path) -> None:
    file = tmp_path / "AGENTS.md"
    file.write_text("<private>\n- The periwinkle door is open\n</private>\n- The marigold door is open\n")
    found = [one.content for one in instructions.read(file) if isinstance(one, Found)]
    assert found == ["The marigold door is open"]


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (b'{"a":"x <private>s \\" y</private> z"}', b'{"a":"x [private] z"}'),
        (b'{"a":"<Private>s<private>t</private>u</private>v"}', b'{"a":"[private]v"}'),
        (b'{"a":"<private>s","b":2}', b'{"a":"[private]","b":2}'),
        (b'{"a":"\\u003cprivate\\u003es\\u003c\\/private\\u003e."}', b'{"a":"[private]."}'),
        (b'{"a":"<privately> <private-key>"}', b'{"a":"<privately> <private-key>"}'),
        (b'{"a":"ssh -i <private key>"}', b'{"a":"ssh -i <private key>"}'),
        (b'{"a":"< private >s</ PRIVATE >y"}', b'{"a":"[private]y"}'),
        (b'{"a":"&lt;private&gt;s&lt;/private&gt;y"}', b'{"a":"[private]y"}'),
        ('{"a":"\uff1cprivate\uff1es\uff1c\uff0fprivate\uff1ey"}'.encode(), b'{"a":"[private]y"}'),
        (b'{"a":"\\uff1cprivate\\uff1es\\uff1c/private\\uff1ey"}', b'{"a":"[private]y"}'),
        (b'{"a":"<private why=\\"x\\">s</private>y"}', b'{"a":"[private]y"}'),
        (b'{"a":"s</private>y"}', b'{"a":"[private]y"}'),
        (b'{"a":"<private>s</private>t</private>y"}', b'{"a":"[private]y"}'),
        (b'{"a":"' + b"\\" * 19 + b'u003cprivate>s","b":1}', b'{"a":"[private]","b":1}'),
        (
            b'[{"k":"x<private>s"},{"k":"t"},{"k":"u</private>y"},{"k":"z"}]',
            b'[{"k":"x[private]"},{"k":"[private]"},{"k":"[private]y"},{"k":"z"}]',
        ),
        (b'["<private>s","t"]', b'["[private]","t"]'),
    ],
)
def test_a_mark_stands_for_what_is_private_in_strings(said: bytes, kept: bytes) -> None:
    assert without_private(said) == kept
