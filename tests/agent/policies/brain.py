"""A model that a test writes in Python."""

from __future__ import annotations

import inspect
import itertools
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from dimos_streams.agent.models.protocol import (
    Finish,
    ModelDelta,
    ModelRequest,
    SystemMessage,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
)

Answer = str | list[tuple[str, dict[str, Any]]] | Callable[[ModelRequest], Any]
"""An answer of a model: a text, calls, or what a function makes of the request (awaited if need be)."""


class Brain:
    """A model that a test writes in Python: answers by system prompt, one after the other; then it says nothing."""

    def __init__(self, *answers: Answer, **others: Sequence[Answer]) -> None:
        """``answers`` are of the agent, ``others`` of sub-agents, by their prompts."""
        self.requests: list[ModelRequest] = []
        self._answers = {name: list(own) for name, own in others.items()}
        self._main = list(answers)
        self._numbers = itertools.count(1)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta]:
        """See ``Model``."""
        self.requests.append(request)
        first = request.messages[0]
        prompt = first.text if isinstance(first, SystemMessage) else ""
        answers = self._answers.get(prompt, self._main)
        answer: Any = answers.pop(0) if answers else ""
        if callable(answer):
            answer = answer(request)
            answer = await answer if inspect.isawaitable(answer) else answer
        yield TokenUsage(input_tokens=10, output_tokens=1)
        if isinstance(answer, str):
            yield TextDelta(answer)
            yield Finish("stop")
            return
        for index, (name, arguments) in enumerate(answer):
            id = f"t{next(self._numbers)}"
            yield ToolCallDelta(index=index, id=id, name=name, arguments=json.dumps(arguments))
        yield Finish("tool_calls")

    async def close(self) -> None:
        """See ``Model``."""

    def offered(self, number: int = -1) -> set[str]:
        """Names of the tools of a request."""
        return {tool.name for tool in self.requests[number].tools}
