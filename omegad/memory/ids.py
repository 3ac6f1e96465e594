"""Ids of memories."""

from typing import Annotated

from msgspec import Meta

from omegad.requests.command import Name
from omegad.requests.method import Services

MemoryId = Annotated[Name, Meta(description="the memory's id")]


def new_id(services: Services) -> str:
    """Return an id for a memory that is yet to be stored."""
    return f"mem-{services.clock.random_bits(64):016x}"
