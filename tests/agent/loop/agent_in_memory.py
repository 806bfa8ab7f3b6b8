"""An agent without a bus: its core on a bridge in memory, small and fast enough for thousands of runs."""

from __future__ import annotations

import asyncio
import functools
import itertools
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_type_hints

from dimos_streams.agent.config import AgentConfig
from dimos_streams.agent.core import AgentCore
from dimos_streams.agent.memory import AgentMemory
from dimos_streams.agent.missions.message_queue import OperatorInput
from dimos_streams.agent.missions.mission import Mission
from dimos_streams.agent.record.agent_events import KINDS
from dimos_streams.agent.record.data_check import check_data
from dimos_streams.agent.resumption.reader import read_resumption
from dimos_streams.operator.messages.agent import AgentEvent
from tests.agent.loop.fake_bridge import FakeBridge, Line
from tests.agent.loop.function_model import FunctionModel


@functools.cache
def fields_of(kind: str) -> set[str]:
    """The fields that data of a kind may have."""
    return {name for type in KINDS[kind].types for name in get_type_hints(type)}


class AgentInMemory:
    """A core that runs. ``async with`` it."""

    def __init__(
        self,
        bridge: FakeBridge,
        model: FunctionModel,
        config: Mapping[str, Any] | None = None,
        *,
        record_dir: Path | None = None,
        line: Line | None = None,
    ) -> None:
        """``line`` leads to the bridge; None for none but the bridge itself."""
        self.bridge, self.model = bridge, model
        settings = AgentConfig.model_validate({"model": "offline", **(config or {})})
        before = read_resumption(record_dir, "agent") if record_dir else None
        memory = AgentMemory(settings, "agent", record_dir=record_dir, before=before)
        self.core = AgentCore(settings, memory, name="agent", gateway=line or bridge, rng=random.Random(1))
        self.core.model.adapter = model
        self._task: asyncio.Task[None] | None = None
        self._numbers = itertools.count()

    async def __aenter__(self) -> AgentInMemory:
        self.core.record.open()
        offset = await self.core.recovery.run(random.Random(1), lambda why: None)
        self._task = asyncio.get_running_loop().create_task(self.core.run(offset))
        self._tidying = asyncio.get_running_loop().create_task(self.core.recovery.tidy_up())
        return self

    async def leave(self) -> None:
        """Stop the core only. What it has recorded is what can be read."""
        assert self._task is not None
        for task in (self._task, self._tidying):
            task.cancel()
        await asyncio.gather(self._task, self._tidying, return_exceptions=True)
        await self.core.close()
        for event in self.core.events.after(0):
            check_data(AgentEvent.model_validate_json(event.model_dump_json()))
            if event.kind in KINDS:
                assert event.data.keys() <= fields_of(event.kind), event.kind

    async def __aexit__(self, *exc: object) -> None:
        await self.leave()
        await self.bridge.close()
        assert self._task is not None
        if not self._task.cancelled() and self._task.exception() is not None:
            raise AssertionError("the core failed") from self._task.exception()

    async def say(self, text: str) -> Mission:
        mission = self.core.missions.begin(f"m{next(self._numbers)}", text)
        await self.core.queue.put(OperatorInput(text, (mission,)))
        return mission

    async def over(self, mission: Mission, timeout_s: float = 1000.0) -> Mission:
        async with asyncio.timeout(timeout_s):
            while not mission.over:  # noqa: ASYNC110 - virtual time
                await asyncio.sleep(0.01)
        return mission

    def kinds(self, *skipped: str) -> list[str]:
        return [event.kind for event in self.core.events.after(0) if event.kind not in skipped]

    def data(self, kind: str) -> list[dict[str, Any]]:
        return [event.data for event in self.core.events.after(0) if event.kind == kind]
