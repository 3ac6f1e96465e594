"""What msgspec says of a value that does not fit, in words."""

from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Meta

from omegad.runtime.unfit import in_words


class Params(msgspec.Struct, forbid_unknown_fields=True):
    text: Annotated[str, Meta(min_length=1, max_length=2_000)]
    mode: Literal["hybrid", "keyword"] | None = None
    limit: Annotated[int, Meta(ge=1, le=100)] = 1
    tags: Annotated[tuple[Annotated[str, Meta(min_length=2)], ...], Meta(max_length=2)] = ()
    share: Annotated[float, Meta(gt=0)] | None = None
    more: dict[str, bool] = {}


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ("{}", "text is missing"),
        ('{"text": ""}', "text must not be empty"),
        (f'{{"text": "{"x" * 2_001}"}}', "text must have at most 2,000 characters"),
        ('{"text": 1}', "text must be text, and is a whole number"),
        ('{"text": "x", "txt": 1}', "txt is not known here; did you mean text?"),
        ('{"text": "x", "zzz": 1}', "zzz is not known here"),
        ('{"text": "x", "mode": "psychic"}', "mode cannot be 'psychic': it is one of 'hybrid', 'keyword'"),
        ('{"text": "x", "limit": 101}', "limit must be at most 100"),
        ('{"text": "x", "limit": null}', "limit must be a whole number, and is nothing"),
        ('{"text": "x", "tags": ["ab", "cd", "ef"]}', "tags must have at most 2 entries"),
        ('{"text": "x", "tags": ["a"]}', "tags[0] must have at least 2 characters"),
        ('{"text": "x", "share": 0}', "share must be more than 0.0"),
        ('{"text": "x", "share": "much"}', "share must be a number, and is text"),
        ('{"text": "x", "more": {"y": 1}}', "more[...] must be true or false, and is a whole number"),
        ("[]", "params must be an object, and is a list"),
        ("{", "Input data was truncated"),
    ],
)
def test_it_names_the_part_and_what_it_must_be(sent: str, said: str) -> None:
    with pytest.raises(msgspec.DecodeError) as refused:
        msgspec.json.decode(sent, type=Params)
    assert in_words(refused.value, "params", Params) == said
