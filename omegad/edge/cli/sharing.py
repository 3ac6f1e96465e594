"""The verbs of who shares with a team: join, leave, retire, status, preview, verify, now. What asks the post
itself is done here, and not by the daemon, which is asked for its part over the socket.
"""

import time
from argparse import Namespace
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

import anyio
import msgspec

from omegad.edge.cli.connection import Answer, answered, ask, asked, connected, ensure
from omegad.edge.cli.findings import Finding
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.passwords import address_given, password_given, required
from omegad.edge.cli.printing import (
    counted,
    moment,
    quantity,
    safe,
    tell,
    warn,
    warn_if_stale,
    write_fields,
    write_json,
    write_table,
)
from omegad.runtime.errors import NotFound, OmegadError, Refused
from omegad.sharing import credentials
from omegad.sharing.fact import GENESIS, link, row_hash
from omegad.sharing.post import leaving, post
from omegad.sharing.post.address import Address
from omegad.sharing.post.errors import NotYours
from omegad.sharing.post.leaving import Gone
from omegad.sharing.post.post import Deadlines, Origin, Post, Proof
from omegad.sharing.verifying import ReceivedChain

DEADLINES = Deadlines(connect_s=10.0, statement_s=60.0)
NOW_S = 15.0
POLL_S = 0.1
AT_ONCE = 1_000
ALL_TYPES = "all that can be shared"
NOT_AGAIN = (
    "they are not told again, should this home join the team once more: store anew what it is to have then"
)


def join(arguments: Namespace, instance: Instance) -> None:
    """See that the post takes this login, keep what it takes to come again, and have the home join. A home
    that is in the team already gets the address and the password anew.
    """
    where = address_given(arguments)
    team = required(arguments.team, "--team")
    where = password_given(arguments, where)
    ensure(instance, makes_home=True)
    known = ask(instance, "share.status")
    before = known["team"]
    if before not in (None, team):
        raise Refused(f"this home shares with {before}", hint="`omegad share leave` ends that")
    person = anyio.run(_person, where, team, known)
    if arguments.person not in (None, person):
        raise Refused(f"this login is {person}'s", hint="use your own, or leave out --person")
    credentials.keep(instance.paths.share, where, in_keyring=arguments.keyring)
    if before:
        ask(instance, "share.try_now")
    else:
        _join(arguments, instance, team, person)
    now = ask(instance, "share.status")
    shares = f"{now['person']} on {now['machine']}"
    tell(
        arguments,
        {name: now[name] for name in ("team", "person", "machine", "origin")} | {"url": where.url},
        safe(f"this home shares with {team} as {shares}"),
        *(() if now["chosen"] else ("nothing is shared yet: `omegad share choose PROJECT` begins, and",)),
        *(() if now["chosen"] else ("`omegad share preview PROJECT` shows what would go, and what stays",)),
    )


def _join(arguments: Namespace, instance: Instance, team: str, person: str) -> None:
    try:
        ask(instance, "share.join", team=team, person=person, machine=arguments.machine)
    except OmegadError:
        credentials.forget(instance.paths.share)
        raise


async def _person(where: Address, team: str, known: Answer) -> str:
    """Return whose the login is. Raises `Refused` where this home shares, and cannot go on by it."""
    async with post.connected(where, team, DEADLINES) as connection:
        person = (await connection.check()).person
        if known["team"]:
            first = "`omegad share leave` first"
            if person != known["person"]:
                raise Refused(f"this home is {known['person']}'s, that login is {person}'s", hint=first)
            try:
                await connection.enrol(known["origin"], known["machine"])
            except NotYours:
                raise Refused(f"this home shares by another login of {person}'s", hint=first) from None
        return person


def leave(arguments: Namespace, instance: Instance) -> None:
    """End the sharing of this home, at the post first where that can be reached; it must be where words are
    to be removed there.
    """
    known = ask(instance, "share.status")
    removed, others, untold = 0, set[str](), ""
    tell_post = partial(_leave, instance, known, with_facts=arguments.with_facts)
    if known["team"]:
        try:
            gone = anyio.run(tell_post)
            removed, others = gone.removed, {*gone.others}
        except OmegadError as error:
            if arguments.with_facts:
                raise
            untold = str(error)
    ask(instance, "share.leave")
    if arguments.with_facts:  # and what was told meanwhile
        removed += anyio.run(tell_post).removed
    credentials.forget(instance.paths.share)
    tell(
        arguments,
        {"team": known["team"], "removed": removed, "others": sorted(others), "untold": untold or None},
        safe(f"this home shares with {known['team']} no more; what came from others stays here"),
        *(
            [f"the words of {quantity(removed, 'fact')} are removed at the post", NOT_AGAIN]
            if arguments.with_facts
            else []
        ),
    )
    if untold and not arguments.json:
        warn(f"the team still sees this home among its own: {untold}")
        print(
            safe(
                f"  → when the server is back: `omegad share retire {known['origin']}` in another home, or"
                " join again and leave, with --with-facts where the words are to go, too"
            )
        )
    if others and arguments.with_facts and not arguments.json:
        warn(
            f"what was told as {', '.join(sorted(others))} stays: another machine goes on under that name,"
            " and can leave in the same way"
        )


async def _leave(instance: Instance, known: Answer, *, with_facts: bool) -> Gone:
    async with _post(instance, known) as connection:
        return await leaving.leave(connection, [*known["earlier"], known["origin"]], with_facts=with_facts)


def retire(arguments: Namespace, instance: Instance) -> None:
    """Retire a home that is gone, as whom this home shares as, or as the address says."""
    name = required(arguments.name, "the home that is gone, by its name or its machine's,")
    known: Answer = {"team": arguments.team, "origin": None}
    if arguments.url:
        where = password_given(arguments, address_given(arguments))
    else:
        known = _in_team(ask(instance, "share.status"))
        where = credentials.read(instance.paths.share)
    gone = anyio.run(_retired, where, name, known)
    if not arguments.url:
        ask(instance, "share.try_now")  # so that `omegad share status` knows
    tell(
        arguments,
        {"origin": gone.origin, "person": gone.person, "machine": gone.machine},
        safe(
            f"{gone.person}'s home on {gone.machine} ({gone.origin}) is retired: nobody waits for it any more"
        ),
        "should it come back it is told so, and has to join anew; what is on it is still there, with its"
        " password: where somebody else may have it, an administrator removes the person and adds them again",
    )


async def _retired(where: Address, name: str, known: Answer) -> Origin:
    async with post.connected(where, known["team"], DEADLINES) as connection:
        return await leaving.retire(connection, name, but=known["origin"])


def _post(instance: Instance, known: Answer) -> AbstractAsyncContextManager[Post]:
    return post.connected(credentials.read(instance.paths.share), known["team"], DEADLINES)


@answered
def status(answer: Answer, _arguments: Namespace) -> None:
    """Say how it stands."""
    if answer["team"] is None:
        print("this home shares with no team: `omegad share join` joins one")
        return
    write_fields(
        [
            ("team", f"{answer['team']}, as {answer['person']} on {answer['machine']}, {answer['origin']}"),
            ("post", in_touch(answer)),
            ("told", quantity(answer["told"], "fact")),
            ("waits", waits(answer)),
            ("shared", "; ".join(map(_chosen, answer["chosen"])) or "nothing: `omegad share choose PROJECT`"),
        ]
    )
    print()
    write_table(
        ("PERSON", "MACHINE", "HOME", "RECEIVED", "LAST IN TOUCH"),
        (
            (
                *(one["person"], one["machine"]),
                one["origin"] + (", this one before" if one["origin"] in answer["earlier"] else ""),
                f"{one['received']:,}" + ("" if one["told"] is None else f" of {one['told']:,}"),
                _last_seen(one),
            )
            for one in answer["homes"]
        ),
        none="no other home is known yet",
    )
    for one in answer["erasing"]:
        warn(
            f"{one['memory_id']} was erased for all on {moment(one['erased_at'])}, and is not yet at"
            f" {', '.join(one['homes'])}, which were not in touch since"
        )
    if answer["erasing"]:
        print("  → a machine that is gone for good is waited for no more by `omegad share retire MACHINE`")
    _warn_of_trouble(answer)


def _warn_of_trouble(answer: Answer) -> None:
    if answer["trouble"]:
        warn(answer["trouble"])
        if answer["remedy"]:
            print(safe(f"  → {answer['remedy']}"))


def in_touch(answer: Answer) -> str:
    """Say whether the post is reached."""
    if answer["is_connected"]:
        return "in touch"
    since = f", last on {moment(answer['in_touch_at'])}" if answer["in_touch_at"] else ""
    return f"not in touch{since}"


def waits(answer: Answer) -> str:
    """Say what waits to be told, and since when."""
    if not answer["waiting"]:
        return "nothing"
    return f"{quantity(answer['waiting'], 'event')} since {moment(answer['waiting_since'])}"


def _last_seen(home: Answer) -> str:
    if home["has_left"]:
        return f"retired by {home['retired_by']}" if home.get("retired_by") else "has left"
    return moment(home["seen_at"] or "-")


def _chosen(one: Answer) -> str:
    probation = ", what others store on probation here" if one["on_probation"] else ""
    return f"{one['project']} ({', '.join(one['types']) or ALL_TYPES}{probation})"


def choose(arguments: Namespace, instance: Instance) -> None:
    """Share a project; say how much goes by that, and what stands in the way."""
    answer = asked(arguments, instance)
    if arguments.json:
        write_json(answer)
        return
    go, project = answer["go_count"], arguments.project
    how_many = "what it holds" if go is None else f"{quantity(go, 'memory', 'memories')} of what it holds"
    print(
        safe(f"{project} is shared from now on, and {how_many}; `omegad share preview {project}` shows which")
    )
    if go == 0:
        held = ask(instance, "share.preview", project=project, limit=1)
        if not held["go_count"] + held["stay_count"]:
            warn(f"this home holds nothing of {project}")
    known = ask(instance, "share.status")
    if go:
        _warn_of_earlier(known)
    _warn_of_trouble(known)


def _warn_of_earlier(known: Answer) -> None:
    if known["was_left"]:
        warn(
            f"what was shared with {known['team']} before this home left it is not told again: where"
            " `omegad share leave --with-facts` removed its words from the post, store it anew"
        )


def preview(arguments: Namespace, instance: Instance) -> None:
    """Show what would go, and what stays."""
    answer = asked(arguments, instance)
    if arguments.json:
        write_json(answer)
    else:
        _show_preview(answer, arguments)
        if answer["go_count"]:
            _warn_of_earlier(ask(instance, "share.status"))
    warn_if_stale(answer)


def _show_preview(answer: Answer, arguments: Namespace) -> None:
    print(
        safe(
            f"{quantity(answer['go_count'], 'memory', 'memories')} of {arguments.project} would be shared;"
            f" what stays: {answer['stay_count']:,}"
        )
    )
    both = [*answer["go"], *answer["stay"]]
    print()
    write_table(
        ("MEMORY", "TYPE", "FROM", "GOES", "BY", "CONTENT"),
        (
            (
                one["memory_id"],
                one["event_type"],
                moment(one["created_at"]),
                "yes" if one["stays"] is None else f"no: {one['stays']}",
                f"{one['person']}, {one['machine']}" if one["person"] else "-",
                one["content"],
            )
            for one in both
        ),
        none="there is nothing in it",
    )
    if answer["go_count"] + answer["stay_count"] > len(both):
        warn("there are more; --limit shows them")


def now(arguments: Namespace, instance: Instance) -> int:
    """Have the home try at once, and say what came of it."""
    before = _in_team(ask(instance, "share.try_now"))
    until, after = time.monotonic() + NOW_S, before
    while time.monotonic() < until:
        time.sleep(POLL_S)
        after = _in_team(ask(instance, "share.status"))
        if after["trouble"] or (after["is_connected"] and after["in_touch_at"] != before["in_touch_at"]):
            break
    if arguments.json:
        write_json(after)
    elif after["trouble"]:
        _warn_of_trouble(after)
    else:
        print(safe(f"{in_touch(after)} with {after['team']}; waits: {waits(after)}"))
    return 1 if after["trouble"] or not after["is_connected"] else 0


def _in_team(answer: Answer) -> Answer:
    if answer["team"] is None:
        raise NotFound("this home shares with no team", hint="`omegad share join` joins one")
    return answer


class Proved(msgspec.Struct, frozen=True, kw_only=True):
    """An origin's chain at the post, and here: what is wrong with either, None where nothing is."""

    origin: str
    person: str
    machine: str
    facts: int
    at_post: str | None
    received: int
    here: str | None


def verify(arguments: Namespace, instance: Instance) -> int:
    """Prove the chain of every origin at the post, and what is here of it against the post's."""
    known = _in_team(ask(instance, "share.status"))
    with connected(instance, None) as client:  # which goes through all that was ever received
        received = msgspec.convert(client.call("share.chains")["origins"], list[ReceivedChain])
    with counted("proving the facts at the post") as progress:
        proved = anyio.run(_proved, instance, known, received, progress)
    is_sound = not any(one.at_post or one.here for one in proved)
    if arguments.json:
        write_json({"ok": is_sound, "origins": proved})
        return int(not is_sound)
    write_table(
        ("PERSON", "MACHINE", "HOME", "FACTS", "AT THE POST", "RECEIVED", "HERE"),
        (
            (
                *(one.person, one.machine, one.origin, f"{one.facts:,}", one.at_post or "proved"),
                *(f"{one.received:,}", one.here or ("proved" if one.received else "-")),
            )
            for one in proved
        ),
        none="nobody has told anything yet",
    )
    return int(not is_sound)


async def _proved(
    instance: Instance,
    known: Answer,
    received: list[ReceivedChain],
    progress: Callable[[int, int, str], None],
) -> list[Proved]:
    here = {one.origin: one for one in received}
    async with _post(instance, known) as connection:
        total = sum(one.head for one in await connection.origins())
        proofs = await connection.prove(lambda done: progress(done, total, "facts"))
        found = [
            Proved(
                origin=one.origin,
                person=one.person,
                machine=one.machine,
                facts=one.facts,
                at_post=_at_post(one),
                received=here[one.origin].seq if one.origin in here else 0,
                here=await _here(connection, one, known, here.get(one.origin)),
            )
            for one in proofs
        ]
    lost = set(here) - {one.origin for one in found}
    return found + [
        Proved(
            origin=one,
            person="",
            machine="",
            facts=0,
            at_post="the post knows nothing of it",
            received=here[one].seq,
            here=None,
        )
        for one in sorted(lost)
    ]


def _at_post(proof: Proof) -> str | None:
    return None if proof.bad_seq is None else f"fact {proof.bad_seq}: {proof.problem}"


async def _here(connection: Post, proof: Proof, known: Answer, here: ReceivedChain | None) -> str | None:
    """Return what is wrong with an origin as the log of this home has it."""
    if proof.origin == known["origin"] and proof.facts < known["told"] and proof.bad_seq is None:
        return f"{known['told']:,} facts were told, and the post has {proof.facts:,}"
    if here is None:
        return None
    if here.gap_at is not None:
        return f"fact {here.gap_at} does not follow the one before"
    seq, chain = here.begins_after, GENESIS
    while seq < here.seq:
        facts = await connection.told(here.origin, seq, min(AT_ONCE, here.seq - seq))
        if not facts:
            return f"the post has only {seq:,} of {here.seq:,} facts received"
        for fact in facts:
            chain = link(chain, row_hash(fact))
        seq = facts[-1].seq
    return None if chain.hex() == here.chain else "what was received is not what the post has"


def examine(instance: Instance) -> list[Finding]:
    """Check that the post of the team is reached, where one was joined."""
    answer = ask(instance, "share.status")
    if answer["team"] is None:
        return []
    seen = f"{answer['team']} as {answer['person']}: {in_touch(answer)}, waits: {waits(answer)}"
    found = [Finding("sharing", "ok", seen)]
    try:
        credentials.read(instance.paths.share)
    except OmegadError as error:
        found = [Finding("sharing", "FAIL", str(error), error.hint)]
    else:
        if answer["trouble"]:
            found = [Finding("sharing", "warn", f"{seen}; {answer['trouble']}", answer["remedy"] or "")]
    return found
