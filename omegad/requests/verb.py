"""What a verb of the command line is. Imports next to nothing, because every start of the command line pays for it."""

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


class Verb(NamedTuple):
    """A verb: its words, how the answer is shown, and what goes beyond the method that it asks."""

    words: str = ""
    """Those of the method's name where nothing is said: `tool.record` is `omegad tool record`."""
    by: str = "sentences.say"
    """The function of `omegad/edge/cli/` that does it, as `module.function`."""
    says: str = ""
    """The sentence that tells the answer, with its fields and what was given in braces; field by field where nothing is said."""
    given: tuple[str, ...] | None = None
    """The parameters that stand for themselves; those that are required, where nothing is said."""
    options: tuple[Option, ...] = ()
    examples: tuple[str, ...] = ()
    about: str = ""
    """What it does, where the method's summary does not say it for people."""
    also: str = ""
    """Other words for it."""
    method: str = ""
    """The method that it asks, which a declaration does not say again."""

    def told(self) -> dict[str, Any]:
        """Return what differs from the defaults, as JSON has it."""
        return _told(self) | ({"options": [_told(option) for option in self.options]} if self.options else {})


OF_ITS_NAME = Verb()
"""The verb of a method that says nothing of it."""
WATCH = Option("watch", "go on showing it, every second, until interrupted", "flag")


def of(told: Mapping[str, Any]) -> Verb:
    """Return the verb that *told* is of."""
    options = tuple(Option(**option) for option in told.get("options", ()))
    return Verb(**{**told, "options": options})


def _told(declared: Option | Verb) -> dict[str, Any]:
    defaults = declared._field_defaults
    return {name: value for name, value in declared._asdict().items() if name not in defaults or value != defaults[name]}
