"""Decides whether an operator's order to an agent has come true in full, whichever way it was given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from dimos_streams.operator.agents import public_name
from dimos_streams.operator.messages.agent import ApprovalView
from dimos_streams.operator.messages.hold import HoldView, PauseReport
from dimos_streams.operator.messages.kept_report import UnkeptOrder, unkept_of

if TYPE_CHECKING:
    from dimos_streams.tool_stream.event import ToolEvent

T = TypeVar("T", bound=BaseModel)


class _Hold(HoldView):
    """The part that counts of the report of an order by which an agent holds its robot."""

    model_config = ConfigDict(extra="ignore")


class _Abort(_Hold):
    """The part of the report of an abort that no other report has."""

    reason: str
    missions: tuple[str, ...]


class _Undone(BaseModel):
    how: str


class _UndoResult(BaseModel):
    """The part that counts of the report of an undo."""

    asked: int
    undone: tuple[_Undone, ...]


_REPORTS: dict[str, type[BaseModel]] = {
    "pause": PauseReport,
    "abort": _Abort,
    "undo": _UndoResult,
    "decide": ApprovalView,
    # These have their text as result, unless they are not kept.
    **dict.fromkeys(("resume", "step", "forget", "set_skill", "set_model"), UnkeptOrder),
}


def has_come_true(order: str, result: Any) -> bool:
    """Return whether all of an order that an agent has carried out has come true, by the result of its call: its
    successor would know of it, each velocity gate holds the robot, each call is undone. What is no report says none
    of that."""
    if unkept_of(result):
        return False
    if order == "undo":
        report = _read(_UndoResult, result)
        return report is not None and all(call.how == "undone" for call in report.undone)
    if order in ("pause", "abort"):
        hold = _read(_Hold, result)
        return hold is not None and hold.confirmed
    return True


def is_done(closed: ToolEvent) -> bool:
    """Return whether a call has completed, and, if it was an order to an agent, all of it has come true.

    Modules that are no agents may have skills of such names. Their results are no reports, and are not judged.
    """
    if closed.outcome != "completed":
        return False
    result = closed.data.get("result")
    order = next((name for name in _REPORTS if closed.skill == public_name(closed.module, name)), None)
    return order is None or _read(_REPORTS[order], result) is None or has_come_true(order, result)


def _read(report: type[T], result: Any) -> T | None:
    """Return a result as the report that it should be, or None if it is no such report."""
    try:
        return report.model_validate(result)
    except ValidationError:
        return None
