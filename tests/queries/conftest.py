"""Views that every test of a query may fill."""

from collections.abc import Iterator

import pytest

from tests.queries.searching import Searched


@pytest.fixture
def views() -> Iterator[Searched]:
    made = Searched()
    yield made
    made.connection.close()
