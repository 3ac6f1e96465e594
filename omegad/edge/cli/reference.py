"""The verbs that list what programs can ask, and what can have happened."""

from argparse import Namespace
from collections.abc import Iterable, Sequence

from omegad.edge.cli.arguments import methods as known_methods
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import write_json, write_table
from omegad.runtime.json_types import Fields

LINES = "| {} |"


def methods(arguments: Namespace, _place: Instance) -> None:
    """List the methods, with the parameters that are not those of every command or query."""
    found = [
        {
            "name": name,
            "about": str(method["about"]),
            "parameters": [one for one in method.get("parameters", ()) if not one.get("is_in_every")],
        }
        for name, method in known_methods().items()
        if name.startswith(arguments.name or "")
    ]
    if arguments.json:
        write_json(found)
    else:
        mark = "`" if arguments.markdown else ""
        rows = (
            (
                str(one["name"]),
                str(one["about"]),
                ", ".join(_parameter(each, mark) for each in one["parameters"]),
            )
            for one in found
        )
        _write(("method", "what it does", "parameters"), rows, is_markdown=arguments.markdown)


def events(arguments: Namespace, _place: Instance) -> None:
    """List the events."""
    # Importing the rooms is dear, and for this verb alone
    from omegad.catalog.events import CODEC  # noqa: PLC0415

    found = [
        (tag, " ".join((kind.__doc__ or "").split("\n\n")[0].split()))
        for tag, kind in sorted(CODEC.kinds.items())
        if tag.startswith(arguments.name or "")
    ]
    if arguments.json:
        write_json([{"tag": tag, "about": about} for tag, about in found])
    else:
        _write(("tag", "what happened"), found, is_markdown=arguments.markdown)


def _write(header: Sequence[str], rows: Iterable[Sequence[str]], *, is_markdown: bool) -> None:
    if not is_markdown:
        write_table([title.upper() for title in header], [(name, *more) for name, *more in rows])
        return
    print(LINES.format(" | ".join(header)))
    print(LINES.format(" | ".join("---" for _ in header)))
    for name, about, *more in rows:
        print(LINES.format(" | ".join((f"`{name}`", about[:1].lower() + about[1:], *more))))


def _parameter(parameter: Fields, mark: str) -> str:
    least, most = parameter.get("limits") or (None, None)
    limits = "" if least is None or most is None else f" {least:,.10g} to {most:,.10g}"
    return f"{mark}{parameter['name']}{mark}{limits}"
