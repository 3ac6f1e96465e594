"""A post's URL: what is read, what is refused, and that its password shows nowhere."""

import pytest

from omegad.sharing.post.address import Address, read
from omegad.sharing.post.errors import BadAddress, NotEncrypted


def test_a_url_is_read_and_the_password_apart() -> None:
    address = read("postgresql://ann:s3cr%40t@db.example.org/team?sslmode=require")
    assert address == Address(
        host="db.example.org",
        port=5432,
        dbname="team",
        user="ann",
        sslmode="require",
    ).with_password("s3cr@t")
    assert address.url == "postgresql://ann@db.example.org:5432/team?sslmode=require"
    assert read("postgresql://ann@localhost/team").url == "postgresql://ann@localhost:5432/team"
    assert read(address.url).with_password("s3cr@t") == address
    assert "s3cr" not in f"{address} {address!r} {address.place} {address.url}"
    assert "s3cr@t" in address.parameters().values()


@pytest.mark.parametrize(
    ("url", "host", "port", "dbname", "user"),
    [
        ("postgres://ann@[::1]:5433/team", "::1", 5433, "team", "ann"),
        ("postgresql://ann@/team?host=/run/postgresql&port=5434", "/run/postgresql", 5434, "team", "ann"),
        ("postgresql://localhost?user=ann&dbname=team", "localhost", 5432, "team", "ann"),
        ("postgresql://a%20b@127.0.0.1", "127.0.0.1", 5432, "a b", "a b"),
        (" postgresql://ann@db.example.org/team ", "db.example.org", 5432, "team", "ann"),
    ],
)
def test_urls_of_every_kind_are_read_and_written_again(
    url: str, host: str, port: int, dbname: str, user: str
) -> None:
    address = read(url)
    assert (address.host, address.port, address.dbname, address.user) == (host, port, dbname, user)
    assert read(address.url) == address


@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("[::1]", True),
        ("127.0.0.1.example.org", False),
        ("localhost.example.org", False),
        ("192.168.1.2", False),
        ("[fe80::1]", False),
    ],
)
def test_what_is_not_local_is_encrypted_and_verified(host: str, *, is_local: bool) -> None:
    address = read(f"postgresql://ann@{host}/team")
    assert address.is_local == is_local
    assert address.sslmode == ("prefer" if is_local else "verify-full")
    assert ("sslrootcert" in address.parameters()) == (not is_local)
    for weak in ("disable", "allow", "prefer"):
        if is_local:
            assert read(f"postgresql://ann@{host}/team?sslmode={weak}").sslmode == weak
        else:
            with pytest.raises(NotEncrypted):
                read(f"postgresql://ann@{host}/team?sslmode={weak}")


def test_where_nobody_verifies_the_server_it_is_not_given_the_password_itself() -> None:
    assert read("postgresql://ann@db.example.org?sslmode=require").parameters()["require_auth"] == "!password"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "begins with postgresql://"),
        ("mysql://ann@db/team", "begins with postgresql://"),
        ("db.example.org", "begins with postgresql://"),
        ("postgresql://db.example.org/team", "lacks the login"),
        ("postgresql://ann@/team", "lacks the host"),
        ("postgresql://ann@db:99999/team", "port"),
        ("postgresql://ann@db:0/team?port=x", "port"),
        ("postgresql://ann@db:x/team", "port"),
        ("postgresql://ann@[::1/team", "cannot be read"),
        ("postgresql://ann@a,b/team", "more than one host"),
        ("postgresql://ann@db/team?sslmode=maybe", "sslmode cannot be maybe"),
        ("postgresql://ann@db/team?options=-c%20role%3Dx", "option that is not known: options"),
        ("postgresql://ann@db/team?sslrootcert=/nowhere", "not there: /nowhere"),
        ("postgresql://ann@db/team?sslmode", "options"),
    ],
)
def test_what_cannot_be_read_is_said(url: str, words: str) -> None:
    with pytest.raises(BadAddress, match=words) as caught:
        read(url)
    assert caught.value.hint
