"""The benchmarks' definitions on examples made by hand, each benchmark's files in the form in which they are
published, and the command with a real daemon.
"""

import json
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pytest

from omegad.runtime.errors import NoDaemon
from tests.acceptance.conftest import require_model
from tests.bench import texts
from tests.bench.recall import command, plain, running, scores, table
from tests.bench.recall.asked import Omegad
from tests.bench.recall.precision import PRECISION, Case
from tests.bench.recall.running import ASIDE, Result, Row
from tests.bench.recall.sets import Missing, Question, Store, Text

BEHIND = [frozenset("a"), frozenset("b"), frozenset("cd"), frozenset("e")]


def written(folder: Path, name: str, given: Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(given), encoding="utf-8")
    return path


def loaded(key: str, folder: Path) -> list[Store]:
    return running.chosen(command.BENCHMARKS[key], folder, "all", None)[0]


def question(**changes: Any) -> dict[str, Any]:
    return {
        "question_id": "q1",
        "question_type": "multi-session",
        "question": "Where?",
        "haystack_session_ids": ["answer_1", "other"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/22 (Mon) 10:00"],
        "haystack_sessions": [
            [
                {"role": "user", "content": "I moved to Lisbon", "has_answer": True},
                {"role": "assistant", "content": "How nice", "has_answer": False},
                {"role": "user", "content": "What is for dinner?", "has_answer": False},
            ],
            [{"role": "user", "content": "Name three red fruits"}],
        ],
    } | changes


def test_recall_counts_what_the_first_results_hold_together() -> None:
    assert scores.recall(2, BEHIND, frozenset("adx")) == pytest.approx(1 / 3)
    assert scores.recall(3, BEHIND, frozenset("adx")) == pytest.approx(2 / 3)
    assert (scores.recall_any(2, BEHIND, frozenset("ex")), scores.recall_any(4, BEHIND, frozenset("ex"))) == (
        0,
        1,
    )
    assert (scores.recall_all(2, BEHIND, frozenset("ad")), scores.recall_all(3, BEHIND, frozenset("ad"))) == (
        0,
        1,
    )
    assert scores.reciprocal_rank(BEHIND, frozenset("ed")) == pytest.approx(1 / 3)
    assert scores.reciprocal_rank(BEHIND, frozenset("x")) == 0


def test_ndcg_discounts_from_the_third_place_on() -> None:
    assert scores.ndcg(5, BEHIND, frozenset("b")) == 1  # as the published script has it
    assert scores.ndcg(5, BEHIND, frozenset("ac")) == pytest.approx((1 + 1 / 1.5849625) / 2)
    assert scores.ndcg(2, BEHIND, frozenset("ce")) == 0


def test_a_session_stands_where_its_first_text_does() -> None:
    sessions = {"a": "s1", "b": "s2", "c": "s1", "d": "s2", "e": "s3"}
    assert scores.by_session(BEHIND, sessions) == [frozenset(["s1"]), frozenset(["s2"]), frozenset(["s3"])]


def test_plain_methods_look_within_the_project_and_bm25_returns_what_it_matched() -> None:
    methods = plain.Plain(texts.vector)
    for key, content, project in (
        ("1", "The exporter is slow", "shop"),
        ("2", "Exporters and importers", "shop"),
        ("3", "An exporter elsewhere", "other"),
        ("4", "我住在绿洲家园", "shop"),
    ):
        methods.put(Text(key=key, content=content, project=project))
    found = methods.ask(Question(text="why is the exporter slow?", project="shop"), 10)
    assert found["BM25"] == [frozenset("1"), frozenset("2")]
    assert found["cosine"][0] == found["blend"][0] == frozenset("1")
    assert len(found["cosine"]) == len(found["blend"]) == 3
    assert methods.ask(Question(text="绿洲在哪里"), 10)["BM25"] == [frozenset("4")]
    assert methods.ask(Question(text="anything", project="none"), 10) == {
        "BM25": (),
        "cosine": (),
        "blend": (),
    }


def test_a_memory_stands_for_all_the_texts_that_it_holds() -> None:
    def call(method: str, **parameters: Any) -> dict[str, Any]:
        if method == "memory.store":
            return {"memory_id": f"m-{parameters['content'].lower()}"}
        return {"results": [{"memory_id": "m-yes"}], "degraded": None}

    told = Omegad(call, is_served=False)
    for key, content in (("1", "yes"), ("2", "YES"), ("3", "no")):
        told.put(Text(key=key, content=content))
    assert told.ask(Question(text="so?"), 5) == {"omegad": [frozenset("12")]}
    assert (told.merged, told.silent, told.degraded) == (1, 0, 0)


@pytest.mark.parametrize("is_archive", [False, True])
def test_locomo(tmp_path: Path, *, is_archive: bool) -> None:
    talk = {
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ann", "dia_id": "D1:1", "text": "Look", "blip_caption": "a red kite"},
            {"speaker": "Bob", "dia_id": "D1:2", "text": "Great"},
        ],
        "session_1_summary": "…",
    }
    asked = [
        {"question": "What was it?", "category": 4, "evidence": ["D1:1"]},
        {"question": "What was it not?", "category": 5, "evidence": ["D1:1"]},
    ]
    if is_archive:
        path = written(tmp_path, "26.json", talk | {"qa": asked})
        (tmp_path / "data").mkdir()
        with zipfile.ZipFile(tmp_path / "data" / "locomo10.zip", "w") as archive:
            archive.write(path, "multimodal_dialog/26.json")
    else:
        written(tmp_path, "locomo/data/locomo10.json", [{"conversation": talk, "qa": asked}])
    (store,) = loaded("locomo", tmp_path)
    assert [text.content for text in store.texts] == ["Ann: Look [a red kite]", "Bob: Great"]
    assert [(one.text, one.gold) for one in store.questions] == [("What was it?", frozenset(["D1:1"]))]


def test_longmemeval_keeps_the_users_turns_and_tells_evidence_from_the_rest_of_its_session(
    tmp_path: Path,
) -> None:
    entries = [question(), question(question_id="q2_abs"), question(haystack_sessions=[[], []])]
    written(tmp_path, "longmemeval_s.json", entries)
    (store,) = loaded("longmemeval", tmp_path)
    assert [text.counted() for text in store.texts] == ["answer_1", "noans_1", "other"]
    assert [str(text.said) for text in store.texts[::2]] == [
        "2023-05-20 02:21:00+00:00",
        "2023-05-22 10:00:00+00:00",
    ]
    assert store.questions[0].sessions == {"answer_1"}
    assert store.questions[0].gold == {store.texts[0].key}


def test_beam(tmp_path: Path) -> None:
    folder = tmp_path / "BEAM/chats/100K/9"
    turn = [
        {
            "role": "user",
            "id": 0,
            "time_anchor": "March-15-2024",
            "content": "Sprints end on Fridays ->-> 1,1",
        },
        {"role": "assistant", "id": 1, "content": "Noted"},
    ]
    written(folder, "chat.json", [{"batch_number": 1, "turns": [turn], "time_anchor": None}])
    probing = {
        "abstention": [{"question": "Who?"}],
        "knowledge_update": [
            {"question": "When?", "source_chat_ids": {"original_info": [0], "updated_info": [7]}}
        ],
        "summarization": [{"question": "What?", "source_chat_ids": [[0], [1]]}],
    }
    written(folder, "probing_questions/probing_questions.json", probing)
    (store,) = loaded("beam", tmp_path)
    assert [text.content for text in store.texts] == ["user: Sprints end on Fridays", "assistant: Noted"]
    assert str(store.texts[1].said) == "2024-03-15 00:00:00+00:00"
    assert [one.gold for one in store.questions] == [frozenset("0"), frozenset("01")]


def test_realtalk(tmp_path: Path) -> None:
    said = {"speaker": "Kate", "date_time": "29.12.2023, 22:42:04"}
    chat = {
        "session_2": [
            said | {"clean_text": "I ski", "dia_id": "D2:1"},
            said | {"clean_text": " ", "dia_id": "D2:2"},
        ],
        "session_1": [said | {"clean_text": "Hey!", "dia_id": "D1:1"}],
        "qa": [
            {"question": "What does Kate do?", "evidence": ["D2:1", "D9:9"]},
            {"question": "?", "evidence": []},
        ],
    }
    for number in (10, 2):
        written(tmp_path, f"REALTALK/data/Chat_{number}_Kate_Ann.json", chat)
    first, second = loaded("realtalk", tmp_path)
    assert (first.is_dev, second.is_dev) == (True, False)
    assert [text.content for text in first.texts] == ["Kate: Hey!", "Kate: I ski"]
    assert [(one.gold, one.sessions) for one in first.questions] == [
        (frozenset(["D2:1"]), frozenset(["session_2"]))
    ]


def test_realmem_asks_before_the_session_is_remembered(tmp_path: Path) -> None:
    def session(name: str, asked: str, used: list[str]) -> dict[str, Any]:
        turns = [
            {"speaker": "User", "content": asked, "is_query": True, "category_name": "Static"},
            {"speaker": "Assistant", "content": "So it was", "memory_session_uuids": used},
        ]
        return {
            "session_identifier": name,
            "session_uuid": f"u-{name}",
            "current_time": "2026-01-13 (Tuesday)",
        } | {"dialogue_turns": turns}

    dialogues = [session("one", "Hello", []), session("two", "What did we say?", ["u-one", "u-gone"])]
    written(tmp_path, "RealMemBench/dataset/Ann_dialogues_256k.json", {"dialogues": dialogues})
    (store,) = loaded("realmem", tmp_path)
    assert [text.key for text in store.texts] == ["one/0", "one/1", "two/0", "two/1"]
    assert [(one.text, one.sessions, one.after) for one in store.questions] == [
        ("What did we say?", frozenset(["one"]), 2)
    ]


def test_memdaily(tmp_path: Path) -> None:
    messages = [
        {
            "mid": 0,
            "message": "我住的那个小区叫绿洲家园。",
            "time": "2024年04月01日 周一 08:02",
            "place": "广东深圳",
        }
    ]
    right = {"question": "哪个小区", "answer": "绿洲家园", "target_step_id": [0]}
    failed = right | {"answer": "[ERRORA]"}
    given = [{"message_list": messages, "question_list": [one]} for one in (failed, right, right)]
    written(tmp_path, "MemSim/messages_and_QAs/06_noisy_places.json", given)
    stores = loaded("memdaily", tmp_path)
    assert [(one.name, one.is_dev) for one in stores] == [
        ("06_noisy_places-0", True),
        ("06_noisy_places-1", False),
    ]
    (text,) = stores[0].texts
    assert text.content.endswith("(消息地点 广东深圳, 消息时间 2024年04月01日 周一 08:02)")
    assert str(text.said) == "2024-04-01 08:02:00+00:00"
    assert (stores[0].questions[0].kind, stores[0].questions[0].gold) == ("noisy", frozenset("0"))


def test_devmembench(tmp_path: Path) -> None:
    sessions = [
        {
            "sessionId": "S01",
            "metadata": {"date": "2025-01-15"},
            "messages": [{"role": "user", "content": "FastAPI"}],
        }
    ]
    asked = [
        {"question": "Which framework?", "questionType": "tech-stack", "haystackSessionIds": ["S01"]},
        {"question": "Which frontend?", "questionType": "abstention", "haystackSessionIds": []},
    ]
    for name, given in (("sessions", sessions), ("questions", asked)):
        written(tmp_path, f"opencode-memory/benchmark/src/dataset/{name}.json", given)
    (store,) = loaded("devmembench", tmp_path)
    assert [(text.content, text.session_id) for text in store.texts] == [("user: FastAPI", "S01")]
    assert [one.sessions for one in store.questions] == [{"S01"}]
    with pytest.raises(Missing, match="kept aside"):
        running.chosen(command.BENCHMARKS["devmembench"], tmp_path, "dev", None)


def belief(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "_id": name,
        "user_id": "test-user",
        "type": "entity",
        "canonical_name": name,
        "aliases": ["alias"],
        "content": "content",
        "why_it_matters": "",
        "scope": ["domain:code"],
        "pinned": False,
        "superseded_by": None,
        "resolved_at": None,
    } | changes


def test_precision_membench_passes_what_finds_all_and_nothing_else(tmp_path: Path) -> None:
    beliefs = [
        belief("k8s"),
        belief("redis"),
        belief("db", pinned=True),
        belief("between", type="relation", participants=["redis", "db"]),
        belief("theirs", user_id="other-user"),
    ]
    case = {"caseId": "c", "category": "Alias resolution", "scope": ["domain:code"], "query": "kube?"}
    wanted = {"pinnedFacts": {"mustInclude": ["db"]}, "relevantBeliefs": {"shouldOnlyInclude": ["k8s"]}}
    nothing: dict[str, Any] = {"relevantBeliefs": {"shouldOnlyInclude": []}}
    cases = [case | {"expect": wanted}, case | {"expect": nothing, "budget": {"maxBeliefs": 0}}]
    for name, given in (("beliefs.seed", beliefs), ("retrieval.cases", cases)):
        written(tmp_path, f"precisionMemBench/fixtures/{name}.json", given)
    (store,) = loaded("precision", tmp_path)
    assert [text.content for text in store.texts] == [
        f"{name} alias content" for name in ("k8s", "redis", "db", "between")
    ]
    one, none = store.questions
    assert isinstance(one, Case)
    assert isinstance(none, Case)
    exact, more = [frozenset(["k8s"]), frozenset(["db"])], [frozenset(["k8s"]), frozenset(["between"])]
    # What is pinned is neither found nor missing, and whom a relation is between comes with it.
    assert one.relevant(more) == ["k8s", "between", "redis"]
    assert [one.precision(exact), one.recall(exact), one.is_passed(exact)] == [1, 1, True]
    assert [one.precision(more), one.recall(more), one.is_passed(more)] == [1 / 3, 1, False]
    assert [none.precision(exact), none.recall(exact), none.is_passed(exact)] == [None, None, True]
    figures = {measure.name: measure.of(store, one, ()) for measure in PRECISION.measures}
    assert figures == {"precision": 0, "recall": 0, "passed of 77": 0, "actively passed of 77": 0}


def test_a_sample_is_the_same_in_every_run(tmp_path: Path) -> None:
    written(tmp_path, "longmemeval_s.json", [question(question_id=f"q{number}") for number in range(20)])
    benchmark = command.BENCHMARKS["longmemeval"]
    first, of = running.chosen(benchmark, tmp_path, "all", 5)
    assert [one.name for one in first] == [
        one.name for one in running.chosen(benchmark, tmp_path, "all", 5)[0]
    ]
    assert (len(first), of) == (5, 20)


def test_the_table_shows_the_best_and_what_is_kept_aside() -> None:
    def row(kind: str, questions: int, omegad: float, published: str = "") -> Row:
        values = {"omegad": omegad, "BM25": 50.0, "cosine": 40.0, "blend": 45.0}
        measured = {"measure": "R@5", "out_of": 100, "values": values}
        return msgspec.convert(measured | {"kind": kind, "questions": questions, "published": published}, Row)

    result = Result(
        name="LoCoMo",
        stores=1,
        stores_all=10,
        texts=1_200,
        questions=9,
        refused=0,
        merged=3,
        silent=0,
        degraded=0,
        took_s=1.0,
        rows=[row("", 9, 70.4, "they 48.0"), row(ASIDE, 4, 30.0), row("temporal", 2, 80.0)],
    )
    printed = list(table.lines([result], {"LoCoMo": command.BENCHMARKS["locomo"]}))
    assert printed[2:5] == [
        "| LoCoMo | R@5 | **70.4** | 50.0 | 40.0 | 45.0 | they 48.0 |",
        "|  | R@5, kept aside | 30.0 | **50.0** | 40.0 | 45.0 |  |",
        "",
    ]
    assert printed[5].startswith(
        "- **LoCoMo** (1 of 10 homes, 1,200 texts, 9 questions; 3 merged). A memory is"
    )


@pytest.mark.parametrize("part", ["all", "dev"])
def test_files_that_are_not_what_was_published_leave_a_benchmark_out(tmp_path: Path, part: str) -> None:
    written(tmp_path, "longmemeval_s.json", [])
    pointer = tmp_path / "locomo" / "data" / "locomo10.zip"
    pointer.parent.mkdir(parents=True)
    pointer.write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    for key in ("longmemeval", "locomo"):
        with pytest.raises(Missing, match="is not what it was published as"):
            running.chosen(command.BENCHMARKS[key], tmp_path, part, None)


@pytest.mark.parametrize("file", ["", "nowhere/found.json"])
def test_where_no_figures_can_be_written_is_said_before_anything_is_measured(
    tmp_path: Path, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command.main(["--data", str(tmp_path), "--json", str(tmp_path / file)])
    assert "is a folder, or in none" in capsys.readouterr().err


@pytest.mark.model
@pytest.mark.parametrize(
    ("error", "status", "why"),
    [
        (KeyboardInterrupt(), 130, "it was interrupted"),
        (NoDaemon("the connection was closed"), 1, "omegad went wrong: the connection was closed"),
    ],
)
def test_what_was_measured_is_printed_where_the_next_is_interrupted_or_goes_wrong(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    status: int,
    why: str,
) -> None:
    require_model()
    written(tmp_path, "longmemeval_s.json", [question()])
    measured = Result(
        name="LongMemEval-S",
        stores=1,
        stores_all=1,
        texts=4,
        questions=1,
        refused=0,
        merged=0,
        silent=0,
        degraded=0,
        took_s=1,
        rows=[
            Row(
                measure="R@5",
                kind="",
                out_of=100,
                questions=1,
                values=dict.fromkeys(("omegad", "BM25", "cosine", "blend"), 50),
                published="",
            )
        ],
    )
    runs: list[Result | BaseException] = [error, measured]

    def run(*_given: Any) -> Result:
        if isinstance(found := runs.pop(), BaseException):
            raise found
        return found

    monkeypatch.setattr(running, "run", run)
    assert command.main(["--data", str(tmp_path), "--only", "longmemeval", "longmemeval"]) == status
    printed = capsys.readouterr().out
    assert "| LongMemEval-S | R@5 | **50.0** |" in printed
    assert f"- **LongMemEval-S** is left out: {why}" in printed


@pytest.mark.model
def test_the_command_asks_a_daemon_and_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    require_model()
    written(tmp_path, "longmemeval_s_cleaned.json", [question(question="Which city did I move to?")])
    written(tmp_path, "RealMemBench/dataset/Ann_dialogues_256k.json", {"sessions": []})
    found = tmp_path / "found.json"
    arguments = ["--data", str(tmp_path), "--only", "longmemeval", "beam", "realmem", "--json", str(found)]
    assert command.main(arguments) == 0
    printed = capsys.readouterr()
    assert "| LongMemEval-S | session recall_any@5 | **100.0** |" in printed.out
    assert "BEAM 100K is left out: no chats/100K/" in printed.err
    assert "its data: github.com/mohammadtavakoli78/BEAM" in printed.err
    assert "_dialogues_256k.json is not what it was published as" in printed.err
    report = json.loads(found.read_text())
    assert report["results"][0]["rows"][0]["values"]["omegad"] == 100
