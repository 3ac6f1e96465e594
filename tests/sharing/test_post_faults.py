"""What keeps a home from its post, in words, and what happens to what was being said meanwhile."""

import signal
import socket
import sys
import threading
from collections.abc import Iterator

import anyio
import msgspec
import pytest

from omegad.runtime.errors import OmegadError, Unavailable
from omegad.sharing.post import administration
from omegad.sharing.post.address import Address
from omegad.sharing.post.errors import (
    DriverAbsent,
    Forked,
    LoginRefused,
    NotEncrypted,
    NotInstalled,
    PasswordAbsent,
    PostLost,
    PostSilent,
    PostUnreachable,
)
from omegad.sharing.post.post import NO_HEAD, Deadlines, Head, connected
from tests.sharing.posts import DEADLINES, TEAM, Posted, facts
from tests.sharing.server import Server

SHORT = Deadlines(connect_s=0.5, statement_s=0.5)


@pytest.fixture
def killed() -> Iterator[Posted]:
    """A post on a server of its own, which is killed, and keeps what it acknowledged."""
    server = Server({"fsync": "on"})
    try:
        administration.install(server.admin("postgres"))
        administration.create_team(server.admin("postgres"), TEAM)
        yield Posted(server, "postgres")
    finally:
        server.remove()


def altered(address: Address, **fields: object) -> Address:
    return msgspec.structs.replace(address, **fields)


async def refusal(address: Address, deadlines: Deadlines = DEADLINES) -> OmegadError:
    """Return what keeps one from connecting, in which the password is not."""
    with pytest.raises(OmegadError) as caught:
        async with connected(address, TEAM, deadlines):
            pass
    told = f"{caught.value!r} {caught.value.hint} {caught.value.__cause__!r} {caught.value.args}"
    assert not address.password or address.password not in told
    assert caught.value.hint != OmegadError.hint
    return caught.value


async def test_what_is_wrong_with_the_address_or_password_is_said(posted: Posted) -> None:
    ann = posted.member("Ann")
    over_tcp = altered(ann, host="127.0.0.1")
    async with connected(over_tcp, TEAM, DEADLINES) as post:
        assert (await post.check()).person == "Ann"
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nobody = unused.getsockname()[1]
        cases: list[tuple[Address, type[OmegadError], str]] = [
            (ann.with_password("not this one"), LoginRefused, "does not accept the password"),
            (over_tcp.with_password("not this one"), LoginRefused, "does not accept the password"),
            (ann.with_password(""), PasswordAbsent, "asks for the password"),
            (altered(ann, user="nobody"), LoginRefused, "nobody"),
            (altered(ann, dbname="nothing"), NotInstalled, "no database nothing"),
            (altered(ann, port=1), PostUnreachable, "cannot be reached"),
            (altered(ann, host="/nowhere"), PostUnreachable, "cannot be reached"),
            (altered(over_tcp, port=nobody), PostUnreachable, "cannot be reached: Connection refused"),
            (altered(over_tcp, host="post.invalid"), PostUnreachable, "not known by this name"),
            (altered(over_tcp, sslmode="require"), NotEncrypted, "does not offer TLS"),
        ]
        for address, kind, words in cases:
            error = await refusal(address)
            assert type(error) is kind, address
            assert words in str(error)
    with pytest.raises(LoginRefused, match="does not accept the password") as caught:
        administration.teams(ann.with_password("not this one"))
    assert "not this one" not in str(caught.value)


async def test_without_the_driver_the_extra_is_named(posted: Posted, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = posted.member("Ann")
    monkeypatch.setitem(sys.modules, "psycopg", None)
    error = await refusal(ann)
    assert type(error) is DriverAbsent
    assert "omegad[shared]" in error.hint
    with pytest.raises(DriverAbsent):
        administration.teams(posted.admin)


async def test_who_answers_and_is_no_postgresql_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = Address(
            host="127.0.0.1", port=silent.getsockname()[1], dbname="d", user="u", sslmode="prefer",
        ).with_password("word of the test")  # fmt: skip
        assert type(await refusal(address, SHORT)) is PostSilent

        def babble() -> None:
            peer, _ = silent.accept()  # of the attempt before, which is gone
            peer.close()
            peer, _ = silent.accept()
            with peer:
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 100)

        thread = threading.Thread(target=babble)
        thread.start()
        assert isinstance(await refusal(address), Unavailable)
        thread.join()


async def test_a_server_that_hangs_is_not_waited_for(killed: Posted) -> None:
    ann = killed.member("Ann")
    async with connected(ann, TEAM, SHORT) as post:
        await post.enrol("ann-1", "desk")
        killed.server.signal_all(signal.SIGSTOP)
        began = anyio.current_time()
        assert not await post.woken(0.05)
        with pytest.raises(PostSilent, match=r"did not answer in 0\.5 s"):
            await post.push("ann-1", facts("ann-1", 1), NO_HEAD)
        with pytest.raises(PostLost):
            await post.head("ann-1")
        assert type(await refusal(ann, SHORT)) is PostSilent
        assert anyio.current_time() - began < 30
        killed.server.signal_all(signal.SIGCONT)
    async with killed.at(ann) as post:
        head = await post.head("ann-1")
        assert head is not None
        assert head.seq in (0, 1)


async def test_a_statement_that_takes_too_long_is_given_up(posted: Posted) -> None:
    ann = posted.member("Ann")
    async with connected(ann, TEAM, SHORT) as post, posted.at(ann) as other:
        head = await other.enrol("ann-1", "desk")
        async with other._connection.transaction():
            await other.push("ann-1", facts("ann-1", 1), head)
            with pytest.raises(PostSilent):
                await post.push("ann-1", facts("ann-1", 1), head)


async def test_a_connection_that_ends_in_the_middle_is_said(posted: Posted) -> None:
    async with posted.at(posted.member("Ann")) as post:
        posted.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'omegad' AND pid <> pg_backend_pid() AND datname = current_database()"
        )
        with pytest.raises(PostLost):
            await post.woken(20)
        with pytest.raises(PostLost):
            await post.head("ann-1")


async def test_a_server_killed_under_load_has_what_it_acknowledged(killed: Posted) -> None:
    """Three write while the server is killed and started again; each goes on where the post is."""
    people = {f"home-{n}": killed.member(f"Writer{n}") for n in range(3)}
    said = {origin: facts(origin, 400) for origin in people}
    acknowledged = dict.fromkeys(people, 0)
    kills = 0

    async def write(origin: str) -> None:
        while acknowledged[origin] < 400:
            try:
                async with killed.at(people[origin]) as post:
                    head = await post.enrol(origin, "desk")
                    assert head.seq >= acknowledged[origin]
                    while head.seq < 400:
                        head = await post.push(origin, said[origin][head.seq : head.seq + 8], head)
                        acknowledged[origin] = head.seq
            except Unavailable:
                await anyio.sleep(0.05)

    async with anyio.create_task_group() as tasks:
        for origin in people:
            tasks.start_soon(write, origin)
        for at in (50, 150, 250):
            while min(acknowledged.values()) < at:  # noqa: ASYNC110  an answer of another task
                await anyio.sleep(0.01)
            await anyio.to_thread.run_sync(killed.server.kill)
            kills += 1
            await anyio.to_thread.run_sync(killed.server.start)
    assert kills == 3
    async with killed.at(people["home-0"]) as post:
        for origin, some in said.items():
            assert await post.told(origin, 0, 1000) == some
        assert [one.bad_seq for one in await post.prove(lambda _: None)] == [None] * 3


async def test_a_push_whose_acknowledgement_was_lost_is_found_at_the_head(posted: Posted) -> None:
    ann = posted.member("Ann")
    said = facts("ann-1", 5)
    async with posted.at(ann) as post:
        head = await post.enrol("ann-1", "desk")
        await post.push("ann-1", said, head)
    async with posted.at(ann) as again:
        with pytest.raises(Forked):
            await again.push("ann-1", said, head)
        found = await again.head("ann-1")
        assert isinstance(found, Head)
        assert (found.position, found.event_id) == (said[-1].position, said[-1].event_id)
