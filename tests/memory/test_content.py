"""What a memory may say, and by what the same words are recognised."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.log.sanitise import CONTENT_BYTES_MAX, METADATA_BYTES_MAX
from omegad.memory.content import check_metadata, clean, content_key
from omegad.runtime.errors import Invalid


def test_content_is_normalised_and_free_of_secrets() -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    found = clean(unicodedata.normalize("NFD", f"café {token}"))
    assert (found.text, found.redacted) == ("café [REDACTED:github_token]", ("github_token",))
    assert clean("plain").redacted == ()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x" * (CONTENT_BYTES_MAX + 1), "262145 bytes"),
        ("é" * (CONTENT_BYTES_MAX // 2 + 1), "262146 bytes"),
        ("", "empty"),
        (" \n\t\N{NO-BREAK SPACE}", "empty"),
    ],
    ids=["bytes", "bytes, not characters", "nothing", "spaces"],
)
def test_content_that_is_too_large_or_empty_is_refused(content: str, message: str) -> None:
    with pytest.raises(Invalid, match=message):
        clean(content)


def test_content_and_metadata_at_their_limits_are_taken() -> None:
    assert len(clean("x" * CONTENT_BYTES_MAX).text) == CONTENT_BYTES_MAX
    check_metadata({"k": "x" * (METADATA_BYTES_MAX - len('{"k":""}'))})
    with pytest.raises(Invalid, match="metadata"):
        check_metadata({"k": "x" * (METADATA_BYTES_MAX - len('{"k":""}') + 1)})


WORDS = st.sampled_from(["", "a", "b", "a b", "null"])
SCOPES = st.tuples(WORDS, WORDS, st.none() | WORDS, st.none() | WORDS)


@given(SCOPES, SCOPES)
def test_a_key_is_the_same_for_the_same_content_in_the_same_scope_alone(
    one: tuple[str, str, str | None, str | None], other: tuple[str, str, str | None, str | None]
) -> None:
    assert (content_key(*one) == content_key(*other)) is (one == other)
