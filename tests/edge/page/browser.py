"""A real Chromium on a page that a real process serves."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.forking import ROOT

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
ENDS_S = 15


def browser_path() -> str | None:
    """Return where a Chromium is installed, None where none is."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


@contextmanager
def page_of(environ: Mapping[str, str], *arguments: str) -> Iterator[str]:
    """Serve a home's page, and hand out the address that has the token."""
    command = [sys.executable, "-m", "omegad", "page", "--no-browser", *arguments]
    with subprocess.Popen(command, cwd=ROOT, env=dict(environ), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
            process.wait(ENDS_S)


@contextmanager
def chromium(**settings: Any) -> Iterator[Any]:
    """Hand out a browser's context, whose profile is empty and goes with it."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  where it is not installed nobody asks

    with tempfile.TemporaryDirectory() as profile, sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=browser_path(), args=[*ARGUMENTS], **settings
        )
        try:
            yield context
        finally:
            context.close()
