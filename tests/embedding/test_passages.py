"""The texts that are embedded for a memory."""

import pytest

from omegad.embedding.passages import (
    PASSAGE_CHARACTERS,
    SHORT_CHARACTERS,
    SHORT_CHARACTERS_MAX,
    SHORT_PASSAGES_MAX,
    SIGN_CHARACTERS,
    passages,
    short_passages,
)

GERMAN = "Der nächtliche Export läuft in eine Zeitüberschreitung. "
CHINESE = "夜间导出超时除非批量大小是五百。"


@pytest.mark.parametrize("content", ["", "x", GERMAN, GERMAN * 90, CHINESE * 90, "x" * 5_000, "数" * 2_000])
def test_passages_are_the_whole_text_within_what_a_model_takes_in(content: str) -> None:
    for cut, most in ((passages, PASSAGE_CHARACTERS), (short_passages, SHORT_CHARACTERS_MAX)):
        assert "".join(cut(content)) == content
        assert max(map(len, cut(content))) <= most


def test_signs_that_say_more_than_letters_make_shorter_passages() -> None:
    assert max(map(len, short_passages(CHINESE * 30))) <= SHORT_CHARACTERS // SIGN_CHARACTERS
    assert max(map(len, short_passages(GERMAN * 30))) > SHORT_CHARACTERS // 2


def test_short_passages_end_where_sentences_do_in_any_script() -> None:
    for sentence in (GERMAN, CHINESE, "रात का निर्यात समय पर पूरा नहीं होता।"):
        assert all(part.strip().endswith((".", "。", "।")) for part in short_passages(sentence * 90))


def test_no_text_has_more_passages_than_are_kept() -> None:
    assert len(short_passages("x " * 100_000)) == SHORT_PASSAGES_MAX


def test_a_sentence_is_no_longer_hidden_by_what_a_text_says_beside_it() -> None:
    answer = "The belt must stand still within 400 milliseconds, measured at full load, since the insurer asks so. "
    beside = "Documentation moves from Word to AsciiDoc until the end of the year, and the budget was cut. "
    assert answer in short_passages(beside * 3 + answer + beside * 3)


def test_a_long_text_has_longer_passages_rather_than_more() -> None:
    content = GERMAN * 600
    assert "".join(short_passages(content)) == content
    assert len(short_passages(content)) <= SHORT_PASSAGES_MAX
