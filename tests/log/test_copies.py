"""Verbatim copies: what is one, what is none, and what is left of a text when they are taken out."""

import json
import re
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.log.copies import ERASED, CopyFinder, is_short
from tests.builders import at_most

SAID = 'Anna\'s door opens with 4711,\nnot with "ünder" the mat'
ESCAPED = json.dumps(SAID)[1:-1]


@pytest.mark.parametrize(
    ("said", "text", "clean"),
    [
        (SAID, SAID, ERASED),
        (SAID, f"so: {SAID}; and {SAID}.", f"so: {ERASED}; and {ERASED}."),
        (SAID, f"so:  {SAID.replace(' ', '  ').replace(chr(10), ' ')}  yes", f"so:  {ERASED}  yes"),
        (
            SAID,
            json.dumps({"said": json.dumps({"again": SAID})}),
            json.dumps({"said": json.dumps({"again": ERASED})}),
        ),
        (SAID, f'{{"said":"{json.dumps(SAID, ensure_ascii=False)[1:-1]}"}}', f'{{"said":"{ERASED}"}}'),
        (SAID, SAID.replace("ü", "u\u0308"), ERASED),
        (SAID, SAID.replace("4711", "4712"), SAID.replace("4711", "4712")),
        (SAID, SAID[:-1], SAID[:-1]),
        ("tabs", "tabs", ERASED),
        ("tabs", " tabs\n", ERASED),
        ("tabs", "tabs or spaces", "tabs or spaces"),
        ("configuration", "the configuration is read", "the configuration is read"),
        ("a1b2c3d4e5f6g7", "the key is a1b2c3d4e5f6g7!", f"the key is {ERASED}!"),
        (
            "数据库用的是第十六版本的那个系统",
            "记住了 数据库用的是第十六版本的那个系统 谢谢",
            f"记住了 {ERASED} 谢谢",
        ),
    ],
)
def test_copies_are_taken_out_and_nothing_else_is(said: str, text: str, clean: str) -> None:
    assert CopyFinder([said]).clean(text) == clean


@pytest.mark.parametrize("said", ["a " * 131_072, "ab" * 131_072, "\\" * 262_144, f"{'a ' * 131_000}b"])
def test_the_longest_texts_are_looked_through_in_time(said: str) -> None:
    wordings = CopyFinder([said])
    with at_most(20.0):
        assert wordings.clean(said).strip() == ERASED
        assert wordings.clean(f"{said[:-2]} c") != ERASED


@pytest.mark.parametrize("form", [SAID, ESCAPED, json.dumps(SAID, ensure_ascii=False)[1:-1]])
def test_a_file_with_a_copy_is_recognised(form: str) -> None:
    assert any(piece in f"before {form} after".encode() for piece in CopyFinder([SAID]).pieces())


LONG = f"{SAID} and this goes on for a while, since what is said in more words than there is room for is cut"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"- mem-1 {LONG[:60]}… (decision)", f"- mem-1 {ERASED}… (decision)"),
        (f"{' '.join(LONG[:70].split())}...", f"{ERASED}..."),
        (json.dumps({"text": f"{LONG[:80]}…"}), json.dumps({"text": f"{ERASED}…"})),
        (f"{LONG[:60]} of another house", f"{LONG[:60]} of another house"),
        (f"{LONG[:30]}…", f"{LONG[:30]}…"),
    ],
)
def test_a_text_that_was_cut_off_and_shows_it_is_a_copy(text: str, clean: str) -> None:
    assert CopyFinder([LONG]).clean(text) == clean


def test_of_what_is_made_of_it_every_run_goes() -> None:
    first, last = LONG[21:49].strip(), LONG[-15:].strip()
    text = f"Said last:\n<{first}>; and  <{last.replace(' ', '  ')}>, no more"
    assert CopyFinder([LONG]).clean_runs(text, 12) == f"Said last:\n<{ERASED}>; and  <{ERASED}>, no more"
    assert CopyFinder([LONG]).clean_runs(text, 40) == text


@pytest.mark.parametrize("said", ["a " * 131_072, "ab" * 131_072, "\\" * 262_144])
def test_the_longest_texts_that_are_cut_are_looked_through_in_time(said: str) -> None:
    wordings = CopyFinder([said])
    with at_most(20.0):
        assert wordings.clean(f"{said[:100_000]}…").replace(" ", "") == f"{ERASED}…"
        assert wordings.clean_runs(f"so {said[:4_000]}", 12).startswith("so")


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (
            "Run k19, since the pump at the mill was slow. Try again.",
            f"Run {ERASED}, since the pump at the {ERASED} was slow. Try again.",
        ),
        ("the pump of the old mill, K19: it failed", f"the pump of the {ERASED}: it failed"),
        ("the pump of the weir is slow", "the pump of the weir is slow"),
        (f"{ERASED} k19 {ERASED} slow", f"{ERASED} slow"),
    ],
)
def test_words_that_nothing_says_that_stays_are_taken_out(text: str, clean: str) -> None:
    said = "k19: the pump of the old mill is slow"
    assert CopyFinder([said]).clean_words(text, 12, ["the pump of the weir is slow"], {"the"}) == clean


def test_where_words_are_not_set_apart_each_character_is_one() -> None:
    assert CopyFinder(["泵在磨坊很慢"]).clean_words("泵和磨坊", 12, ["泵很慢"], ()) == f"泵和{ERASED}"


@pytest.mark.parametrize("space", [" ", "\n", " \n\t"])
def test_a_long_text_is_cleaned_in_a_few_times_its_memory(space: str) -> None:
    """Not with a string, or a pair of numbers, for each of its words."""
    text = f"word{space}" * 60_000
    tracemalloc.start()
    try:
        assert CopyFinder([text[:200]]).clean(f"{text} and").startswith(ERASED)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 24 * len(text)


@given(st.text(st.sampled_from(" \n\t\x1c\x85\xa0\u2028ab\u3000é")))
def test_white_space_between_words_counts_as_one_blank(text: str) -> None:
    said = f"{text} 4711 0815 of the mill"
    flat = " ".join(said.split())
    assert CopyFinder([said]).clean(f"x {flat} y") == f"x {ERASED} y"
    assert CopyFinder([flat]).clean(f"x {said} y").split() == ["x", ERASED, "y"]


WORDS = st.text(st.sampled_from("ab é漢\t\n"), max_size=60)


@given(st.lists(WORDS, max_size=3), WORDS, WORDS, st.sampled_from([4, 8, 12]))
def test_every_run_that_a_text_has_goes_and_nothing_else(
    sought: list[str], before: str, after: str, least: int
) -> None:
    finder = CopyFinder(sought)
    text = before + "".join(sought)[:30] + after
    plain = " ".join(finder.clean(text).split())
    whole = [" ".join(one.split()) for one in finder.texts if not is_short(one)]
    runs = {one[at : at + least] for one in whole for at in range(len(one) - least + 1)}
    gone = {
        at
        for start in range(len(plain))
        for at in range(start, start + least)
        if plain[start : start + least] in runs
    }
    left = " ".join(finder.clean_runs(text, least).split())
    kept = "".join("\0" if at in gone else character for at, character in enumerate(plain))
    left, kept = (re.sub("\0+", "\0", one.replace(ERASED, "\0")) for one in (left, kept))
    assert left == kept
