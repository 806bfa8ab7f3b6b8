"""Whether an operator's order to an agent has come true in full, whichever way it was given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dimos_streams.operator.agents import public_name
from dimos_streams.operator.messages.hold import HoldView
from dimos_streams.operator.messages.kept import unkept_of

if TYPE_CHECKING:
    from dimos_streams.tool_stream.event import ToolEvent

_KEPT = ("resume", "step", "forget", "decide", "set_skill", "set_model")
_REPORTED = {"pause": "held", "abort": "held", "undo": "undone"}
"""The orders that come true in part, too, with the key of their results that says so."""


def has_come_true(order: str, result: Any) -> bool:
    """Return whether all of an order that an agent has carried out has come true, by the result of its call: its
    successor would know of it, each velocity gate holds the robot, each call is undone.

    Raises pydantic's ``ValidationError`` for the result of a pause or an abort that is no report of one.
    """
    if unkept_of(result):
        return False
    if order == "undo":
        return all(call["how"] == "undone" for call in result["undone"])
    return _REPORTED.get(order) != "held" or HoldView.of_result(result).confirmed


def is_done(closed: ToolEvent) -> bool:
    """Return whether a call has completed, and, if it was an order to an agent, all of it has come true.

    Modules that are no agents may have skills of such names. Their results are no reports, and are not judged.
    """
    if closed.outcome != "completed":
        return False
    result = closed.data.get("result")
    order = next((name for name in (*_KEPT, *_REPORTED) if closed.skill == public_name(closed.module, name)), None)
    if order is None or not isinstance(result, Mapping) or _REPORTED.get(order, "unkept") not in result:
        return True
    return has_come_true(order, result)
