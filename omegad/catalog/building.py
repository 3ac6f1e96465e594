"""The part of building a wheel that is omegad's own: what is derived from the code is put into it. Only
hatchling imports this.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import (
    BuildHookInterface,
)  # pyright: ignore[reportMissingImports]  there while a wheel is built


class DerivedFiles(BuildHookInterface):
    """Derives them beside the tree, which may be read-only. An editable install makes them in it when it is
    first run, and again when its sources change.
    """

    _folder = ""

    def initialize(self, version: str, build_data: dict[str, dict[str, str]]) -> None:
        """Have the wheel contain what is derived. Raises `CalledProcessError` where the code does not run."""
        if version == "editable":
            return
        self._folder = tempfile.mkdtemp()
        script = Path(self.root, "omegad", "catalog", "bare.py")
        subprocess.run([sys.executable, "-P", str(script), self._folder], check=True)  # noqa: S603
        for made in Path(self._folder).rglob("*.json"):
            build_data["force_include"][str(made)] = made.relative_to(self._folder).as_posix()

    def finalize(self, version: str, build_data: dict[str, dict[str, str]], artifact_path: str) -> None:
        """Take away what was only made for the wheel."""
        del version, build_data, artifact_path
        shutil.rmtree(self._folder, ignore_errors=True)
