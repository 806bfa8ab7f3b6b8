"""The treatment of event streams' clients."""

from __future__ import annotations

from pydantic import Field

from dimos_streams.common.schemas.frozen_model import FrozenModel


class StreamOptions(FrozenModel):
    """The treatment of event streams' clients."""

    ping_s: float = Field(default=10.0, gt=0)
    """Pause without events, in seconds, after which a comment is sent."""
    send_timeout_s: float = Field(default=20.0, gt=0)
    """Time, in seconds, after which a client that takes nothing is cut off."""
