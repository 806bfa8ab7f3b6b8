"""The greeting of MCP clients: the versions of the protocol, the capabilities, and instructions for models."""

from __future__ import annotations

from typing import Any

from dimos_streams import __version__

VERSIONS = ("2025-11-25", "2025-06-18")
"""The versions of the protocol, newest first. 2025-03-26 is not supported: it requires servers to take batches of
messages, which the next version abolished."""
RESUMING = VERSIONS[:1]
"""The versions whose clients expect events without data, and come again with the id of one if their stream is cut."""
_INSTRUCTIONS = """\
These tools are skills of a robot. Some answer and go on: their result says so, names the call and gives a cursor. \
Then skill_updates says what comes of it, get_call how it stands, list_calls which calls there are, and cancel_call \
ends one."""


def greeting_for(asked: str) -> dict[str, Any]:
    """The result of ``initialize`` for a client that asks for a version of the protocol."""
    return {
        "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
        "capabilities": {"tools": {"listChanged": True}},
        "serverInfo": {"name": "dimos-streams", "version": __version__},
        "instructions": _INSTRUCTIONS,
    }
