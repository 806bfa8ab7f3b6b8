"""The parts that the tests of policies share."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from dimos_streams.agent.models.protocol import (
    Finish,
    ModelDelta,
    ModelRequest,
    SystemMessage,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
)
from dimos_streams.agent.policies.gates.base import CallRequest
from dimos_streams.errors import SkillError
from dimos_streams.module import Module
from dimos_streams.skill import Call, skill
from dimos_streams.tool_stream.gateway import OfferedSkill
from tests.agent.stage import NoConfig, Stage, stage
from tests.helpers import until


def offered(name: str = "move", *, parameters: Mapping[str, Any] | None = None, **policy: Any) -> OfferedSkill:
    """A skill as a bridge lists it; any arguments fit unless ``parameters`` says otherwise."""
    schema = {"type": "object", "properties": {}} if parameters is None else dict(parameters)
    return OfferedSkill(name=name, description="", parameters=schema, module="m", available=True, **policy)


def request(skill: OfferedSkill, missions: tuple[str, ...] = ("m1",), **arguments: Any) -> CallRequest:
    """A model's call."""
    return CallRequest(skill=skill, arguments=arguments, missions=missions)


class Events:
    """An event log that calls its listeners at once."""

    def __init__(self) -> None:
        self.all: list[tuple[str, dict[str, Any]]] = []

    def emit(self, kind: str, missions: Sequence[str] = (), *phase: Any, **data: Any) -> None:
        """See ``Emit``."""
        self.all.append((kind, data))

    def kinds(self) -> list[str]:
        """The kinds so far."""
        return [kind for kind, _ in self.all]


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


class Robot(Module):
    """Skills with policies; ``done`` ends those that go on."""

    config: NoConfig

    async def start(self) -> None:
        """See ``Module``."""
        self.log_: list[str] = []
        self.done = asyncio.Event()
        self.ended = asyncio.Event()
        self.running = 0

    @skill(motion=True)
    async def walk(self, distance_m: Annotated[float, Field(ge=-9, le=9)] = 1.0) -> str:
        """Walk."""
        self.log_.append(f"walk {distance_m:g}")
        return f"walked {distance_m:g} m"

    @skill(motion=True)
    async def go_to(self, x: float, y: float) -> str:
        """Go."""
        self.log_.append(f"go_to {x:g} {y:g}")
        return "there"

    @skill(approval="ask")
    async def drop(self, what: str = "parcel") -> str:
        """Drop something."""
        self.log_.append(f"drop {what}")
        return f"dropped {what}"

    @skill(concurrent=True, polling=True)
    async def look(self) -> str:
        """Look."""
        return "nothing new"

    @skill
    async def fail(self) -> str:
        """Fail at length."""
        raise SkillError("x" * 9000)

    @skill
    async def talk(self, characters: int) -> str:
        """Say much."""
        return "".join(f"{number:07d} " for number in range(characters // 8))

    @skill
    async def follow(self, call: Call, who: str = "x") -> str:
        """Follow until it is done."""
        await call.update(f"following {who}")
        await self.done.wait()
        return f"{who} is gone"

    @skill
    async def spin(self) -> str:
        """Turn for a while, and answer then."""
        await asyncio.sleep(5)
        return "turned"

    @skill
    async def deaf(self, call: Call) -> str:
        """Go on, whoever wants it to end."""
        await call.update("on my way")
        while not self.done.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait_for(self.done.wait(), 50)
        return "there"

    @skill(on_duplicate="replace")
    async def patrol(self, call: Call, where: str = "hall") -> str:
        """Patrol; takes its time to end."""
        return await self._round("patrol", call, where)

    @skill(on_duplicate="replace", protected=True)
    async def guard(self, call: Call, where: str = "hall") -> str:
        """Guard."""
        return await self._round("guard", call, where)

    @skill(on_duplicate="reject", duplicate_scope="arguments")
    async def watch(self, call: Call, where: str = "hall") -> str:
        """Watch."""
        return await self._round("watch", call, where)

    @skill(on_duplicate="confirm")
    async def sing(self, call: Call, where: str = "hall") -> str:
        """Sing."""
        return await self._round("sing", call, where)

    async def _round(self, name: str, call: Call, where: str) -> str:
        self.log_.append(f"{name} {where} begins")
        try:
            await call.update(f"{name} {where}")
            await self.done.wait()
            return "over"
        finally:
            await asyncio.sleep(0.3)
            self.log_.append(f"{name} {where} ends")


@contextlib.asynccontextmanager
async def robot_stage(
    brain: Brain, *, run_dir: Path | None = None, **config: Any
) -> AsyncIterator[tuple[Stage, Robot]]:
    """A stage with a ``Robot`` whose agent has this brain, and records in ``run_dir``."""
    async with stage(config, run_dir=run_dir) as made:
        robot = Robot(name="robot")
        await made.harness.add(robot)
        made.agent.core.model.adapter = brain
        await until(lambda: "robot" in {view.name for view in made.bridge.broker.directory.modules() if view.skills})
        yield made, robot


async def decide(made: Stage, decision: str, **more: Any) -> Any:
    """Wait for an approval and decide on it, as an operator does; the approval's view before that."""
    pending: list[Any] = []
    async with asyncio.timeout(60):
        while not pending:
            pending = await (await made.harness.call("approvals", caller="operator")).result()
            await asyncio.sleep(0.05)
    call = await made.harness.call("decide", caller="operator", approval=pending[0]["id"], decision=decision, **more)
    await call.result()
    return pending[0]
