"""The table of methods in words: what the command line, and whoever builds tools of it, are derived from.

`omegad.runtime.derived` has it write the files that are read instead of importing the methods: what the
command line knows of them, what the pipe of MCP says of the tools, and the schemas that HTTP is described by.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import UNSET, inspect

from omegad import __version__
from omegad.agents.tools.calling import listed
from omegad.agents.tools.protocol import INSTRUCTIONS
from omegad.catalog.methods import SERVED
from omegad.catalog.tools import TOOLS
from omegad.requests.method import IN_EVERY, CommandMethod, Method, ServiceMethod
from omegad.runtime import derived

MCP_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The revisions of MCP that begin with a handshake; the last one is offered to who asks for another."""

ANYTHING = {"description": "any JSON"}

Kind = Literal["text", "integer", "number", "flag", "yes_or_no", "json"]
_KINDS: dict[type[inspect.Type], Kind] = {
    inspect.StrType: "text",
    inspect.IntType: "integer",
    inspect.FloatType: "number",
    inspect.BoolType: "flag",
}


class Parameter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A parameter of a method, of its own or one that all commands, or all queries, take. `limits` are the
    least and the most it may be, as a number; `default` is None where leaving it out means nothing.
    """

    name: str
    about: str
    kind: Kind
    is_many: bool = False
    is_required: bool = False
    is_in_every: bool = False
    choices: tuple[str, ...] = ()
    limits: tuple[float | None, float | None] | None = None
    default: object = None


class Described(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A method: what it does, what it takes, whether it changes something, and what its verb says of
    itself, if it has one.
    """

    name: str
    about: str
    parameters: tuple[Parameter, ...] = ()
    writes: bool = False
    verb: dict[str, object] | None = None


def described(method: Method) -> Described:
    """Return what there is to say of a method."""
    parameters = [_parameter(field) for field in msgspec.structs.fields(method.params)]
    parameters.sort(key=lambda parameter: (not parameter.is_required, parameter.is_in_every))
    return Described(
        name=method.name,
        about=method.summary,
        parameters=tuple(parameters),
        writes=isinstance(method, CommandMethod) or (isinstance(method, ServiceMethod) and method.writes),
        verb=method.verb and {"words": method.name.replace(".", " ")} | method.verb.as_json(),
    )


def every() -> list[Described]:
    """Describe every method of the socket."""
    return [described(method) for method in SERVED.values()]


def command_line(methods: Sequence[Described]) -> str:
    """Return what the command line reads."""
    return "[\n{}\n]\n".format(",\n".join(msgspec.json.encode(one).decode() for one in methods))


def mcp_greeting() -> str:
    """Return what is answered to `initialize` and `tools/list`, in every revision that begins with a
    handshake.
    """
    tools = [
        {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": tool.input_schema,
            "annotations": {"readOnlyHint": tool.read_only, "destructiveHint": False},
        }
        for tool in listed(TOOLS).tools
    ]
    server = {"name": "omegad", "version": __version__}
    introduced = {
        "capabilities": {"tools": {"listChanged": False}},
        "instructions": INSTRUCTIONS,
        "serverInfo": server,
    }
    greeting = {"versions": MCP_VERSIONS, "initialize": introduced, "tools/list": {"tools": tools}}
    return f"{msgspec.json.format(msgspec.json.encode(greeting), indent=0).decode()}\n"


def schemas() -> str:
    """Return what every method takes and answers as JSON Schema, `methods` by their names; what they refer to
    is in `schemas`.
    """
    kinds = [kind for method in SERVED.values() for kind in (method.params, method.answer)]
    references, found = msgspec.json.schema_components(
        kinds, schema_hook=lambda _: ANYTHING, ref_template="#/components/schemas/{name}"
    )
    for schema in found.values():
        schema["description"] = " ".join(schema.get("description", "").split())
    methods = {}
    for method, asked, answers in zip(SERVED.values(), references[::2], references[1::2], strict=True):
        takes = found.pop(asked["$ref"].rpartition("/")[2])
        takes["properties"].pop("method")
        takes["required"].remove("method")
        about, writes = method.summary, described(method).writes
        methods[method.name] = {"about": about, "writes": writes, "takes": takes, "answers": answers}
    return f"{msgspec.json.encode({'methods': methods, 'schemas': found}).decode()}\n"


def _parameter(field: msgspec.structs.FieldInfo) -> Parameter:
    found = inspect.type_info(field.type)
    about, is_many = "", False
    while True:  # through what is optional, described or many
        match found:
            case inspect.Metadata(type=inner, extra_json_schema=schema):
                about = about or (schema or {}).get("description", "")
                found = inner
            case inspect.UnionType(types=types):
                found = next(one for one in types if not isinstance(one, inspect.NoneType))
            case inspect.VarTupleType(item_type=inner):
                is_many, found = True, inner
            case _:
                break
    limits = (found.ge, found.le) if isinstance(found, inspect.IntType | inspect.FloatType) else (None, None)
    return Parameter(
        name=field.encode_name,
        about=about,
        kind=_kind(found, field.default),
        is_many=is_many,
        is_required=field.required,
        is_in_every=field.name in IN_EVERY,
        choices=tuple(map(str, found.values)) if isinstance(found, inspect.LiteralType) else (),
        limits=None if limits == (None, None) else limits,
        default=(
            None
            if field.default in {UNSET, msgspec.NODEFAULT, ()} or field.default is False
            else field.default
        ),
    )


def _kind(found: inspect.Type, default: object) -> Kind:
    if isinstance(found, inspect.BoolType) and default is None:
        return "yes_or_no"
    return "text" if isinstance(found, inspect.LiteralType) else _KINDS.get(type(found), "json")


def files() -> dict[str, str]:
    """Return what the derived files say, by their paths."""
    return {
        derived.METHODS: command_line(every()),
        derived.GREETING: mcp_greeting(),
        derived.SCHEMAS: schemas(),
    }


def write(path: Path, text: str, changed_ns: int) -> None:
    """Write a derived file as of sources that were changed then, at once for those that read it; leave it
    where it must not be written.
    """
    made = path.with_name(f".{path.name}.{os.getpid()}")
    with suppress(OSError):
        made.write_text(text, encoding="utf-8")
        os.utime(made, ns=(changed_ns, changed_ns))
        made.replace(path)
    with suppress(OSError):
        made.unlink(missing_ok=True)


def main(wanted: str, changed_ns: str) -> None:
    """Write all derived files as of a time, and print the one that is wanted."""
    said = files()
    for path, text in said.items():
        write(Path(path), text, int(changed_ns))
    sys.stdout.buffer.write(said[wanted].encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
