"""A method's own declaration is all that the command line needs of it."""

from argparse import Namespace
from importlib import import_module

import msgspec
import pytest

from omegad.catalog import describing
from omegad.edge.cli import arguments, main, sentences
from omegad.requests.command import Acknowledged
from omegad.requests.method import QueryMethod
from omegad.requests.query import Query
from omegad.requests.verb import OF_ITS_NAME, Option, Table, Verb, of


class Count(Query, tag="heron.count", kw_only=True, frozen=True):
    """Count herons. As often as it is asked."""

    place: str
    limit: int = 3


def declare(monkeypatch: pytest.MonkeyPatch, verb: Verb | None) -> None:
    """Let the command line know the method, as it would of a description that was written with it."""
    method = QueryMethod(params=Count, answer=Acknowledged, views=(), read=lambda *_: None, verb=verb)
    told = msgspec.json.decode(describing.command_line([*describing.every(), describing.described(method)]))
    monkeypatch.setattr(arguments, "methods", lambda: {one["name"]: one for one in told})


def parsed(*words: str) -> Namespace:
    return arguments.parser(words).parse_args(words)


def test_a_method_declared_with_its_verb_is_one_of_the_command_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = Verb(
        "herons",
        by="findings.herons",
        says="{count} herons",
        given=("limit",),
        options=(Option("dusk", "those that come at dusk", "flag"),),
        examples=("omegad herons 7 --place pond",),
        also="birds list",
    )
    declare(monkeypatch, asked)
    for words in (("herons",), ("birds", "list")):
        found = parsed(*words, "7", "--place", "pond", "--dusk")
        assert (found.method, found.module, found.function, found.says) == (
            "heron.count",
            "findings",
            "herons",
            "{count} herons",
        )
        assert (found.limit, found.place, found.dusk) == (7, "pond", True)
    assert main(["herons", "--help"]) == 0
    told = capsys.readouterr().out
    assert "Count herons." in told
    assert told.endswith("examples:\n  omegad herons 7 --place pond\n")
    assert main(["--help"]) == 0
    assert "\n    herons " in capsys.readouterr().out


def test_a_method_that_says_nothing_has_a_verb_of_its_name_and_none_where_it_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    declare(monkeypatch, OF_ITS_NAME)
    found = parsed("heron", "count", "pond")
    assert (found.method, found.module, found.function, found.says) == ("heron.count", "sentences", "say", "")
    declare(monkeypatch, None)
    with pytest.raises(arguments.WrongUsage, match="no `omegad heron`"):
        parsed("heron", "count", "pond")


def test_a_verb_is_the_same_after_it_was_written_down() -> None:
    verb = Verb(
        "a b",
        says="{c}",
        given=("c",),
        options=(Option("d", "it", is_given=True, default="-"),),
        examples=("omegad a b c",),
    )
    again = of(msgspec.json.decode(msgspec.json.encode(verb.as_json())))
    assert again._replace(given=tuple(again.given or ()), examples=tuple(again.examples)) == verb


def test_every_verb_is_there_once_and_is_done_by_a_function_that_is_there() -> None:
    verbs = arguments.verbs()
    words = [verb.words for verb in verbs]
    assert len(set(words)) == len(words)
    missing = [
        verb
        for verb in verbs
        for module, _, function in [verb.by.partition(".")]
        if not _is_there(module, function)
    ]
    assert missing == []
    assert [verb.words for verb in verbs if verb.says and verb.by != "sentences.say"] == []


def test_a_cell_says_the_first_that_says_something_and_a_dash_for_nothing() -> None:
    row = {"tasks": ["a", "b"], "none": [], "intent": None, "asked": "why", "silent_s": 61, "is_due": False}
    cells = {
        "{tasks+intent|asked}": "a, b",
        "{none+intent|asked}": "why",
        "{none|intent}": "-",
        "{intent|a person}": "a person",
        "{intent}{asked:project %s}": "project why",
        "{silent_s:duration}": "1 min 1 s",
        "{is_due:due}": " ",
    }
    shown = Table("rows", tuple(("", cell) for cell in cells), none="none")
    assert sentences.rows_of(shown, {"rows": [row]})[1] == [list(cells.values())]


def _is_there(module: str, function: str) -> bool:
    return callable(getattr(import_module(f"omegad.edge.cli.{module}"), function, None))
