import json
import re
import socketserver
import threading
from pathlib import Path

import pytest

from omegad.catalog.methods import SERVED
from omegad.edge.cli import arguments, main, memories
from omegad.requests.method import CommandMethod
from omegad.runtime.errors import Stale
from tests.edge.cli.conftest import Command

STORE = ("store", "Deploys are blue-green since May", "--event-type", "decision", "--project", "shop")


def test_a_memory_is_stored_found_read_listed_and_deleted(served: Command) -> None:
    memory_id = served.json(*STORE, "--tag", "ops", "--tag", "deploy")["memory_id"]
    assert memory_id in served("query", "blue-green deploys", "--project", "shop").stdout
    shown = served("get", memory_id).stdout
    assert all(
        text in shown
        for text in (memory_id, "decision", "ops, deploy", "\nDeploys are blue-green since May\n")
    )
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
    arguments = (
        "store",
        "Everything is known of this one",
        *flags,
        "--metadata",
        '{"a": [1, 2]}',
        "--request-id",
        "r-1",
        "--ack",
        "durable",
    )
    stored = served.json(*arguments)
    assert served.json(*arguments) == stored
    memory = served.json("get", stored["memory_id"])
    assert {name: memory[name] for name in given} == given
    assert memory["metadata"] == {"a": [1, 2]}


def test_a_store_takes_the_places_that_it_is_told_to(served: Command) -> None:
    ids = [
        served.store(content, project="moves")
        for content in ("Billing runs on PostgreSQL", "Billing keys lie in the vault")
    ]
    flags = [text for memory_id in ids for text in ("--supersedes", memory_id)]
    told = served("store", "Billing is gone", "--project", "moves", *flags).stdout.splitlines()
    assert told[1:] == [f"  supersedes {memory_id}" for memory_id in ids]
    assert served.json("get", ids[0])["superseded_by"] == told[0].split()[1]


def test_what_a_store_may_replace_is_shown_with_the_command_that_does_it_and_each_other_memory_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    offered = {"memory_id": "mem-old", "content": "Billing runs on\nPostgreSQL", "cosine": 0.8125}
    asked, denied = offered | {"memory_id": "mem-other"}, offered | {"memory_id": "mem-denied"}
    answer = {
        "outcome": "stored",
        "memory_id": "mem-new",
        "related": [
            {"edge_type": "related", "memory_id": name, "similarity": 0.75}
            for name in ("mem-denied", "mem-old", "mem-near")
        ],
        "contradicts": ["mem-denied"],
        "superseded": [],
        "may_replace": [offered, asked, denied],
        "may_contradict": [asked],
    }
    monkeypatch.setattr(
        memories,
        "asked",
        lambda *_given, **_params: (
            answer | {"ignored": [], "unfound": [], "redacted": [], "degraded": None, "note": None}
        ),
    )
    assert main(["store", "Billing runs on CockroachDB"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "stored mem-new",
        "  contradicts mem-denied",
        "  may contradict mem-other (0.81): Billing runs on PostgreSQL",
        "    say so: omegad memory settle mem-new mem-other contradicts (or supersedes, or compatible)",
        "  may replace mem-old (0.81): Billing runs on PostgreSQL",
        "    if so: omegad memory supersede mem-old mem-new",
        "  related mem-near (0.75)",
    ]


def test_content_comes_from_standard_input_too(served: Command) -> None:
    memory_id = served("store", "-", stdin="first line\nsecond line, naïve\n".encode()).stdout.split()[1]
    assert served.json("get", memory_id)["content"] == "first line\nsecond line, naïve"


def test_what_was_taken_out_or_left_undone_is_said_loudly(served: Command) -> None:
    stored = served("store", "the key is AKIAIOSFODNN7EXAMPLE, keep it")
    assert "REDACTED before it was stored: aws_access_key" in stored.stderr
    assert "DEGRADED" in served("query", "key").stderr


def test_words_alone_are_told_of_a_store_where_a_model_was_asked_for(served: Command, tmp_path: Path) -> None:
    assert "DEGRADED" not in served("store", "the setting asks for no model").stderr
    command = Command(tmp_path / "home", OMEGAD_MODEL="auto", XDG_CACHE_HOME=str(tmp_path / "empty"))
    try:
        told = command("store", "the setting asks for a model, and none is there").stderr
        assert "DEGRADED: embedding; until the model answers" in told
    finally:
        command.end()


def test_nothing_found_is_no_failure(served: Command) -> None:
    assert served("query", "zebra xylophone", "--mode", "keyword").stdout == "nothing found\n"


def test_a_filter_that_no_memory_passes_is_told_with_what_is_like_it(served: Command) -> None:
    served.store("The lathe is oiled on Mondays", project="workshop", tags=["upkeep"])
    told = served("query", "lathe", "--project", "workshp", "--tag", "upkeep").stderr
    assert "there is no project 'workshp' here; did you mean 'workshop'?" in told
    assert "tag" not in told
    assert "there is no project 'workshp' here" in served("report", "--project", "workshp").stderr
    assert "here: there are " in served("list", "--tag", "it''s").stderr
    assert "there is no" not in served("list", "--project", "workshop", "--since", "2999-01-01").stderr


def test_a_text_comes_from_standard_input_and_a_blank_one_is_no_question(served: Command) -> None:
    served.store("The anvil stands by the door")
    assert "anvil" in served("query", "-", stdin=b"where is the anvil?\n").stdout
    assert "text must not be empty" in served("query", " ", status=2).stderr


def test_hints_for_programs_name_verbs_at_a_shell(served: Command) -> None:
    assert "`omegad tasks` shows the ones" in served("task", "get", "tsk-0", status=1).stderr
    assert "`omegad memory prune` drops" in " ".join(served("memory", "junk", "--help").stdout.split())


def test_a_person_of_whom_nobody_has_heard_is_refused(served: Command) -> None:
    for verb in ("query x", "list", "timeline", "memory lessons"):
        refused = served(*verb.split(), "--person", "Zoe", status=2).stderr
        assert "nobody is called 'Zoe'" in refused
        assert "shares with no team" in refused


def test_a_project_that_is_new_and_called_almost_as_another_is_noted(served: Command) -> None:
    served("store", "the ferry leaves at nine", "--project", "fjordpass")
    mistyped = ("store", "the quay is closed on Sundays", "--project", "fjordpas")
    assert "a new project 'fjordpas'; did you mean 'fjordpass'?" in served(*mistyped).stderr
    again = served("store", "tickets are sold on board alone", "--project", "fjordpas")
    assert "new project" not in again.stderr


def test_a_phrase_that_nothing_holds_is_not_said_to_be_erased(served: Command) -> None:
    served("store", "the harbour's lamp is called Ingeborg-77")
    for how in ("--yes", "--dry-run"):
        told = served("memory", "erase", "--text", how, stdin=b"Ingeborg-78", status=1)
        assert "no event and no memory holds that text" in told.stderr
        assert told.stdout == ""
    assert served.json("query", "harbour's lamp")["results"]


def test_lists_are_shown_to_people_as_tables(served: Command) -> None:
    assert (
        served("memory", "stale", "--project", "none-of-it").stdout == "nothing should be looked at again\n"
    )
    assert served("tools", "list").stdout.startswith("TOOL ")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("store", ""), "content must not be empty"),
        (
            ("query", "x", "--limit", "0"),
            "--limit must be at least 1\n  hint: `omegad query --help`",
        ),
        (("query", "x", "--limit", "101"), "limit must be at most 100"),
        (("store", "x", "--project", "p" * 300), "project must have at most 256 characters"),
        (("store", "x", *("--tag", "t") * 99), "--tag must have at most 32 entries"),
    ],
)
def test_what_does_not_fit_is_said_in_words(typed: tuple[str, ...], said: str, served: Command) -> None:
    refused = served(*typed, status=2).stderr
    assert said in refused
    assert "$." not in refused


def test_scores_are_explained_when_asked(served: Command) -> None:
    served.store("The walrus sleeps on the ice")
    table = served("query", "walrus", "--explain").stdout.splitlines()
    assert table[0].split() == ["SCORE", "COSINE", "BM25", "ID", "CONTENT", "STAGES"]
    assert re.search(r"\bwords [+-]\d", table[1])
    assert served.json("query", "walrus", "--explain")["results"][0]["explanation"]["bm25"] > 0


def test_filters_and_limits_reach_the_daemon(served: Command) -> None:
    for number in range(3):
        served.store(f"page {number} of the pelican's diary", project="diary", event_type="lesson_learned")
    page = served("list", "--project", "diary", "--limit", "2").stdout
    assert page.count("mem-") == 2
    cursor = page.split("--cursor ")[1].strip()
    assert served("list", "--project", "diary", "--limit", "2", "--cursor", cursor).stdout.count("mem-") == 1
    by_type = ("query", "pelican", "--type", "lesson_learned", "--type", "decision")
    assert (
        len(
            served.json(*by_type, "--limit", "2", "--until", "2999-01-01", "--since", "2020-01-01")["results"]
        )
        == 2
    )
    assert served.json("query", "pelican", "--session-id", "nobody")["results"] == []


def test_what_is_stored_cannot_command_the_terminal(served: Command) -> None:
    memory_id = served.store("red \033[31m and \u202e backwards \u009b1m")
    for shown in (served("get", memory_id).stdout, served("query", "backwards").stdout):
        assert "backwards" in shown
        assert not {"\033", "\u202e", "\u009b"} & set(shown)


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (("get", "mem-0"), "there is no memory mem-0", "hint: check the id"),
        (("delete", "mem-0"), "there is no memory mem-0", "hint: check the id"),
        (("store", "x", "--type", "decison"), "unknown event_type 'decison'", "did you mean 'decision'"),
        (("query", "x", "--limit", "101"), "limit must be at most 100", "hint: "),
        (("list", "--since", "yesterday"), "since is not a time: 'yesterday'", "2026-01-31"),
    ],
)
def test_what_the_daemon_refuses_is_explained(
    served: Command, arguments: tuple[str, ...], message: str, hint: str
) -> None:
    refused = served(*arguments, status=1 if "no memory" in message else 2)
    assert refused.stdout == ""
    assert message in refused.stderr
    assert hint in refused.stderr


ACTIONS = (
    "edit",
    "delete",
    "erase",
    "restore",
    "supersede",
    "rate",
    "promote",
    "link",
    "unlink",
    "similar",
    "traverse",
    "history",
    "lessons",
    "receipts",
)


@pytest.mark.parametrize(
    "words", [("timeline",), ("memory",), *(("memory", action) for action in ACTIONS)], ids=" ".join
)
def test_what_can_be_done_with_memories_explains_itself(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--help"]) == 0
    told = capsys.readouterr().out
    assert f"usage: omegad {' '.join(words)}" in told
    assert words != ("memory",) or all(f"\n    {action} " in told for action in ACTIONS)


def test_what_writes_is_not_asked_twice() -> None:
    assert {name for name, method in arguments.methods().items() if method.get("writes")} == {
        name for name, method in SERVED.items() if isinstance(method, CommandMethod)
    } | {"memory.erase", "reaction.retry", "retention.apply", "tools.call"}


def test_a_memory_is_changed_judged_and_its_life_read_back(served: Command) -> None:
    one = served.store(
        "The heron nests in March", event_type="lesson_learned", project="birds", source="auto_capture"
    )
    assert served(
        "memory", "edit", one, "-", "--reason", "seen", stdin=b"The heron nests in April\n"
    ).stdout.startswith(f"edited {one} at position ")
    assert served.json("get", one)["content"] == "The heron nests in April"
    marked = served("memory", "edit", served.store("Where is it kept?"), "Its password is hunter2x")
    assert "! REDACTED before it was stored: assigned_secret" in marked.stderr
    assert served("memory", "rate", one, "unhelpful").stdout == f"rated {one} unhelpful; its score is -1\n"
    assert served("memory", "promote", one).stdout == f"promoted {one}; it is active\n"
    assert "stale_by" not in served("get", one).stdout
    assert "deleted" in served("memory", "delete", one).stdout
    assert served("memory", "restore", one).stdout.startswith(f"restored {one} at position ")
    other = served.store("Herons nest whenever they like", project="birds")
    assert (
        f"superseded {one} by {other}"
        in served("memory", "supersede", one, other, "--reason", "a test").stdout
    )
    life = served("memory", "history", one).stdout
    what = [line.split()[3] for line in life.splitlines()[1:]]
    told = ("stored", "edited", "rated", "promoted", "deleted", "restored", "superseded")
    assert [tag for tag in what if tag != "memory.embedded"] == [f"memory.{tag}" for tag in told]
    assert '"content":"The heron nests in April","reason":"seen"' in life
    assert one not in life
    page = served("memory", "history", one, "--limit", "2").stdout
    cursor = page.split("--cursor ")[1].strip()
    assert len(served.json("memory", "history", one, "--cursor", cursor)["events"]) == len(what) - 2


def test_memories_are_linked_and_their_edges_followed(served: Command) -> None:
    one, two, three = (
        served.store(f"the otter's {part} has its own shape") for part in ("head", "tail", "paw")
    )
    assert served("memory", "link", one, two, "--edge-type", "evolves", "--weight", "0.7").stdout.startswith(
        f"linked {one} to {two} at position "
    )
    served("memory", "link", three, two, "--weight", "0.2")
    shown = served("memory", "traverse", one).stdout.splitlines()
    assert [line.split()[:2] for line in shown[1:4]] == [["0", one], ["1", two], ["2", three]]
    assert shown[5].split() == ["HOP", "FROM", "EDGE", "WEIGHT", "TO"]
    assert shown[6].split() == ["1", one, "evolves", "0.70", two]
    asked = (
        "--max-hops",
        "3",
        "--min-weight",
        "0.5",
        "--edge-type",
        "evolves",
        "--edge-type",
        "related",
        "--direction",
        "out",
        "--limit",
        "5",
    )
    assert len(served.json("memory", "traverse", one, *asked)["nodes"]) == 2
    assert "truncated" not in served("memory", "traverse", one, "--limit", "2").stdout
    assert "more than the limits let through" in served("memory", "traverse", one, "--limit", "2").stderr
    assert served("memory", "unlink", one, two, "--edge-type", "evolves").stdout.startswith(
        f"unlinked {one} from {two}"
    )
    assert len(served.json("memory", "traverse", one)["nodes"]) == 1
    similar = served("memory", "similar", one, "--limit", "1")
    assert (two in similar.stdout) or (three in similar.stdout)
    assert "DEGRADED: compared by keyword alone" in similar.stderr
    assert served("memory", "similar", one, "--project", "nowhere").stdout == "nothing similar\n"


def test_days_and_lessons_are_shown(served: Command) -> None:
    lesson = served.store("Never feed the geese bread", event_type="lesson_learned", project="geese")
    served("memory", "rate", lesson, "helpful")
    table = served("memory", "lessons", "--project", "geese").stdout.splitlines()
    assert table[1].split()[:4] == ["1", "0", "0", lesson]
    assert served("memory", "lessons", "--project", "nowhere").stdout == "no lessons\n"
    shown = served("timeline", "--days", "2", "--project", "geese").stdout.splitlines()
    assert shown[0].split() == ["DAY", "TIME", "ID", "TYPE", "PROJECT", "CONTENT"]
    assert lesson in shown[1]
    assert [
        day["memories"][0]["memory_id"] for day in served.json("timeline", "--project", "geese")["days"]
    ] == [lesson]
    assert served("timeline", "--project", "nowhere").stdout == "no memories\n"
    served.store("Geese bite", project="geese")
    assert "older ones" in served("timeline", "--limit", "1", "--project", "geese").stderr


def test_receipts_say_what_was_found_for_whom(served: Command) -> None:
    one = served.store("The marmot whistles at eagles", project="alps")
    query_id = served.json("query", "marmot", "--project", "alps", "--session-id", "s-9")["query_id"]
    assert served.json("memory", "receipts", "--query-id", query_id)["receipts"] == []
    query_id = served.json("query", "marmot", "--project", "alps")["query_id"]
    (receipt,) = served.json("memory", "receipts", "--query-id", query_id)["receipts"]
    assert (receipt["memory_id"], receipt["rank"], receipt["how"]) == (one, 1, "query")
    assert query_id in served("memory", "receipts", "--memory-id", one).stdout
    assert query_id in served("memory", "receipts", one, "--limit", "5").stdout
    assert served("memory", "receipts", "--session-id", "nobody").stdout == "no receipts\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("history", "mem-0"), "there is no memory mem-0"),
        (("similar", "mem-0"), "there is no memory mem-0"),
        (("traverse", "mem-0"), "there is no memory mem-0"),
        (("edit", "mem-0", "x"), "there is no memory mem-0"),
        (("traverse", "mem-0", "--max-hops", "6"), "--max-hops must be at most 5"),
        (("receipts",), "whose receipts?"),
    ],
)
def test_what_cannot_be_read_or_changed_is_explained(
    served: Command, words: tuple[str, ...], message: str
) -> None:
    refused = served("memory", *words, status=1 if "no memory" in message else 2)
    assert refused.stdout == ""
    assert message in refused.stderr
    assert "hint: " in refused.stderr


def test_like_summaries_are_compacted_and_what_would_be_done_is_said_first(served: Command) -> None:
    common = "The nightly exporter of the billing service is slow on every weekday between spring and autumn."
    notes = (
        f"{common} {rest}" for rest in ("It fetches rows alone.", "Its batches are small.", "It logs a lot.")
    )
    ids = [served.store(note, event_type="session_summary") for note in notes]
    told = served("memory", "compact", "--dry-run").stdout
    assert "a dry run: this would supersede 3 memories by 1 summaries" in told
    assert served.json("get", ids[0])["status"] == "active"
    compacted = served.json("memory", "compact")
    assert sorted(compacted["clusters"][0]["originals"]) == sorted(ids)
    assert served.json("get", ids[0])["superseded_by"] == compacted["clusters"][0]["memory_id"]
    assert "done: record 0 expiries" in served("memory", "consolidate").stdout


def test_what_the_views_do_not_show_yet_is_waited_for(omegad: Command) -> None:
    """A daemon whose views are behind at first is asked again, and what it answers then is shown."""
    stale = {
        "code": Stale.code,
        "message": "7,000 of 15,001 events",
        "data": {"kind": "stale", "tag": "RETRIEVAL", "hint": ""},
    }
    answers: list[dict[str, object]] = [
        {"error": stale},
        {"error": stale},
        {"result": {"ok": True, "version": "1", "pid": 7}},
    ]

    class Behind(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for line in self.rfile:
                asked = json.loads(line)
                answer = (
                    {"result": {"protocol": 1, "version": "1", "build": "1"}}
                    if asked["method"] == "system.hello"
                    else answers.pop(0)
                )
                self.wfile.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"]} | answer).encode() + b"\n")

    omegad.paths.socket.parent.mkdir(parents=True, mode=0o700)
    with socketserver.UnixStreamServer(str(omegad.paths.socket), Behind) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        assert omegad("system", "ping").stdout == "omegad 1 answers: process 7\n"
        server.shutdown()
    assert answers == []
