"""What an answer says of a memory that a later one may deny."""

from omegad.memory.events import ConflictOffered
from omegad.runtime.config import Config, Paths
from tests.builders import FakeClock, append, served

KEYWORDS = Config(model="none")


async def test_a_result_in_doubt_says_which_later_memory_may_deny_it(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:

        async def query(text: str) -> list[str]:
            arguments = {"query": text, "mode": "keyword"}
            answer = await it.caller.call("tools.call", name="omega_query", arguments=arguments)
            return str(answer["content"][0]["text"]).splitlines()

        says = "Deployments switched to Codespaces, previews too"
        earlier, later = [
            (await it.caller.call("memory.store", content=content))["memory_id"]
            for content in ("Previews run on Gitpod", says)
        ]
        assert len(await query("gitpod")) == 1
        await append(
            it.daemon.services.log, ConflictOffered(memory_id=later, target_id=earlier, similarity=0.8)
        )
        await it.caught_up()
        told = f"  {later}, later, may deny it"
        assert (await query("gitpod"))[1:] == [f"{told}: {says}"]
        both = await query("previews gitpod")
        assert told in both, "and not what it says, which stands beside it"
        assert len(both) == 3
        await it.caller.call("memory.settle", memory_id=later, target_id=earlier, verdict="compatible")
        await it.caught_up()
        assert len(await query("gitpod")) == 1
