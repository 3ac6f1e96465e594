"""What a session begins with: the same at a hook and for a tool, and what it asks somebody to look at
again.
"""

import json
import re
from typing import Any

import anyio
import pytest

from omegad.agents import briefing
from omegad.agents import stale_report as reflect_stale
from omegad.memory.events import ConflictOffered, MemoryStored
from omegad.runtime.config import Config, Paths
from projections import conflicts
from tests.builders import START_US, FakeClock, Served, append, everything, served, until

KEYWORDS = Config(model="none")
UNLINTED = Config(model="none", lint_days=0)
SHOP = "shop"
DAY_US = 86_400_000_000
WORDS = ("alpha beta", "gamma delta", "epsilon zeta", "eta theta", "iota kappa", "lambda my", "ny xi")


async def store(it: Served, content: str, event_type: str = "memory", **more: Any) -> str:
    given = {"project": SHOP} | more
    return str(
        (await it.caller.call("memory.store", content=content, event_type=event_type, **given))["memory_id"]
    )


async def welcome(it: Served, session_id: str = "asks", **more: Any) -> str:
    answer = await it.caller.call(
        "tools.call", name="omega_welcome", arguments=more, session_id=session_id, project=SHOP
    )
    assert not answer["is_error"]
    await it.caught_up()
    return str(answer["content"][0]["text"])


async def hook(it: Served, event: str, session_id: str = "hooked", **fields: Any) -> str:
    said = {"hook_event_name": event, "session_id": session_id, "cwd": f"/src/{SHOP}"} | fields
    await it.caught_up()
    answer = await it.caller.call("hook.dispatch", event=event, payload=said)
    await it.caught_up()
    return (
        str(json.loads(answer["stdout"])["hookSpecificOutput"]["additionalContext"])
        if answer["stdout"]
        else ""
    )


async def receipts(it: Served, session_id: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for one in (await it.caller.call("receipts.list", session_id=session_id))["receipts"]:
        found.setdefault(one["how"], set()).add(one["memory_id"])
    return found


async def insights(it: Served) -> list[str]:
    return [
        one["memory_id"]
        for one in (await it.caller.call("memory.list", event_types=["advisor_insight"]))["memories"]
        if one["source"] == briefing.REFLECTED_BY
    ]


async def reflected(it: Served, clock: FakeClock) -> None:
    """Wait until the week's slot is over."""
    await until(lambda: it.daemon.reactions.progress[reflect_stale.NAME].position == clock.us // (7 * DAY_US))
    await it.caught_up()


async def run_sessions(it: Served, names: str, *commands: str) -> None:
    """Let sessions edit files, each time running a command after it, and end."""
    for name in names:
        for place, command in enumerate(commands):
            for tool, given in (
                ("Edit", {"file_path": "/src/shop/a.py"}),
                ("Bash", {"command": command, "description": "x"}),
            ):
                use = f"{name}-{place}-{tool}"
                await hook(
                    it,
                    "PostToolUse",
                    name,
                    tool_name=tool,
                    tool_input=given,
                    tool_response="ok",
                    tool_use_id=use,
                )
        await hook(it, "UserPromptSubmit", name, prompt="go on")
        await hook(it, "SessionEnd", name, reason="other")
    await it.caught_up()


def habit_ids(text: str) -> list[str]:
    block = text.partition("[PATTERNS]")[2]
    return re.findall(r"^- (mem-\w+): Habit", block, re.MULTILINE)


async def test_a_hook_and_the_tool_tell_the_same_in_the_same_order_and_leave_receipts(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        kinds = ("constraint", "user_preference", "decision", "lesson_learned", "handoff")
        order = [
            await store(it, f"{kind} about {words}", kind) for kind, words in zip(kinds, WORDS, strict=False)
        ]
        bad = await store(it, "the old way of doing it")
        elsewhere = await store(it, "not of this place", "decision", project="elsewhere")
        clock.us += 15 * DAY_US
        asked, hooked = await welcome(it), await hook(it, "SessionStart", source="startup")
        assert asked == hooked
        assert sorted([*order, bad], key=asked.index) == [*order, bad]
        assert asked.index("Last handoff") < asked.index("**Dead memories (never accessed, 14+ days old)**")
        assert elsewhere not in asked
        assert "not instructions" in asked
        assert (
            await receipts(it, "asks")
            == await receipts(it, "hooked")
            == {
                "briefing": set(order),
                "review": {bad},
            }
        )


async def test_a_briefing_keeps_to_the_budget_it_is_given(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        for place, words in enumerate(WORDS):
            for kind in ("constraint", "user_preference", "decision", "lesson_learned", "memory"):
                await store(it, f"{kind} {place} on {words} " + f"语{place}{kind} " * 40, kind)
        clock.us += 15 * DAY_US
        await it.caller.call("profile.update", update={"editor": "helix"})
        for tokens in (200, 800, 1_500):
            text = (await it.caller.call("session.briefing", project=SHOP, budget_tokens=tokens))["text"]
            assert tokens * 2 < len(text.encode()) <= tokens * 4
        assert "editor: helix" in text
        assert "(15 in all)" in text


async def test_what_no_query_found_for_two_weeks_is_dead_three_are_shown_and_more_are_counted(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        dead = [await store(it, f"{words} {'and so on ' * 20}") for words in WORDS[:5]]
        clock.us += 13 * DAY_US
        assert "Dead memories" not in await welcome(it)
        clock.us += 2 * DAY_US
        await store(it, "this one is young")
        text = await welcome(it)
        assert [one for one in dead if one in text] == dead[:3]
        assert "(5 in all)" in text
        assert f"- {dead[0]}: {(WORDS[0] + ' ' + 'and so on ' * 20)[:79].rstrip()}…" in text
        assert (await receipts(it, "asks"))["review"] == set(dead[:3])
        await it.caller.call("memory.query", text="alpha beta", project=SHOP)
        await it.caller.call("memory.delete", memory_id=dead[1])
        await it.caught_up()
        text = await welcome(it)
        assert [one for one in dead if one in text] == dead[2:]
        assert "in all)" not in text


async def test_what_is_stale_is_noted_once_a_week_and_reviewed_in_the_next_briefing(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, UNLINTED) as it:
        bad = [await store(it, f"the {words} is the way") for words in WORDS[:4]]
        elsewhere = await store(it, "not of this place", project="elsewhere")
        for memory_id in (*bad, elsewhere):
            await it.caller.call("memory.rate", memory_id=memory_id, rating="outdated")
        await reflected(it, clock)
    found = list[str]()
    for days, is_new in ((7, True), (13, False), (14, True)):
        clock.us = START_US + days * DAY_US
        async with served(paths, clock, UNLINTED) as it:
            await reflected(it, clock)
            (insight,) = await insights(it)
            assert (insight not in found) == is_new
            found.append(insight)
            text = await welcome(it)
            assert "Stale memories to review" in text
            assert [one for one in bad if one in text] == bad[len(found) // 3 :][:3]
            assert elsewhere not in text
            assert "Dead memories" not in text
            if days == 13:
                await it.caller.call("memory.delete", memory_id=bad[0])


async def test_habits_are_asked_about_from_three_on_confirmed_or_denied_for_good(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        await run_sessions(it, "ab", "pytest -q", "ruff check", "mypy")
        assert "[PATTERNS]" not in await welcome(it)
        await run_sessions(it, "c", "pytest -q 2>&1 | tail -5", "cd /src/shop && ruff check", "git status")
        text = await welcome(it)
        assert len(habit_ids(text)) == 2
        assert "after edits, `pytest -q` is run" in text
        assert "Action needed" not in text
        await run_sessions(it, "d", "mypy")
        text = await welcome(it)
        confirmed, denied, left = habit_ids(text)
        for words, memory_id in (("Confirm", confirmed), ("Deny", denied)):
            asked = re.search(rf'{words}: `(\w+)\(action="(\w+)", (\w+)="<id>"\)`', text)
            assert asked is not None
            given = {"action": asked[2], asked[3]: memory_id}
            done = await it.caller.call("tools.call", name=asked[1], arguments=given, project=SHOP)
            assert not done["is_error"]
        plain = await store(it, "lunch is at noon")
        given = {"action": "habits_deny", "pattern_id": plain}
        refused = await it.caller.call("tools.call", name="omega_stats", arguments=given, project=SHOP)
        assert refused["is_error"]
        assert "is no habit" in refused["content"][0]["text"]
        await run_sessions(it, "e", "pytest -q", "ruff check", "mypy")
        text = await welcome(it)
        assert habit_ids(text) == [left]
        assert text.index(confirmed) > text.index("Preferences:")
        assert denied not in text
        kept = await it.caller.call("memory.get", memory_id=confirmed)
        assert (kept["status"], kept["event_type"], kept["source"]) == (
            "active",
            "user_preference",
            "auto_habit",
        )
        assert (await it.caller.call("memory.get", memory_id=left))["status"] == "probation"
        stored = [
            one.event
            for one in await everything(it.daemon.services.log)
            if isinstance(one.event, MemoryStored)
        ]
        assert len([one for one in stored if one.source == "auto_habit"]) == 3


async def test_a_reminder_that_a_person_has_seen_is_told_to_the_next_session(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        due = await it.caller.call("reminder.set", content="rotate the keys", due="2025-12-01", project=SHOP)
        assert (await it.caller.call("session.briefing", project=SHOP))["due"] == [due["memory_id"]]
        await it.caught_up()
        assert "rotate" in await hook(it, "SessionStart", source="startup")


async def test_a_reminder_is_told_once_when_it_is_due_and_again_at_a_new_time(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        content, due = "rotate the keys", "2026-01-03"
        first = await it.caller.call("reminder.set", content=content, due=due, project=SHOP)
        other = await it.caller.call("reminder.set", content="of elsewhere", due=due, project="elsewhere")
        assert "rotate" not in await hook(it, "UserPromptSubmit", prompt="go on")
        clock.us = START_US + 3 * DAY_US
        told = await hook(it, "UserPromptSubmit", prompt="go on")
        assert f"- {first['memory_id']}: 2026-01-03 rotate the keys" in told
        assert "not instructions" in told
        assert other["memory_id"] not in told
        assert (await receipts(it, "hooked"))["reminder"] == {first["memory_id"]}
        assert "rotate" not in await hook(it, "SessionStart", source="startup")
        assert "Due reminders" in await welcome(it)  # it was asked for
        again = await it.caller.call("reminder.set", content=content, due="2026-01-05", project=SHOP)
        assert again["memory_id"] == first["memory_id"]
        clock.us = START_US + 5 * DAY_US
        told_to = list[str]()

        async def begin(session_id: str) -> None:
            told_to.extend(
                [session_id]
                if "rotate" in await hook(it, "SessionStart", session_id, source="startup")
                else []
            )

        async with anyio.create_task_group() as tasks:
            for session_id in ("another", "a third", "a fourth"):
                tasks.start_soon(begin, session_id)
        assert len(told_to) == 1
        (listed,) = (await it.caller.call("reminder.list", project=SHOP))["reminders"]
        assert (listed["due"], listed["is_due"], listed["told_at"][:10]) == (
            "2026-01-05T00:00:00.000000Z",
            True,
            "2026-01-06",
        )
        await it.caller.call("reminder.dismiss", memory_id=first["memory_id"])
        assert (await it.caller.call("reminder.list", project=SHOP))["reminders"] == []
        assert "rotate" not in await welcome(it)


@pytest.mark.parametrize("event", ["PreCompact", "precompact"])
async def test_what_a_session_stored_and_where_it_stood_comes_back_after_its_context_was_compacted(
    paths: Paths, clock: FakeClock, event: str
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        await hook(it, "SessionStart", source="startup")
        await hook(it, "UserPromptSubmit", prompt="make the importer faster")
        own = [await store(it, f"{words} is noted", session_id="hooked") for words in WORDS[:3]]
        other = await store(it, "another session is busy", session_id="other")
        await hook(
            it,
            "SubagentStop",
            agent_id="a-1",
            agent_type="Explore",
            last_assistant_message="the slow part is in db.py",
        )
        await hook(it, event, trigger="auto")
        await it.caught_up()
        text = await hook(it, "SessionStart", source="compact")
        assert "Stored in this session:" in text
        assert all(one in text for one in own)
        assert other not in text
        last = text.partition("Last checkpoint")[2]
        assert "Asked last: make the importer faster" in last
        assert "db.py" not in last
        read = "SELECT role, content FROM conversations ORDER BY id"
        said = await it.daemon.services.views.read(lambda connection: connection.execute(read).fetchall())
        assert said == [("user", "make the importer faster"), ("subagent", "the slow part is in db.py")]
        await store(it, "one more note for it", session_id="hooked")
        await hook(it, event, trigger="manual")
        await it.caught_up()
        found = (await it.caller.call("memory.list", session_id="hooked", event_types=["checkpoint"]))[
            "memories"
        ]
        assert len(found) == 1


async def test_a_thesis_is_told_with_its_counts_once_when_it_crosses_one_half_or_falls_due(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        stated = await it.caller.call(
            "thesis.state",
            statement="blue-green deploys stay cheap",
            project=SHOP,
            session_id="author",
            due="2026-06-30",
        )
        assert "blue-green" not in await welcome(it), "it is no decision, and nothing speaks for it yet"
        for number in range(2):
            seen = await store(it, f"the bill of month {number} was small", session_id=f"s-{number}")
            await it.caller.call("thesis.evidence", thesis_id=stated["thesis_id"], memory_id=seen, side="for")
        text = await welcome(it, "fourth")
        assert (
            f"open 0.67 (2 for, 0 against, 0 echoes) blue-green deploys stay cheap [{stated['thesis_id']}]"
            in text
        )
        assert stated["memory_id"] in (await receipts(it, "fourth"))["briefing"]
        assert "blue-green" not in await welcome(it, "fifth")
        assert "blue-green" not in await hook(it, "SessionStart", source="startup")
        clock.us = START_US + 200 * DAY_US
        assert "due since 2026-06-30" in await hook(it, "SessionStart", "sixth", source="startup")
        assert "blue-green" not in await welcome(it, "seventh")


async def test_a_briefing_begins_with_who_the_agent_is(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        await store(it, "never force-push", "constraint")
        await it.caller.call("identity.record", file="SOUL.md", content="<!-- who -->\nYou are careful.")
        text = await welcome(it)
        assert text.index("SOUL.md: You are careful.") < text.index("never force-push")


async def test_the_newest_are_told_beside_those_that_are_asked_for(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        for words in WORDS:
            await store(it, f"we chose {words}", "decision")
            await it.caller.call("memory.query", text=words, project=SHOP)
        for words in ("omicron pi", "rho sigma"):
            await store(it, f"we chose {words}", "decision")
        told = await welcome(it)
        assert all(words in told for words in ("rho sigma", "omicron pi"))
        assert len(re.findall("we chose", told)) == briefing.OF_EACH


async def test_a_budget_that_is_larger_brings_as_much_more_of_each_kind(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        for number in range(30):
            for kind in ("decision", "lesson_learned"):
                await store(it, f"{kind} {number} about {chr(97 + number) * 5}", kind)
        for tokens, count in ((None, 5), (1_000, 5), (3_000, 10), (8_000, 26)):
            asked = {} if tokens is None else {"budget_tokens": tokens}
            text = (await it.caller.call("session.briefing", project=SHOP, **asked))["text"]
            for kind in ("decision", "lesson_learned"):
                assert len(re.findall(rf": {kind} \d", text)) == count
                assert f": {kind} 29" in text


async def test_what_has_not_proved_itself_is_marked_in_a_briefing(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        heard = "the linter wants sorted imports"
        unproven = await store(it, heard, "lesson_learned", source="auto_capture")
        await store(it, "always run migrations in a transaction", "lesson_learned")
        lines = (await welcome(it)).splitlines()
        assert any(f"(on probation) {heard}" in line for line in lines)
        assert not any("(on probation) always" in line for line in lines)
        await it.caller.call("memory.promote", memory_id=unproven)
        assert "(on probation)" not in await welcome(it, "later")


async def test_what_failing_taught_is_no_lesson_before_it_has_proved_itself(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        learned = "Approach that worked: Bash error resolved after 1 attempt"
        unproven = await store(it, learned, "lesson_learned", source="auto_procedural")
        assert learned not in await welcome(it)
        await it.caller.call("memory.promote", memory_id=unproven)
        assert learned in await welcome(it, "later")


async def asked(it: Served, query: str) -> str:
    arguments = {"query": query, "mode": "keyword"}
    answer = await it.caller.call("tools.call", name="omega_query", arguments=arguments, project=SHOP)
    return str(answer["content"][0]["text"])


async def doubt(it: Served, later: str, earlier: str) -> None:
    offer = ConflictOffered(memory_id=later, target_id=earlier, similarity=0.8)
    await append(it.daemon.services.log, offer)
    await it.caught_up()


async def test_of_a_pair_in_doubt_of_which_both_are_told_the_later_is_told_once(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        earlier = await store(it, "Previews run on Gitpod", "decision")
        later = await store(it, "Previews have switched to Codespaces", "decision")
        await doubt(it, later, earlier)
        text = await welcome(it)
        assert text.count("Codespaces") == 1
        assert f"Gitpod ({later}, later, may deny it)" in text


@pytest.mark.usefixtures("model")
async def test_what_is_told_beside_one_of_its_kind_that_may_take_its_place_says_so(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock) as it:
        older = await store(it, "We pay BigQuery on demand, not by reserved slots.", "decision")
        clock.us += DAY_US
        new = "BigQuery costs: we bought 200 reserved slots. On demand had reached 7,400 € a month."
        later = await store(it, new, "decision")
        await store(it, "BigQuery slots that are reserved lie idle at night.", "lesson_learned")
        for text in (
            await welcome(it),
            await hook(it, "SessionStart", source="startup"),
            str((await it.caller.call("context.assemble", project=SHOP))["text"]),
        ):
            assert text.count("take its place") == 1
            assert f"by reserved slots. ({later}, later, may take its place)" in text
        await it.caller.call("memory.settle", memory_id=later, target_id=older, verdict="compatible")
        await it.caught_up()
        assert "take its place" not in await welcome(it)


@pytest.mark.parametrize("more", ["", " because the seeded copy of the catalogue is there at once" * 3])
async def test_what_is_told_beside_another_is_in_the_receipt_or_by_its_beginning_for_review(
    more: str, paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        earlier = await store(it, "Previews run on Gitpod", "decision")
        later = await store(it, f"Previews switched{more}", "advisor_insight")
        await doubt(it, later, earlier)
        asked = {"project": SHOP, "session_id": "assembles"}
        context = await it.caller.call("context.assemble", **asked)
        await it.caught_up()
        for session_id, text in (("asks", await welcome(it)), ("assembles", str(context["text"]))):
            assert f"({later}, later, may deny it: Previews switched" in text
            assert await receipts(it, session_id) == (
                {"briefing": {earlier}, "review": {later}} if more else {"briefing": {earlier, later}}
            )


async def test_where_the_view_of_conflicts_has_failed_all_else_is_told_with_a_word_of_it(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        earlier = await store(it, "Previews run on Gitpod", "decision")
        assembled = "could not be checked"
        assert assembled not in await welcome(it)

        def fail(_recorded: object) -> None:
            raise ValueError

        monkeypatch.setattr(conflicts, "project", fail)
        await append(
            it.daemon.services.log, ConflictOffered(memory_id="mem-1", target_id=earlier, similarity=0.8)
        )
        await until(lambda: it.daemon.services.views.checkpoints["conflicts"].failed_position is not None)
        context = await it.caller.call("context.assemble", project=SHOP)
        for text in (
            (await it.caller.call("session.briefing", project=SHOP))["text"],
            str(context["text"]),
            await asked(it, "gitpod"),
        ):
            assert "Gitpod" in text
            assert text.count(assembled) == 1


@pytest.mark.parametrize(
    "words",
    ["每晚导出超时因为驱动程序一次读取整个账本", "夜間の書き出しは帳簿を一度に読むので時間切れになる"],
)
async def test_a_briefing_in_any_script_keeps_to_its_budget_by_the_reports_own_count(
    paths: Paths, clock: FakeClock, words: str
) -> None:
    kinds = ("constraint", "user_preference", "decision", "lesson_learned", "handoff", "memory")
    async with served(paths, clock, KEYWORDS) as it:
        for number in range(60):
            await store(
                it, f"{number} {chr(97 + number) * 3} " + f"{words}{number}。" * 14, kinds[number % 6]
            )
        clock.us += 15 * DAY_US
        told = await hook(it, "SessionStart", source="startup")
        report = await it.caller.call("session.report", project=SHOP)
    assert len(told.encode()) <= 4 * 1_500
    assert 0.9 * len(told.encode()) / 4 < report["tokens"] <= 1_500
