"""A model that plays a file of turns, for tests and demonstrations.

The file is YAML (or JSON) with one key, ``turns``; each request takes the next turn. All keys of a turn are optional:

    turns:
      - expect: "red"             # must occur in the newest message that is not a system message, or ModelError
        text: ["Looking ", "…"]   # the answer's text, one string or its pieces
        calls:                    # tool calls, each sent as one piece
          - skill: look_out_for
            arguments: {descriptions: ["person in red"]}   # an object, or a string that is sent as it is
            id: call_7            # default: call_N, counted over the script
        deltas:                   # tool call deltas as they are, after the calls: index, id, name, arguments
          - {index: 0, id: a, name: mo}
          - {index: 0, name: ve, arguments: "{}"}
        usage: {input_tokens: 10, output_tokens: 3}
        finish: length            # default: tool_calls or stop; null cuts the stream here
        error: "overloaded"       # raise ModelError with this text, after the rest was sent

A request after the last turn gets an empty answer whose finish reason is ``script_ended``.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dimos_streams.agent.models.base import (
    Finish,
    ModelDelta,
    ModelError,
    ModelRequest,
    SystemMessage,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from dimos_streams.errors import UserError

SCRIPT_ENDED = "script_ended"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ScriptedCall(_Part):
    """A whole tool call."""

    skill: str
    arguments: dict[str, Any] | str = Field(default_factory=dict)
    id: str | None = None


class ScriptedDelta(_Part):
    """A ``ToolCallDelta`` as it is."""

    index: int | None = None
    id: str | None = None
    name: str = ""
    arguments: str = ""


class ScriptedUsage(_Part):
    """See ``Usage``."""

    input_tokens: int
    output_tokens: int


class ScriptedTurn(_Part):
    """One answer; the module's text describes the keys."""

    expect: str | None = None
    text: str | tuple[str, ...] = ()
    calls: tuple[ScriptedCall, ...] = ()
    deltas: tuple[ScriptedDelta, ...] = ()
    usage: ScriptedUsage | None = None
    finish: str | None = "default"
    error: str | None = None


class Script(_Part):
    """A whole file."""

    turns: tuple[ScriptedTurn, ...]


def load_script(path: str | Path) -> Script:
    """Read a script. Raises ``UserError`` that names the file and what is wrong with it."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return Script.model_validate(YAML(typ="safe", pure=True).load(Path(path)))
    except OSError as error:
        raise UserError(f"model script {str(path)!r}: {error.strerror}") from error
    except (YAMLError, UnicodeError) as error:
        raise UserError(f"model script {str(path)!r} is not YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise UserError(f"model script {str(path)!r}: {where}: {first['msg']} (given: {first['input']!r})") from error


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
        self._check(turn, request, number)
        for piece in (turn.text,) if isinstance(turn.text, str) else turn.text:
            yield TextDelta(piece)
        for index, call in enumerate(turn.calls):
            yield self._delta(index, call)
        for delta in turn.deltas:
            yield ToolCallDelta(**delta.model_dump())
        if turn.usage is not None:
            yield Usage(turn.usage.input_tokens, turn.usage.output_tokens)
        if turn.error is not None:
            raise ModelError(f"{self._name}: {turn.error}")
        if turn.finish == "default":
            yield Finish("tool_calls" if turn.calls or turn.deltas else "stop")
        elif turn.finish is not None:
            yield Finish(turn.finish)

    def _check(self, turn: ScriptedTurn, request: ModelRequest, number: int) -> None:
        if turn.expect is None:
            return
        texts = [message.text for message in request.messages if not isinstance(message, SystemMessage)]
        newest = texts[-1] if texts else ""
        if turn.expect not in newest:
            raise ModelError(f"{self._name}: turn {number + 1} expects {turn.expect!r}, the message is {newest!r}")

    def _delta(self, index: int, call: ScriptedCall) -> ToolCallDelta:
        arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
        call_id = call.id or f"call_{self._next_call}"
        self._next_call += 1
        return ToolCallDelta(index=index, id=call_id, name=call.skill, arguments=arguments)
