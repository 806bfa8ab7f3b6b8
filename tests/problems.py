"""What HTTP refuses, as tests look at it."""

from __future__ import annotations

from typing import Any

import requests


def problem(response: requests.Response, status: int, name: str) -> dict[str, Any]:
    """Return what a response says, which has to be the problem of that status and name."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json", response.headers
    content: dict[str, Any] = response.json()
    assert (content["status"], content["type"]) == (status, f"urn:dimos-streams:problem:{name}"), content
    return content
