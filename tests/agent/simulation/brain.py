"""A model that asks for whatever comes into its head, by a seed."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections.abc import AsyncIterator, Callable
from typing import Any

from dimos_streams.agent.models.protocol import (
    Finish,
    ModelDelta,
    ModelError,
    ModelRequest,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
    UserMessage,
)

_SKILLS = ("go", "go", "go", "look", "watch", "then", "routine", "grab", "jump", "follow", "fail")
_LASTING = frozenset({"go", "follow", "grab", "watch", "then"})


class Mind:
    """What all models of a run share: its randomness, and the numbers of what they ask for."""

    def __init__(self, seed: int, is_calm: Callable[[], bool], open_calls: Callable[[], list[str]]) -> None:
        """``is_calm`` says that nothing more is to be asked for; ``open_calls`` are the agent's, by id."""
        self.random = random.Random(f"mind {seed}")
        self.is_calm, self.open_calls = is_calm, open_calls
        self.streams = 0
        self._numbers = itertools.count(1)

    def tag(self, sign: str = "t") -> str:
        """Return the tag of one more call."""
        return f"{sign}{next(self._numbers)}"


class Brain:
    """See ``Model``."""

    def __init__(self, mind: Mind) -> None:
        self._mind = mind

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta]:
        """See ``Model``."""
        mind, rng = self._mind, self._mind.random
        mind.streams += 1
        try:
            await asyncio.sleep(rng.choice((0.0, 0.05, 0.5, 2.0)))
            yield TokenUsage(input_tokens=10, output_tokens=1)
            dice = rng.random()
            if mind.is_calm() or not request.tools or dice < (0.15 if _is_spoken_to(request) else 0.45):
                if dice < 0.03 and not mind.is_calm():
                    raise ModelError("overloaded", retryable=rng.random() < 0.5)
                yield TextDelta("fine")
                yield Finish("stop")
                return
            names = {tool.name for tool in request.tools}
            for index in range(rng.choice((1, 1, 1, 2, 3))):
                name, arguments = self._call(names)
                yield ToolCallDelta(index=index, id=mind.tag("c"), name=name, arguments=json.dumps(arguments))
                await asyncio.sleep(rng.choice((0.0, 0.0, 0.1)))
            yield Finish("tool_calls")
        finally:
            mind.streams -= 1

    def _call(self, names: set[str]) -> tuple[str, dict[str, Any]]:
        mind, rng = self._mind, self._mind.random
        dice, running = rng.random(), mind.open_calls()
        if dice < 0.06 and "delegate" in names:
            handed = [rng.choice(running)] if running and rng.random() < 0.5 else []
            return "delegate", {"agent": "helper", "task": "see to it", "calls": handed}
        if dice < 0.10 and running and "cancel_call" in names:
            return "cancel_call", {"call_id": rng.choice(running)}
        if dice < 0.12 and "elicit" in names:
            return "elicit", {"question": "well?", "timeout_s": 5}
        skill = rng.choice(_SKILLS)
        arguments: dict[str, Any] = {"tag": mind.tag()}
        if skill in _LASTING and rng.random() < 0.7:
            arguments["seconds"] = rng.choice((0.1, 0.5, 2.0, 8.0))
        if skill in ("then", "routine"):
            arguments["skill"] = rng.choice(("go", "grab", "jump", "look", "follow"))
        return skill, arguments

    async def close(self) -> None:
        """See ``Model``."""


def _is_spoken_to(request: ModelRequest) -> bool:
    """Return whether an operator, or who delegates, has just spoken."""
    last = request.messages[-1]
    return isinstance(last, UserMessage) and last.event is None
