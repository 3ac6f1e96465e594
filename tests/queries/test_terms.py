"""From what a person asks to what FTS5 is asked, which must never be an error."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omegad.queries import terms
from omegad.storage.driver import Connection
from tests.builders import open_in_memory, rows


def table(*contents: str) -> Connection:
    connection = open_in_memory()
    connection.execute("CREATE VIRTUAL TABLE f USING fts5(content, tokenize = 'porter unicode61 remove_diacritics 2')")
    for content in contents:
        connection.execute("INSERT INTO f VALUES (?)", (content,))
    return connection


ONE = table("some words")


@example("c++")
@example('say "x')
@example("foo-bar")
@example("a AND")
@example("NEAR(a b)")
@example("col:x ^y *")
@example("\0")
@example("ª")
@example('"' * 99)
@example("a " * 4_000)
@example(" ".join(f"word{n}" for n in range(1_000)))
@settings(max_examples=300)
@given(st.text(max_size=60) | st.text(st.sampled_from("ab\"*^:(){}-+.,'\\/ \tANDORNTE"), max_size=30))
def test_no_text_whatever_is_an_error_to_full_text(text: str) -> None:
    for expression in (terms.any_term(text), terms.phrase(text)):
        if expression is not None:
            rows(ONE, "SELECT rowid FROM f WHERE f MATCH ?", expression)


@given(st.text(max_size=60))
def test_a_text_with_a_letter_or_digit_is_asked_for(text: str) -> None:
    has_word = any(sign.isalnum() for sign in text)
    assert (terms.any_term(text) is not None) is has_word
    assert (terms.phrase(text) is not None) is has_word


@pytest.mark.parametrize(
    ("asked", "expression"),
    [
        ("how do we deploy?", '"deploy"'),
        ("deploy deploy Deploy", '"deploy" OR "Deploy"'),
        ("to be or not to be", '"not"'),
        ("who are you", '"who" OR "are" OR "you"'),
        ("src/app.py and load_users()", '"src/app.py" OR "load_users"'),
        ("Anna's build", '"Anna" OR "build"'),
        ('say "hello"', '"say" OR "hello"'),
        ('a"b', '"a""b"'),
        ("...", None),
        ("", None),
    ],
)
def test_every_telling_term_is_quoted(asked: str, expression: str | None) -> None:
    assert terms.any_term(asked) == expression


def test_terms_are_bounded() -> None:
    assert (terms.any_term(" ".join(f"word{n}" for n in range(500))) or "").count(" OR ") == terms.TERMS_MAX - 1


@pytest.mark.parametrize(
    ("content", "asked", "found"),
    [
        ("edit src/app.py first", "src/app.py", True),
        ("the app is in src, and py", "src/app.py", False),
        ("call load_users()", "load_users", True),
        ("users load slowly", "load_users", False),
        ("uses C++ 20", "c++", True),
        ("a crème brûlée", "creme", True),
        ("deployed yesterday", "deploying", True),
        ("nothing here", "deploy", False),
    ],
)
def test_what_is_joined_is_found_as_it_was_written(content: str, asked: str, *, found: bool) -> None:
    connection = table(content)
    assert bool(rows(connection, "SELECT rowid FROM f WHERE f MATCH ?", terms.any_term(asked))) is found
    connection.close()


@pytest.mark.parametrize(("asked", "found"), [("the quick fox", True), ("quick the fox", False), ("fox", True), ("THE QUICK", True)])
def test_a_phrase_is_found_in_a_row(asked: str, *, found: bool) -> None:
    connection = table("the quick fox jumps")
    assert bool(rows(connection, "SELECT rowid FROM f WHERE f MATCH ?", terms.phrase(asked))) is found
    connection.close()
