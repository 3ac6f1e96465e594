"""Which of two versions of omegad is the older one, where processes of both meet after an upgrade."""

import re


def is_older(version: str, other: str) -> bool:
    """Compare the numbers of two versions, as in `1.10.2`; of two that have the same, neither is older."""
    return _numbers(version) < _numbers(other)


def _numbers(version: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d{1,9}", version)[:4]]
