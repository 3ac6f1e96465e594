"""Derives what a wheel contains where only msgspec is installed: `python -P omegad/catalog/bare.py FOLDER`.

All other packages serve what methods do, not what there is to say of them; something that can be imported,
called and subclassed stands in for each that is missing.
"""

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import msgspec  # its own optional imports are done before anything stands in  # noqa: F401
from msgspec import inspect  # noqa: F401


class _AnythingType(type):
    def __getattr__(cls, name: str) -> type["Anything"]:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything

    def __getitem__(cls, _item: object) -> type["Anything"]:
        return Anything

    def __ge__(cls, _other: object) -> bool:
        return True  # a version is new enough

    def __int__(cls) -> int:
        return 0

    def __mul__(cls, _other: object) -> type["Anything"]:
        return Anything

    def __call__(cls, *_arguments: object, **_named: object) -> type["Anything"]:
        return Anything


class Anything(metaclass=_AnythingType):
    """A class, a function, a constant."""


class _Module(ModuleType):
    def __getattr__(self, name: str) -> type[Anything]:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything


class StandIns(MetaPathFinder, Loader):
    """Finds what nobody else has found, but for what this Python may lack by itself."""

    def find_spec(self, fullname: str, _path: object, _target: object = None) -> ModuleSpec | None:
        """Return a module in which there is whatever is asked for."""
        if fullname.partition(".")[0] in {*sys.stdlib_module_names, "omegad", "projections"}:
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Make it."""
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Leave it as it is."""


if __name__ == "__main__":
    root = Path(__file__).absolute().parents[2]
    sys.path.insert(0, str(root))
    sys.meta_path.append(StandIns())
    from omegad.catalog import describing

    for path, text in describing.files().items():
        made = Path(sys.argv[1]) / Path(path).relative_to(root)
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(text, encoding="utf-8")
