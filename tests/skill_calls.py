"""A call of a skill over HTTP, as tests of whole runs make it."""

from __future__ import annotations

import time
from typing import Any

import requests


def call_skill(
    bridge: str, skill: str, arguments: dict[str, Any], *, wait: str | None, begins_within_s: float
) -> dict[str, Any]:
    """Call a skill; the event that was waited for, or only the call's id. It is asked again while the machine is too
    busy for its heartbeats, so that nobody is known to have the skill."""
    params, body = {"wait": wait} if wait else {}, {"skill": skill, "arguments": arguments}
    deadline = time.monotonic() + begins_within_s
    while True:
        response = requests.post(f"{bridge}/calls", params=params, json=body, timeout=2 * begins_within_s)
        if response.status_code != requests.codes.unavailable or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    assert response.ok, response.text
    found: dict[str, Any] = response.json()
    return found
