"""Events of tool streams as log lines, and as calls whose progress can be plotted."""

from __future__ import annotations

from typing import Any

from dimos_streams.common.json.reading import parse_json
from dimos_streams.common.names import namespace_of
from dimos_streams.common.printable import printable_lines
from dimos_streams.foxglove.conversion.form import TopicContext, Value, timestamp
from dimos_streams.messages.dimos_streams import ToolStreamEvent
from dimos_streams.operator.known_names import MONITOR

_INFO, _WARNING, _ERROR = 2, 3, 4


def log_line(event: ToolStreamEvent, context: TopicContext) -> Value | None:
    """An event as a line of a log; none of the monitor's own calls."""
    if event.caller == MONITOR:
        return None
    return {
        "timestamp": timestamp(event.utime),
        "level": _level(event),
        "message": printable_lines(f"{event.type}: {event.text}"),
        "name": f"{event.skill} [{event.call_id}]",
        "file": event.module,
        "line": event.seq,
    }


def call_of(event: ToolStreamEvent, context: TopicContext) -> Value | None:
    """The call of an event as it is then; none for an event that changes nothing, or of the monitor's own calls."""
    if event.caller == MONITOR:
        return None
    data = _data_of(event)
    call = context.calls.after(event, data)
    if call is None:
        return None
    return {
        "timestamp": timestamp(event.utime),
        "call_id": event.call_id,
        "skill": event.skill,
        "module": event.module,
        "robot": namespace_of(event.module),
        "caller": event.caller,
        "parent": call.parent,
        "state": "closed" if event.type == "close" else "open",
        "outcome": str(data.get("outcome", "")) if event.type == "close" else "",
        "text": event.text,
        "seconds": 0.0 if call.began_utime is None else max(0.0, (event.utime - call.began_utime) / 1e6),
        "arguments": dict(call.arguments),
        "progress": dict(call.progress),
    }


def _level(event: ToolStreamEvent) -> int:
    if event.type != "close":
        return _INFO
    return {"completed": _INFO, "cancelled": _WARNING}.get(str(_data_of(event).get("outcome")), _ERROR)


def _data_of(event: ToolStreamEvent) -> dict[str, Any]:
    try:
        data = parse_json(event.data_json) if event.data_json else {}
    except ValueError:
        data = None
    return data if isinstance(data, dict) else {}
