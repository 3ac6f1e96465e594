"""The part of building a wheel that is omegad's own: what is derived from the code is put into it. Only hatchling imports this."""

import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface  # pyright: ignore[reportMissingImports]  there while a wheel is built


class DerivedFiles(BuildHookInterface):
    """Derives them beside the tree, which may be read-only; an editable install makes them in it, and again when its sources change."""

    _folder = ""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Have the wheel contain what is derived. Raises `OSError` where it cannot be derived, but for an editable install."""
        sys.path.insert(0, self.root)
        from omegad.runtime import derived  # noqa: PLC0415  hatchling runs this file without the package that it is of

        if version == "editable":
            with suppress(OSError):
                derived.read(derived.METHODS)
            return
        self._folder = tempfile.mkdtemp()
        for path in map(Path, (derived.METHODS, derived.GREETING)):
            made = Path(self._folder, path.name)
            made.write_bytes(derived.derive(str(path)))
            build_data["force_include"][str(made)] = path.relative_to(self.root).as_posix()

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Take away what was only made for the wheel."""
        del version, build_data, artifact_path
        shutil.rmtree(self._folder, ignore_errors=True)
