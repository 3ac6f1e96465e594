"""What a verb of the command line is."""

from typing import Literal, NamedTuple


class Option(NamedTuple):
    """What a verb takes that is no parameter of a method."""

    name: str
    about: str
    kind: Literal["text", "integer", "flag"] = "text"
    is_given: bool = False
    """Whether it stands for itself, without a dash."""
    is_many: bool = False
    """Whether it may be given any number of times."""
    default: str | None = None
    into: str = ""


class Verb(NamedTuple):
    """A verb: its words, the function that does it, the method it asks, if it does, and what goes beyond that method."""

    words: str
    by: str
    method: str = ""
    about: str = ""
    given: tuple[str, ...] | None = None
    """The parameters that stand for themselves; those that are required, where nothing is said."""
    options: tuple[Option, ...] = ()
    examples: tuple[str, ...] = ()
