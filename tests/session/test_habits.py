"""What a session did at which occasion, read off its edits and shell commands."""

import pytest

from omegad.session.habits import Habit, done

EDIT = ("edit", '{"file_path":"/src/a.py"}')


def shell(command: str) -> tuple[str, str]:
    return "bash", f'{{"command":"{command}","description":"x"}}'


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([], set()),
        ([shell("pytest -q")], set()),
        ([EDIT, shell("pytest -q")], {("after edits", "pytest -q")}),
        (
            [
                EDIT,
                EDIT,
                shell("ls"),
                shell("git diff"),
                shell("cd /src && pytest -q 2>&1 | tail -n 20"),
                shell("mypy"),
            ],
            {("after edits", "pytest -q")},
        ),
        ([EDIT, ("exec_command", '{"cmd":"make test"}')], {("after edits", "make test")}),
        (
            [EDIT, ("shell", '{"command":["bash","-lc","make test"],"workdir":"/src"}')],
            {("after edits", "make test")},
        ),
        ([EDIT, shell('printf \\"a b\\"')], {("after edits", 'printf "a b"')}),
        ([EDIT, ("bash", '{"command":"pytest ' + "x" * 150)], set()),
        ([EDIT, shell("x" * 121)], set()),
        (
            [shell("ruff check"), shell("git add -A"), shell("git commit -m x")],
            {("before a commit", "ruff check")},
        ),
        ([shell("ruff check"), EDIT, shell("git commit -m x")], set()),
        (
            [EDIT, shell("ruff check"), shell("git commit -m x")],
            {("after edits", "ruff check"), ("before a commit", "ruff check")},
        ),
    ],
)
def test_a_command_belongs_to_the_edits_before_it_and_to_the_commit_after_it(
    calls: list[tuple[str, str]], expected: set[tuple[str, str]]
) -> None:
    assert done(calls) == {Habit(*one) for one in expected}
