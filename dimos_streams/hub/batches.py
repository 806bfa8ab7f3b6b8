"""Batches of robots as they are to be stored."""

from __future__ import annotations

from dimos_streams.common.json.depth import is_deeper
from dimos_streams.common.json.writing import json_bytes, json_text
from dimos_streams.common.names import NAME_RULE, fault_of_names, is_name
from dimos_streams.errors import DimosStreamsError
from dimos_streams.fleet.batches import Batch, ShippedEvent, ShippedGap
from dimos_streams.hub.storage.rows import BatchEntry, RobotBatch
from dimos_streams.tool_stream.event import SERVED_FIELDS, ToolEvent
from dimos_streams.tool_stream.protocol.bounds import MAX_DATA_DEPTH, MAX_EVENT
from dimos_streams.tool_stream.protocol.call_ids import CALL_ID_RULE, is_call_id

_SHIPPED_FIELDS = SERVED_FIELDS.keys() - {"robot"}
_SHOWN = 60
"""Maximum length of what is no name in the gap that takes its event's place, in characters."""


class NoEventError(DimosStreamsError):
    """Raised if what stands at an offset is no event."""

    def __init__(self, offset: int, why: str) -> None:
        self.offset = offset
        super().__init__(f"at offset {offset}: {why}")


def robot_batch(robot: str, batch: Batch) -> RobotBatch:
    """Return a robot's batch as it is to be stored, each event checked. Raises ``NoEventError``.

    A gap takes the place of an event in a name that nobody can have, or that no bus carries: a robot may have any
    number of those, and one that is refused holds up what comes behind it.
    """
    entries = (_gap(each) if isinstance(each, ShippedGap) else _event(each) for each in batch.entries)
    return RobotBatch(robot, batch.journal, tuple(entries))


def _event(shipped: ShippedEvent) -> BatchEntry:
    fields = shipped.event
    if unknown := sorted(fields.keys() - _SHIPPED_FIELDS):
        raise NoEventError(shipped.offset, f"an event has no {unknown[0][:50]!r}")
    try:
        event = ToolEvent.from_dict(fields)
    except ValueError as error:
        raise NoEventError(shipped.offset, str(error)[:500]) from error
    if not is_call_id(event.call_id):
        raise NoEventError(shipped.offset, f"call_id {event.call_id[:50]!r} can be no call's; {CALL_ID_RULE}")
    if fault := fault_of_names((event.module, event.skill, event.caller)):
        raise NoEventError(shipped.offset, fault)
    if (nobody := next(filter(_is_nobodys, (event.module, event.skill, event.caller)), None)) is not None:
        return _left_out(shipped, f"a name in it is {ascii(nobody)[:_SHOWN]}; {NAME_RULE}")
    if event.type == "gap" and not _is_of_call(event):
        raise NoEventError(
            shipped.offset,
            f"a gap of seq {event.seq} with data {str(dict(event.data))[:100]} is none of a call; valid: from_seq and"
            " to_seq in its data, to_seq the same as its seq",
        )
    body = json_text(fields)
    if (size := len(event.text.encode(errors="replace")) + len(json_bytes(event.data))) > MAX_EVENT:
        return _left_out(shipped, f"its text and data have {size} bytes; {MAX_EVENT} are possible")
    if is_deeper(body, MAX_DATA_DEPTH + 1):
        return _left_out(shipped, f"its data is nested more than {MAX_DATA_DEPTH} deep")
    return BatchEntry(shipped.offset, shipped.offset, event.call_id, event.caller, event.type, body, fields)


def _left_out(shipped: ShippedEvent, why: str) -> BatchEntry:
    text = f"an event is left out: {why}"
    return _gap(ShippedGap(offset=shipped.offset, to_offset=shipped.offset, gap=text))


def _is_nobodys(name: str) -> bool:
    """Return whether a name in an event can be nobody's; the empty one is nobody's on purpose."""
    return name != "" and not is_name(name)


def _is_of_call(gap: ToolEvent) -> bool:
    """Return whether a gap stands for events of its call, as a bridge journals it. Gaps of offsets are for readers,
    and made where they read."""
    first, last = gap.data.get("from_seq"), gap.data.get("to_seq")
    return type(first) is type(last) is int and 1 <= first <= last == gap.seq


def _gap(shipped: ShippedGap) -> BatchEntry:
    data = {"from_offset": shipped.offset, "to_offset": shipped.to_offset}
    event = ToolEvent(
        utime=0, call_id="", seq=0, type="gap", module="", skill="", caller="", text=shipped.gap, data=data
    )
    fields = event.to_dict()
    return BatchEntry(shipped.offset, shipped.to_offset, "", "", "gap", json_text(fields), fields)
