"""Events as text for models and people."""

from __future__ import annotations

from typing import Any

from dimos_streams.agent.pictures import without_urls
from dimos_streams.tool_stream.event import Outcome, ToolEvent, json_text


def answer_text(event: ToolEvent) -> str:
    """The event that answers a call, as the result of the model's tool call."""
    if event.type == "close":
        # What a skill says of its own failure reaches the model word for word.
        known = event.outcome in (Outcome.COMPLETED, Outcome.FAILED)
        return _ending(event) if known else f"{event.outcome}: {_ending(event)}"
    return f"{_with_data(event)}\n(Call {event.call_id} goes on; what follows will be told.)"


def news_head(event: ToolEvent) -> str:
    """What news begin with, for people; a model is told where a text is from by the block around it."""
    if event.type == "gap":
        return "[gap] "
    return f"[{event.skill}, call {event.call_id}, {event.outcome or event.type}] "


def news_body(event: ToolEvent) -> str:
    """An event of a call that was answered before."""
    if event.type == "gap":
        return f"Some events are lost: {event.text}"
    return _ending(event) if event.type == "close" else _with_data(event)


def failed(event: ToolEvent) -> bool:
    """Whether a call ended otherwise than as it was meant to."""
    return event.outcome not in (None, Outcome.COMPLETED)


def _ending(event: ToolEvent) -> str:
    """The close's text and result; one of them where the text is but the (perhaps cut) form of the result."""
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
