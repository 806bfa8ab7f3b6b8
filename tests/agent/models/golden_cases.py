"""Streams of known servers and what they mean; each file of golden/ names its sources."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dimos_streams.agent.models.protocol import (
    Finish,
    ModelDelta,
    ReasoningDelta,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
)
from dimos_streams.agent.models.tool_call_assembler import ToolCallAssembler

OFFERED = ("look_out_for", "move", "observe", "stop", "stop_following")
CASES = {
    path.stem: json.loads(path.read_text()) for path in sorted((Path(__file__).parent / "golden").glob("*.json"))
}


def put_together(deltas: Iterable[ModelDelta]) -> dict[str, Any]:
    """An answer in the form of the files, made-up ids as None."""
    assembler = ToolCallAssembler(OFFERED)
    text, reasoning, finish, usage = "", "", None, None
    for delta in deltas:
        match delta:
            case TextDelta():
                text += delta.text
            case ReasoningDelta():
                reasoning += delta.text
            case ToolCallDelta():
                assembler.add(delta)
            case TokenUsage():
                usage = [delta.input_tokens, delta.output_tokens, delta.cached_tokens]
            case Finish():
                finish = finish or delta.reason
    numbers = itertools.count(1)
    calls = assembler.finish(complete=finish is not None, new_id=lambda: f"made_{next(numbers)}")
    assert len({call.call.id for call in calls}) == len(calls)
    assembled = [
        {
            "id": None if call.call.id.startswith("made_") else call.call.id,
            "name": call.call.name,
            "arguments": call.arguments,
        }
        | ({"damage": call.damage} if call.damage else {})
        for call in calls
    ]
    return {"text": text, "reasoning": reasoning, "finish": finish, "usage": usage, "calls": assembled}
