"""A model that plays a file of turns, for tests and demonstrations.

The file is YAML (or JSON) with one key, ``turns``; each request takes the next turn. All keys of a turn are optional:

    turns:
      - expect: "red"             # must occur in the newest message that is not a system message, or ModelError
        expect_tools: [move]      # must be offered, or ModelError
        expect_images: 1          # so many must have come with the messages since the last answer, or ModelError
        delay_s: 2                # silence before the answer
        pause_s: 0.1              # and after each of its pieces
        reasoning: "Red? Hm."     # what the model thinks before, one string or its pieces
        text: ["Looking ", "…"]   # the answer's text, one string or its pieces
        calls:                    # tool calls, each sent as one piece
          - skill: look_out_for
            arguments: {descriptions: ["person in red"]}   # an object, or a string that is sent as it is
            id: call_7            # default: call_N, counted over the script
        deltas:                   # tool call deltas as they are, after the calls: index, id, name, arguments
          - {index: 0, id: a, name: mo}
          - {index: 0, name: ve, arguments: "{}"}
        usage: {input_tokens: 10, output_tokens: 3, cached_tokens: 8}
        finish: length            # default: tool_calls or stop; null cuts the stream here
        error: "overloaded"       # raise ModelError with this text, after the rest was sent; or more than a text:
        # error: {text: "overloaded", retryable: true, retry_after_s: 5, status: 503}

A request after the last turn gets an empty answer whose finish reason is ``script_ended``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from dimos_streams.agent.models.protocol import (
    AssistantMessage,
    Finish,
    ModelDelta,
    ModelError,
    ModelRequest,
    ReasoningDelta,
    SystemMessage,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
)
from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.documents.document import read_document
from dimos_streams.documents.validation import validated

SCRIPT_ENDED = "script_ended"


class ScriptedCall(FrozenModel):
    """A whole tool call."""

    skill: str
    arguments: dict[str, Any] | str = Field(default_factory=dict)
    id: str | None = None


class ScriptedDelta(FrozenModel):
    """A ``ToolCallDelta`` as it is."""

    index: int | None = None
    id: str | None = None
    name: str = ""
    arguments: str = ""


class ScriptedUsage(FrozenModel):
    """See ``TokenUsage``."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0


class ScriptedError(FrozenModel):
    """See ``ModelError``."""

    text: str
    retryable: bool = False
    retry_after_s: float | None = None
    status: int | None = None


class ScriptedTurn(FrozenModel):
    """One answer; the module's text describes the keys."""

    expect: str | None = None
    expect_tools: tuple[str, ...] = ()
    expect_images: int | None = None
    delay_s: float = Field(0.0, ge=0)
    pause_s: float = Field(0.0, ge=0)
    reasoning: str | tuple[str, ...] = ()
    text: str | tuple[str, ...] = ()
    calls: tuple[ScriptedCall, ...] = ()
    deltas: tuple[ScriptedDelta, ...] = ()
    usage: ScriptedUsage | None = None
    finish: str | None = "default"
    error: str | ScriptedError | None = None


class Script(FrozenModel):
    """A whole file."""

    turns: tuple[ScriptedTurn, ...]


def load_script(path: Path) -> Script:
    """Read a script. Raises ``UserError``, which names the file, and the line of each thing that is wrong in it."""
    return validated(read_document(path, "model script"), Script, _called, shown=_counted)


def _called(path: Sequence[str | int]) -> str:
    """A part of the file in words."""
    return str(_counted(path)[0]) if path[1:] else "the model script"


def _counted(path: Sequence[str | int]) -> Sequence[str | int]:
    """A path whose turns are counted as people count."""
    match path:
        case ["turns", int(index), *rest]:
            return (f"turn {index + 1}", *rest)
    return path


class ScriptedModel:
    """Plays a script, one turn per request."""

    def __init__(self, script: Script, *, name: str = "scripted") -> None:
        self._script = script
        self._name = name
        self._next_turn = 0
        self._next_call = 1

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta]:
        """See ``Model``."""
        number = self._next_turn
        if number >= len(self._script.turns):
            yield Finish(SCRIPT_ENDED)
            return
        self._next_turn += 1
        turn = self._script.turns[number]
        if (why := _unexpected(turn, request)) is not None:
            raise ModelError(f"{self._name}: turn {number + 1} expects {why}")
        await asyncio.sleep(turn.delay_s)
        for delta in self._deltas(turn):
            yield delta
            await asyncio.sleep(turn.pause_s)
        if turn.error is not None:
            error = turn.error if isinstance(turn.error, ScriptedError) else ScriptedError(text=turn.error)
            raise ModelError(f"{self._name}: {error.text}", **error.model_dump(exclude={"text"}))
        if turn.finish == "default":
            yield Finish("tool_calls" if turn.calls or turn.deltas else "stop")
        elif turn.finish is not None:
            yield Finish(turn.finish)

    async def close(self) -> None:
        """See ``Model``."""

    def _deltas(self, turn: ScriptedTurn) -> Iterator[ModelDelta]:
        for piece in _pieces(turn.reasoning):
            yield ReasoningDelta(piece)
        for piece in _pieces(turn.text):
            yield TextDelta(piece)
        for index, call in enumerate(turn.calls):
            yield self._call(index, call)
        for delta in turn.deltas:
            yield ToolCallDelta(**delta.model_dump())
        if turn.usage is not None:
            yield TokenUsage(**turn.usage.model_dump())

    def _call(self, index: int, call: ScriptedCall) -> ToolCallDelta:
        arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
        call_id = call.id or f"call_{self._next_call}"
        self._next_call += 1
        return ToolCallDelta(index=index, id=call_id, name=call.skill, arguments=arguments)


def _pieces(text: str | tuple[str, ...]) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else text


def _unexpected(turn: ScriptedTurn, request: ModelRequest) -> str | None:
    """The expectation of a turn that the request does not meet, or None if it meets all."""
    heard = [message for message in request.messages if not isinstance(message, SystemMessage)]
    newest = heard[-1].text if heard else ""
    if turn.expect is not None and turn.expect not in newest:
        return f"{turn.expect!r}, the message is {newest!r}"
    offered = [tool.name for tool in request.tools]
    missing = [name for name in turn.expect_tools if name not in offered]
    if missing:
        return f"the tools {missing}, offered are {offered}"
    images = 0
    for message in reversed(heard):
        if isinstance(message, AssistantMessage):
            break
        images += len(message.images)
    if turn.expect_images is not None and turn.expect_images != images:
        return f"{turn.expect_images} images, there are {images}"
    return None
