"""Whatever goes wrong has a kind, a tag and a hint, and whoever asked sees them."""

import importlib
import pkgutil
import typing
from collections.abc import Iterator

import msgspec
import pytest

import omegad
from omegad.rpc.protocol import encode_error
from omegad.runtime.config import Config, Paths
from omegad.runtime.errors import FailureTag, Kind, ModelFailed, NotFound, OmegadError, Stale, StorageFull
from tests.builders import FakeClock, served


def catalogue(kind: type[OmegadError] = OmegadError) -> Iterator[type[OmegadError]]:
    """Yield every error that any module of ours declares."""
    yield kind
    for inner in kind.__subclasses__():
        yield from catalogue(inner)


def test_every_error_says_what_it_is_whose_failure_and_what_to_do() -> None:
    for module in pkgutil.walk_packages(omegad.__path__, "omegad."):
        if module.name != "omegad.__main__":
            importlib.import_module(module.name)
    kinds, tags = typing.get_args(Kind), typing.get_args(FailureTag)
    found = {kind for kind in catalogue() if kind.__module__.startswith("omegad.")}
    assert len(found) > 25
    for kind in found:
        data = msgspec.json.decode(encode_error(1, kind()))["error"]
        assert data["message"]
        assert data["data"]["kind"] in kinds
        assert data["data"]["tag"] in tags
        assert data["data"]["hint"]
    assert {kind.kind for kind in found} == {*kinds}
    assert {kind.tag for kind in found} == {*tags}


@pytest.mark.parametrize(
    ("error", "tag"),
    [(StorageFull, "RUNTIME_ENV"), (NotFound, "MEMORY"), (Stale, "RETRIEVAL"), (ModelFailed, "RETRIEVAL")],
)
def test_failures_are_of_whom_they_are(error: type[OmegadError], tag: str) -> None:
    assert error.tag == tag


async def test_an_agent_sees_the_tag(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, Config(model="none")) as it:
        answer = await it.caller.call(
            "tools.call", name="omega_memory", arguments={"action": "get", "memory_id": "mem-0"}
        )
        assert answer["content"][0]["text"].startswith("there is no memory mem-0 (MEMORY). What to do: ")
