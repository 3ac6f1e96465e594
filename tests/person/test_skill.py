"""Lessons about skills: found in what an agent says, written into real files once, told to the agent once."""

import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.catalog import methods
from omegad.person import skill as commands
from omegad.person import skill as telling
from omegad.person import skill_files as files
from omegad.person.events import SkillConfirmed, SkillImproved, SkillImproveFailed
from omegad.person.skill import markers
from omegad.person.skill_files import improve, with_lesson
from omegad.runtime.config import Config, Paths, skill_folders
from omegad.session.events import TurnEnded
from tests.builders import FakeClock, Served, everything, excerpt, served, until

LESSON = "Always search contacts by both name and email address, not just name"
MARKER = f"SKILL_IMPROVE: google-workspace | {LESSON}"


@pytest.mark.parametrize(
    ("head", "tail", "found"),
    [
        (f"Here's John's number.\n{MARKER}", "", [("google-workspace", LESSON)]),
        ("  SKILL_IMPROVE:a|b | c\nSKILL_IMPROVE: a | b | c\n", "", [("a", "b | c")]),
        ("SKILL_IMPROVE: ../up | x\nSKILL_IMPROVE: b | y", "", [("../up", "x"), ("b", "y")]),
        (f"```\n{MARKER}\n```", "", []),
        (f"~~~~\n```\n{MARKER}\n~~~\n~~~~~\n{MARKER}", "", [("google-workspace", LESSON)]),
        (f"> {MARKER}\n    {MARKER}\n`{MARKER}`\nEmit {MARKER}", "", []),
        (
            (
                "SKILL_IMPROVE: <skill-name> | <lesson learned>\nSKILL_IMPROVE: | x\nSKILL_IMPROVE: x"
                " |\nSKILL_IMPROVE: x"
            ),
            "",
            [],
        ),
        (
            "SKILL_IMPROVE: a | whole\nSKILL_IMPROVE: b | cut he",
            "ere\nSKILL_IMPROVE: c | end",
            [("a", "whole"), ("c", "end")],
        ),
        ("```", "x\nSKILL_IMPROVE: a | in the block\n```\nSKILL_IMPROVE: b | after it", [("b", "after it")]),
        (
            "\n".join(f"SKILL_IMPROVE: s | {number}" for number in range(50)),
            "",
            [("s", str(number)) for number in range(10)],
        ),
    ],
)
def test_markers_are_found_where_an_agent_means_them(
    head: str, tail: str, found: list[tuple[str, str]]
) -> None:
    assert markers(excerpt(head, tail)) == found


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "## Lessons Learned\n\n- new\n"),
        ("# Skill\n\nDo it.\n", "# Skill\n\nDo it.\n\n## Lessons Learned\n\n- new\n"),
        ("# Skill", "# Skill\n\n## Lessons Learned\n\n- new\n"),
        ("## Lessons Learned\n", "## Lessons Learned\n\n- new\n"),
        ("## Lessons Learned\n\n- old", "## Lessons Learned\n\n- old\n- new\n"),
        (
            "## Lessons learned ##\n- old\n\n### more\n- x\n\n## Next\n- y\n",
            "## Lessons learned ##\n- old\n\n### more\n- x\n- new\n\n## Next\n- y\n",
        ),
        ("a\r\n## Lessons Learned\r\n\r\n- old\r\n", "a\r\n## Lessons Learned\r\n\r\n- old\r\n- new\r\n"),
        ("a\r\n", "a\r\n\r\n## Lessons Learned\r\n\r\n- new\r\n"),
        ("```\n## Lessons Learned\n```\n", "```\n## Lessons Learned\n```\n\n## Lessons Learned\n\n- new\n"),
        ("- new\n", "- new\n\n## Lessons Learned\n\n- new\n"),
    ],
)
def test_a_lesson_goes_to_the_end_of_its_section(before: str, after: str) -> None:
    assert with_lesson(before, "new") == after
    assert with_lesson(after, "new") == after


LINES = st.lists(
    st.sampled_from(["", "# a", "## Lessons Learned", "## b", "```", "- x", "text\r", "### c"]), max_size=9
)


@given(lines=LINES, lessons=st.lists(st.sampled_from(["one", "two", "# three", "```"]), max_size=5))
def test_whatever_a_file_says_every_line_stays_and_every_lesson_is_there_once(
    lines: list[str], lessons: list[str]
) -> None:
    text = before = "\n".join(lines)
    for lesson in lessons:
        text = with_lesson(text, lesson)
        assert with_lesson(text, lesson) == text
    kept = iter(line.rstrip("\r") for line in text.split("\n"))
    assert all(line.rstrip("\r") in kept for line in before.rstrip("\n").split("\n"))  # in their order
    assert all(text.replace("\r", "").split("\n").count(f"- {lesson}") == 1 for lesson in lessons)


def skill(folder: Path, name: str = "search", text: str = "# Search\n") -> Path:
    """Make a skill, whose group may write its file."""
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o664)
    return path


def test_a_file_is_replaced_whole_keeps_its_mode_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = skill(tmp_path / "second")
    folders = (tmp_path / "first", tmp_path / "second")
    (path.parent / files.UNFINISHED).write_text("left by a crash")
    assert improve(folders, "search", "look twice") is None
    assert path.read_text(encoding="utf-8") == "# Search\n\n## Lessons Learned\n\n- look twice\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o664
    assert [one.name for one in path.parent.iterdir()] == ["SKILL.md"]
    known = path.stat().st_ino
    assert improve(folders, "search", "look twice") is None
    assert path.stat().st_ino == known  # it was not even written


def test_what_cannot_be_improved_is_said_and_no_file_is_made(tmp_path: Path) -> None:
    folder, outside = tmp_path / "skills", tmp_path / "outside"
    secret = skill(outside, "victim")
    folder.mkdir()
    (folder / "linked").symlink_to(secret.parent)
    (folder / "file").mkdir()
    (folder / "file" / "SKILL.md").symlink_to(secret)
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "pipe").mkdir()
    os.mkfifo(folder / "pipe" / "SKILL.md")
    skill(folder, "binary").write_bytes(b"\xff\xfe")
    skill(folder, "large").write_bytes(b"x" * (files.FILE_BYTES_MAX + 1))
    (folder / "flat").write_text("no folder")
    before = sorted(map(str, tmp_path.rglob("*")))
    for name, reason in (
        *(
            (name, "name_refused")
            for name in (
                "..",
                "../outside/victim",
                "/etc",
                "a/b",
                ".hidden",
                "",
                "a\0b",
                "a\nb",
                "x" * 200,
                "linked",
                "file",
            )
        ),
        *((name, "not_found") for name in ("gone", "flat")),
        *((name, "unreadable") for name in ("loop", "pipe", "binary", "large")),
    ):
        assert improve((folder,), name, "x") == reason, name
    assert sorted(map(str, tmp_path.rglob("*"))) == before
    assert secret.read_text() == "# Search\n"


def test_a_file_that_is_changed_meanwhile_keeps_the_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = skill(tmp_path)
    fsync = os.fsync

    def meddle(descriptor: int) -> None:
        monkeypatch.setattr(os, "fsync", fsync)
        path.write_text("# Search, edited\n")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", meddle)
    assert improve((tmp_path,), "search", "look twice") is None
    assert path.read_text() == "# Search, edited\n\n## Lessons Learned\n\n- look twice\n"


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = skill(tmp_path)

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert improve((tmp_path,), "search", "look twice") == "unwritable"
    assert ([one.name for one in path.parent.iterdir()], path.read_text()) == (["SKILL.md"], "# Search\n")


@pytest.mark.parametrize("language", ["en", "de", "es", "fr", "pt", "zh"])
def test_every_language_has_every_sentence(language: str) -> None:
    assert telling.confirmation(language, "s", "a {lesson}", None).startswith("✓ ")
    told = {
        telling.confirmation(language, "s", "l", reason)
        for reason in ("not_found", "name_refused", "unreadable", "unwritable")
    }
    assert len(told) == 4
    assert all(one.startswith("✗ ") and " s" in one for one in told)


@pytest.mark.parametrize(
    ("setting", "environ", "language"),
    [
        ("auto", {"LANG": "de_AT.UTF-8"}, "de"),
        ("auto", {"LANG": "de_AT", "LC_ALL": "zh_CN"}, "zh"),
        ("auto", {"LANG": "C.UTF-8"}, "en"),
        ("auto", {}, "en"),
        ("pt", {"LANG": "de_AT"}, "pt"),
    ],
)
def test_the_language_is_the_one_that_is_set_or_that_of_the_locale(
    setting: str, environ: dict[str, str], language: str
) -> None:
    assert telling.language_of(setting, environ) == language


def test_folders_are_those_of_the_home_unless_others_are_set(paths: Paths) -> None:
    assert skill_folders(Config(), paths) == (paths.home / "skills",)
    assert skill_folders(Config(skills="/a:~/b"), paths) == (Path("/a"), Path.home() / "b")


SETTINGS = Config(model="none", language="en")


async def hook(it: Served, event: str, session_id: str = "s-1", **payload: Any) -> str:
    """Return what a hook prints."""
    known = {"session_id": session_id, "cwd": "/", "hook_event_name": event, **payload}
    answer = await it.caller.call("hook.dispatch", event=event, payload=known)
    return str(answer["stdout"])


async def events(it: Served, *kinds: type) -> list[Any]:
    return [one.event for one in await everything(it.daemon.services.log) if isinstance(one.event, kinds)]


async def test_an_agent_that_notes_a_lesson_is_told_what_became_of_it_once(
    paths: Paths, clock: FakeClock
) -> None:
    path = skill(paths.home / "skills", "google-workspace")
    clock.step_us = 3_000_000  # so that no prompt is the one before again
    async with served(paths, clock, SETTINGS) as it:
        await hook(it, "SessionStart", source="startup")
        await it.caught_up()
        await hook(it, "Stop", last_assistant_message=f"Done.\n{MARKER}\nSKILL_IMPROVE: gone | retry")
        await until(lambda: path.read_text().count(LESSON) == 1)
        await it.caught_up()
        assert await hook(it, "UserPromptSubmit", "s-2", prompt="what else?") == ""
        told = await hook(it, "UserPromptSubmit", prompt="thanks")
        for text in (
            f"✓ Skill updated: google-workspace — {LESSON}",
            "✗ Failed to update skill gone: skill not found",
        ):
            assert text in told
        assert await hook(it, "UserPromptSubmit", prompt="and now?") == ""
        assert not (paths.home / "skills" / "gone").exists()
        outcomes = await it.caller.call(
            "audit.sql", sql="SELECT skill, status, told_at IS NOT NULL FROM skill_lessons ORDER BY id"
        )
        assert outcomes["rows"] == [["google-workspace", "improved", 1], ["gone", "not_found", 1]]
        causes = [
            one.cause
            for one in await everything(it.daemon.services.log)
            if isinstance(one.event, SkillImproved | SkillImproveFailed)
        ]
        (turn,) = [
            one.position
            for one in await everything(it.daemon.services.log)
            if isinstance(one.event, TurnEnded)
        ]
        assert causes == [turn, turn]
        assert len(await events(it, SkillConfirmed)) == 1


async def test_a_lesson_that_nobody_could_be_told_yet_waits(paths: Paths, clock: FakeClock) -> None:
    skill(paths.home / "skills")
    async with served(paths, clock, SETTINGS) as it:
        done = await it.caller.call("skill.improve", skill="search", lesson="look\ntwice", session_id="s-1")
        assert (done["outcome"], done["confirmation"]) == ("improved", "✓ Skill updated: search — look twice")
        late = {"session_id": "s-1", "cwd": "/", "prompt": "is it done?"}
        spooled = await it.caller.call(
            "hook.dispatch", event="UserPromptSubmit", payload=late, is_spooled=True
        )
        assert spooled["stdout"] == ""
        assert "look twice" in await hook(it, "SessionStart", source="resume")
        assert await hook(it, "SessionStart", source="compact") == ""


async def test_a_crash_between_the_file_and_the_event_doubles_nothing(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = skill(paths.home / "skills", "google-workspace")
    written = anyio.Event()

    async def die(*arguments: Any) -> Any:
        await commands.prepare(*arguments)
        written.set()
        await anyio.sleep_forever()

    with monkeypatch.context() as patched:
        patched.setitem(methods.ALL, "skill.improve", replace(commands.METHODS[0], prepare=die))
        async with served(paths, clock, SETTINGS) as it:
            await it.caught_up()
            await hook(it, "Stop", last_assistant_message=MARKER)
            await written.wait()
            assert (path.read_text().count(LESSON), await events(it, SkillImproved)) == (1, [])
    async with served(paths, clock, SETTINGS) as it:
        await until(lambda: it.daemon.services.log.head >= 2)
        await it.caught_up()
        assert (path.read_text().count(LESSON), len(await events(it, SkillImproved))) == (1, 1)
        assert f"✓ Skill updated: google-workspace — {LESSON}" in await hook(
            it, "UserPromptSubmit", prompt="go on"
        )


async def test_a_lesson_is_free_of_secrets_in_the_file_too(paths: Paths, clock: FakeClock) -> None:
    path = skill(paths.home / "skills")
    async with served(paths, clock, SETTINGS) as it:
        await it.caller.call(
            "skill.improve", skill="search", lesson="use the key AKIAIOSFODNN7EXAMPLA for it"
        )
    assert "AKIAIOSFODNN7EXAMPLA" not in path.read_text()
    assert "- use the key" in path.read_text()
