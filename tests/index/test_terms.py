"""From what a person asks to what FTS5 is asked, which must never be an error."""

from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omegad.index import terms
from omegad.storage.driver import Connection
from omegad.text.languages import language_of
from omegad.text.tokenizer import NAME_CHARACTERS_MAX, lexemes
from projections import fulltext
from tests.builders import at_most, open_in_memory, rows


@pytest.fixture(scope="module")
def table() -> Iterator[Connection]:
    connection = open_in_memory()
    connection.executescript(fulltext.SCHEMA)
    yield connection
    connection.close()


def found(connection: Connection, expression: str | None, *contents: str) -> list[int]:
    """Return which of *contents*, counted from 1, full text finds, kept as the view of that name keeps
    them.
    """
    connection.execute("DELETE FROM memories_fts")
    for number, content in enumerate(contents, 1):
        values = (number, content, lexemes(content))
        connection.execute(
            "INSERT INTO memories_fts (rowid, content, context, lexemes) VALUES (?, ?, '', ?)", values
        )
    return [
        row[0]
        for row in rows(
            connection, "SELECT rowid FROM memories_fts WHERE memories_fts MATCH ? ORDER BY rowid", expression
        )
    ]


ANY_TEXT = (
    st.text(max_size=60)
    | st.text(st.sampled_from("ab\"*^:(){}-+.,'\\/ \tANDORNTE\0"), max_size=30)
    | st.text(st.sampled_from("aB1_.設定値ー가ก\U00020000é \"'()"), max_size=30)
)


@example("c++")
@example('say "x')
@example("a AND")
@example("NEAR(a b)")
@example("設\0定")
@example('"' * 99)
@example("aB" * 4_000)
@example("設定" * 4_000)
@example(" ".join(f"word{n}" for n in range(1_000)))
@settings(max_examples=300)
@given(ANY_TEXT)
def test_any_text_is_a_valid_expression_of_each_of_its_terms_once(table: Connection, text: str) -> None:
    telling = terms.telling(text)
    assert len(set(telling)) == len(telling) <= terms.TERMS_MAX
    assert terms.any_term(text) == (" OR ".join(telling) or None)
    assert (
        (terms.any_term(text) is not None)
        is (terms.phrase(text) is not None)
        is any(sign.isalnum() for sign in text)
    )
    for expression in (*telling, *map(terms.beginning, telling), terms.any_term(text), terms.phrase(text)):
        if expression is not None:
            found(table, expression)


@pytest.mark.parametrize(
    ("asked", "expression"),
    [
        ("src/app.py and load_users()", '"src/app.py" OR "load_users"'),
        ("the PaymentGateway", '("PaymentGateway" OR "payment gateway")'),
        ("設定値 of", '"設定" OR "定値"'),
        ('a"b', '"a""b"'),
        ("...", None),
    ],
)
def test_every_telling_term_is_quoted(asked: str, expression: str | None) -> None:
    assert terms.any_term(asked) == expression


FOUND = """
edit src/app.py first | src/app.py; call load_users() | load_users; uses C++ 20 | c++; a crème brûlée | creme
deployed yesterday | deploying; the PaymentGateway is down | gateway
the payment gateway is down | PaymentGateway
HTTPServerError2 was raised | server error; released as v1.2.3 | 1.2.3; released as 1.2.3-rc.1 | v1.2.3-rc.1
pass --dry-run to it | --dry-run; 設定値は設定ファイルにあります | ファイル; we use config.py for that | 在config.py中
데이터베이스를 백업한다 | 데이터베이스; ทดสอบระบบ | ระบบ; 半角ｶﾅ | カナ
"""
NOT_FOUND = """
the app is in src, and py | src/app.py; users load slowly | load_users
a gateway for a payment | PaymentGateway
released as v1.2.30 | 1.2.3; version 2 of it | v2; 設定値は設定ファイルにあります | 東京
"""


@pytest.mark.parametrize(("pairs", "holds"), [(FOUND, True), (NOT_FOUND, False)])
def test_what_is_joined_is_found_as_it_was_written_and_names_by_their_parts(
    table: Connection, pairs: str, *, holds: bool
) -> None:
    for pair in pairs.strip().replace("\n", "; ").split("; "):
        content, asked = pair.split(" | ")
        assert bool(found(table, terms.any_term(asked), content)) is holds, pair


@given(st.text(st.sampled_from("設定値東京を"), min_size=2, max_size=12), st.data())
def test_an_unspaced_text_is_found_by_every_part_of_it(
    table: Connection, run: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(run) - 2))
    part = run[start : data.draw(st.integers(start + 2, len(run)))]
    assert found(table, " AND ".join(terms.telling(part)), "another text 別", f"before {run} after") == [2]


@pytest.mark.parametrize(
    "unit", ["a", "aA", "a ", "設", "設a", '"', ".", "_", "'s ", "aB.c ", "v1.", "a.b:1"]
)
def test_no_question_takes_long(table: Connection, unit: str) -> None:
    with at_most(3):
        found(table, terms.any_term(unit * (8_192 // len(unit))) or "nothing", "some words")
        terms.telling(unit * (256 * 1024 // len(unit)))
        terms.stemmed(unit * (256 * 1024 // len(unit)))


FRAGMENTS = st.sampled_from(
    ["\\n", "C:\\", "a.", "v1.2.", "n-m-", "x=1;", "aB", "設", "_", " ", "'s ", "/", "é", "\0", '"', "mem-1 "]
)


@example("\\n" * 4_000)
@example("C:\\" * 2_700)
@example(" ".join("-".join("nm"[number >> bit & 1] for bit in range(16)) for number in range(500)))
@given(
    st.lists(st.tuples(FRAGMENTS, st.integers(1, 300)), max_size=30).map(
        lambda parts: "".join(part * times for part, times in parts)
    )
)
def test_what_full_text_is_asked_is_bounded_in_terms_and_in_words(text: str) -> None:
    """What full text does for a row grows with the words that it is asked for, times those of the row."""
    telling = terms.telling(text)
    words = [terms.words_of(expression.replace(" OR ", " ")) for expression in telling]
    assert len(telling) <= terms.TERMS_MAX
    assert sum(words[:-1]) < terms.WORDS_MAX
    assert max(words, default=0) <= terms.PARTS_MAX + NAME_CHARACTERS_MAX
    assert bool(telling) is any(sign.isalnum() for sign in text)


def test_a_long_compound_is_found_by_its_parts(table: Connection) -> None:
    address = "https://example.org/" + "/".join(f"part{number}" for number in range(40))
    assert found(table, terms.any_term(address), "another", f"see {address}", "see part17/part18 of it") == [
        2
    ]
    assert len(terms.telling(address)) == 3


@pytest.mark.parametrize(
    ("text", "stems"),
    [
        ("निर्यातों की सीमा", ["निर्यात", "की", "सीम"]),
        ("Der PaymentGateway lehnte ab", ["der", "payment", "gateway", "lehnt", "ab"]),
        ("数据库", ["数据库", "数据", "据库"]),
        ("the exporters run", ["export", "run"]),
    ],
)
def test_words_are_stems_in_their_language_whose_vowels_may_be_signs(text: str, stems: list[str]) -> None:
    assert terms.stemmed_in(language_of(text), text) == stems
