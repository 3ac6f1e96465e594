"""With the embedding model, memories are found by what they mean; without it, everything else goes on, and
is made good later.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omegad.runtime.config import find_paths
from tests.acceptance.conftest import Home, require_model, until

pytestmark = pytest.mark.model

MEMORIES = (
    "The staging database is restored from last night's dump every morning at six",
    "Customers are charged in euros, and refunds take five working days",
    "Our continuous integration machines have two cores and no graphics card",
    "The team decided to write all new services in Go",
    "Passwords are hashed with argon2 and never logged",
    "Photos of cats are resized in the browser before they are uploaded",
)
BY_MEANING = {
    "how does a shopper get money back": 1,
    "hardware of the build servers": 2,
    "which programming language for the next microservice": 3,
    "kitten pictures shrink on the client": 5,
}
"""Questions that share no telling word with the memory that answers them."""


@pytest.fixture(scope="module", autouse=True)
def _model() -> None:
    require_model()


def _store(home: Home, content: str, **params: object) -> Any:
    return home.call("memory.store", content=content, **params)


def _found(home: Home, text: str, mode: str) -> list[str]:
    answer = home.call("memory.query", text=text, mode=mode, limit=3)
    assert answer["degraded"] is None
    return [result["content"] for result in answer["results"]]


def test_a_memory_is_found_by_its_meaning_where_its_words_do_not_help(model_daemon: Home) -> None:
    for content in MEMORIES:
        assert _store(model_daemon, content)["degraded"] is None
    for question, number in BY_MEANING.items():
        assert MEMORIES[number] not in _found(model_daemon, question, "keyword")
        assert _found(model_daemon, question, "semantic")[0] == MEMORIES[number]
        assert _found(model_daemon, question, "hybrid")[0] == MEMORIES[number]


def test_what_says_the_same_in_nearly_the_same_words_is_a_duplicate(model_daemon: Home) -> None:
    first = _store(model_daemon, "The deploy script must never be run from a laptop, only from the pipeline")
    again = _store(
        model_daemon, "The deploy script must never be run from a laptop, but only from the pipeline"
    )
    assert (again["outcome"], again["memory_id"]) == ("duplicate", first["memory_id"])
    assert model_daemon.call("memory.get", memory_id=first["memory_id"])["repeated"] == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The service listens on port 8080 in production", "The service listens on port 8081 in production"),
        ("The settings are read from config/app.toml", "The settings are read from config/web.toml"),
        ("Requires PostgreSQL 15.2 or newer", "Requires PostgreSQL 15.4 or newer"),
    ],
)
def test_what_differs_in_a_detail_is_another_memory_however_alike(
    model_daemon: Home, one: str, other: str
) -> None:
    first, second = _store(model_daemon, one), _store(model_daemon, other)
    assert (first["outcome"], second["outcome"]) == ("stored", "stored")
    assert first["memory_id"] in [related["memory_id"] for related in second["related"]]
    assert model_daemon.call("memory.get", memory_id=first["memory_id"])["status"] == "active"


def test_what_is_turned_into_its_opposite_is_flagged_and_offered_and_replaced_when_told_to(
    model_daemon: Home,
) -> None:
    first = _store(model_daemon, "Always run the linter before a commit")
    second = _store(model_daemon, "Never run the linter before a commit")
    assert (second["outcome"], second["contradicts"], second["superseded"]) == (
        "stored",
        [first["memory_id"]],
        [],
    )
    assert [one["memory_id"] for one in second["may_replace"]] == [first["memory_id"]]
    again = _store(model_daemon, "Never run the linter before a commit", supersedes=[first["memory_id"]])
    assert (again["outcome"], again["memory_id"], again["superseded"]) == (
        "duplicate",
        second["memory_id"],
        [first["memory_id"]],
    )
    found = model_daemon.call("memory.get", memory_id=first["memory_id"])
    assert (found["status"], found["superseded_by"]) == ("superseded", second["memory_id"])


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The invoice service runs on PostgreSQL 15", "The invoice service runs on CockroachDB"),
        ("Deploys go out on Tuesdays", "We no longer deploy on Tuesdays, but on Mondays"),
        (
            "The search index is rebuilt every night by cron",
            "The search index is rebuilt on each write by a trigger",
        ),
        ("Sessions are kept in Redis", "Sessions moved from Redis to signed cookies"),
    ],
)
def test_what_another_memory_may_replace_is_offered_and_what_has_nothing_to_do_with_it_is_not(
    model_daemon: Home, older: str, newer: str
) -> None:
    _store(model_daemon, "The office coffee machine prefers oat milk")
    first = _store(model_daemon, older)
    assert first["may_replace"] == []
    assert [one["memory_id"] for one in _store(model_daemon, newer)["may_replace"]] == [first["memory_id"]]


def test_a_result_says_what_may_take_its_place_and_is_cut(model_daemon: Home) -> None:
    given = {"event_type": "decision", "project": "shop-listings"}
    old, new = _listing_images(model_daemon, **given)
    asked = {"text": "where are listing images stored?", "project": given["project"], "limit": 1}
    (first,) = model_daemon.call("memory.query", **asked)["results"]
    assert (first["memory_id"], first["doubted_by"]) == (old, new)
    assert first["conflict"] == "Images of the real estate listings live in S3 now."
    model_daemon.call("memory.supersede", memory_id=old, superseded_by=new)
    until(model_daemon.caught_up)
    (first,) = model_daemon.call("memory.query", **asked)["results"]
    assert (first["memory_id"], first.get("doubted_by")) == (new, None)


def _listing_images(home: Home, **given: str) -> tuple[str, str]:
    """Store two memories, and return their ids: it is not asked what the second is to the first."""
    old, new = (
        _store(home, content, **given)
        for content in (
            "Images of the real estate listings are stored in MongoDB GridFS together with their metadata.",
            "Images of the real estate listings live in S3 now.",
        )
    )
    assert new["may_contradict"] == new["contradicts"] == []
    until(home.caught_up)
    return old["memory_id"], new["memory_id"]


@pytest.mark.parametrize("order", ["{new} {old}", "{old} {new}"])
def test_of_two_that_both_hold_none_is_said_to_take_the_others_place(model_daemon: Home, order: str) -> None:
    given = {"event_type": "decision", "project": "shop-listings"}
    old, new = _listing_images(model_daemon, **given)
    asked = ("query", "where are listing images stored?", "--project", given["project"])
    said = model_daemon.shown(*asked)
    assert f"{new}, later, may deny {old}" in said
    assert f"omegad memory settle {new} {old} contradicts|supersedes|compatible" in said
    model_daemon.shown("memory", "settle", *order.format(old=old, new=new).split(), "compatible")
    assert "may deny" not in model_daemon.shown(*asked)
    assert model_daemon.call("views.verify")["ok"]


def test_what_may_deny_a_wording_is_told_of_the_one_that_stands_for_it(model_daemon: Home) -> None:
    given = {"event_type": "decision", "project": "nightly"}
    for content in (
        "Staging is rebuilt every night at 02:00 UTC.",
        "The staging environment gets rebuilt nightly at 02:00 UTC.",
        "Every night at 02:00 UTC we rebuild staging.",
    ):
        _store(model_daemon, content, **given)
    newest = _store(model_daemon, "Staging is rebuilt every night at 03:00 UTC.", **given)
    until(model_daemon.caught_up)
    assert newest["may_contradict"] or newest["contradicts"]
    found = model_daemon.call("memory.query", text="when is staging rebuilt?", project="nightly")
    fronts = [one for one in found["results"] if one["memory_id"] != newest["memory_id"]]
    assert newest["memory_id"] in [one.get("doubted_by") or one.get("contradicted_by") for one in fronts]
    assert [one for one in fronts if one.get("same")], fronts


def test_a_prompt_brings_up_what_may_be_denied_beside_what_may_deny_it(
    model_daemon: Home, tmp_path: Path
) -> None:
    folder = tmp_path / "corvid"
    (folder / ".git").mkdir(parents=True)
    same = (
        "each pull request gets its own machine with a seeded copy of the catalogue, and QA signs off there"
    )
    given = {"event_type": "decision", "project": "corvid"}
    old = _store(model_daemon, f"Previews of the storefront run on Gitpod: {same}", **given)["memory_id"]
    newer = f"Previews of the storefront switched to Codespaces: {same}"
    stored = _store(model_daemon, newer, **given)
    assert [one["memory_id"] for one in stored["may_contradict"]] == [old]
    prompt = "where do previews of the storefront run?"
    asked = {"event": "UserPromptSubmit", "host": "claude-code"}
    payload = {
        "hook_event_name": "UserPromptSubmit",
        "session_id": "prompt-1",
        "cwd": str(folder),
        "prompt": prompt,
    }
    until(model_daemon.caught_up)
    told = str(model_daemon.call("hook.dispatch", **asked, payload=payload))
    assert f"({stored['memory_id']}, later, may deny it: Previews of the storefront switched to" in told


def test_of_what_an_edit_told_the_beginning_alone_a_prompt_tells_more(
    model_daemon: Home, tmp_path: Path
) -> None:
    folder = tmp_path / "heron"
    (folder / ".git").mkdir(parents=True)
    given = {"event_type": "decision", "project": "heron"}
    checks = "payments/webhook.py checks signatures with the shared secret of the gateway."
    old = _store(model_daemon, checks, **given)["memory_id"]
    newer = (
        "Following the pentest of October and the talk with their engineers, instead of a shared secret the"
        " signatures are checked with the public key that the gateway publishes under its well-known address,"
        " cached for ten minutes and refreshed on the first failure."
    )
    new = _store(model_daemon, newer, **given)
    assert [one["memory_id"] for one in new["may_contradict"]] == [old]

    def told(event: str, **given: object) -> str:
        until(model_daemon.caught_up)
        payload = {"hook_event_name": event, "session_id": "heron-1", "cwd": str(folder), **given}
        return str(model_daemon.call("hook.dispatch", event=event, host="claude-code", payload=payload))

    file = {"file_path": str(folder / "payments/webhook.py"), "old_string": "a", "new_string": "b"}
    edit = told("PreToolUse", tool_name="Edit", tool_input=file)
    assert f"({new['memory_id']}, later, may deny it: Following the pentest" in edit
    assert "public key" not in edit
    prompt = "how are the signatures of the gateway checked, with which public key, and is it cached?"
    assert "public key" in told("UserPromptSubmit", prompt=prompt)
    assert "public key" not in told("UserPromptSubmit", prompt=f"{prompt} for how long?")


def test_what_is_near_is_related_and_what_is_not_is_not(model_daemon: Home) -> None:
    first = _store(model_daemon, "The nightly backup of the database takes forty minutes")
    near = _store(model_daemon, "Database backups run every night and are kept for a month")
    far = _store(model_daemon, "The office coffee machine prefers oat milk")
    assert [related["memory_id"] for related in near["related"]] == [first["memory_id"]]
    assert far["related"] == []
    edges = model_daemon.call("memory.get", memory_id=first["memory_id"])["edges"]
    assert [(edge["memory_id"], edge["direction"]) for edge in edges] == [(near["memory_id"], "in")]
    model_daemon.check()


def _tags(home: Home) -> list[str]:
    return [event["tag"].partition("@")[0] for event in home.events()]


def _heal(home: Home) -> None:
    """Wait until every memory has its vectors."""
    until(
        lambda: _tags(home).count("memory.embedded") == _tags(home).count("memory.stored"),
        lambda: str(home.call("system.status")),
    )
    until(lambda: home.call("system.status")["degraded"] == [], lambda: str(home.call("system.status")))
    until(home.caught_up)


def test_what_was_stored_without_the_model_is_found_by_its_meaning_once_there_is_one(home: Home) -> None:
    home.start()
    for content in MEMORIES:
        answer = _store(home, content)
        assert (answer["outcome"], answer["degraded"]) == ("stored", "embedding")
    question, number = next(iter(BY_MEANING.items()))
    answer = home.call("memory.query", text=question)
    assert answer["degraded"] == "keyword"
    assert MEMORIES[number] not in [result["content"] for result in answer["results"]]
    assert home.call("system.status")["embedding"]["state"] == "absent"

    home.environ["OMEGAD_MODEL"] = "auto"
    home.restart()
    _heal(home)
    for question, number in BY_MEANING.items():
        assert _found(home, question, "semantic")[0] == MEMORIES[number]
    home.check()
    home.restart()
    assert _found(home, question, "semantic")[0] == MEMORIES[number]
    assert _tags(home).count("memory.embedded") == len(MEMORIES), "it is not done twice"


def test_near_duplicates_stored_without_the_model_are_told_apart_once_there_is_one(home: Home) -> None:
    home.start()
    first = _store(
        home, "Run the migrations by hand after every release of the billing service", ack="durable"
    )
    again = _store(
        home, "Run the migrations by hand after each release of the billing service", ack="durable"
    )
    assert again["outcome"] == "stored"
    home.environ["OMEGAD_MODEL"] = "auto"
    home.restart()
    _heal(home)
    found = home.call("memory.get", memory_id=again["memory_id"])
    assert (found["status"], found["superseded_by"]) == ("superseded", first["memory_id"])
    assert home.call("memory.get", memory_id=first["memory_id"])["status"] == "active"
    home.check()


def test_a_store_that_waits_for_nothing_is_embedded_and_related_afterwards(model_daemon: Home) -> None:
    first = _store(model_daemon, "The nightly backup of the database takes forty minutes")
    durable = _store(model_daemon, "Database backups run every night and are kept for a month", ack="durable")
    assert (durable["outcome"], durable["related"]) == ("stored", [])
    _heal(model_daemon)
    edges = model_daemon.call("memory.get", memory_id=durable["memory_id"])["edges"]
    assert [edge["memory_id"] for edge in edges] == [first["memory_id"]]
    model_daemon.check()


def test_a_model_installed_while_the_daemon_runs_is_taken_up(
    homes: Callable[..., Home], tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    (cache / "omegad").mkdir(parents=True)
    home = homes(OMEGAD_MODEL="auto", XDG_CACHE_HOME=str(cache)).start()
    assert _store(home, MEMORIES[1])["degraded"] == "embedding"
    assert any("no embedding model" in trouble for trouble in home.call("system.status")["degraded"])
    (cache / "omegad" / "models").symlink_to(find_paths().models, target_is_directory=True)
    until(lambda: home.call("system.status")["embedding"]["model"] is not None)
    _heal(home)
    assert _found(home, next(iter(BY_MEANING)), "semantic")[0] == MEMORIES[1]
    home.check()


def test_content_too_large_is_refused_before_the_model_reads_it(model_daemon: Home) -> None:
    with model_daemon.raw() as connection:
        answer = connection.ask("memory.store", b'{"content":"' + b"many words " * 1_000_000 + b'"}')
    assert answer["error"]["code"] == -32602
    assert model_daemon.call("system.status")["embedding"]["state"] == "unloaded", "nothing was embedded"
