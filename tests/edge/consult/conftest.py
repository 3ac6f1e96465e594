"""A home whose config.toml names models that a scripted provider on loopback plays, with keys in files."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omegad.edge.consult.__main__ import carried_out
from tests.acceptance.conftest import PATIENT
from tests.edge.consult.provider import Provider, playing

KEY = "kx-5wFq7Tz19bHnUvR3eLs8"
"""Of no shape that redaction knows, so that nothing but care keeps it out of what is written."""

CONFIGURED = """
[consult]
calls_per_day = {calls}
tokens_per_day = {tokens}
timeout_s = {timeout}

[consult.models.gpt]
api = "openai"
model = "gpt-test"
base_url = "{url}/v1"
key_file = "{key}"
strengths = ["debugging Python", "SQL"]

[consult.models.claude]
api = "anthropic"
model = "claude-test"
base_url = "{url}"
key_file = "{key}"
strengths = ["review of an architecture"]
cost = 3
"""


class Consulting:
    """A home that may consult, and what it consults."""

    def __init__(self, folder: Path, provider: Provider) -> None:
        self.provider = provider
        self.home = folder / "home"
        self.home.mkdir(mode=0o700)
        self.key_file = folder / "key"
        self.key_file.write_text(f"{KEY}\n")
        self.key_file.chmod(0o600)
        foreign = {name: value for name, value in os.environ.items() if not name.startswith("OMEGAD_")}
        self.environ = {**foreign, "OMEGAD_HOME": str(self.home), "OMEGAD_MODEL": "none", **PATIENT}
        self.configure()

    def configure(self, *, calls: int = 20, tokens: int = 200_000, timeout: float = 30.0) -> None:
        text = CONFIGURED.format(
            calls=calls, tokens=tokens, timeout=timeout, url=self.provider.url, key=self.key_file
        )
        (self.home / "config.toml").write_text(text)

    @property
    def configured(self) -> bytes:
        return (self.home / "config.toml").read_bytes()

    def call(self, name: str, **arguments: Any) -> tuple[str, bool]:
        """Return what a call of a tool says, and whether it is an error."""
        call = {"name": name, "arguments": arguments, "client": "test"}
        answer = json.loads(carried_out(json.dumps(call).encode(), self.environ))
        (part,) = answer["content"]
        return part["text"], answer["is_error"]

    def asks(self, question: str = "One writer, or several?", **more: Any) -> str:
        """Return what `omega_consult` says, which is an answer."""
        text, is_error = self.call("omega_consult", question=question, **({"model": "gpt"} | more))
        assert not is_error, text
        return text

    def fails(self, question: str = "One writer, or several?", **more: Any) -> str:
        """Return why `omega_consult` says that it came to nothing, with what to do."""
        text, is_error = self.call("omega_consult", question=question, **({"model": "gpt"} | more))
        assert is_error, text
        assert "What to do: " in text
        assert KEY not in text
        return text

    def files_with(self, secret: str) -> list[Path]:
        """Return the files of the home in which a secret is."""
        return [
            path
            for path in self.home.rglob("*")
            if path.is_file() and not path.is_socket() and secret.encode() in path.read_bytes()
        ]


@pytest.fixture
def consulting(tmp_path: Path) -> Iterator[Consulting]:
    with playing() as provider:
        yield Consulting(tmp_path, provider)
