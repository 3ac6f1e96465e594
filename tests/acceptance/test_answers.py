"""What an answer tells of itself over the socket: how sure it is, and why each result is there."""

import pytest

from tests.acceptance.conftest import Home, until

MEMORIES = (
    "The staging database is restored from last night's dump every morning at six",
    "Customers are charged in euros, and refunds take five working days",
    "Our continuous integration machines have two cores and no graphics card",
    "The team decided to write all new services in Go",
    "Passwords are hashed with argon2 and never logged",
    "Photos are resized in the browser before they are uploaded",
    "The nightly export times out unless fetch_size is 500",
    "Never force-push to main; open a pull request",
    "Feature flags are read from flags.toml when a service starts",
    "Alerts go to the on-call channel, and to a pager after ten minutes",
)
ON_TOPIC = {
    "which language do we write new services in?": 3,
    "how are passwords stored?": 4,
    "why does the nightly export time out?": 6,
    "how long does a refund take": 1,
}
FAR_OFF = (
    "how do penguins keep their eggs warm in winter?",
    "which composer wrote the opera about a barber in Seville?",
    "what is the boiling point of tungsten in kelvin?",
    "who won the chess olympiad in Budapest?",
)


def _abstained(home: Home) -> list[bool]:
    return [
        event["data"]["abstained"] for event in home.events() if event["tag"].startswith("memory.queried")
    ]


@pytest.mark.model
def test_a_question_on_topic_is_answered_and_one_far_off_is_not(model_daemon: Home) -> None:
    for content in MEMORIES:
        model_daemon.call("memory.store", content=content)
    for question, number in ON_TOPIC.items():
        answer = model_daemon.call("memory.query", text=question)
        assert answer["results"][0]["content"] == MEMORIES[number], question
        assert not answer["abstained"]
        assert answer["confidence"] >= answer["floor"]
    for question in FAR_OFF:
        answer = model_daemon.call("memory.query", text=question)
        assert (answer["results"], answer["abstained"]) == ([], True), question
        assert answer["confidence"] < answer["floor"]
    until(lambda: _abstained(model_daemon) == [False] * len(ON_TOPIC) + [True] * len(FAR_OFF))
    by_words = model_daemon.call(
        "memory.query", text="the boiling point of refunds in winter", mode="keyword"
    )
    assert [one["content"] for one in by_words["results"]] == [MEMORIES[1]]


def explained(home: Home, text: str, **params: object) -> list[dict[str, object]]:
    """Check the explanations of an answer; return its results."""
    answer = home.call("memory.query", text=text, explain=True, **params)
    scores = [one["score"] for one in answer["results"]]
    assert scores == sorted(scores, reverse=True)
    for one in answer["results"]:
        assert abs(sum(one["explanation"]["stages"].values()) - one["score"]) < 1e-9, one
    assert scores == [] or scores[0] == pytest.approx(answer["confidence"], abs=1e-6)
    results: list[dict[str, object]] = answer["results"]
    return results


def remember(home: Home) -> list[str]:
    """Store memories that differ in whatever ranking looks at; return their ids."""
    ids = []
    for number in range(12):
        params = {
            "event_type": ("memory", "decision", "user_preference")[number % 3],
            "session_id": f"s{number % 4}",
            "priority": 1 + number % 5,
            "ttl_seconds": 3_600 if number % 2 else None,
            "project": "shop",
        }
        content = (
            f"Anna: the export job number {number} in src/job_{number}.py was moved to port"
            f" {8000 + 97 * number} because of load"
        )
        ids.append(home.call("memory.store", content=content, **params)["memory_id"])
    for memory_id in ids[:3]:
        home.call("memory.rate", memory_id=memory_id, rating="outdated")
    home.call("memory.rate", memory_id=ids[4], rating="helpful")
    return ids


QUESTIONS = (
    "which port does the export job in src/job_3.py use now?",
    "why did Anna move the export",
    "the export job in 2026",
    "job_7.py",
)


def test_the_stages_of_a_score_add_up_to_it_over_the_socket(daemon: Home) -> None:
    remember(daemon)
    for question in QUESTIONS:
        assert explained(daemon, question, limit=20), question
        assert all("explanation" not in one for one in daemon.call("memory.query", text=question)["results"])


@pytest.mark.model
def test_the_stages_of_a_score_add_up_to_it_with_the_model(model_daemon: Home) -> None:
    remember(model_daemon)
    for question in QUESTIONS:
        for mode in ("hybrid", "semantic", "keyword"):
            explained(model_daemon, question, mode=mode, limit=20)


@pytest.mark.model
def test_the_limit_is_told_of_where_it_leaves_out_what_is_about_as_likely(model_daemon: Home) -> None:
    for shop in ("Lyon", "Turin", "Graz"):
        model_daemon.call(
            "memory.store",
            content=f"The export of the shop in {shop} runs nightly",
            event_type="lesson_learned",
        )
    asked = "when does the export of the shops run?"
    for tool, words in (("omega_query", {"query": asked}), ("omega_lessons", {"topic": asked})):
        answer = model_daemon.call("tools.call", name=tool, arguments={**words, "limit": 1})
        assert answer["content"][0]["text"].endswith("\nat least 2 more, about as likely: raise limit"), tool
        assert answer["structured"]["beyond"] == 2
    said = model_daemon.verb("query", asked, "--limit", "1").stdout
    assert said.endswith("\nat least 2 more may answer as well; a higher --limit shows them\n")


@pytest.mark.model
def test_a_tool_says_how_many_lessons_are_less_likely_and_not_that_there_are_none(
    model_daemon: Home,
) -> None:
    for content in MEMORIES:
        model_daemon.call("memory.store", content=content, event_type="lesson_learned")

    def told(**arguments: object) -> tuple[str, dict[str, list[object]]]:
        answer = model_daemon.call("tools.call", name="omega_lessons", arguments=arguments)
        return answer["content"][0]["text"], answer["structured"]

    text, fields = told(topic="why does the nightly export time out?")
    assert len(fields["lessons"]) == 1
    assert text.endswith(f"\nat least {fields['more']} more, less likely: without a topic")
    assert told(topic=FAR_OFF[0]) == ("no lesson is about that", {"lessons": []})
    assert "more" not in told()[1]
