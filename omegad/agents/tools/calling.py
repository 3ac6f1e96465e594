"""The methods by which programs list the tools and call them."""

import re
from collections.abc import Mapping
from typing import Annotated, get_args

import msgspec
from msgspec import Meta

from omegad.agents.tools.tool import Arguments, Ask, Fields, Folder, Session, Tool, Word, harmless
from omegad.memory.events import Verdict
from omegad.requests.method import ServiceMethod
from omegad.requests.query import Request
from omegad.requests.verb import Table, Verb
from omegad.runtime import unfit
from omegad.runtime.errors import Invalid, NotFound, OmegadError, forget_frames
from omegad.text.quoting import inert

SAID_CHARACTERS = 80
Tools = Mapping[str, Tool]
_AS_A_TOOL = (
    (
        re.compile(
            r"\bmemory\.(edit|delete|supersede|settle|restore|rate|promote|link|unlink|similar|traverse|history"
            r"|get)\b"
        ),
        r'omega_memory(action="\1")',
    ),
    (re.compile(r"\btask\.(list|claim)\b"), r'omega_coord(action="task_\1")'),
    (re.compile(r"`omegad (who|claims)`"), r'omega_coord(action="\1")'),
    (re.compile(r"`omegad query`|memory\.query"), "omega_query"),
    (re.compile(r"memory\.store"), "omega_store"),
)
"""What agents are told instead of a method's name, or a command's."""
_NULL = {"type": "null"}
_UNTOLD = frozenset({"title", "additionalProperties", "maxItems", "maxLength", "maxProperties", "minLength"})
"""Words of JSON Schema that cost more than they say."""


class ListTools(Request, frozen=True, kw_only=True, tag="tools.list"):
    """List the tools for agents, with the JSON Schema of their arguments."""


class CallTool(Request, frozen=True, kw_only=True, tag="tools.call"):
    """Call a tool for an agent; what goes wrong in it is an answer, too."""

    name: Annotated[str, Meta(max_length=64, description="which tool")]
    arguments: Annotated[dict[str, object], Meta(description="what it takes, as a JSON object")] = (
        msgspec.field(default_factory=dict)
    )
    session_id: Annotated[Word | None, Meta(description="the session that calls")] = None
    project: Annotated[Word | None, Meta(description="the project where the arguments name none")] = None
    folder: Annotated[Folder | None, Meta(description="where relative paths begin")] = None
    request_id: Annotated[
        Word | None,
        Meta(description="makes it safe to send again: the same call of the same id changes nothing twice"),
    ] = None


class ToolDescription(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as agents see it."""

    name: str
    description: str
    input_schema: Fields
    read_only: bool


class ToolList(msgspec.Struct, frozen=True, kw_only=True):
    """The tools there are."""

    tools: list[ToolDescription]


class Text(msgspec.Struct, frozen=True, tag="text"):
    """A part of an answer that is read."""

    text: str


class ToolAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool says: a short text, and as fields (null where the text is all there is); or an error,
    and what to do about it.
    """

    content: tuple[Text, ...]
    structured: Fields | None = None
    is_error: bool = False


def listed(tools: Tools) -> ToolList:
    """Describe every tool."""
    return ToolList(tools=[_described(tool) for tool in tools.values()])


async def call(tools: Tools, request: CallTool, ask: Ask, *, client: str) -> ToolAnswer:
    """Call a tool; an error of the catalogue becomes an answer that says what to do. Raises `NotFound` for
    a tool that there is not.
    """
    tool = tools.get(request.name)
    if tool is None:
        raise NotFound(f"there is no tool {request.name!r}", hint=f"the tools are {', '.join(tools)}")
    session = Session(ask, client, request.session_id, request.project, request.folder)
    try:
        given = _read(tool, request.arguments)
        for one in getattr(given, "settle", ()):
            await _settle(session, one)
        reply = await tool.actions[tool.meant(given)](session, given)
    except OmegadError as error:
        forget_frames(error)
        said = f"{inert(str(error)).removesuffix('.')} ({error.tag}). What to do: {error.hint}"
        for named, tool_name in _AS_A_TOOL:
            said = named.sub(tool_name, said)
        return ToolAnswer(content=(Text(said),), is_error=True)
    text = reply.text if reply.as_it_is else inert(reply.text)
    return ToolAnswer(
        content=(Text(text),), structured=None if reply.structured is None else harmless(reply.structured)
    )


def refused(why: str) -> ToolAnswer:
    """Return that nothing is done, and why."""
    return ToolAnswer(content=(Text(f"{why}. What to do: go on without it"),), is_error=True)


async def _settle(session: Session, said: str) -> None:
    """Settle what an agent was asked: "mem-1 contradicts mem-2". Raises `Invalid` for other words."""
    match said.split():
        case [memory_id, verdict, target_id] if verdict in get_args(Verdict):
            await session.ask("memory.settle", memory_id=memory_id, target_id=target_id, verdict=verdict)
        case _:
            raise Invalid(
                f"settle: {said[:SAID_CHARACTERS]!r} does not say what a memory is to an older one",
                hint='call it again with settle=["NEW contradicts OLD"], or supersedes, or compatible',
            )


def _read(tool: Tool, arguments: Fields) -> Arguments:
    try:
        return msgspec.convert(
            {name: value for name, value in arguments.items() if value is not None},
            tool.arguments,
            strict=False,
        )
    except (msgspec.ValidationError, RecursionError) as error:
        known = ", ".join(tool.arguments.__struct_fields__)
        raise Invalid(
            f"{tool.name}: {unfit.in_words(error, 'the call', tool.arguments)}",
            hint=f"call it again; it takes {known}",
        ) from error


def _described(tool: Tool) -> ToolDescription:
    (schema,) = msgspec.json.schema_components([tool.arguments])[1].values()
    properties = {name: _plain(one) for name, one in schema["properties"].items()}
    required = {"required": schema["required"]} if schema.get("required") else {}
    return ToolDescription(
        name=tool.name,
        description=" ".join((tool.arguments.__doc__ or "").split()),
        input_schema={
            "type": "object",
            "properties": properties,
            **required,
            "additionalProperties": False,
        },
        read_only=tool.is_read_only,
    )


def _plain(schema: Fields) -> Fields:
    """Return the schema of an argument in fewer words: what may be left out need not be described as
    null.
    """
    told = {
        name: value
        for name, value in schema.items()
        if name not in _UNTOLD and value not in (None, [], (), {}, "")
    }
    match told.pop("anyOf", None):
        case [one] | [one, {"type": "null"}]:
            return {**_plain(one), **told}
        case [*several]:
            return told | {"anyOf": [one for one in several if one != _NULL]}
    if "items" in told:
        told["items"] = _plain(told["items"])
    if None in told.get("enum", ()):
        told["enum"] = [value for value in told["enum"] if value is not None]
    return told


METHODS = (
    ServiceMethod(
        params=ListTools,
        answer=ToolList,
        verb=Verb(
            table=Table("tools", (("TOOL", "{name}"), ("WHAT IT DOES", "{description}")), none="no tools")
        ),
    ),
    ServiceMethod(
        params=CallTool,
        answer=ToolAnswer,
        writes=True,
        verb=Verb(examples=('omegad tools call omega_query --arguments \'{"query": "how do we deploy?"}\'',)),
    ),
)
