"""Events as text for models and people."""

from __future__ import annotations

from typing import Any

from dimos_streams.agent.context.images import without_urls
from dimos_streams.agent.policies.canonical import shown
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.agent.record.event_data.operators import AbortEnd
from dimos_streams.common.json.writing import json_text
from dimos_streams.operator.messages.agent import AgentEvent
from dimos_streams.tool_stream.event import Outcome, ToolEvent


def answer_text(event: ToolEvent) -> str:
    """The event that answers a call, as the result of the model's tool call."""
    if event.type == "close":
        # What a skill says of its own failure reaches the model word for word.
        known = event.outcome in (Outcome.COMPLETED, Outcome.FAILED)
        return _ending(event) if known else f"{event.outcome}: {_ending(event)}"
    return f"{_with_data(event)}\n(Call {event.call_id} goes on; what follows will be reported.)"


def update_head(event: ToolEvent) -> str:
    """The beginning of an update, for people; for a model the block around a text says where it is from."""
    if event.type == "gap":
        return "[gap] "
    return f"[{event.skill}, call {event.call_id}, {event.outcome or event.type}] "


def update_body(event: ToolEvent) -> str:
    """The text of an event of a call that was answered before."""
    if event.type == "gap":
        return f"Some events are lost: {event.text}"
    return _ending(event) if event.type == "close" else _with_data(event)


def own_text(event: AgentEvent) -> str:
    """A text for the model about something that the operator has had done; empty for other events of the agent."""
    if (undo := EventKind.UNDO.data_of(event)) and undo["phase"] == "end":
        call = f"{shown(undo['skill'], undo.get('arguments', {}))} (call {undo['call_id']})"
        did = "took a call back" if undo["how"] == "undone" else "wanted a call taken back"
        return f"The operator {did}. {call} {_UNDONE[undo['how']]}: {undo['text']}"
    if (abort := EventKind.ABORT.data_of(event)) and abort["phase"] == "end":
        return _aborted(abort) if event.missions or abort["cancelled"] else ""
    return ""


_UNDONE = {"undone": "is undone", "failed": "could not be undone", "impossible": "can't be undone"}


def _aborted(data: AbortEnd) -> str:
    """The text about an abort of everything; a line about calls is in it only if there were some."""
    ended, unfinished = data["cancelled"], data.get("unfinished", ())
    reason = f": {data['reason']}" if data["reason"] else ""
    lines = [f"The operator has aborted everything{reason}. Do not take it up again unless you are asked to."]
    if ended:
        lines.append(f"Calls that were ended: {', '.join(ended)}.")
    if unfinished:
        lines.append(f"Calls that may still run: {', '.join(unfinished)}.")
    return "\n".join(lines)


def failed(event: ToolEvent) -> bool:
    """Return whether a call ended otherwise than as it was meant to."""
    return event.outcome not in (None, Outcome.COMPLETED)


def _ending(event: ToolEvent) -> str:
    """The close's text and result, or only the result if the text is but the (perhaps cut) form of it."""
    result = event.data.get("result")
    if result is None:
        return event.text
    whole = result if isinstance(result, str) else json_text(result)
    if whole.startswith(event.text):
        return result if isinstance(result, str) else _json(result)
    return f"{event.text}\nresult: {_json(result)}"


def _with_data(event: ToolEvent) -> str:
    return f"{event.text}\ndata: {_json(dict(event.data))}" if event.data else event.text


def _json(value: Any) -> str:
    return json_text(without_urls(value))
