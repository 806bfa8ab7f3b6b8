"""Requests that end something by what their body says: they are carried out however late they come."""

from __future__ import annotations

from typing import Any

from dimos_streams.common.json.reading import parse_client_json
from dimos_streams.operator.known_names import CANCEL_CALL
from dimos_streams.skill import public_names

_HOLDING = ("pause", "abort")
"""The skills of agents that hold a robot, or end what it does; in a namespace with that before them."""


def ends_something(path: str, body: bytes) -> bool:
    """Return whether a request is an agent's ``pause`` or ``abort``, or an MCP client's cancel."""
    try:
        asked = parse_client_json(body)
    except ValueError:
        return False
    if path.endswith("/calls"):
        return public_names(str(_field(asked, "skill")))[0].rpartition("_")[2] in _HOLDING
    if path != "/mcp":
        return False
    method, tool = _field(asked, "method"), _field(_field(asked, "params"), "name")
    return method == "notifications/cancelled" or (method, tool) == ("tools/call", CANCEL_CALL)


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None
