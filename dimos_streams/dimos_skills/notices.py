"""Messages that a dimos server sends unasked: those of tools that go on, and their ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from dimos_streams.common.json.reading import parse_json
from dimos_streams.common.readable.json_cut import cut_to

MAX_TEXT = 20_000
"""Maximum size of one message's text, in bytes; what is beyond is left out, and said to be."""
_PROGRESS, _MESSAGE, _STOPPED = "notifications/progress", "notifications/message", "dimos/tool_stopped"


@dataclass(frozen=True, slots=True)
class ToolNotice:
    """One message of a tool, or the notice that it has stopped."""

    kind: Literal["said", "stopped"]
    tool: str
    """The stream's name, by which dimos' own tools mean themselves."""
    token: str
    """The token of the call that it belongs to; empty where dimos does not say."""
    text: str = ""
    progress: float | None = None
    total: float | None = None


def parsed_notice(data: str) -> ToolNotice | None:
    """Return the notice in an event's data, or None if it is about something else. Raises ``ValueError`` for data
    that is not a message of MCP."""
    frame = parse_json(data)
    if not isinstance(frame, dict):
        raise ValueError(f"JSON of type {type(frame).__name__}, not an object")
    params = frame.get("params") or {}
    if not isinstance(params, dict):
        raise ValueError(f"its params are {params!r:.100}, not an object")
    method = frame.get("method")
    if method == _PROGRESS:
        meta = params.get("_meta")
        tool = meta.get("tool_name") if isinstance(meta, dict) else ""
        token = params.get("progressToken")
        if isinstance(token, bool) or not isinstance(token, str | int):
            raise ValueError(f"its progressToken is {token!r:.100}")
        return ToolNotice(
            "said",
            str(tool or ""),
            str(token),
            _text(params.get("message", "")),
            _number(params.get("progress")),
            _number(params.get("total")),
        )
    if method == _MESSAGE:
        return ToolNotice("said", _text(params.get("logger", "")), "", _text(params.get("data", "")))
    if method == _STOPPED:
        name = params.get("tool_name")
        if not isinstance(name, str):
            raise ValueError(f"its tool_name is {name!r:.100}")
        return ToolNotice("stopped", name, "")
    return None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"its text is {value!r:.100}")
    return cut_to(value, MAX_TEXT)


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
