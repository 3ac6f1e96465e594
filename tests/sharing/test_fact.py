"""A fact's hashes: what they cover, and what they survive."""

import msgspec
import pytest

from omegad.log.chain import payload_hash
from omegad.sharing.fact import GENESIS, Fact, envelope, link, opened, row_hash, says_what_it_said

FACT = Fact(
    origin="0198c0de-0000-7000-8000-000000000001",
    seq=7,
    hlc=(1_764_000_000_000 << 16) + 3,
    event_id="0198c0de-0000-7000-8000-0000000000aa",
    tag="memory.stored@2",
    subject="mem-0123456789abcdef",
    occurred_at=1_764_000_000_000_000,
    tz_offset=60,
    project="shop",
    agent="claude-code",
    position=4711,
    payload_hash=payload_hash(b"s" * 16, b"{}"),
    salt=b"s" * 16,
    body=b"{}",
)
OTHERS = {
    "origin": "another",
    "seq": 8,
    "hlc": 1,
    "event_id": "another",
    "tag": "memory.edited@1",
    "subject": "mem-another",
    "occurred_at": 1,
    "tz_offset": -60,
    "project": None,
    "agent": None,
    "position": 4712,
    "payload_hash": bytes(32),
}


@pytest.mark.parametrize("field", OTHERS)
def test_every_field_of_the_envelope_shows_in_the_hash(field: str) -> None:
    assert row_hash(msgspec.structs.replace(FACT, **{field: OTHERS[field]})) != row_hash(FACT)


def test_the_hash_survives_that_the_words_are_erased() -> None:
    erased = msgspec.structs.replace(FACT, salt=None, body=None)
    assert row_hash(erased) == row_hash(FACT)
    assert says_what_it_said(erased)


def test_the_chain_covers_what_came_before() -> None:
    first = link(GENESIS, row_hash(FACT))
    assert len(first) == len(GENESIS)
    assert link(first, row_hash(FACT)) != first
    assert link(bytes(31) + b"\1", row_hash(FACT)) != first


def test_hashes_are_the_same_in_every_version() -> None:
    assert row_hash(FACT).hex() == "c2c23cf5fca3c9776f325389f050f3a47cc79ba79b30cc6e234e4bbfc0f08a12"
    assert (
        link(GENESIS, row_hash(FACT)).hex()
        == "28045f2a13fb95a8952faeb9b1d085158b5fcd11b5fffe69d7a8c5321c87eb35"
    )


def test_an_envelope_is_read_as_it_was_made() -> None:
    assert opened(envelope(FACT), FACT.salt, FACT.body) == FACT


@pytest.mark.parametrize("sealed", [b"", b"\xc1", b"\x90", envelope(FACT)[:-1], envelope(FACT) + b"\0"])
def test_other_bytes_are_refused(sealed: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        opened(sealed, None, None)


@pytest.mark.parametrize(
    ("salt", "body"), [(b"s" * 16, b"[]"), (b"t" * 16, b"{}"), (None, b"{}"), (b"s" * 16, None)]
)
def test_other_words_are_noticed(salt: bytes | None, body: bytes | None) -> None:
    assert says_what_it_said(FACT)
    assert not says_what_it_said(msgspec.structs.replace(FACT, salt=salt, body=body))
