"""Events that the bridge writes in a module's stead: ends of calls that their modules can't end, or not say again."""

from __future__ import annotations

from typing import Any

from dimos_streams import clock
from dimos_streams.bridge.calls.call_state import CallState
from dimos_streams.bridge.calls.ledger import Ledger
from dimos_streams.bus import Bus
from dimos_streams.tool_stream.event import EVENTS, EventType, Outcome, ToolEvent
from dimos_streams.tool_stream.wire import pack_event


def close_for_module(bus: Bus, ledger: Ledger, call: CallState, outcome: Outcome, text: str, **data: Any) -> None:
    """Close a call in its module's stead, with an ``open`` before if it had none; the bus hears it too."""
    events = []
    if call.last_seq == 0:
        asked = {"arguments": dict(call.arguments), "parent": call.parent, "resources": list(call.resources)}
        events.append(_event(call, 1, "open", call.skill, {**asked, "refused": True}))
    close = {"outcome": str(outcome), **{name: value for name, value in data.items() if value}}
    events.append(_event(call, call.last_seq + len(events) + 1, "close", text, close))
    ledger.enter(events)
    for event in events:
        bus.publish(EVENTS, pack_event(event))


def close_of(call: CallState) -> ToolEvent:
    """The close of a closed call; as it was, or as the journal's record of the call has it."""
    if call.last is not None:
        return call.last
    close = {"outcome": str(call.outcome), "result": call.result}
    return _event(call, call.last_seq, "close", call.text, close)


def _event(call: CallState, seq: int, type: EventType, text: str, data: dict[str, Any]) -> ToolEvent:
    return ToolEvent(
        utime=clock.utime(),
        call_id=call.call_id,
        seq=seq,
        type=type,
        module=call.module,
        skill=call.skill,
        caller=call.caller,
        text=text,
        data=data,
        instance=call.instance,
    )
