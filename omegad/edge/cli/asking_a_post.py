"""The verb that asks a post what its team holds, without a daemon and with or without a home."""

import os
from argparse import Namespace

import anyio
import anyio.to_thread
import msgspec

from omegad.edge.cli.arguments import WrongUsage
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.passwords import address_given, password_given, required
from omegad.edge.cli.printing import in_words, moment, warn, write_json, write_table
from omegad.memory.types import MemoryTypes
from omegad.runtime.config import load
from omegad.sharing import credentials
from omegad.sharing.post import reading
from omegad.sharing.post.address import Address
from omegad.sharing.post.post import Deadlines
from omegad.sharing.reader import QueryTeam, Reader, TeamAnswer, model_of

DEADLINES = Deadlines(connect_s=10.0, statement_s=120.0)
URL = "OMEGAD_SHARE_URL"


def query(arguments: Namespace, instance: Instance) -> None:
    """Find what the team holds, best first."""
    asked = _asked(arguments)
    where = _where(arguments, instance)
    answer = anyio.run(_answered, instance, where, arguments.team, asked)
    if arguments.json:
        write_json(answer)
        return
    write_table(
        ("SCORE", "ID", "TYPE", "STORED", "PERSON", "PROJECT", "CONTENT"),
        (
            (
                *(in_words(one.score), one.memory_id, one.event_type, moment(one.created_at)),
                *(one.person or "-", one.project or "-", one.content),
            )
            for one in answer.results
        ),
        none="nothing found",
    )
    for one in answer.results:
        if one.same:
            print(f"{len(one.same)} more say{'s' if len(one.same) == 1 else ''} the same as {one.memory_id}")
    if answer.nothing_of:
        print(f"nothing is of {answer.nothing_of}, the time that the question names")
    if answer.more:
        print(f"at least {answer.more} more, far less likely; --all shows them")
    if answer.beyond:
        print(f"at least {answer.beyond} more may answer as well; a higher --limit shows them")
    if answer.because:
        warn(f"searched by words alone: {answer.because}")
    if answer.unembedded:
        warn(
            f"{answer.unembedded} of what was looked at has no vectors yet, and was compared by its words"
            " alone"
        )
    if answer.unfolded:
        warn(
            f"{answer.unfolded:,} facts that were told are not looked at yet: asking again goes on with them"
        )


def _asked(arguments: Namespace) -> QueryTeam:
    named = {
        "text": required(arguments.text, "what to look for"),
        "all": arguments.all,
        "event_types": arguments.type or (),
        "tags": arguments.tag or (),
        "entity_id": arguments.entity,
        **{
            name: getattr(arguments, name)
            for name in ("limit", "mode", "project", "person", "agent", "since", "until")
        },
    }
    try:
        return msgspec.convert({name: value for name, value in named.items() if value is not None}, QueryTeam)
    except msgspec.ValidationError as error:
        raise WrongUsage(str(error)) from None


def _where(arguments: Namespace, instance: Instance) -> Address:
    arguments.url = arguments.url or os.environ.get(URL)
    if arguments.url:
        return password_given(arguments, address_given(arguments))
    if not instance.paths.share.exists():
        raise WrongUsage(f"where the post is is needed: --url or {URL}, unless this home shares with a team")
    return credentials.read(instance.paths.share)


async def _answered(instance: Instance, where: Address, team: str | None, asked: QueryTeam) -> TeamAnswer:
    config = load(instance.paths)
    async with reading.connected(where, team, DEADLINES) as at_post:
        model = await anyio.to_thread.run_sync(model_of, instance.paths.models, config.model)
        return await Reader(at_post, model, MemoryTypes.configured(config.event_types)).answer(asked)
