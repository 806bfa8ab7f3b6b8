"""Settings of a hub."""

from __future__ import annotations

from dataclasses import dataclass, field

from dimos_streams.hub.storage.rows import Retention
from dimos_streams.serving.server.timing import PING_S, SEND_TIMEOUT_S


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSettings:
    """Settings of a hub's process: how it serves, and what it keeps."""

    database: str = "sqlite:///hub.sqlite"
    host: str = "127.0.0.1"
    """Address to serve on. Anything but loopback needs a token."""
    port: int = 7790
    token: str | None = None
    """The token that operators' requests must carry. Robots have tokens of their own, always."""
    allowed_hosts: tuple[str, ...] = ()
    """Further names under which clients and robots may reach it."""
    connections: int = 768
    """Maximum number of connections at a time; each robot has three."""
    retention: Retention = field(default_factory=Retention)
    ping_s: float = PING_S
    send_timeout_s: float = SEND_TIMEOUT_S
