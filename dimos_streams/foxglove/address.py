"""The address for viewers, and the layout that shows them all of a run."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from dimos_streams.common.process.loopback import authority_here
from dimos_streams.errors import UserError

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8765
"""The port that viewers use by default."""
LAYOUT = Path(__file__).with_name("layout.json")
"""The layout, which viewers take from a file."""


def parsed_address(text: str) -> tuple[str, int]:
    """Host and port of ``"HOST:PORT"``, ``"HOST"``, ``":PORT"`` or ``"PORT"``. Raises ``UserError``."""
    try:
        parts = urlsplit(f"//:{text}" if text.isdecimal() else f"//{text}")
        host, port = parts.hostname or DEFAULT_HOST, DEFAULT_PORT if parts.port is None else parts.port
    except ValueError:
        parts, host, port = urlsplit(""), "", 0
    if not port or parts.netloc.rpartition("@")[0] or parts.path or parts.query or parts.fragment:
        valid = f"PORT or HOST:PORT, as in '{DEFAULT_HOST}:{DEFAULT_PORT}'"
        raise UserError(f"{text!r} is no address for viewers; valid: {valid}")
    return host, port


def url_of(host: str, port: int) -> str:
    """Return the URL that a viewer on this machine is told to open."""
    return f"ws://{authority_here(host, port)}"
