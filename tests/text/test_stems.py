"""Words without their inflection."""

from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from omegad.text.stems import LETTERS_MAX, stem


def test_words_that_differ_in_inflection_alone_have_one_stem() -> None:
    assert {stem(word) for word in ("retries", "retried", "retry")} == {"retri"}
    assert stem("деплой") == "деплой"
    assert stem("s" * (LETTERS_MAX + 1)) == "s" * (LETTERS_MAX + 1)


@given(words=st.lists(st.text("abcdeginrsty", max_size=12), max_size=40))
def test_a_stem_is_the_same_whichever_thread_asks(words: list[str]) -> None:
    expected = [stem(word) for word in words]
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(stem, words)) == expected
