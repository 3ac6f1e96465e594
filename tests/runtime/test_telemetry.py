"""What is written of what goes wrong, however often it does."""

import subprocess
import sys
from pathlib import Path

import msgspec

SAYING = """
import logging, pathlib, sys, structlog
from omegad.runtime import telemetry
telemetry.configure("info", pathlib.Path({file!r}))
log = structlog.get_logger()
"""


def say(file: Path, *lines: str) -> list[dict[str, object]]:
    """Run *lines* in a process whose output is a file, and return the records that are in it."""
    script = "\n".join([SAYING.format(file=str(file)), *lines])
    with file.open("ab") as output:
        subprocess.run([sys.executable, "-c", script], stdout=output, stderr=output, check=True)
    return [msgspec.json.decode(line) for line in file.read_bytes().splitlines()]


def test_of_warnings_of_one_kind_the_first_is_written_and_how_many_more_came(tmp_path: Path) -> None:
    said = say(
        tmp_path / "log",
        "for _ in range(1_000): log.warning('door.refused', reason='no token')",
        "for _ in range(3): log.warning('door.refused', reason='too many')",
        "for _ in range(2): log.info('door.opened')",
        "for number in range(1_000): log.error('file.lost', name=str(number))",
        "for _ in range(1_000): logging.getLogger('library').warning('bad host %s', 'x')",
    )
    kinds = [
        (record["event"], record.get("reason"), record.get("repeated"))
        for record in said
        if record["event"] != "file.lost"
    ]
    refused, told = ("door.refused", "no token"), [(*kind[:2], kind[2]) for kind in kinds]
    assert told.count((*refused, None)) == told.count((*refused, 999)) == 1
    assert told.count(("door.refused", "too many", 2)) == 1
    assert told.count(("door.opened", None, None)) == 2
    assert told.count(("library.said", None, 999)) == 1
    assert len(said) < 300
    assert (
        sum(int(str(record.get("repeated", 1))) for record in said if record["event"] == "file.lost") == 1_000
    )


def test_a_log_file_is_put_aside_when_it_is_long_by_the_process_that_writes_it(tmp_path: Path) -> None:
    file = tmp_path / "log"
    for times in (1, 2):
        say(
            file,
            "telemetry.FILE_BYTES_MAX = 10_000",
            "for number in range(1_000): log.info('door.opened', number=number)",
            "for number in range(1_000): print(f'{{\"printed\": {number}}}', file=sys.stderr)",
        )
        assert {path.name for path in tmp_path.iterdir()} == {"log", "log.1"}, times
        assert all(1_000 < path.stat().st_size < 11_000 for path in tmp_path.iterdir())
        assert file.stat().st_mode & 0o777 == 0o600


def test_of_two_processes_that_write_one_file_neither_goes_on_in_what_the_other_has_put_aside(
    tmp_path: Path,
) -> None:
    file = tmp_path / "log"
    other = (
        SAYING.format(file=str(file))
        + "telemetry.FILE_BYTES_MAX = 1_000\nfor _ in range(100): log.info('other.said')"
    )
    say(
        file,
        "import subprocess",
        "telemetry.FILE_BYTES_MAX = 1_000",
        f"subprocess.run([sys.executable, '-c', {other!r}], check=True)",
        "for _ in range(100): log.info('one.said')",
    )
    assert all(path.stat().st_size < 1_200 for path in tmp_path.iterdir())
