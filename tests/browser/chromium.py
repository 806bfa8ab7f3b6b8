"""The browser that the tests drive: the machine's own Chromium, cut off from everything but this machine."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first one has no windows to make, and is ready in half of the time."""
_SWITCHES = (
    "--no-sandbox",  # which root can't have
    "--disable-gpu",
    "--in-process-gpu",  # without one there is nothing to keep apart: a process less for each browser
    "--renderer-process-limit=1",  # nor pages from each other: a process less for each page
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--enable-precise-memory-info",
)


def find_chromium() -> str | None:
    """The path of a Chromium on ``PATH``."""
    return next((path for path in map(shutil.which, _NAMES) if path), None)


@contextlib.contextmanager
def launched(path: str) -> Iterator[Browser]:
    """A headless browser. While it is open, no other event loop can be run in this thread."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_modest(path, Path(folder)), args=list(_SWITCHES))
        try:
            yield browser
        finally:
            browser.close()


def _modest(path: str, folder: Path) -> str:
    """Root's Chromium makes itself more urgent than the robots that run beside it; this one can't."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return path
    script = folder / "chromium"
    script.write_text(
        f'#!/bin/sh\nexec setpriv --bounding-set=-sys_nice --inh-caps=-sys_nice {shlex.quote(path)} "$@"\n'
    )
    script.chmod(0o755)
    return str(script)
