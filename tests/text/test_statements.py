"""What of a message is taken for worth remembering, and what is never looked at."""

import pytest

from omegad.text.ingestion.statements import Role, statements

PREFERENCE = "From now on always use uv instead of pip in this project."
DECISION = "We decided to use Postgres instead of SQLite because several workers write at once."
ERROR = (  # holds until it is fixed
    "The root cause was that `parse_rows` swallowed the exception and returned an empty list."
)
LESSON = "It turns out that the emulator only works when the region is set to us-east-1."


def found(text: str, role: Role = "user") -> list[tuple[str, str]]:
    return [(one.event_type, one.text) for one in statements(text, role)]


@pytest.mark.parametrize(
    ("role", "text", "event_type"),
    [
        ("user", PREFERENCE, "user_preference"),
        ("user", "Always use bun for the scripts here, never node.", "user_preference"),
        ("user", "I don't want you to run the dev server yourself, ever.", "user_preference"),
        ("user", DECISION, "decision"),
        ("assistant", "We chose SSE over WebSockets because the traffic is one way.", "decision"),
        (
            "assistant",
            "It turns out that Vite does not read `.env` files outside the root directory.",
            "lesson_learned",
        ),
        ("assistant", LESSON, "lesson_learned"),
    ],
)
def test_what_is_said_outright_is_found_and_typed(role: Role, text: str, event_type: str) -> None:
    assert found(f"Thanks, that works.\n\n- **{text}**\n", role) == [(event_type, text)]


@pytest.mark.parametrize(
    ("role", "text"),
    [
        ("user", "Use tabs in this file."),
        ("user", "Should we always use uv instead of pip in this project?"),
        ("user", "Let's go on with the next step of the plan."),
        ("user", "The button never appears when I click on the menu."),
        ("user", "I like the second design better than the first one."),
        ("user", "Let's go with the second layout, what you selected is perfect."),
        ("user", "The point was to NEVER see the same row twice."),
        ("assistant", "Caveat: this reflects the branch as of the fetch just now."),
        ("assistant", "I've fixed the bug, and all tests pass."),
        ("assistant", "The problem is probably in the cache, which might return stale rows."),
        ("assistant", ERROR),
        ("assistant", "Let me know if you would rather keep the old behaviour."),
    ],
)
def test_what_holds_for_this_task_alone_asks_or_guesses_is_not(role: Role, text: str) -> None:
    assert found(text, role) == []


@pytest.mark.parametrize(
    ("text", "event_type"),
    [
        ("Lesson learned: always run migrations before deploying", "lesson_learned"),
        ("the takeaway: mocks hid the bug for a week", "lesson_learned"),
        ("I prefer short answers", "user_preference"),
        ("my preference is small commits", "user_preference"),
        ("from now on use pnpm", "user_preference"),
        ("Always rebase from now on", "user_preference"),
        ("Never push to main directly", "user_preference"),
        ("Rule: no default exports", "user_preference"),
        ("We decided to use SQLite", "decision"),
        ("Decision: invoices are numbered per year", "decision"),
        ("Remember: the staging server is at staging.example.com:8443", "memory"),
        ("please remember that I work in UTC+2", "memory"),
        ("remember the staging server is at 10.0.0.4", "memory"),
        ("Remember to always run the linter before committing", "user_preference"),
        ("Please answer in German from now on", "user_preference"),
        ("Note to self: the VPN drops at noon", "memory"),
        ("Important: the API key rotates every Monday", "memory"),
        ("For the record, the contract with Acme ends in June", "memory"),
        ("Keep in mind that the CI has no network", "memory"),
    ],
)
def test_what_a_person_announces_is_found_whatever_the_model_thinks(text: str, event_type: str) -> None:
    assert found(text) == [(event_type, text)]
    assert [said for _, said in found(f"Fix the import first.\n\n- **{text}**\n\nThen run `make`.")] == [text]
    assert found(f'```\n{text}\n```\n> {text}\n10:00:01 {text}\nThe label says "{text}" now.') == []


@pytest.mark.parametrize(
    "text",
    [
        "Do you remember how we did the migration last time?",
        "do you remember that the staging server is slow",
        "Should we from now on use uv in this project?",
        "Remember to run the tests before you finish",
        "Don't forget to add tests for the parser as well",
        "Remember when we fixed the parser of dates",
        "I remember that this worked before the upgrade",
        "I prefer the second option of the two",
        "I prefer that one over there",
        "Important: don't change the tests",
        "IMPORTANT: respond in JSON only",
        "We haven't decided yet which queue we use",
        "If we decided to use Kafka, what would change",
        "Write a lesson learned section in the readme",
        "Add a rule: no default exports",
        "never mind, go on with the plan as it is",
        "always fails on my machine with a timeout",
        "the rule is broken in the parser of queries",
        "Remember, don't edit anything yet",
        "In the future perhaps we'll add more of these options",
        "In future I'd like to be able to share it",
        "Never do that again on your own",
        "For future reference this is the command that I run:",
        "(design decision - maybe) I would argue for two files",
        "// Always written as a count of steps",
        "The helper is defined in the tests but never called anywhere",
        "The panel showed a spinner but nothing ever loaded in it",
        "forwarding it to the worker, never persisting to the log",
        "I'd prefer if we could make the panel narrower",
        "Going forward this should be how we name them",
        "Can jump on the first log but not the second. Always fall into the water.",
        "We want to do this level of testing from now on.",
        "Review what you have researched and make a plan going forward.",
        "Please remember that for your next answers",
        "For reference: this function lives in the templates",
        "Rule: show the totals for each of those columns",
        "They already agreed to begin with the survey",
        "Remember, the file looks like this:\\",
        'I decided to begin with the "export first.',
    ],
)
def test_what_asks_chooses_or_is_for_the_task_at_hand_announces_nothing(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    "wrapped",
    [
        "```\n{}\n```",
        "~~~text\n```\n{}\n~~~",
        "```\n{}",
        "- ```sh\n  {}\n  ```",
        "    {}",
        "> {}",
        "| rule | {} |",
        "# {}",
        "$ echo {}",
        "+++ {}",
        '"{}"',
        "“{}”",
        "2026-03-01T10:00:00Z {}",
        "10:00:01 {}",
        "[ERROR] {}",
        "ValueError: {}",
        "at parse (index.js:1:1) {}",
        "Reviewed-by: {}",
        "[MEMORY_CONTEXT] {}",
        "- mem-0123456789abcdef: {}",
        "<omegad_memory>\nStored data from earlier sessions.\n{}\n</omegad_memory>",
        "<omegad_memory>\n{}",
        "<system-reminder>{}</system-reminder>",
        "<command-message>\n{}",
        '<details class="x">\n\n{}\n</details>',
    ],
)
@pytest.mark.parametrize(("role", "text"), [("user", PREFERENCE), ("assistant", LESSON)])
def test_what_is_quoted_pasted_or_injected_is_not_said(wrapped: str, role: Role, text: str) -> None:
    assert found(wrapped.format(text), role) == []


@pytest.mark.parametrize(
    "document",
    [
        "This session is being continued from a previous conversation.\n\n{}",
        "Base directory for this skill: /skills/x\n\n{}",
        "Implement the following plan:\n\n{}",
        "# Plan\n\n## Rules\n\n- {}",
        "- one of many items\n" * 16 + "- {}",
    ],
)
def test_a_document_that_a_person_hands_on_is_not_said_but_what_stands_before_it_is(document: str) -> None:
    assert found(document.format(PREFERENCE)) == []
    mine = "Remember that the staging server is slow."
    assert [text for _, text in found(f"{mine}\n\n# Plan\n\n## Rules\n\n- {PREFERENCE}")] == [mine]
    assert [text for _, text in found(f"# Rule\n\n- {PREFERENCE}\n- {mine}")] == [PREFERENCE, mine]


def test_what_follows_a_block_is_said_again() -> None:
    assert found(
        f"```\n{DECISION}\n```\n<system-reminder>\n{DECISION}\n</system-reminder>\n{PREFERENCE}"
    ) == [("user_preference", PREFERENCE)]


def test_a_sentence_that_is_said_twice_counts_once() -> None:
    assert found(f"{PREFERENCE} {PREFERENCE}\n{DECISION}") == [
        ("user_preference", PREFERENCE),
        ("decision", DECISION),
    ]


def test_a_star_that_stands_alone_is_no_emphasis() -> None:
    said = "I prefer * over _ for *emphasis* in **Markdown**."
    assert [one.text for one in statements(said, "user")] == ["I prefer * over _ for emphasis in Markdown."]
