"""docs/consult.md, done as it is printed there, but that its models are played on loopback."""

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest

from omegad.runtime.config import ConsultedModel, load
from tests.edge.cli.conftest import ROOT, Command
from tests.edge.consult.conftest import KEY, Consulting
from tests.edge.consult.test_parts import Ring
from tests.test_docs import blocks, commands_shown

PAGE = (ROOT / "docs" / "consult.md").read_text(encoding="utf-8")


@pytest.fixture
def asking(consulting: Consulting, monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    """The page's configuration, with addresses of the scripted provider and a key that is there."""
    (text,) = (block.body for block in blocks(PAGE) if block.language == "toml")
    (consulting.home / "config.toml").write_text(text)
    command = Command(consulting.home)
    assert list(load(command.paths, {}).consult.models) == ["gpt", "claude", "local"]
    url = consulting.provider.url
    text = re.sub(r'(api = "openai".*)', rf'\1\nbase_url = "{url}/v1"', text)
    text = re.sub(r'(api = "anthropic".*)', rf'\1\nbase_url = "{url}"', text)
    text = text.replace('base_url = "http://127.0.0.1:11434/v1"\n', "")
    text = text.replace("~/.config/omegad-keys/openai", str(consulting.key_file))
    (consulting.home / "config.toml").write_text(text.replace("consult/anthropic", "omegad/gpt"))
    monkeypatch.setattr(keyring, "get_password", Ring().get_password)
    try:
        yield command
    finally:
        command.end()


def test_what_the_page_shows_is_done_as_it_says(asking: Command, consulting: Consulting) -> None:
    shown = [words for words in commands_shown(PAGE) if words[0] != "doctor"]
    told = [asking(*words).stdout for words in shown]
    assert [words[0] for words in shown] == ["route", "consult", "consult", "consult"]
    assert told[0] == "gpt: it is said to be good at debugging Python, SQL queries\n"
    assert "tokens_max" in told[1]
    assert "gpt (gpt-5 at" in told[2]
    assert "claude (claude-opus-4-1 at" in told[3]
    assert "Stored as mem-" in told[3]
    assert [path for path, _, _ in consulting.provider.heard] == ["/v1/chat/completions", "/v1/messages"]


def test_doctor_says_what_the_page_says_that_it_does(asking: Command, consulting: Consulting) -> None:
    told = asking.run("doctor", "--reach", "--no-spawn").stdout
    assert len(re.findall(r"^ok +consult +\w+ is .*, reached in", told, re.MULTILINE)) == 3
    assert consulting.provider.heard == []
    assert KEY not in told


def test_a_key_is_written_so_that_it_is_yours_alone(tmp_path: Path) -> None:
    import subprocess  # noqa: PLC0415  of this test alone

    (line,) = (line for line in PAGE.splitlines() if line.startswith("mkdir"))
    environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    subprocess.run(["sh", "-c", line], input=KEY.encode(), env=environ, check=True, timeout=60)
    written = tmp_path / ".config" / "omegad-keys" / "openai"
    assert written.stat().st_mode & 0o777 == 0o600
    assert shlex.split(line)[-1].endswith("/openai)")


def test_every_setting_of_a_model_is_in_the_pages_table() -> None:
    table = re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)
    named = set(re.findall(r"`(\w+)`", " ".join(table)))
    assert named == set(ConsultedModel.__struct_fields__)
    (text,) = (block.body for block in blocks(PAGE) if block.language == "toml")
    assert tomllib.loads(text)["consult"]["calls_per_day"] == 20
