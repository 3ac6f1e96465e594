"""What a session's summary says, read off what the log holds of it."""

import pytest

from omegad.session import summary, tool_inputs
from omegad.session.story import Call, Said, Stored
from omegad.session.summary import CHARACTERS_MAX, Told


def shell(place: int, command: str, error: str = "") -> Call:
    given = f'{{"command":"{command}"}}'
    return Call(place, place, "Bash", "error" if error else "ok", error or "fine", given)


def edit(place: int, *files: str, status: str = "ok") -> Call:
    return Call(place, place, "Edit", status, "", "", changes=files)


def told(*calls: Call, folder: str | None = "/src/shop", asked: tuple[str, ...] = ()) -> Told:
    said = [Said(place, "user", text) for place, text in enumerate(asked, 1)]
    return Told("shop", folder, calls, (), said)


def test_files_commands_what_was_stored_and_said_are_named() -> None:
    made = Told(
        "shop",
        "/src/shop",
        [
            shell(1, "pytest -q tests/a.py", "ImportError: no ledger"),
            edit(2, "/src/shop/ledger/a.py", "/elsewhere/b.py"),
            edit(3, "/src/shop/denied.py", status="denied"),
            shell(4, "cd /src/shop && pytest -q tests/a.py 2>&1 | tail -n 5"),
            shell(5, "ls"),
            shell(6, "ruff check", "E501 line too long"),
        ],
        [Stored(7, "mem-1", "decision", None, "the ledger is append-only", "active")],
        [Said(0, "user", "make the ledger pass"), Said(8, "assistant", "It passes.\nruff is left.")],
    )
    assert summary.text(made).splitlines() == [
        "Session in shop: 6 tool calls, 2 failed.",
        "Asked: make the ledger pass",
        "Edited: /elsewhere/b.py, ledger/a.py",
        "Failed last: `ruff check` (E501 line too long)",
        "Passed last: `pytest -q tests/a.py`",
        "Stored: decision the ledger is append-only",
        "Left at: It passes. ruff is left.",
    ]


def test_however_much_a_session_did_its_summary_is_short_and_names_files_first() -> None:
    calls = [edit(place, f"/src/shop/part_{place}/module_{place}.py") for place in range(1, 31)]
    calls += [shell(place, f"make target-{place} " + "x" * 200, "no " * 90) for place in range(31, 90)]
    found = summary.text(told(*calls, asked=("word " * 900, "more " * 900)))
    assert len(found) <= CHARACTERS_MAX
    assert all(f"module_{place}.py" in found for place in range(1, 31))
    assert "make target-89" in found
    assert found.splitlines()[1].startswith("Asked: word word")


def test_where_many_commands_failed_last_more_are_named_by_their_beginnings() -> None:
    calls = [
        shell(place, f"make target-{place} --with=" + "x" * 60, "no rule for it " * 9) for place in range(8)
    ]
    found = summary.text(told(*calls))
    assert len(found) <= CHARACTERS_MAX
    assert all(f"make target-{place} --with=" in found for place in range(8))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('{"command":"make test","description":"x"}', ("make test", True)),
        ('{"cmd":"make \\"a b\\""}', ('make "a b"', True)),
        ('{"command":["bash","-lc","make test"],"workdir":"/src"}', ("make test", True)),
        ('{"command":"make ' + "x" * 20, ("make " + "x" * 20, False)),
        ('{"command":"make a\\', ("make a", False)),
        ('{"command":["bash","-lc","make te', ("make te", False)),
        ('{"file_path":"a.py"}', None),
        ('{"command":""}', None),
    ],
)
def test_a_command_is_read_off_the_beginning_of_an_input(
    given: str, expected: tuple[str, bool] | None
) -> None:
    assert tool_inputs.command_of(given) == expected
