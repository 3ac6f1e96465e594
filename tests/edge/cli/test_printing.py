import io
import sys

import pytest

from omegad.edge.cli import printing


@pytest.mark.parametrize(
    ("text", "room", "shown"),
    [("short", 5, "short"), ("longer", 5, "long…"), ("日本語です", 7, "日本語…"), ("naïve", 5, "naïve")],
)
def test_text_is_cut_by_the_columns_that_it_takes(text: str, room: int, shown: str) -> None:
    assert printing.cut(text, room) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 * 1024**2, "5.0 MiB"), (3 * 1024**4, "3072.0 GiB")],
)
def test_sizes_are_written_in_the_unit_that_suits_them(count: int, shown: str) -> None:
    assert printing.size(count) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0 s"), (59.9, "59 s"), (3_661, "1 h 1 min"), (86_400, "1 d"), (90_000, "1 d 1 h")],
)
def test_lengths_of_time_are_written_in_two_units(seconds: float, shown: str) -> None:
    assert printing.duration(seconds) == shown


def test_columns_are_as_wide_as_their_widest_cell(capsys: pytest.CaptureFixture[str]) -> None:
    printing.write_table(("A", "B"), [("日本", "x"), ("long one", "two\nlines")])
    assert capsys.readouterr().out == "A         B\n日本      x\nlong one  two lines\n"


def test_fields_that_say_nothing_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    printing.write_fields([("name", "value"), ("nothing", None), ("empty", ""), ("zero", 0)])
    assert capsys.readouterr().out == "name  value\nzero  0\n"


def test_json_is_json_whatever_the_encoding_of_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "ascii"))
    assert printing.in_json({"said": "Straße 🦉"}) == '{"said":"Stra\\u00dfe \\ud83e\\udd89"}'
