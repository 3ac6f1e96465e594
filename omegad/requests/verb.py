"""How a method is had: what a verb of the command line is, and a tool of agents that asks one method. Imports
next to nothing, because every start of the command line pays for it.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple


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


class Table(NamedTuple):
    """A list of an answer, as people see it."""

    of: str
    """The field that is the list."""
    columns: tuple[tuple[str, str], ...]
    """The heading of each column, and its cells with fields in braces. `{a|b}` is what the first of them says
    that says something, which may be words instead of a field, and `{a+b}` what both say. After a colon
    stands how it is written: `moment`, `duration`, as Python formats it, with %s in its place, or the word
    that stands for yes.
    """
    none: str
    """What is said where there is nothing."""
    warns: Mapping[str, str] = {}
    """What is said besides where a field of the answer is set, with its fields in braces."""
    seldom: tuple[str, ...] = ()
    """The headings of columns that are left out where no row has anything in them."""


class Verb(NamedTuple):
    """A verb: its words, how the answer is shown, and what goes beyond the method that it asks."""

    words: str = ""
    """Those of the method's name where nothing is said: `tool.record` is `omegad tool record`."""
    by: str = "sentences.say"
    """The function of `omegad/edge/cli/` that does it, as `module.function`."""
    says: str = ""
    """The sentence that tells the answer, with its fields and what was given in braces; field by field
    where nothing is said.
    """
    table: Table | None = None
    """The list that tells the answer, where that is one."""
    given: tuple[str, ...] | None = None
    """The parameters that stand for themselves; those that are required, where nothing is said. One that is
    not required can be given by its option as well.
    """
    options: tuple[Option, ...] = ()
    examples: tuple[str, ...] = ()
    about: str = ""
    """What it does, where the method's summary does not say it for people."""
    more: str = ""
    """What its help says besides, in lines."""
    also: str = ""
    """Other words for it."""
    is_first: bool = False
    """Whether the help lists it before the others, as what is used every day."""
    method: str = ""
    """The method that it asks, which a declaration does not say again."""

    def as_json(self) -> dict[str, object]:
        """Return what differs from the defaults, as JSON has it."""
        options = {"options": [_changed(option) for option in self.options]} if self.options else {}
        return _changed(self) | options


OF_ITS_NAME = Verb()
"""The verb of a method that says nothing of it."""
MORE = {"truncated": "there are more; --limit shows them"}
"""What a table warns of whose answer says that there are more."""
GONE = {"details_gone_until": "details from before {details_gone_until} are gone, since their time was over"}
"""What a table warns of whose answer says so."""
WATCH = Option("watch", "go on showing it, every second, until interrupted", "flag")
WATCHING = "omegad-cli --watch"
"""The name of the client that asks every second."""


def of(declared: Mapping[str, Any]) -> Verb:
    """Return the verb that *declared* is the JSON of."""
    options = tuple(Option(**option) for option in declared.get("options", ()))
    table = Table(*declared["table"]) if "table" in declared else None
    return Verb(**{**declared, "options": options, "table": table})


def _changed(declared: Option | Verb) -> dict[str, object]:
    defaults = declared._field_defaults
    return {
        name: value
        for name, value in declared._asdict().items()
        if name not in defaults or value != defaults[name]
    }


SAID_BY = ("BY", "{person+machine}")
"""The column that says who said a memory, which is seldom there: of a home in no team nobody is named."""
NOTHING: Mapping[str, str] = {}


class AgentTool(NamedTuple):
    """A method as agents get it. What it takes is of the same names as the method's parameters: of a tool
    of its own all of them, of an action of a tool that others have actions of, what that tool takes and
    the method requires. A command's `session_id` is the session that calls.
    """

    words: str
    """The name of the tool; after it the action, where the tool has several."""
    by: str = ""
    """The function of `omegad/agents/tools/` that says the answer, as `module.function`; field by field,
    or as `says` has it, where there is none.
    """
    says: str = ""
    """The sentence that tells the answer, with its fields and what was given in braces."""
    takes: Mapping[str, str] = NOTHING
    """Which argument of the tool a parameter is, where they differ; `session.project` is the session's."""
    limit: int | None = None
    """How many of a list are worth their tokens, where the tool does not take that."""
