import pytest

from tests.cli.conftest import Command

STORE = ("store", "Deploys are blue-green since May", "--event-type", "decision", "--project", "shop")


def test_a_memory_is_stored_found_read_listed_and_deleted(served: Command) -> None:
    memory_id = served.json(*STORE, "--tag", "ops", "--tag", "deploy")["memory_id"]
    assert memory_id in served("query", "blue-green deploys", "--project", "shop").stdout
    shown = served("get", memory_id).stdout
    assert all(text in shown for text in (memory_id, "decision", "ops, deploy", "\nDeploys are blue-green since May\n"))
    assert memory_id in served("list", "--tag", "ops").stdout
    assert "deleted" in served("delete", memory_id, "--reason", "a test").stdout
    assert served.json("list", "--tag", "ops")["memories"] == []
    assert served.json("get", memory_id)["status"] == "deleted"


def test_every_parameter_of_a_store_can_be_given(served: Command) -> None:
    given = {
        "session_id": "s-1",
        "project": "shop",
        "entity_id": "person-1",
        "referenced_date": "2026-01-31T09:30:00.000000Z",
        "source": "a test",
        "confidence": 0.5,
        "priority": 5,
        "ttl_seconds": 3600,
    }
    flags = [text for name, value in given.items() for text in ("--" + name.replace("_", "-"), str(value))]
    arguments = ("store", "Everything is known of this one", *flags, "--metadata", '{"a": [1, 2]}', "--request-id", "r-1", "--ack", "durable")
    stored = served.json(*arguments)
    assert served.json(*arguments) == stored
    memory = served.json("get", stored["memory_id"])
    assert {name: memory[name] for name in given} == given
    assert memory["metadata"] == {"a": [1, 2]}


def test_content_comes_from_standard_input_too(served: Command) -> None:
    memory_id = served("store", "-", stdin="first line\nsecond line, naïve\n".encode()).stdout.split()[1]
    assert served.json("get", memory_id)["content"] == "first line\nsecond line, naïve"


def test_what_was_taken_out_or_left_undone_is_said_loudly(served: Command) -> None:
    stored = served("store", "the key is AKIAIOSFODNN7EXAMPLE, keep it")
    assert "REDACTED before it was stored: aws_access_key" in stored.stderr
    assert "DEGRADED" in served("query", "key").stderr


def test_nothing_found_is_no_failure(served: Command) -> None:
    assert served("query", "zebra xylophone", "--mode", "keyword").stdout == "nothing found\n"


def test_scores_are_explained_when_asked(served: Command) -> None:
    served("store", "The walrus sleeps on the ice")
    assert "BM25" in served("query", "walrus", "--explain").stdout
    assert served.json("query", "walrus", "--explain")["results"][0]["explanation"]["bm25"] > 0


def test_filters_and_limits_reach_the_daemon(served: Command) -> None:
    for number in range(3):
        served("store", f"page {number} of the pelican's diary", "--project", "diary", "--type", "lesson_learned")
    page = served("list", "--project", "diary", "--limit", "2").stdout
    assert page.count("mem-") == 2
    cursor = page.split("--cursor ")[1].strip()
    assert served("list", "--project", "diary", "--limit", "2", "--cursor", cursor).stdout.count("mem-") == 1
    by_type = ("query", "pelican", "--type", "lesson_learned", "--type", "decision")
    assert len(served.json(*by_type, "--limit", "2", "--until", "2999-01-01", "--since", "2020-01-01")["results"]) == 2
    assert served.json("query", "pelican", "--session-id", "nobody")["results"] == []


def test_what_is_stored_cannot_command_the_terminal(served: Command) -> None:
    memory_id = served.json("store", "red \033[31m and \u202e backwards \u009b1m")["memory_id"]
    for shown in (served("get", memory_id).stdout, served("query", "backwards").stdout):
        assert "backwards" in shown
        assert not {"\033", "\u202e", "\u009b"} & set(shown)


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (("get", "mem-0"), "there is no memory mem-0", "hint: check the id"),
        (("delete", "mem-0"), "there is no memory mem-0", "hint: check the id"),
        (("store", "x", "--type", "decison"), "unknown event_type 'decison'", "did you mean 'decision'"),
        (("query", "x", "--limit", "101"), "$.limit", "hint: "),
        (("list", "--since", "yesterday"), "since is not a time: 'yesterday'", "2026-01-31"),
    ],
)
def test_what_the_daemon_refuses_is_explained(served: Command, arguments: tuple[str, ...], message: str, hint: str) -> None:
    refused = served(*arguments, status=1)
    assert refused.stdout == ""
    assert message in refused.stderr
    assert hint in refused.stderr
