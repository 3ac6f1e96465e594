import os
import shlex
import subprocess
import sys

import pytest

from omegad import __version__
from omegad.edge.cli import arguments, main
from omegad.edge.cli.verbs import MOST_USED
from tests.edge.cli.conftest import PATIENCE_S, ROOT, Command

VERBS = (
    *(
        "serve",
        "start",
        "stop",
        "status",
        "store",
        "query",
        "get",
        "list",
        "delete",
        "timeline",
        "memory",
        "log",
        "rebuild",
        "verify",
        "model",
    ),
    *("doctor", "hook"),
)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    told = capsys.readouterr().out
    assert f"usage: omegad {verb}" in told
    assert "()" not in told  # a default that is nothing


def test_every_verb_and_every_group_of_them_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    known = {verb.words for verb in arguments.verbs()}
    groups = {" ".join(words.split()[:many]) for words in known for many in range(1, words.count(" ") + 1)}
    for words in sorted(groups):
        assert main([*words.split(), "--help"]) == 0
        assert f"\nexamples:\n  omegad {words} " in capsys.readouterr().out, words
    assert {*MOST_USED} <= groups
    assert {*MOST_USED.values()} <= known
    for verb in arguments.verbs():
        assert main([*verb.words.split(), "--help"]) == 0
        assert "\nexamples:\n  " in capsys.readouterr().out, verb.words
        for example in verb.examples:
            words = example.partition("<")[0].partition(">")[0].rpartition("&& ")[2].split(" | ")[-1]
            if words.startswith("omegad "):
                arguments.parse(shlex.split(words)[1:])


def test_how_to_verify_is_shown_by_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--help"]) == 0
    assert "omegad verify --json" in capsys.readouterr().out


def test_the_verbs_and_examples_are_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    told = capsys.readouterr().out
    assert all(f"\n    {verb} " in told for verb in VERBS)
    assert "examples:" in told
    assert "exit status:" in told


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"omegad {__version__}\n"


@pytest.mark.parametrize(
    "wrong",
    [
        ("no-such-verb",),
        ("store",),
        ("query", "x", "--mode", "psychic"),
        ("query", "x", "--limit", "ten"),
        ("memory", "link", "mem-0", "mem-1", "--edge-type", "friend"),
        ("store", "x", "--metadata", "[1]"),
        ("store", "x", "--metadata", "{"),
        ("store", "a\udcff"),
        ("log", "--after", "-1"),
        ("status", "--socket", "x" * 120),
    ],
    ids=lambda wrong: " ".join(wrong)[:30].encode("ascii", "replace").decode() or "nothing",
)
def test_wrong_usage_is_told_apart(wrong: tuple[str, ...], omegad: Command) -> None:
    refused = omegad(*wrong, status=2)
    assert refused.stdout == ""
    assert refused.stderr
    assert not omegad.home.exists()


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("qery x", "there is no `omegad qery`; did you mean `omegad query`?"),
        ("memory lesons", "there is no `omegad memory lesons`; did you mean `omegad memory lessons`?"),
        ("lessons", "did you mean `omegad memory lessons`?"),
        ("gateway", "did you mean `omegad web`?"),
        ("remember x", "did you mean `omegad store`?"),
        ("serach x", "did you mean `omegad query`?"),
        ("query x --projct shop", "`omegad query` has no --projct; did you mean --project?"),
        ("memory", "`omegad memory --help` lists it"),
        ("store the deploy isn't", "stand in quotes: 'the deploy isn'\"'\"'t'\n"),
        ("query where is it --project shop", "stand in quotes: 'where is it'\n"),
        ("delete mem-0 mem-1", "`omegad delete` does not take 'mem-1' too"),
        ("memory edit mem-0", "needs CONTENT\n  hint: as in: omegad memory edit mem-"),
        ("query x --limit ten", "--limit is a whole number, and not 'ten'"),
        ("query x --mode psychic", "--mode is one of "),
        ("query x --limit", "--limit needs a value"),
        ("seal --key-file a --keyring", "`omegad seal --help` explains it"),
        ("--no-spawn status --growth extra", "`omegad status` does not take 'extra' too"),
        ("seal --yes --key-file=", "--key-file needs a path"),
        ("list --home=", "--home and --socket need a path"),
        ("zzzqqq", "there is no `omegad zzzqqq`\n"),
    ],
)
def test_what_is_mistyped_is_told_what_may_be_meant(typed: str, said: str, omegad: Command) -> None:
    refused = omegad(*typed.split(), status=2)
    assert said in refused.stderr
    assert not {"choose", "usage:"} & set(refused.stderr.split())


def test_standard_input_that_is_not_text_is_wrong_usage(omegad: Command) -> None:
    assert "not text in UTF-8" in omegad("store", "-", stdin=b"\xff", status=2).stderr
    assert "more than 1.0 MiB" in omegad("store", "-", stdin=b"a" * 2_000_000, status=2).stderr


def test_global_options_are_understood_before_and_after_the_verb() -> None:
    orders = (["--json", "--home", "/x", "list"], ["list", "--json", "--home", "/x"])
    before, after = (arguments.parser(words).parse_args(words) for words in orders)
    assert (
        (before.json, before.home, before.no_spawn)
        == (after.json, after.home, after.no_spawn)
        == (True, "/x", False)
    )


def test_a_reader_who_has_read_enough_is_not_complained_to(omegad: Command) -> None:
    for arguments_given in (("--help",), ("start",), ("log", "--after", "0")):
        reading, writing = os.pipe()
        os.close(reading)
        command = [sys.executable, "-m", "omegad", *arguments_given]
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=omegad.environ,
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
            timeout=PATIENCE_S,
        )
        os.close(writing)
        assert done.returncode == 0
        assert b"Error" not in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has a device that is always full")  # noqa: PTH110
def test_output_that_cannot_be_written_is_a_failure_in_words(omegad: Command) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:  # noqa: PTH123
        command = [sys.executable, "-m", "omegad", "model", "list"]
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=omegad.environ,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            timeout=PATIENCE_S,
        )
    assert done.returncode == 1
    assert done.stderr.startswith(b"omegad: ")
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments_given", "unwanted"), [(("--help",), "msgspec"), (("status", "--no-spawn"), "rich")]
)
def test_a_verb_imports_no_more_than_it_needs(
    arguments_given: tuple[str, ...], unwanted: str, omegad: Command
) -> None:
    heavy = {
        "aiosqlite",
        "anyio",
        "numpy",
        "onnxruntime",
        "structlog",
        "tokenizers",
        "asyncio",
        unwanted,
    }
    program = (
        f"import sys; from omegad.edge.cli import main; main({list(arguments_given)!r});"
        f" print(sorted({heavy!r} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=omegad.environ,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    assert done.stdout.splitlines()[-1] == "[]"
