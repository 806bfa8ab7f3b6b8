"""Waiting for what a browser does."""

from __future__ import annotations

import time
from collections.abc import Callable

from playwright.sync_api import Page

_PAUSE_MS = 20


def until(page: Page, condition: Callable[[], object], timeout_s: float = 30.0) -> None:
    """Wait until a condition holds, and let the browser's events come meanwhile. Raises ``TimeoutError``."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"it did not come true within {timeout_s} s")
        page.wait_for_timeout(_PAUSE_MS)
