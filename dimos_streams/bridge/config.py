"""The settings of a bridge."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, SecretStr, field_validator

from dimos_streams.bridge.calls.mcp_approval import McpApproval
from dimos_streams.bridge.fleet.settings import HubAddress
from dimos_streams.common.process.loopback import BRIDGE_HOST, BRIDGE_PORT
from dimos_streams.common.secrets import checked
from dimos_streams.errors import UserError
from dimos_streams.journal.limits import JournalLimits
from dimos_streams.module import ModuleConfig
from dimos_streams.serving.server.timing import PING_S, SEND_TIMEOUT_S

_LIMITS = JournalLimits()


class BridgeConfig(ModuleConfig):
    """Settings of the bridge."""

    host: str = BRIDGE_HOST
    """Address to serve on. Anything but loopback needs a token."""
    port: int = Field(default=BRIDGE_PORT, ge=0, le=65535)
    """Port to serve on; 0 takes any free one."""
    http: bool | None = None
    """True to serve HTTP, False not to; by default it is served except in virtual time."""
    allowed_hosts: tuple[str, ...] = ()
    """Further names under which clients may reach the server."""
    token: SecretStr | None = None
    """The token that every request must carry; by default the run's token, if it has one."""
    ping_s: float = Field(default=PING_S, gt=0)
    """Time without events, in seconds, after which an event stream sends a comment."""
    send_timeout_s: float = Field(default=SEND_TIMEOUT_S, gt=0)
    """Time, in seconds, after which a client that takes nothing is cut off."""
    mcp_approval: McpApproval = "refuse"
    """The treatment of MCP clients' calls of skills with ``approval="ask"``: ``refuse``, since nobody asks an
    operator for them, or ``client``, where the client asks its own user."""
    journal: Path | None = None
    """The journal's file; by default ``journal.sqlite`` in the run's directory, in memory if there is none."""
    journal_events: int = Field(default=_LIMITS.events, ge=1000)
    """Maximum number of events that the journal keeps; the oldest are dropped first."""
    journal_age_s: float = Field(default=_LIMITS.age_s, gt=0)
    """Maximum age of the events that the journal keeps, in seconds."""
    journal_bytes: int = Field(default=_LIMITS.bytes, ge=1024 * 1024)
    """Maximum size of the journal, in bytes."""
    hub: HubAddress | None = None
    """The fleet hub that the journal is shipped to and that may command the robot: its URL, or ``url``, ``robot``,
    ``token_file`` and more. In virtual time nothing is shipped."""

    @property
    def journal_limits(self) -> JournalLimits:
        """The bounds of the journal."""
        return JournalLimits(events=self.journal_events, age_s=self.journal_age_s, bytes=self.journal_bytes)

    @field_validator("token")
    @classmethod
    def _can_be_sent(cls, token: SecretStr | None) -> SecretStr | None:
        if token is not None:
            try:
                checked(token.get_secret_value(), "it")
            except UserError as error:
                raise ValueError(str(error)) from error
        return token
