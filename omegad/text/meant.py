"""What may be meant by a name that there is not."""

from collections.abc import Iterable

LIKE_MIN = 0.66  # of 1, what was typed is like what may be meant; of six letters two may be amiss


def nearest(word: str, known: Iterable[str]) -> str:
    """Return what of all that is known may be meant, "" where nothing is like it."""
    from difflib import get_close_matches  # noqa: PLC0415  who types what there is needs it not

    return next(iter(get_close_matches(word, list(known), n=1, cutoff=LIKE_MIN)), "")
