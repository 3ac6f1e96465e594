"""Words without their inflection."""

from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from omegad.text.stems import LETTERS_MAX, OTHERS, stem, stem_in


def test_words_that_differ_in_inflection_alone_have_one_stem() -> None:
    assert {stem(word) for word in ("retries", "retried", "retry")} == {"retri"}
    assert stem("деплой") == "деплой"
    assert stem("s" * (LETTERS_MAX + 1)) == "s" * (LETTERS_MAX + 1)


@given(words=st.lists(st.text("abcdeginrsty", max_size=12), max_size=40))
def test_a_stem_is_the_same_whichever_thread_asks(words: list[str]) -> None:
    expected = [stem(word) for word in words]
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(stem, words)) == expected


def test_each_language_has_a_stemmer_of_its_own_and_others_keep_their_words() -> None:
    assert stem_in("de", "datenbanken") == stem_in("de", "datenbank") == "datenbank"
    assert stem_in("ru", "подключения") == stem_in("ru", "подключение")
    assert stem_in("zh", "数据库") == "数据库"
    assert stem_in("de", "n" * (LETTERS_MAX + 1)) == "n" * (LETTERS_MAX + 1)
    assert all(stem_in(code, "a") for code in OTHERS)
