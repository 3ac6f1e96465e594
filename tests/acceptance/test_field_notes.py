"""Ten defects that users of memory services have met, and what shows that omegad has none of them.

1. A periodic consolidation deletes what was meant to stay.
   tests/memory/upkeep/test_upkeep.py::test_what_is_permanent_outlives_any_maintenance_unread
   tests/memory/upkeep/test_compaction.py::test_only_what_accumulates_by_itself_is_compacted_unasked
   tests/acceptance/test_field_notes.py::test_maintenance_takes_nothing_away_that_was_to_stay
2. An upgrade takes every memory for superseded.
   tests/memory/test_lifecycle_served.py::test_a_home_of_the_first_format_is_served_as_it_was
   tests/memory/test_state.py::test_a_log_of_the_first_format_opens_with_every_byte_of_its_events_and_with_the_guards_of_today
   tests/catalog/test_golden.py::test_a_released_payload_decodes_to_its_event
   tests/projections/test_contract.py::test_a_projection_shows_every_event_that_was_ever_released
3. File names cannot be found.
   tests/search/test_features.py::test_a_thing_is_found_by_its_name
   tests/acceptance/test_field_notes.py::test_a_thing_is_found_by_its_name
   tests/acceptance/test_field_notes.py::test_a_thing_is_found_by_its_name_with_the_model
4. A store of 10 MB blocks for half a minute, and is embedded before its size is looked at.
   tests/acceptance/test_bad_input.py::test_content_of_10_mb_is_refused_before_any_work
   tests/acceptance/test_bad_input.py::test_a_line_of_20_mb_is_refused_and_the_connection_lives_on
   tests/acceptance/test_model.py::test_content_too_large_is_refused_before_the_model_reads_it
5. A lone surrogate, an array or null gets no reply at all.
   tests/acceptance/test_bad_input.py::test_a_line_that_is_no_request_gets_one_answer_that_says_so
   tests/acceptance/test_bad_input.py::test_each_parameter_is_answered_whatever_its_value
6. Unknown memory types are accepted silently.
   tests/acceptance/test_bad_input.py::test_an_unknown_type_is_refused_with_the_types_there_are
   tests/acceptance/test_field_notes.py::test_an_unknown_type_is_refused_in_a_question_as_well
7. Without loadable extensions the search by meaning is lost silently.
   tests/storage/test_storage.py::test_the_driver_is_one_that_loads_extensions_and_loses_no_commits
   tests/edge/cli/test_doctor.py::test_a_healthy_home_passes_and_is_left_as_it_was
   tests/acceptance/test_field_notes.py::test_a_search_by_words_alone_is_told_in_the_answer_in_the_status_and_by_the_doctor
8. Without a network every query waits for a download.
   tests/acceptance/test_field_notes.py::test_no_request_reaches_for_the_network
9. A release lacks a part, and the doctor says nothing.
   tests/edge/cli/test_doctor.py::test_a_view_that_does_not_equal_the_log_fails_with_what_to_do
   tests/edge/cli/test_doctor.py::test_the_model_really_embeds
   tests/edge/cli/test_doctor.py::test_a_healthy_home_passes_and_is_left_as_it_was
10. Timeouts of hooks are written in one unit and read in another.
   Nothing here writes hooks.
"""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from omegad.memory.types import BUILT_IN
from tests.acceptance.conftest import Home, refusal, require_model
from tests.forking import ROOT

DEFECTS = 10
NOTE = re.compile(r"^(\d+)\. ", re.MULTILINE)
TEST = re.compile(r"^ +(tests/\S+\.py)::(\w+)$", re.MULTILINE)


def test_every_defect_has_its_tests_and_they_exist() -> None:
    notes = NOTE.split(__doc__ or "")[1:]
    assert [int(number) for number in notes[::2]] == list(range(1, DEFECTS + 1))
    for number, note in zip(notes[::2], notes[1::2], strict=True):
        shown = TEST.findall(note)
        assert shown or "Nothing here" in note, number
        for path, name in shown:
            tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
            assert name in {
                node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            }, f"{path}::{name}"


# --- 1 --------------------------------------------------------------------------------------------


def test_maintenance_takes_nothing_away_that_was_to_stay(daemon: Home) -> None:
    kept: dict[str, str] = {}
    for kind, rule in BUILT_IN.items():
        if rule.ttl_seconds is None:
            content = (
                f"what {kind.replace('_', ' ')} number {len(kept)} has to say about subject {7 * len(kept)}"
            )
            kept[daemon.call("memory.store", content=content, event_type=kind)["memory_id"]] = content
    assert len(kept) >= 10
    for _ in range(3):
        daemon.call("memory.consolidate")
    daemon.restart()
    daemon.call("memory.consolidate")
    daemon.call("views.rebuild")
    for memory_id, content in kept.items():
        found = daemon.call("memory.get", memory_id=memory_id)
        assert (found["status"], found["content"]) == ("active", content)
    daemon.check()


# --- 3 --------------------------------------------------------------------------------------------

NAMED = {
    "fjord_amber.py": "the colours of the charts are in fjord_amber.py",
    "src/jobs/exporter.py": "the nightly job lives in src/jobs/exporter.py",
    "test_exporter.py": "the nightly job is tested in test_exporter.py",
    "PaymentGateway": "PaymentGateway raises when the card is declined",
    "load_user_settings": "call load_user_settings before anything else",
    "1.26.4": "numpy stays pinned to 1.26.4 for now",
    "https://docs.example.org/api/v2/users": "how users are listed: https://docs.example.org/api/v2/users",
    "E1101": "the linter reports E1101 there, wrongly",
    "sqlite3.OperationalError": "two writers meet: sqlite3.OperationalError, database is locked",
    "--no-verify": "pass --no-verify only when the hook is broken",
    "設定ファイル": "設定ファイルは毎晩バックアップされます",
    "config.toml": "配置在config.toml中",
}
ALSO = {
    "exporter.py": "src/jobs/exporter.py",
    "fjord amber": "fjord_amber.py",
    "gateway": "PaymentGateway",
    "payment gateway": "PaymentGateway",
    "user settings": "load_user_settings",
    "database is locked": "sqlite3.OperationalError",
    "バックアップ": "設定ファイル",
}
"""What else a thing is found by, and the name in `NAMED` that it then is."""


def _find_by_name(home: Home, mode: str) -> None:
    for content in (
        *NAMED.values(),
        "the bakery opens at six in the morning",
        "refunds take five working days",
    ):
        home.call("memory.store", content=content)
    for name in (*NAMED, *ALSO):
        for question in (name, f"what do we know of {name}?", f"`{name}`"):
            answer = home.call("memory.query", text=question, mode=mode)
            assert not answer["abstained"], question
            assert answer["results"][0]["content"] == NAMED[ALSO.get(name, name)], question


def test_a_thing_is_found_by_its_name(daemon: Home) -> None:
    _find_by_name(daemon, "keyword")


@pytest.mark.model
def test_a_thing_is_found_by_its_name_with_the_model(model_daemon: Home) -> None:
    _find_by_name(model_daemon, "hybrid")


# --- 6 --------------------------------------------------------------------------------------------


def test_an_unknown_type_is_refused_in_a_question_as_well(daemon: Home) -> None:
    refused = [
        refusal(partial(daemon.call, "memory.query", text="x", event_types=["decisoin"])),
        *(
            refusal(partial(daemon.call, f"memory.{verb}", event_types=["decisoin"]))
            for verb in ("list", "timeline", "lessons")
        ),
    ]
    assert all("did you mean 'decision'?" in one.hint for one in refused)


# --- 7 --------------------------------------------------------------------------------------------


def test_a_search_by_words_alone_is_told_in_the_answer_in_the_status_and_by_the_doctor(
    homes: Callable[..., Home], tmp_path: Path
) -> None:
    daemon = homes(OMEGAD_MODEL="auto", XDG_CACHE_HOME=str(tmp_path / "empty")).start()
    assert daemon.call("memory.store", content="the release train leaves at noon")["degraded"] == "embedding"
    assert daemon.call("memory.query", text="release train")["degraded"] == "keyword"
    assert any("no embedding model" in trouble for trouble in daemon.call("system.status")["degraded"])
    told = daemon.verb("doctor", "--json")
    assert told.returncode == 0, told
    states = {finding["part"]: finding["state"] for finding in json.loads(told.stdout)["findings"]}
    assert states["model"] == states["embedding"] == "warn"


# --- 8 --------------------------------------------------------------------------------------------

WATCH = """
import os, sys

def watch(event, arguments):
    reached = event in ("socket.getaddrinfo", "socket.gethostbyname", "urllib.Request")
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        reached = not isinstance(arguments[1], (str, bytes, type(None)))
    if reached:
        with open(os.environ["REACHED"], "a") as file:
            file.write(f"{event} {arguments}\\n")
        raise OSError(101, "Network is unreachable")

sys.addaudithook(watch)
"""
"""Keeps a Python process off the network, and writes down what it wanted there."""


@pytest.fixture
def offline(homes: Callable[..., Home], tmp_path: Path) -> Callable[..., Home]:
    """What starts daemons that have no network; `reached` in their environment names what they wanted of
    it.
    """
    (tmp_path / "watch").mkdir()
    (tmp_path / "watch" / "sitecustomize.py").write_text(WATCH, encoding="utf-8")

    def start(**environ: str) -> Home:
        return homes(PYTHONPATH=str(tmp_path / "watch"), REACHED=str(tmp_path / "reached"), **environ).start()

    return start


def _use(home: Home, degraded: str | None) -> None:
    for number in range(3):
        home.call(
            "memory.store", content=f"the release train number {number} leaves at noon of day {number * 11}"
        )
    for mode in ("hybrid", "semantic", "keyword", "phrase"):
        answer: Any = home.call("memory.query", text="release train", mode=mode)
        assert answer["results"], mode
        assert answer["degraded"] == (degraded if mode in {"hybrid", "semantic"} else None)
    home.call("views.verify")
    assert home.stop() == 0
    assert not Path(home.environ["REACHED"]).exists(), Path(home.environ["REACHED"]).read_text(
        encoding="utf-8"
    )


def test_no_request_reaches_for_the_network(offline: Callable[..., Home], tmp_path: Path) -> None:
    _use(offline(OMEGAD_MODEL="auto", XDG_CACHE_HOME=str(tmp_path / "empty")), "keyword")


@pytest.mark.model
def test_no_request_reaches_for_the_network_with_the_model(offline: Callable[..., Home]) -> None:
    require_model()
    _use(offline(OMEGAD_MODEL="auto"), None)


def test_what_watches_the_network_sees_it(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WATCH, encoding="utf-8")
    environ = {"PYTHONPATH": str(tmp_path), "REACHED": str(tmp_path / "reached")}
    reach = "import socket; socket.create_connection(('127.0.0.1', 9), 1)"
    assert subprocess.run(
        [sys.executable, "-c", reach], env=environ, stderr=subprocess.DEVNULL, check=False
    ).returncode
    assert "127.0.0.1" in (tmp_path / "reached").read_text(encoding="utf-8")
