"""From what a person asks to what FTS5 is asked, which must never be an error."""

from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omegad.lexemes import lexemes
from omegad.queries.search import terms
from omegad.storage.driver import Connection
from projections import fulltext
from tests.builders import at_most, open_in_memory, rows


def table(*contents: str) -> Connection:
    """Return a full text of *contents*, as the view of that name keeps it."""
    connection = open_in_memory()
    connection.executescript(fulltext.SCHEMA)
    for content in contents:
        connection.execute("INSERT INTO memories_fts (content, context, lexemes) VALUES (?, '', ?)", (content, lexemes(content)))
    return connection


@pytest.fixture(scope="module")
def one() -> Iterator[Connection]:
    connection = table("some words")
    yield connection
    connection.close()


def found(connection: Connection, expression: str | None) -> list[int]:
    return [row[0] for row in rows(connection, "SELECT rowid FROM memories_fts WHERE memories_fts MATCH ? ORDER BY rowid", expression)]


ANY_TEXT = (
    st.text(max_size=60)
    | st.text(st.sampled_from("ab\"*^:(){}-+.,'\\/ \tANDORNTE\0"), max_size=30)
    | st.text(st.sampled_from("aB1_.設定値ー가ก\U00020000é \"'()"), max_size=30)
)


@example("c++")
@example('say "x')
@example("foo-bar")
@example("a AND")
@example("NEAR(a b)")
@example("col:x ^y *")
@example("\0")
@example("設\0定")
@example("設")
@example('設"定')
@example("ª")
@example('"' * 99)
@example("a " * 4_000)
@example("aB" * 4_000)
@example("設定" * 4_000)
@example("#設定 ー")
@example(" ".join(f"word{n}" for n in range(1_000)))
@settings(max_examples=300)
@given(ANY_TEXT)
def test_no_text_whatever_is_an_error_to_full_text(text: str) -> None:
    connection = table("some words")
    for expression in (*terms.telling(text), terms.any_term(text), terms.phrase(text)):
        if expression is not None:
            found(connection, expression)
    connection.close()


@given(ANY_TEXT)
def test_a_text_with_a_letter_or_digit_is_asked_for(text: str) -> None:
    has_word = any(sign.isalnum() for sign in text)
    assert (terms.any_term(text) is not None) is has_word
    assert (terms.phrase(text) is not None) is has_word


@given(ANY_TEXT)
def test_the_terms_are_those_of_the_expression_each_once(text: str) -> None:
    telling = terms.telling(text)
    assert len(set(telling)) == len(telling) <= terms.TERMS_MAX
    assert terms.any_term(text) == (" OR ".join(telling) or None)


@pytest.mark.parametrize(
    ("asked", "expression"),
    [
        ("how do we deploy?", '"deploy"'),
        ("deploy deploy Deploy", '"deploy" OR "Deploy"'),
        ("to be or not to be", '"not"'),
        ("who are you", '"who" OR "are" OR "you"'),
        ("src/app.py and load_users()", '"src/app.py" OR "load_users"'),
        ("the PaymentGateway", '("PaymentGateway" OR "payment gateway")'),
        ("設定値 of", '"設定" OR "定値"'),
        ("値", '"値"'),
        ("config.pyを", '"を" OR "config.py"'),
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
    assert len(terms.telling(" ".join(f"word{n}" for n in range(500)))) == terms.TERMS_MAX


@pytest.mark.parametrize(
    ("content", "asked", "holds"),
    [
        ("edit src/app.py first", "src/app.py", True),
        ("the app is in src, and py", "src/app.py", False),
        ("call load_users()", "load_users", True),
        ("users load slowly", "load_users", False),
        ("uses C++ 20", "c++", True),
        ("a crème brûlée", "creme", True),
        ("deployed yesterday", "deploying", True),
        ("nothing here", "deploy", False),
        ("the PaymentGateway is down", "payment", True),
        ("the PaymentGateway is down", "gateway", True),
        ("the payment gateway is down", "PaymentGateway", True),
        ("a gateway for a payment", "PaymentGateway", False),
        ("HTTPServerError2 was raised", "server error", True),
        ("see https://example.org/docs/v2", "https://example.org/docs/v2", True),
        ("released as v1.2.3", "1.2.3", True),
        ("released as 1.2.3", "V1.2.3", True),
        ("released as 1.2.3-rc.1", "v1.2.3-rc.1", True),
        ("released as v1.2.30", "1.2.3", False),
        ("released as 1.2.3", "v1.2", True),
        ("version 2 of it", "v2", False),
        ("released as v1.2.3", "v1.2.3", True),
        ("pass --dry-run to it", "--dry-run", True),
        ("設定値は設定ファイルにあります", "設定", True),
        ("設定値は設定ファイルにあります", "ファイル", True),
        ("設定値は設定ファイルにあります", "東京", False),
        ("使用config.py配置", "config.py", True),
        ("we use config.py for that", "在config.py中", True),
        ("데이터베이스를 백업한다", "데이터베이스", True),
        ("ทดสอบระบบ", "ระบบ", True),
        ("半角ｶﾅ", "カナ", True),
    ],
)
def test_what_is_joined_is_found_as_it_was_written_and_names_by_their_parts(content: str, asked: str, *, holds: bool) -> None:
    connection = table(content)
    assert bool(found(connection, terms.any_term(asked))) is holds
    connection.close()


def test_each_of_several_names_glued_to_unspaced_text_is_found() -> None:
    connection = table("we edit alpha.py", "we edit beta.py", "we edit gamma.py")
    assert found(connection, terms.any_term("在alpha.py和beta.py中")) == [1, 2]
    connection.close()


@given(st.text(st.sampled_from("設定値東京を"), min_size=2, max_size=12), st.data())
def test_an_unspaced_text_is_found_by_every_part_of_it(run: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(run) - 2))
    part = run[start : data.draw(st.integers(start + 2, len(run)))]
    connection = table("another text 別", f"before {run} after")
    assert 2 in found(connection, terms.any_term(part))
    assert found(connection, " AND ".join(terms.telling(part))) == [2]
    connection.close()


@given(st.lists(st.sampled_from(["Payment", "Gateway", "HTTP", "Error", "Load", "2"]), min_size=2, max_size=4))
def test_a_compound_name_is_found_by_its_parts_and_the_parts_by_it(parts: list[str]) -> None:
    name = "x" + "".join(parts)
    connection = table(f"the {name}() call")
    assert found(connection, terms.any_term(name)) == [1]
    connection.close()


@pytest.mark.parametrize(("asked", "holds"), [("the quick fox", True), ("quick the fox", False), ("fox", True), ("THE QUICK", True)])
def test_a_phrase_is_found_in_a_row(asked: str, *, holds: bool) -> None:
    connection = table("the quick fox jumps")
    assert bool(found(connection, terms.phrase(asked))) is holds
    connection.close()


@pytest.mark.parametrize("unit", ["a", "aA", "a ", "設", "設a", '"', ".", "_", "'s ", "aB.c "])
def test_no_question_takes_long(unit: str, one: Connection) -> None:
    with at_most(3):
        found(one, terms.any_term(unit * (8_192 // len(unit))) or "nothing")
        terms.telling(unit * (256 * 1024 // len(unit)))
