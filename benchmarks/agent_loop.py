"""The cost of the agent's loop by itself, and whether it stays small.

    python -m benchmarks.agent_loop [--json] [--iterations N] [--turns N]

An iteration is one answer of the model with one call, offered 50 skills and shown 200 messages. The model answers at
once, the bridge is in memory and ends each call at once; what is left is the loop's: events, record, gates,
conversation, tools. The target is 1 ms of processor time. With ``--turns`` a mission of so many turns follows, with
the process's memory meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import json
import os
import resource
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from dimos_streams.agent.models.protocol import (
    Finish,
    ModelDelta,
    ModelRequest,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
    UserMessage,
)
from dimos_streams.clock import run_virtual
from tests.agent.loop.agent_in_memory import AgentInMemory
from tests.agent.loop.fake_bridge import Body, FakeBridge, FakeCall, offered

TARGET_MS = 1.0
SKILLS, MESSAGES = 50, 200
MARKS = (1_000, 5_000, 10_000)
_PARAMETERS = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 0}, "note": {"type": "string", "maxLength": 200}},
    "required": ["n"],
    "additionalProperties": False,
}


class BusyModel:
    """Asks for one call after the other; every tenth answer is the last of its turn."""

    def __init__(self) -> None:
        self.answers = itertools.count(1)
        self.messages = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta]:
        number = next(self.answers)
        self.messages = len(request.messages)
        yield TextDelta(f"number {number}")
        if self.asks(number, request):
            yield ToolCallDelta(index=0, id=f"t{number}", name="skill_7", arguments=json.dumps({"n": number}))
        yield TokenUsage(1000, 10)
        yield Finish("stop")

    def asks(self, number: int, request: ModelRequest) -> bool:
        return bool(number % 10)

    async def close(self) -> None:
        pass


class WatchfulModel(BusyModel):
    """Begins ``watch``, and asks for one call at each of its updates."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta]:
        if request.messages[-1].text == "watch":
            yield ToolCallDelta(index=0, id="t0", name="watch", arguments="{}")
            yield Finish("tool_calls")
            return
        async for delta in super().stream(request):
            yield delta

    def asks(self, number: int, request: ModelRequest) -> bool:
        return isinstance(request.messages[-1], UserMessage)


class ForgetfulBridge(FakeBridge):
    """Its own growth would be taken for the agent's."""

    forgotten = 0

    def forget(self) -> None:
        """Let go of calls that have ended, and of events that were read."""
        for position in range(self.forgotten, len(self.journal) - 1):
            self.journal[position] = self.journal[0]
        self.forgotten = len(self.journal) - 1
        for call in tuple(self.calls_.values()):
            if call.outcome is not None:
                del self.calls_[call.id]


async def _skill(call: FakeCall) -> str:
    return f"did {call.arguments['n']} {'x' * 500}"


def world(model: BusyModel, folder: Path | None, more: dict[str, tuple[Any, Body]], **config: Any) -> AgentInMemory:
    """An agent with many skills."""
    bodies: dict[str, tuple[Any, Body]] = dict(more)
    for number in range(SKILLS - len(more)):
        described = {"description": f"Does thing {number}. " * 5, "parameters": _PARAMETERS}
        bodies[f"skill_{number}"] = (offered(f"skill_{number}").model_copy(update=described), _skill)
    config["repetition"] = {"warn_at": None, "hint_at": None, "stop_at": None, "mission_stop_at": None}
    return AgentInMemory(ForgetfulBridge(bodies), model, config, record_dir=folder)  # type: ignore[arg-type]


async def turns(agent: AgentInMemory, count: int) -> None:
    """So many turns, each of ten iterations."""
    assert isinstance(agent.bridge, ForgetfulBridge)
    for _ in range(count):
        mission = await agent.say("go on")
        while not mission.over:  # noqa: ASYNC110 - virtual time would pass
            await asyncio.sleep(0)
        agent.bridge.forget()


async def cost(iterations: int, folder: Path | None) -> dict[str, float]:
    """Processor time per iteration."""
    model = BusyModel()
    async with world(model, folder, {}, conversation_entries=MESSAGES) as agent:
        await turns(agent, MESSAGES // 10)
        samples = []
        for _ in range(max(1, iterations // 100)):
            began = time.process_time()
            await turns(agent, 10)
            samples.append((time.process_time() - began) * 10)
    samples.sort()
    return {
        "skills": SKILLS,
        "messages": model.messages,
        "median_ms": round(samples[len(samples) // 2], 3),
        "slowest_ms": round(samples[-1], 3),
        "target_ms": TARGET_MS,
    }


async def endurance(count: int, folder: Path) -> dict[int, float]:
    """Resident megabytes after so many turns of one mission: its call says something, the model reacts."""
    found: dict[int, float] = {}

    async def watch(call: FakeCall) -> str:
        for turn in range(1, count + 1):
            call.send("update", f"update {turn}")
            await asyncio.sleep(1)
            agent.bridge.forget()  # type: ignore[attr-defined]
            if turn in MARKS or turn == count:
                gc.collect()
                found[turn] = _resident_mb()
        return "over"

    # What results keep is bounded too, but at 32 MB: that would take longer to show.
    config: dict[str, Any] = {"results": {"store_bytes": 1_000_000}, "call_tools_always": True}
    agent = world(WatchfulModel(), folder, {"watch": (offered("watch"), watch)}, **config)
    async with agent:
        mission = await agent.say("watch")
        await agent.over(mission, 1e9)
    assert mission.spent.requests >= 2 * count
    return found


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--iterations", type=int, default=2000)
    parser.add_argument("--turns", type=int, default=0, help="also: a mission of so many turns, with its memory")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = {
            "without a record": run_virtual(cost(given.iterations, None)),
            "with a record": run_virtual(cost(given.iterations, Path(folder))),
        }
    with tempfile.TemporaryDirectory() as folder:
        resident = run_virtual(endurance(given.turns, Path(folder))) if given.turns else {}
        recorded_mb = round(sum(path.stat().st_size for path in Path(folder).iterdir()) / 1e6, 1)
    peak_mb = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6, 1)
    if given.json:
        memory = {"resident_mb": resident, "recorded_mb": recorded_mb, "peak_mb": peak_mb} if resident else None
        print(json.dumps({**results, "memory": memory}, indent=2))
        return
    print(f"{'':20}{'skills':>8}{'messages':>10}{'median ms':>11}{'slowest ms':>12}{'target ms':>11}")
    for name, row in results.items():
        print(
            f"{name:20}{row['skills']:8}{row['messages']:10}{row['median_ms']:11.3f}{row['slowest_ms']:12.3f}"
            f"{row['target_ms']:11.1f}"
        )
    for turn, megabytes in resident.items():
        print(f"after {turn:6} turns of one mission: {megabytes:6.1f} MB resident")
    if resident:
        print(f"peak {peak_mb} MB; {recorded_mb} MB of records on disk")


if __name__ == "__main__":
    main()
