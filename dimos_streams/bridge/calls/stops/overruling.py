"""Calls that were asked for before an operator's order to stop or to end calls, and that it keeps from beginning.

A call may wait for a lease, for the end of another call, or for an approval, and a lookout may begin another call
long after it was asked for. An order that ends calls frees what such a call waits for. Without a note it would begin
then.
"""

from __future__ import annotations

from dimos_streams.bridge.calls.ledger import Ledger
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.calls.stops.stop_state import is_of
from dimos_streams.errors import CallRejectedError
from dimos_streams.tool_stream.overtaken import OrderKind, overtaken


def overrule(call: CallState, kind: OrderKind, robot: str) -> None:
    """Note an order that was given for a robot, or for every one (``""``), while a call was open or waited."""
    if call.overruled.get(robot) != "cancel":
        call.overruled = {**call.overruled, robot: kind}


def overrule_all(ledger: Ledger, kind: OrderKind, robot: str) -> None:
    """Have what is open or waits begin nothing that an order is about; the journal keeps that of open calls."""
    ledger.ended_all += kind == "cancel"
    calls = [call for call in ledger.calls.open if call.journalled]
    for call in (*calls, *ledger.waiting.values()):
        overrule(call, kind, robot)
    ledger.save(*calls)


def check_overruled(call: CallState, module: str, *, may_move: bool) -> None:
    """Raise ``CallRejectedError`` for a call of a module if an order since it was asked for keeps it from beginning:
    the end of all calls does so with everything, the others with what may move the robot."""
    for robot, kind in call.overruled.items():
        if is_of(module, robot) and (kind == "cancel" or may_move):
            raise CallRejectedError(overtaken(call.skill, kind))
