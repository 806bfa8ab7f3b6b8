"""Waiting for what a browser does."""

from __future__ import annotations

import time
from collections.abc import Callable

from playwright.sync_api import Locator, Page

_PAUSE_MS, _LONGEST_PAUSE_MS = 20, 100
_SHARE = 0.1
OFTEN = """{
    const plain = window.setInterval;
    window.setInterval = (tick, ms) => plain(tick, ms / 20);
}"""
"""A script, for before a page's own ones: what they say once a second they say twenty times."""


def reads(locator: Locator, text: str) -> Callable[[], bool]:
    """Whether what is there has a text. ``until`` asks at once for what ``expect`` looks at twice a second."""
    return lambda: text in " ".join(locator.all_inner_texts())


def until(page: Page, condition: Callable[[], object], timeout_s: float = 30.0) -> None:
    """Wait until a condition holds, and let the browser's events come meanwhile. Raises ``TimeoutError``."""
    began = time.monotonic()
    while not condition():
        waited = time.monotonic() - began
        if waited > timeout_s:
            raise TimeoutError(f"it did not come true within {timeout_s} s")
        # Each look takes the page's processor: what has taken long is looked at more rarely.
        page.wait_for_timeout(min(max(_PAUSE_MS, waited * _SHARE * 1000), _LONGEST_PAUSE_MS))
