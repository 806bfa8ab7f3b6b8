"""Events that the bridge writes in a module's stead: the closes of calls whose modules are gone, or have forgotten
them.

Each names the instance of a module that writes it, because receivers believe no other. That is the instance that runs
the call. A call that none runs is closed in the name of the instance whose skill asked for it, which its receivers
believe, too. So is a call whose close is repeated, since receivers may have forgotten the instance that ran it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dimos_streams.bridge.calls.ledger import Ledger
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bus import Bus
from dimos_streams.common.secrets import redacted, redacted_data
from dimos_streams.errors import ConflictError
from dimos_streams.tool_stream.event import EventType, Outcome, ToolEvent
from dimos_streams.tool_stream.protocol.channels import EVENTS
from dimos_streams.tool_stream.wire.packing import pack_event


def close_for_module(bus: Bus, ledger: Ledger, call: CallState, outcome: Outcome, text: str, **data: Any) -> None:
    """Close a call in its module's stead, with an ``open`` before if it had none; the bus hears it too."""
    events = []
    if call.last_seq == 0:
        asked = {"arguments": dict(call.arguments), "parent": call.parent, "resources": list(call.resources)}
        # One that is lost may run all the same: its module may hear what it can not answer.
        events.append(_event(ledger, call, 1, "open", call.skill, {**asked, "refused": outcome is Outcome.REJECTED}))
    close = {"outcome": str(outcome), **{name: value for name, value in data.items() if value}}
    events.append(_event(ledger, call, call.last_seq + len(events) + 1, "close", text, close))
    ledger.enter(events)
    for event in events:
        bus.publish(EVENTS, pack_event(event))


def conflict_of(call: CallState | None) -> ConflictError | None:
    """The conflict with which a call has failed; None if it has not, or before this bridge was started."""
    if call is None or call.last is None or call.last.data.get("error") != ConflictError.__name__:
        return None
    return ConflictError(call.text, result=call.result)


def close_again(bus: Bus, ledger: Ledger, call: CallState) -> None:
    """Repeat to whoever asked for a call how it ended: with its close, or as the journal's record has it."""
    event = call.last
    if event is None:
        close = {"outcome": str(call.outcome), "result": call.result}
        event = _event(ledger, call, call.last_seq, "close", call.text, close)
    bus.publish(EVENTS, pack_event(replace(event, instance=_of_who_asks(ledger, call) or event.instance)))


def _of_who_asks(ledger: Ledger, call: CallState) -> str:
    asking = ledger.calls.get(call.parent)
    return "" if asking is None else asking.instance


def _event(ledger: Ledger, call: CallState, seq: int, type: EventType, text: str, data: dict[str, Any]) -> ToolEvent:
    event = call.event(seq, type, redacted(text), redacted_data(data))
    return event if event.instance else replace(event, instance=_of_who_asks(ledger, call))
