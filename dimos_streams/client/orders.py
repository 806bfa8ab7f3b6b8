"""Operators' orders over HTTP: a bridge's answer to an order that robots stand still, or may move again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from dimos_streams.client.asking_again import IN_DOUBT, UNKNOWN

Order = Literal["/robots/stop", "/robots/release", "/calls/cancel"]
ANSWER_S = 30.0
"""Timeout for an answer, in seconds: longer than a bridge waits for gates and for calls, and than a hub for robots
that do not answer."""
_STANDS: Final = f"{UNKNOWN}: `dimos-streams status`, or `GET /robots` there, shows which robots are stopped"
ORDER_IN_DOUBT: Final[Mapping[Order, str]] = {
    "/robots/stop": _STANDS,
    "/robots/release": _STANDS,
    "/calls/cancel": IN_DOUBT,
}
"""What a person hears of each order whose answer was lost. Only a stop is given again by itself: meanwhile somebody
may have stopped what a release would let go, and begun what a cancel would end."""


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


class _NamedStop(BaseModel):
    utime: int


class _NamedStops(BaseModel):
    stops: tuple[_NamedStop, ...]


class RobotsAnswer(BaseModel):
    """The answer of a bridge to ``GET /robots``, as far as a release needs it."""

    stopped: _NamedStops


class OrdersAnswer(BaseModel):
    """The answer of a bridge to ``GET /robots``, as far as an agent needs it."""

    orders: dict[str, int]
