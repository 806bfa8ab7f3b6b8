"""Operators' orders to stop robots and to release them, by number, as a bridge tells them: whoever compares the
newest number with the one known before misses no order, not even one that was taken back at once."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from dimos_streams.common.invalid import first_problem
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.names import is_in

ORDERS: Final = "robot_orders"
"""The key of these in the state that a bridge reports of itself."""
SAID: Final = "said_stop"
"""The key of the number of the newest stop that an operator has said to an agent, in the state that it reports."""
NO_ORDER: Final = 0
"""The number that stands for no order at all."""

_ORDERS: TypeAdapter[dict[str, int]] = TypeAdapter(dict[str, int])
_log = LimitedLog(logging.getLogger(__name__))


def newest_order(orders: Mapping[str, int], namespace: str) -> int:
    """Return the number of the newest order that concerns a namespace, or what is in it; ``orders`` has one for each
    robot, and ``""`` is every robot."""
    return max(
        (number for robot, number in orders.items() if is_in(namespace, robot) or is_in(robot, namespace)),
        default=NO_ORDER,
    )


def reported_orders(state: Mapping[str, Any]) -> dict[str, int]:
    """The orders in a module's state; none if it reports none, or what can't be understood."""
    try:
        return _ORDERS.validate_python(state.get(ORDERS, {}))
    except ValidationError as error:
        _log.warning("a bridge's orders to robots can't be understood: %s", first_problem(error, "it"))
        return {}


def said_stop(state: Mapping[str, Any]) -> int:
    """The number of the newest stop in an agent's state; none if it reports none, or what is no number."""
    said = state.get(SAID, NO_ORDER)
    return said if isinstance(said, int) else NO_ORDER
