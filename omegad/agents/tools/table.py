"""The table of tools: of what methods say of themselves, and of the tools that ask several."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, cast

import msgspec

from omegad.agents.tools import coordinating, finding, memory, protocol, remembering, thesis, upkeep
from omegad.agents.tools.tool import Arguments, Fields, Reply, Run, Session, Tool, required, without_empty
from omegad.requests.method import IN_EVERY, CommandMethod, Method, QueryMethod
from omegad.requests.verb import AgentTool

_DECLARING = (remembering, finding, memory, upkeep, protocol, thesis, coordinating)
_SAYING = {module.__name__.rpartition(".")[2]: module for module in _DECLARING}
_OF_SESSION = "session."

Say = Callable[[Any, Session, Any], Reply]
"""Makes a reply of a method's answer, the session, and what the tool was given."""


def table(methods: Iterable[Method]) -> dict[str, Tool]:
    """Return every tool by its name."""
    tools = {tool.name: tool for module in _DECLARING for tool in module.TOOLS}
    for method in methods:
        if method.tool:
            name, _, action = method.tool.words.partition(" ")
            tool = tools.get(name) or Tool(name, Arguments, is_read_only=isinstance(method, QueryMethod))
            tools[name] = tool._replace(
                arguments=_taking(tool.arguments, method, is_whole=name not in tools),
                actions={**tool.actions, action: _asking(method, method.tool, action)},
            )
    return {name: tool._replace(arguments=_with_actions(tool)) for name, tool in tools.items()}


def _asking(method: Method, declared: AgentTool, action: str) -> Run:
    """Return what asks a method of what a tool was given, and says the answer."""
    parameters = {field.encode_name: field.required for field in _own(method)}
    sources = {name: _source(method, declared, name) for name in parameters}
    needed = {sources[name] for name, is_required in parameters.items() if is_required}
    say = _say(declared)

    async def run(session: Session, given: Arguments) -> Reply:
        required(
            action or declared.words,
            **{
                name: getattr(given, name)
                for name in sources.values()
                if name in needed and hasattr(given, name)
            },
        )
        asked = {name: _value(source, session, given) for name, source in sources.items()}
        if declared.limit is not None:
            asked["limit"] = declared.limit
        return say(await session.ask(method.name, **asked), session, given)

    return run


def _source(method: Method, declared: AgentTool, parameter: str) -> str:
    if parameter == "session_id" and parameter not in declared.takes and isinstance(method, CommandMethod):
        return f"{_OF_SESSION}session_id"
    return declared.takes.get(parameter, parameter)


def _value(source: str, session: Session, given: Arguments) -> object:
    if source.startswith(_OF_SESSION):
        return getattr(session, source.removeprefix(_OF_SESSION))
    value = getattr(given, source, None)
    return session.project_of(value) if source == "project" and hasattr(given, source) else value


def _say(declared: AgentTool) -> Say:
    if declared.by:
        module, _, function = declared.by.partition(".")
        return cast("Say", getattr(_SAYING[module], function))

    def say(answer: msgspec.Struct, _session: Session, given: Arguments) -> Reply:
        fields: Fields = msgspec.to_builtins(answer)
        if declared.says:
            text = declared.says.format_map(msgspec.structs.asdict(given) | fields)
        else:
            text = "\n".join(f"{name}: {value}" for name, value in fields.items())
        return Reply(text, without_empty(fields))

    return say


def _own(method: Method) -> list[msgspec.structs.FieldInfo]:
    return [field for field in msgspec.structs.fields(method.params) if field.name not in IN_EVERY]


def _taking(arguments: type[Arguments], method: Method, *, is_whole: bool) -> type[Arguments]:
    """Return *arguments* with what a method takes beyond them: all of it where the tool *is_whole* of that
    method, else what it cannot do without.
    """
    assert method.tool
    more: list[Any] = []
    for field in _own(method):
        name = field.encode_name
        source = _source(method, method.tool, name)
        if source != name or name in arguments.__struct_fields__ or not (is_whole or field.required):
            continue
        if is_whole:
            default = field.default_factory if field.default is msgspec.NODEFAULT else field.default
            more.append((name, field.type) if field.required else (name, field.type, default))
        else:
            more.append((name, field.type | None, None))
    if not (more or is_whole):
        return arguments
    about = f"{method.summary}." if is_whole else str(arguments.__doc__)
    return _made(arguments, more, about)


def _with_actions(tool: Tool) -> type[Arguments]:
    """Return a tool's arguments, of which `action` is one of those that there are."""
    if "" in tool.actions:
        return tool.arguments
    known = {field.name: field for field in msgspec.structs.fields(tool.arguments)}
    kind = Literal[tuple(tool.actions)]  # type: ignore[valid-type]
    field = known.get("action")
    named = ("action", kind) if field is None or field.required else ("action", kind, field.default)
    return _made(tool.arguments, [named], str(tool.arguments.__doc__))


def _made(base: type[Arguments], fields: list[Any], about: str) -> type[Arguments]:
    made = msgspec.defstruct(
        base.__name__, fields, bases=(base,), frozen=True, kw_only=True, namespace={"__doc__": about}
    )
    return cast("type[Arguments]", made)
