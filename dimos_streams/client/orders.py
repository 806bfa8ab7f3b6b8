"""Operators' orders over HTTP: a bridge's answer to an order that robots stand still, or may move again."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

Order = Literal["/robots/stop", "/robots/release", "/calls/cancel"]
ANSWER_S = 10.0
"""Timeout for an answer, in seconds: longer than a bridge waits for gates and for calls."""


class OrderReport(BaseModel):
    """The answer to an order. What else is in it is kept as it came."""

    model_config = ConfigDict(extra="allow", frozen=True)

    text: str
    confirmed: bool = True
    unsaved: str = ""

    @property
    def done(self) -> bool:
        """True if all of it has come true, and outlasts the bridge."""
        return self.confirmed and not self.unsaved
