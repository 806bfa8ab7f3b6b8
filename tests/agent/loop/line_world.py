"""The world of a loop: a robot on a line, its skills, and what they noted."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from dimos_streams.errors import SkillError
from tests.agent.loop.agent_in_memory import AgentInMemory
from tests.agent.loop.fake_bridge import Body, FakeBridge, FakeCall, offered
from tests.agent.loop.function_model import Answer, FunctionModel, in_turn


class LineWorld:
    """A robot on a line. ``log`` is what happened, in order."""

    def __init__(self) -> None:
        self.x = 0.0
        self.log: list[str] = []
        self.released = asyncio.Event()
        self.looking = 0
        self.most_looking = 0
        skills: dict[str, tuple[Any, Body]] = {
            "move": (offered("move", motion=True, undo="move_back"), self.move),
            "slow": (offered("slow", motion=True, undo="slow_back"), self.look),
            "slow_back": (offered("slow_back", audience="operator", motion=True), self.slow_back),
            "look": (offered("look", concurrent=True), self.look),
            "follow": (offered("follow"), self.follow),
            "drop": (offered("drop", reversible=False), self.drop),
            "hang": (offered("hang", motion=True), self.hang),
            "deaf": (offered("deaf"), self.deaf),
            "fail": (offered("fail"), self.fail),
            "note": (offered("note", undo="strike"), self.note),
            "knot": (offered("knot", undo="untie"), self.drop),
            "untie": (offered("untie", audience="operator", motion=True), self.deaf),
            "strike": (offered("strike", audience="operator"), self.strike),
            "move_back": (offered("move_back", audience="operator"), self.move_back),
        }
        self.bridge = FakeBridge(skills)

    def agent(self, *answers: Answer, **config: Any) -> AgentInMemory:
        return self.with_model(FunctionModel(in_turn(*answers)), **config)

    def with_model(self, model: FunctionModel, record_dir: Path | None = None, **config: Any) -> AgentInMemory:
        return AgentInMemory(self.bridge, model, {"plan": {"motions": None}, **config}, record_dir=record_dir)

    async def move(self, call: FakeCall) -> str:
        self.log.append(f"move {call.arguments['by']}")
        await asyncio.sleep(1)
        self.x += call.arguments["by"]
        return f"at {self.x:g}"

    async def move_back(self, call: FakeCall) -> str:
        by = call.arguments["arguments"]["by"]
        self.log.append(f"back {by}")
        if by == 13:
            raise SkillError("something is in the way")
        await asyncio.sleep(1)
        self.x -= by
        return f"back at {self.x:g}"

    async def note(self, call: FakeCall) -> str:
        self.log.append(f"note {call.arguments['n']}")
        return "noted"

    async def strike(self, call: FakeCall) -> str:
        self.log.append(f"strike {call.arguments['arguments']['n']}")
        await (asyncio.sleep(1) if call.arguments["arguments"]["n"] else self.released.wait())
        return "struck"

    async def look(self, call: FakeCall) -> str:
        self.looking += 1
        self.most_looking = max(self.most_looking, self.looking)
        try:
            seen = self.x
            await asyncio.sleep(call.arguments.get("for_s", 1))
        finally:
            self.looking -= 1
        return f"seen from {seen:g}"

    async def follow(self, call: FakeCall) -> str:
        call.send("update", "following")
        try:
            await self.released.wait()
        finally:
            self.log.append("follow ended")
        return "she has left"

    async def slow_back(self, call: FakeCall) -> str:
        await self.released.wait()
        return "back"

    async def drop(self, call: FakeCall) -> str:
        self.log.append("drop")
        return "dropped"

    async def hang(self, call: FakeCall) -> str:
        await asyncio.sleep(10_000)
        return "never"

    async def deaf(self, call: FakeCall) -> str:
        """Does not end when it is cancelled."""
        call.send("update", "working")
        while True:
            try:
                await asyncio.sleep(10_000)
            except asyncio.CancelledError:
                if self.released.is_set():
                    raise

    async def fail(self, call: FakeCall) -> str:
        raise SkillError(f"no: {call.arguments.get('n', 0)}")
