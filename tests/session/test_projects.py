"""Where the files are that agents name, and when they changed."""

from pathlib import Path

from omegad.session.projects import changed_us


def test_a_name_that_no_file_can_have_is_that_of_a_file_that_is_gone(tmp_path: Path) -> None:
    assert changed_us(f"{tmp_path}/a\0b", has_been=False) == 0
    assert changed_us(f"{tmp_path}/a\0b", has_been=True) == tmp_path.lstat().st_ctime_ns // 1_000
