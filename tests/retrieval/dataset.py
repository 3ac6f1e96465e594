"""The set: memories in the order in which they are stored, and questions that say which of them answer.

`memories.jsonl` and `questions.jsonl` lie beside this file, one record per line.
"""

from pathlib import Path
from typing import Literal, get_args

import msgspec

FOLDER = Path(__file__).parent

Kind = Literal[
    "decision",
    "reason",
    "lesson",
    "error",
    "preference",
    "identifier",
    "multilingual",
    "temporal",
    "paraphrase",
    "multihop",
    "update",
    "unanswerable",
]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Memory(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A memory to store, by a key of its own; the other fields are parameters of `memory.store`."""

    key: str
    content: str
    event_type: str
    session_id: str
    project: str | None = None
    referenced_date: str | None = None
    tags: tuple[str, ...] = ()

    def parameters(self) -> dict[str, object]:
        """Return what `memory.store` is called with."""
        named = {name: getattr(self, name) for name in self.__struct_fields__ if name != "key"}
        return {name: value for name, value in named.items() if value}


class Question(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question, and the keys of all memories that answer it: none where nothing in the set does.

    `decision`, `reason`, `lesson`, `error`, `preference` ask for a memory of that sort; a `reason` has rivals
    that state the fact alone. `identifier` is a name as code spells it, or a part of one. `multilingual` is
    asked in a language other than English, which is the memory's own. `temporal` names a month. `paraphrase`
    shares no telling word with its answer. `multihop` needs the memories beside it in the session. `update`
    asks for a fact that changed: `newest` holds it and `stale` is what it was. `unanswerable` has no answer.
    """

    kind: Kind
    text: str
    gold: tuple[str, ...]
    project: str | None = None
    mode: str = "hybrid"
    newest: str | None = None
    stale: str | None = None

    def parameters(self) -> dict[str, object]:
        """Return what `memory.query` is called with, but for the limit."""
        named: dict[str, object] = {"text": self.text, "mode": self.mode}
        return named | {"project": self.project} if self.project else named


def load_memories() -> list[Memory]:
    """Read the memories, in the order in which they are stored."""
    return msgspec.json.Decoder(Memory).decode_lines((FOLDER / "memories.jsonl").read_bytes())


def load_questions() -> list[Question]:
    """Read the questions."""
    return msgspec.json.Decoder(Question).decode_lines((FOLDER / "questions.jsonl").read_bytes())
