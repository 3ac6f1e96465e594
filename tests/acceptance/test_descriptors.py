"""A daemon that may open few files: its clients are bounded by that, and its own work is not kept from
them.
"""

import resource
from contextlib import ExitStack

from omegad.runtime.errors import Overloaded
from tests.acceptance.conftest import Home


def test_more_clients_than_there_are_descriptors_for_are_told_so_and_nothing_else_suffers(home: Home) -> None:
    home.limits = {resource.RLIMIT_NOFILE: 148}
    home.start()
    with ExitStack() as clients:
        served, refused = [], []
        for _ in range(130):
            try:
                client = clients.enter_context(home.client())
                client.call("system.ping")
                served.append(client)
            except Overloaded as error:
                refused.append(str(error))
        assert len(served) == 20
        assert refused == ["20 clients are connected already"] * 110
        served[0].call("memory.store", content="Deploys are blue-green", event_type="decision")
        assert served[-1].call("memory.query", text="deploys")["results"]
        assert served[0].call("log.verify")["ok"]  # a process of its own
    assert "Too many open files" not in home.printed()
    assert len(home.printed().splitlines()) < 10
