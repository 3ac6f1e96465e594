"""What setup would change: for each file of the hosts asked about, its text before and after, or why it is
left alone.
"""

import difflib
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from omegad.edge.setup import files
from omegad.edge.setup.commands import Commands
from omegad.edge.setup.content import KINDS, Part
from omegad.edge.setup.files import Originals
from omegad.edge.setup.hosts import ALL, BY_NAME, ROOTS, File, Host
from omegad.runtime.errors import Invalid, OmegadError, Refused

State = Literal["right", "create", "change", "delete", "left alone"]


class World(NamedTuple):
    """Where the person's and the project's files are, and which omegad it is about."""

    environ: Mapping[str, str]
    originals: Originals
    commands: Commands
    project: Path | None = None
    """The project whose files are meant; the person's own where there is none."""
    is_macos: bool = sys.platform == "darwin"

    def path(self, template: str) -> Path:
        """Return where a path of the table of hosts leads."""
        name, _, rest = template.partition("}")
        root = ROOTS[name.removeprefix("{")]
        fixed = root.macos if self.is_macos else ""
        folder = fixed or self.environ.get(root.variable) or root.linux
        home = self.environ.get("HOME") or str(Path.home())
        expanded = home + folder.removeprefix("~") if folder == "~" or folder.startswith("~/") else folder
        return Path(os.path.abspath(expanded + rest))  # noqa: PTH100  which goes up where .. says so

    def path_of(self, file: File) -> Path | None:
        """Return where a host's file is, if it has a place."""
        if self.project is not None:
            return self.project / file.project if file.project else None
        places = [self.path(template) for template in file.user]
        return next((path for path in places if path.exists()), places[0] if places else None)


@dataclass(frozen=True, kw_only=True)
class Change:
    """A file, and what becomes of it."""

    path: Path
    parts: tuple[Part, ...]
    before: str | None = None
    after: str | None = None
    problem: str = ""
    hint: str = ""
    mode: int | None = None
    """What a new file gets, where that is not the mode of a person's or a project's."""

    @property
    def state(self) -> State:
        """Say what is to be done."""
        if self.problem:
            return "left alone"
        if self.before == self.after:
            return "right"
        return "create" if self.before is None else "delete" if self.after is None else "change"

    @property
    def what(self) -> list[str]:
        """Return what of omegad's the file is for."""
        return sorted({what for part in self.parts for what in part.file.what})

    @property
    def hosts(self) -> list[str]:
        """Return which of the hosts asked about read it."""
        return [part.host.name for part in self.parts]

    def diff(self) -> str:
        """Return the change the way `diff -u` shows it."""
        lines = difflib.unified_diff(
            (self.before or "").splitlines(keepends=True),
            (self.after or "").splitlines(keepends=True),
            str(self.path) if self.before is not None else "/dev/null",
            str(self.path) if self.after is not None else "/dev/null",
        )
        return "".join(
            line if line.endswith("\n") else f"{line}\n\\ no newline at the end of the file\n"
            for line in lines
        )


def named(names: Iterable[str]) -> list[Host]:
    """Return hosts by their names; raises `Invalid`."""
    unknown = [name for name in names if name not in BY_NAME]
    if unknown:
        near = difflib.get_close_matches(unknown[0], BY_NAME, 1)
        raise Invalid(
            f"no agent is called {unknown[0]!r}",
            hint=f"did you mean {near[0]!r}?" if near else f"known are: {', '.join(BY_NAME)}",
        )
    return [BY_NAME[name] for name in dict.fromkeys(names)]


def found(world: World) -> list[Host]:
    """Return the hosts that are installed."""
    return [
        host
        for host in ALL
        if any(
            world.path(trace).exists()
            if trace.startswith("{")
            else shutil.which(trace, path=world.environ.get("PATH", ""))
            for trace in host.traces
        )
    ]


def registered(world: World) -> list[Host]:
    """Return the hosts that know of omegad's MCP server; other files may be read by several."""
    return [host for host in ALL if any("mcp" in change.what for change in removals(host, world))]


def touched(world: World) -> list[Host]:
    """Return the hosts that have something of omegad's in any of their files."""
    return [host for host in ALL if removals(host, world)]


def removals(host: Host, world: World) -> list[Change]:
    """Return the files of a host that have something of omegad's, each with what taking it out makes of
    it.
    """
    return [change for change in plan([host], world, removing=True) if change.state in ("change", "delete")]


def plan(hosts: Iterable[Host], world: World, *, removing: bool = False) -> list[Change]:
    """Return what is to become of every file of *hosts*, in the order of the table; the other way round
    when removing.
    """
    by_path: dict[Path, list[Part]] = {}
    for host in hosts:
        for file in host.files:
            if path := world.path_of(file):
                by_path.setdefault(path, []).append(Part(host, file))
    # A folder goes after what was put into it.
    order = reversed(by_path.items()) if removing else by_path.items()
    make = _without if removing else _with
    return [planned(path, partial(make, path, tuple(parts), world), tuple(parts)) for path, parts in order]


def planned(
    path: Path,
    make: Callable[[str | None], str | None],
    parts: tuple[Part, ...] = (),
    mode: int | None = None,
) -> Change:
    """Return what *make* makes of a file's text, None standing for no file; what it raises is why the file is
    left alone.
    """
    try:
        before = files.read(path)
        return Change(path=path, parts=parts, before=before, after=make(before), mode=mode)
    except OmegadError as error:
        return Change(path=path, parts=parts, problem=str(error), hint=error.hint)
    except OSError as error:
        return Change(path=path, parts=parts, problem=str(error), hint="see what the system's error says")


def _with(_path: Path, parts: tuple[Part, ...], world: World, before: str | None) -> str:
    return KINDS[parts[0].file.format].put(before or "", parts, world.commands)


def _without(path: Path, parts: tuple[Part, ...], world: World, before: str | None) -> str | None:
    if before is None:
        return None
    file, original = parts[0].file, world.originals.of(path)
    if original is not None:
        with suppress(Invalid, Refused):  # what setup makes of the original is undone by putting that back
            if _with(path, parts, world, original.text) == before:
                return original.text
    after = KINDS[file.format].take_out(before, parts, original.text if original else None)
    if after is not None or (original is None and file.is_own):
        return after
    if original is None:
        return "{}\n" if file.format == "json" else ""
    # What someone has emptied since stays empty.
    return "" if original.text and original.text.strip() else original.text


def carry_out(change: Change, world: World, *, removing: bool = False) -> None:
    """Write a planned change, having kept how the file first was, or take it back with the folders that were
    made for it. Raises `Conflict` where it has changed since the plan.
    """
    if change.state in ("right", "left alone"):
        return
    if not removing:
        world.originals.keep(change.path, change.before)
    original = world.originals.of(change.path)
    usual = files.PRIVATE_FILE if world.project is None else files.SHARED_FILE
    files.write(change.path, change.before, change.after, mode=change.mode or usual)
    if removing and (change.after is None or (original is not None and original.text == change.after)):
        world.originals.forget(change.path)


def shared(hosts: Sequence[Host], world: World) -> dict[Path, list[str]]:
    """Return the files of *hosts* that other hosts read which have omegad too, and the names of those."""
    mine = {place for host in hosts for file in host.files if (place := world.path_of(file))}
    needed: dict[Path, list[str]] = {}
    for host in ALL:
        if host in hosts:
            continue
        theirs = {place for file in host.files if (place := world.path_of(file))} & mine
        if theirs and any(
            "mcp" in change.what and change.path not in theirs for change in removals(host, world)
        ):
            for path in theirs:
                needed.setdefault(path, []).append(host.name)
    return needed
