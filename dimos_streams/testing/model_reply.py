"""The answers of a scripted model server, faults included."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Chunk = Mapping[str, Any] | str

_call_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer of the server to one request."""

    chunks: tuple[Chunk, ...] = ()
    """The stream's events, in order: objects, or text that is sent as it is."""
    done: bool = True
    """True if the stream ends with ``[DONE]``."""
    pause_s: float = 0.0
    """Seconds of silence after each chunk."""
    delay_s: float = 0.0
    """Seconds of silence before the status line."""
    cut_after: int | None = None
    """The number of chunks after which the connection breaks."""
    silent_after: int | None = None
    """The number of chunks after which the server falls silent for ``silence_s``."""
    silence_s: float = math.inf
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    """The body, which is sent whole, instead of a stream."""

    @classmethod
    def say(cls, text: str, *, piece: int = 8, usage: tuple[int, int] | None = (10, 5)) -> Reply:
        """An answer of text, in pieces of ``piece`` characters. ``usage`` is tokens in and out."""
        pieces = [text[at : at + piece] for at in range(0, len(text), piece)]
        return cls(chunks=_stream([{"content": part} for part in pieces], "stop", usage))

    @classmethod
    def calls(
        cls,
        *calls: tuple[str, Mapping[str, Any] | str],
        text: str = "",
        piece: int | None = 8,
        usage: tuple[int, int] | None = (10, 5),
    ) -> Reply:
        """Tool calls: names, each with arguments as an object or as text that is sent as it is.

        Arguments come in pieces of ``piece`` characters; with ``piece=None`` each call is whole in one chunk.
        """
        deltas: list[dict[str, Any]] = [{"content": text}] if text else []
        for index, (name, arguments) in enumerate(calls):
            sent = arguments if isinstance(arguments, str) else json.dumps(arguments)
            whole, step = (len(sent), 1) if piece is None else (0, piece)
            head = {"index": index, "id": f"call_{next(_call_numbers)}", "type": "function"}
            deltas.append({"tool_calls": [{**head, "function": {"name": name, "arguments": sent[:whole]}}]})
            for at in range(whole, len(sent), step):
                part = {"arguments": sent[at : at + step]}
                deltas.append({"tool_calls": [{"index": index, "function": part}]})
        return cls(chunks=_stream(deltas, "tool_calls", usage))

    @classmethod
    def error(
        cls, status: int, message: str = "scripted failure", *, retry_after: float | str | None = None, code: str = ""
    ) -> Reply:
        """An error as OpenAI words it. ``retry_after`` is the header's value, a number of seconds or a date."""
        headers = {} if retry_after is None else {"retry-after": str(retry_after)}
        body = json.dumps({"error": {"message": message, "type": "error", "param": None, "code": code or None}})
        return cls(status=status, headers=headers, body=body)

    @classmethod
    def raw(cls, *chunks: Chunk) -> Reply:
        """A stream of just these chunks."""
        return cls(chunks=chunks)

    def but(self, **changes: Any) -> Reply:
        """Return a copy of this reply with some fields changed."""
        return dataclasses.replace(self, **changes)


def _stream(deltas: list[dict[str, Any]], finish: str, usage: tuple[int, int] | None) -> tuple[Chunk, ...]:
    chunks = [_chunk({"role": "assistant", "content": ""}), *map(_chunk, deltas), _chunk({}, finish)]
    if usage is not None:
        counts = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
        chunks.append({**_chunk({}), "choices": [], "usage": counts})
    return tuple(chunks)


def _chunk(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "scripted",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
