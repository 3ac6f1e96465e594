"""`python -m tests.redaction [--gitleaks FOLDER] [--detect-secrets FOLDER] [--tldr FOLDER] [--manuals
FOLDER] [--code FOLDER …]`.
"""

import argparse
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from omegad.text.redaction import redact
from omegad.text.redaction.secrets import _redact
from tests.redaction import corpora
from tests.redaction.corpora import Sample

READERS: dict[str, tuple[Callable[[Path], Iterator[Sample]], str]] = {
    "gitleaks": (corpora.gitleaks, "a checkout of gitleaks"),
    "detect_secrets": (corpora.detect_secrets, "a checkout of detect-secrets"),
    "tldr": (corpora.tldr, "a checkout of tldr pages"),
    "manuals": (corpora.manuals, "a folder of manual pages as text, NAME.1.txt and NAME.8.txt"),
}
FILE_BYTES_MAX = 1024 * 1024
PIECE_LINES = 400  # of a file are searched at once, as much as a tool shows of one
LINE_CHARACTERS = 160
GOAL_LINES = 10_000


def main() -> None:
    """Print how much is found of what is secret in each corpus, and how much that is none in each folder
    of code.
    """
    options = _options()
    total: Counter[bool] = Counter()
    for name, (reader, _) in READERS.items():
        if folder := getattr(options, name):
            samples = [
                one
                for one in dict.fromkeys(reader(folder))
                if options.half is None or one.is_held_aside == (options.half == "held")
            ]
            total += _samples(name, samples, is_shown=options.show)
    if total:
        print(f"\nfound in all: {_share(total[True], total.total())}\n")
    for folder in options.code:
        _code(folder, is_shown=options.show)
    if options.code:
        _speed(options.code)


def _samples(name: str, samples: list[Sample], *, is_shown: bool) -> Counter[bool]:
    found, kinds, false = Counter[bool](), defaultdict[str, Counter[bool]](Counter), 0
    for sample in (one for one in samples if one.text):
        clean, marks = redact(sample.text)
        is_found = sample.secret not in clean if sample.secret else bool(marks)
        if sample.is_secret:
            found[is_found] += 1
            kinds[sample.kind][is_found] += 1
        else:
            false += bool(marks)
        if is_shown and is_found != sample.is_secret:
            print(
                f"  {'missed' if sample.is_secret else 'false'} {sample.kind}:"
                f" {sample.text[: 2 * LINE_CHARACTERS]!r}"
            )
    print(f"{name}: {_share(found[True], found.total())}; marked of what the author says is none: {false}")
    print(f"  kinds found whole: {_share(sum(not one[False] for one in kinds.values()), len(kinds))}")
    for kind, count in sorted(kinds.items(), key=lambda item: (item[1][True] / item[1].total(), item[0])):
        if count[False]:
            print(f"  {kind}: {count[True]} of {count.total()}")
    for unread in (one.kind for one in samples if not one.text):
        print(f"  {unread}")
    return found


def _code(folder: Path, *, is_shown: bool) -> None:
    marks, lines = Counter[str](), 0
    for path, text in _files([folder]):
        pieces = text.splitlines(keepends=True)
        lines += len(pieces)
        for at in range(0, len(pieces), PIECE_LINES):
            before = "".join(pieces[at : at + PIECE_LINES])
            clean, kinds = redact(before)
            if kinds:
                marks += Counter(
                    {
                        kind: clean.count(f"[REDACTED:{kind}]") - before.count(f"[REDACTED:{kind}]")
                        for kind in kinds
                    }
                )
                if is_shown:
                    _show(path, before, clean)
    share = marks.total() / max(1, lines) * GOAL_LINES
    print(
        f"{folder.name}: {marks.total()} in {lines:,} lines, {share:.2f} in {GOAL_LINES:,}:"
        f" {dict(marks.most_common())}",
        flush=True,
    )


def _show(path: Path, before: str, clean: str) -> None:
    known = set(before.splitlines())
    for line in clean.splitlines():
        if "[REDACTED:" in line and line not in known:
            at = line.index("[REDACTED:")
            print(f"  {path}: {line[max(0, at - LINE_CHARACTERS) : at + LINE_CHARACTERS].strip()}")


def _speed(folders: Iterable[Path]) -> None:
    text = "".join(text for _, text in _files(folders))[: 4 * FILE_BYTES_MAX]
    pieces = [text[at : at + 4096] for at in range(0, len(text), 4096)]
    best = min(_timed(pieces) for _ in range(3))
    print(f"\n{best / len(text.encode()) * 1024 * 1e6:.1f} µs for a KiB of that code")


def _timed(pieces: list[str]) -> float:
    started = time.process_time()
    for piece in pieces:
        _redact(piece)
    return time.process_time() - started


def _files(folders: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink() and path.stat().st_size <= FILE_BYTES_MAX:
                data = path.read_bytes()
                if b"\0" not in data:
                    yield path, data.decode(errors="replace")


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / max(1, whole):.1%})"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.redaction", description="Measure what redaction finds; nothing passes or fails."
    )
    for name, (_, of_what) in READERS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=Path, metavar="FOLDER", help=of_what)
    parser.add_argument(
        "--code",
        type=Path,
        nargs="*",
        default=[],
        metavar="FOLDER",
        help="files without secrets, of which nothing should be taken",
    )
    parser.add_argument(
        "--half",
        choices=["open", "held"],
        help="only the half by which the rules were written, or the other one",
    )
    parser.add_argument(
        "--show", action="store_true", help="also show each that was missed, and each that was taken for one"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
