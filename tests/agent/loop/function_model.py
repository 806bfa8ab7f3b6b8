"""A model that is a function of the request, and the answers that it gives."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from dimos_streams.agent.models.protocol import Finish, ModelDelta, ModelRequest, TextDelta, TokenUsage, ToolCallDelta

Answer = list[ModelDelta]


class FunctionModel:
    """A model that is a function of the request; ``delay_s`` passes before each delta."""

    def __init__(self, answer: Callable[[ModelRequest], Answer], delay_s: Callable[[], float] = lambda: 0.0) -> None:
        self._answer = answer
        self._delay_s = delay_s
        self.requests: list[ModelRequest] = []
        self.streams = 0
        self.keep = True

    def answer_with(self, answer: Callable[[ModelRequest], Answer]) -> None:
        self._answer = answer

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta]:
        if self.keep:
            self.requests.append(request)
        self.streams += 1
        try:
            for delta in self._answer(request):
                delay_s = self._delay_s()
                if delay_s:
                    await asyncio.sleep(delay_s)
                yield delta
        finally:
            self.streams -= 1

    async def close(self) -> None:
        pass


def says(text: str) -> Answer:
    return [TextDelta(text), TokenUsage(10, 1), Finish("stop")]


def asks(*calls: tuple[str, dict[str, Any]]) -> Answer:
    deltas: Answer = [
        ToolCallDelta(index=i, id=f"t{i}", name=name, arguments=json.dumps(arguments))
        for i, (name, arguments) in enumerate(calls)
    ]
    return [*deltas, TokenUsage(10, 5), Finish("tool_calls")]


def in_turn(*answers: Answer) -> Callable[[ModelRequest], Answer]:
    """One answer after the other, then silence."""
    left = iter(answers)
    return lambda request: next(left, says(""))
