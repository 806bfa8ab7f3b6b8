"""The treatment of event streams' clients."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class StreamOptions(BaseModel):
    """The treatment of event streams' clients."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ping_s: float = Field(default=10.0, gt=0)
    """Pause without events, in seconds, after which a comment is sent."""
    send_timeout_s: float = Field(default=20.0, gt=0)
    """Time, in seconds, after which a client that takes nothing is cut off."""
