"""Operators' orders that end calls, as they concern those that have not begun by then.

A call may wait for a lease, for the end of another one, or for an approval; a lookout may begin another call long
after it was asked for. The order that ends a call is just what lets such a one begin, and nobody means it to.
"""

from __future__ import annotations

from typing import Literal

from dimos_streams.bridge.calls.authority import by_model
from dimos_streams.bridge.calls.call_state import CallState
from dimos_streams.bridge.calls.stops.stop_state import is_of
from dimos_streams.errors import CallRejectedError

OrderKind = Literal["stop", "cancel", "cancel for models"]
"""``stop`` is about motions, ``cancel`` about all calls, the last one about those that models ask for."""
_MAX_KEPT = 500
_SAID = {
    "stop": "an operator has stopped the robot since it was asked for; what is still wanted is to be asked for anew",
    "cancel": "an operator has ended all calls since it was asked for; what is still wanted is to be asked for anew",
    "cancel for models": "all calls were ended since it was asked for",
}


class OrderLog:
    """Numbers the orders, and keeps the newest of each kind for each robot."""

    def __init__(self) -> None:
        self.newest = 0
        """The number of the newest order."""
        self._orders: dict[tuple[OrderKind, str], int] = {}

    def note(self, kind: OrderKind, robot: str) -> None:
        """Note an order for a robot, or for every one."""
        self.newest += 1
        self._orders.pop((kind, robot), None)
        self._orders[kind, robot] = self.newest
        if len(self._orders) > _MAX_KEPT:
            del self._orders[next(iter(self._orders))]

    def check(self, call: CallState, module: str, *, may_move: bool) -> None:
        """Raise ``CallRejectedError`` for a call of a module that was asked for before an order that ends it."""
        for (kind, robot), number in self._orders.items():
            if number <= call.asked_after or not is_of(module, robot):
                continue
            if kind == "cancel" or (kind == "stop" and may_move) or (kind == "cancel for models" and by_model(call)):
                raise CallRejectedError(f"{call.skill!r} does not begin: {_SAID[kind]}")
