"""A scene for tests of bridges: one bus, processes with modules, and a bridge that can be killed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from dimos_streams import clock
from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.bridge.module import Bridge
from dimos_streams.bus import Bus, create_bus
from dimos_streams.errors import SkillError
from dimos_streams.live_settings import Live
from dimos_streams.module import Module, ModuleConfig, RunContext, Services
from dimos_streams.runtime.module_host import ModuleHost
from dimos_streams.skill import Call, skill
from dimos_streams.testing import FaultBus, Faults
from dimos_streams.tool_stream.event import EventType, Outcome, ToolEvent
from dimos_streams.tool_stream.gateway import CallView
from tests.helpers import until


class WorkerConfig(ModuleConfig):
    """One setting, for those who change it while it runs."""

    pace: Annotated[float, Live] = 1.0


class Worker(Module):
    """Skills that end in every way."""

    config: WorkerConfig

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.running: list[str] = []
        self.most = 0
        self.goes_on = asyncio.Event()
        """Cleared by those who look at somebody who is followed, for as long as they look."""
        self.goes_on.set()

    @skill(resources={"base"})
    async def follow(self, call: Call, description: str, steps: int = 1000) -> str:
        """Follow somebody."""
        self.running.append(call.id)
        self.most = max(self.most, len(self.running))
        try:
            await call.update(f"following {description}")
            for step in range(steps):
                call.progress(f"{description} step {step}", step=step, places=[step])
                await asyncio.sleep(0.1)
                await self.goes_on.wait()
            await call.update(f"saw {description}")
            return f"followed {description}"
        finally:
            self.running.remove(call.id)

    @skill(resources={"base"})
    async def at_once(self, value: int) -> int:
        """Return before any update."""
        return value

    @skill(resources={"base"})
    async def fail(self, call: Call, answer_first: bool = False) -> None:
        """Fail."""
        if answer_first:
            await call.update("trying")
        raise SkillError("the floor is wet")

    @skill(resources={"base"}, time_limit_s=0.5)
    async def hang(self) -> None:
        """Run into the time limit."""
        await asyncio.sleep(1000)

    @skill
    async def count(self, call: Call, label: str, to: int) -> str:
        """Count."""
        for number in range(1, to + 1):
            await call.update(f"{label} {number}")
            await asyncio.sleep(0.01)
        return label

    @skill(concurrent=True, read_only=True)
    async def search(self, call: Call) -> None:
        """Look into every room; it has much to say and no answer."""
        room = 0
        while True:
            call.progress(f"room {room}")
            room += 1
            await asyncio.sleep(0.01)

    @skill(on_duplicate="confirm")
    async def patrol(self) -> None:
        """Go round."""
        await asyncio.sleep(1000)

    @skill
    async def chain(self, call: Call, then: str, arguments: dict[str, Any]) -> str:
        """Begin another skill."""
        return await call.skills.start(then, arguments)


@dataclass
class SimulatedProcess:
    """A process with modules, as far as the bus can see; ``faults.partitioned`` kills it without a word."""

    bus: FaultBus
    host: ModuleHost
    modules: dict[str, Module] = field(default_factory=dict)


class Scene:
    """A memory bus, processes with modules, and a bridge that can be ended and begun again."""

    def __init__(self, faults: Faults | None = None, run_dir: Path | None = None, **bridge_config: Any) -> None:
        self.faults = faults or Faults()
        self.run_dir = run_dir
        self.inner: Bus = create_bus("memq://")
        self.bridge_config = {"port": 0, **bridge_config}
        self.channels: dict[str, str] = {}
        self.agents: frozenset[str] = frozenset()
        self.is_replaced = False
        """True if a bridge that ends is to be begun again."""
        self.processes: list[SimulatedProcess] = []
        self._bridge_process: SimulatedProcess | None = None

    @property
    def bridge(self) -> Bridge:
        assert self._bridge_process is not None
        bridge = self._bridge_process.modules["bridge"]
        assert isinstance(bridge, Bridge)
        return bridge

    @property
    def bridge_bus(self) -> FaultBus:
        """The bridge's end of the bus."""
        assert self._bridge_process is not None
        return self._bridge_process.bus

    @property
    def broker(self) -> Broker:
        return self.bridge.broker

    async def add(self, *modules: Module) -> SimulatedProcess:
        """A new process with modules."""
        bus = FaultBus(self.inner, self.faults, seed=len(self.processes))
        await bus.open()
        process = SimulatedProcess(bus, ModuleHost(bus))
        self.processes.append(process)
        for module in modules:
            await process.host.start(module, {})
            process.modules[module.name] = module
        return process

    async def start_bridge(self) -> Bridge:
        context = RunContext(
            services=Services(),
            channels=self.channels,
            agents=self.agents,
            run_dir=self.run_dir,
            is_replaced=lambda: self.is_replaced,
        )
        bridge = Bridge(self.bridge_config, name="bridge", context=context)
        self._bridge_process = await self.add(bridge)
        return bridge

    async def kill_bridge(self) -> None:
        """End the bridge without letting it say anything more."""
        assert self._bridge_process is not None
        self._bridge_process.bus.partitioned = True
        await self._bridge_process.host.stop()

    async def offered(self, skill: str) -> None:
        """Wait until the bridge knows a skill."""
        await until(lambda: any(info.name == skill for _, info in self.broker.directory.skills()))

    async def close(self) -> None:
        for process in reversed(self.processes):
            process.bus.partitioned = False
            await process.host.stop()
            await process.bus.close()
        await self.inner.close()


@contextlib.asynccontextmanager
async def scene(*, faults: Faults | None = None, worker: bool = True, **bridge_config: Any) -> AsyncIterator[Scene]:
    """A bridge and a process with a worker that it knows."""
    made = Scene(faults, **bridge_config)
    await made.inner.open()
    try:
        await made.start_bridge()
        if worker:
            await made.add(Worker(name="worker"))
            await made.offered("follow")
        yield made
    finally:
        await made.close()


async def closed(broker: Broker, call_id: str, timeout_s: float = 10.0) -> CallView:
    """A call after its close."""
    assert await broker.wait(call_id, "close", timeout_s), await broker.view(call_id)
    return await broker.view(call_id)


async def answered(broker: Broker, call_id: str) -> CallView:
    """A call after its answer."""
    assert await broker.wait(call_id, "answer", 10.0), await broker.view(call_id)
    return await broker.view(call_id)


async def collect(
    broker: Broker, *, after: int = 0, call_id: str | None = None, caller: str | None = None
) -> list[ToolEvent]:
    """Events as a reader gets them, up to the newest offset of now."""
    last = await broker.offset()
    if last <= after:
        return []
    found = []
    reader = broker.ledger.broadcast.reader(after=after, call_id=call_id, caller=caller)
    while reader.lag:
        try:
            async with asyncio.timeout(0.05):
                found += [entry.event for entry in await reader.page()]
        except TimeoutError:
            break
    reader.close()
    return found


def event(
    seq: int,
    type: EventType = "progress",
    *,
    call_id: str = "c1",
    caller: str = "agent",
    text: str = "",
    data: Mapping[str, Any] | None = None,
) -> ToolEvent:
    """An event of a call."""
    return ToolEvent(
        utime=clock.utime(),
        call_id=call_id,
        seq=seq,
        type=type,
        module="worker",
        skill="follow",
        caller=caller,
        text=text or f"{type} {seq}",
        data={"outcome": "completed"} if type == "close" and data is None else dict(data or {}),
    )


async def free_base(broker: Broker) -> bool:
    """Whether nobody holds the base, shown by taking it."""
    call_id = await broker.call("at_once", {"value": 1}, caller="probe")
    return (await closed(broker, call_id)).outcome is Outcome.COMPLETED
