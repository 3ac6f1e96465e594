"""What a text can be found by beside its words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.text.tokenizer import (
    NAME_CHARACTERS_MAX,
    TEXT_CHARACTERS_MAX,
    bigrams,
    camel_names,
    humps,
    lexemes,
    unspaced_runs,
)
from tests.builders import at_most


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("PaymentGateway", ("payment", "gateway")),
        ("parseConfig", ("parse", "config")),
        ("HTTPServerError2", ("http", "server", "error", "2")),
        ("utf8Decoder", ("utf", "8", "decoder")),
        ("XMLParser", ("xml", "parser")),
        ("getURL", ("get", "url")),
        ("plain", ("plain",)),
        ("ID", ("id",)),
    ],
)
def test_a_name_is_broken_at_its_humps(name: str, parts: tuple[str, ...]) -> None:
    assert humps(name) == parts


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            "PaymentGateway raises HTTPServerError2 in parseConfig()",
            ["PaymentGateway", "HTTPServerError2", "parseConfig"],
        ),
        ("obj.someMethod, IOError and iPhone", ["someMethod", "IOError", "iPhone"]),
        ("Plain words, ALL_CAPS, snake_case, NASA and v2", []),
        ("", []),
    ],
)
def test_names_in_a_text_are_those_with_humps(text: str, names: list[str]) -> None:
    assert list(camel_names(text)) == names


def test_a_run_is_its_pairs_of_neighbours() -> None:
    assert bigrams("設定値") == ("設定", "定値")
    assert bigrams("値") == ("値",)
    assert bigrams("カバ") == ("カバ",)  # in the width that everybody writes


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("the 設定 of 東京タワー!", ["設定", "東京タワー"]),
        ("안녕하세요 세계", ["안녕하세요", "세계"]),
        ("ภาษาไทย and ខ្មែរ", ["ภาษาไทย", "ខ្មែរ"]),
        ("ﾃｽﾄ", ["ﾃｽﾄ"]),
        ("𠀀𠀁", ["𠀀𠀁"]),
        ("naïve Ελληνικά русский עברית", []),
    ],
)
def test_runs_are_of_scripts_that_write_no_spaces(text: str, runs: list[str]) -> None:
    assert list(unspaced_runs(text)) == runs


def test_the_lexemes_of_a_text_are_names_in_parts_then_runs_in_pairs_and_characters() -> None:
    assert lexemes("PaymentGateway の 設定値 PaymentGateway") == "payment gateway の の 設定 定値 設 定 値"
    assert lexemes("plain words, NASA") == ""


def test_what_is_written_right_beside_a_run_is_a_word_too() -> None:
    assert lexemes("see config.tomlの値 there") == "config.toml の値 の 値"
    assert lexemes("値はretry-3 there").split()[0] == "retry-3"


def test_what_is_longer_than_any_name_is_none() -> None:
    longest = "aB" * (NAME_CHARACTERS_MAX // 2)
    assert list(camel_names(f"{longest} {longest}a")) == [longest]


@given(st.text(st.sampled_from("aAbB1 _設定ー가ก\n."), max_size=60))
def test_every_lexeme_comes_from_the_text(text: str) -> None:
    for word in lexemes(text).split():
        assert word.lower() in text.lower()


@given(st.text(st.sampled_from("設定値東京"), min_size=1, max_size=12), st.data())
def test_every_part_of_a_run_shares_its_pairs(run: str, data: st.DataObject) -> None:
    """So that a question finds a sentence by a word in its middle."""
    start = data.draw(st.integers(0, len(run) - 1))
    part = run[start : data.draw(st.integers(start + 1, len(run)))]
    assert set(bigrams(part)) <= set(lexemes(run).split())


@pytest.mark.parametrize("unit", ["aA", "A", "a1", "設", "aA ", "Aa1", "設a", "!!設"])
def test_no_text_takes_long(unit: str) -> None:
    with at_most(3):
        found = lexemes(unit * (256 * 1024 // len(unit)))
    assert len(found) <= 8 * TEXT_CHARACTERS_MAX


def test_a_word_in_another_guise_is_a_word_too_and_one_that_the_tokenizer_knows_is_not_said_twice() -> None:
    assert (
        lexemes("the Haupt\u00adstraße, and the ﬁle of the café, is what we have, naïve Über")
        == "hauptstrasse file"
    )
    assert lexemes("done 👍🏽 in 🇩🇪 👩\u200d💻") == "u1f44d u1f1e9u1f1ea u1f469 u1f4bb"


@pytest.mark.parametrize(
    ("text", "stems"),
    [
        ("Die Datenbanken werden nachts gesichert", "datenbank nacht"),
        ("Подключения закрываются через минуту", "подключен закрыва минут"),
        ("the databases are saved at night", ""),
    ],
)
def test_what_is_not_english_is_found_by_its_stems_too(text: str, stems: str) -> None:
    assert lexemes(text) == stems
