"""Both ends of tool streams on one bus that misbehaves."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Iterator

from dimos_streams.bus import Bus, create_bus
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.testing import FaultBus, Faults
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.protocol.channels import EVENTS, STATUS
from dimos_streams.tool_stream.receiving.received_call import ResumePoint
from dimos_streams.tool_stream.receiving.receiver import ToolStreamReceiver
from dimos_streams.tool_stream.sending.call_writer import CallWriter
from dimos_streams.tool_stream.sending.publisher import ToolStreamPublisher
from tests.helpers import anybody, until


class Ends:
    """Both ends of the wire with heartbeats between them, and all that was delivered."""

    def __init__(self, bus: Bus, faults: Faults, seed: int) -> None:
        self.sender_bus = FaultBus(bus, faults, seed=seed)
        self.receiver_bus = FaultBus(bus, faults, seed=seed + 1)
        self.publisher = ToolStreamPublisher(self.sender_bus)
        self.delivered: dict[str, list[ToolEvent]] = defaultdict(list)
        self.receiver = ToolStreamReceiver(self.receiver_bus, self.take, may_open=anybody, resume=self.resume)

    async def __aenter__(self) -> Ends:
        await self.sender_bus.open()
        await self.receiver_bus.open()
        self.publisher.start()
        self.receiver.start()
        self.receiver_bus.subscribe(STATUS, lambda _, data: self.receiver.on_status(decode(ModuleStatus, data)))
        self.heart = asyncio.create_task(self.beat())
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self.heart.cancel()
        self.receiver.stop()
        self.publisher.stop()
        await self.sender_bus.close()
        await self.receiver_bus.close()

    async def beat(self) -> None:
        while True:
            live = self.publisher.heartbeat_calls("m")
            status = ModuleStatus(
                module="m",
                instance=self.publisher.instance,
                call_ids=[c for c, _ in live],
                last_seqs=[s for _, s in live],
            )
            self.sender_bus.publish(STATUS, encode(status))
            await asyncio.sleep(0.25)

    def take(self, events: list[ToolEvent]) -> None:
        for event in events:
            self.delivered[event.call_id].append(event)

    def resume(self, call_id: str) -> ResumePoint:
        events = self.delivered.get(call_id)
        return ResumePoint(delivered=events[-1].seq, closed=events[-1].type == "close") if events else ResumePoint()

    def begin(self, call_id: str) -> CallWriter:
        return self.publisher.begin(call_id, module="m", skill="s", caller="c", text="", data={})

    def restart_receiver(self) -> None:
        self.receiver.stop()
        self.receiver = ToolStreamReceiver(self.receiver_bus, self.take, may_open=anybody, resume=self.resume)
        self.receiver.start()

    @contextlib.contextmanager
    def losing_events(self) -> Iterator[None]:
        """Lose each event that is sent meanwhile, and nothing else."""
        self.sender_bus.faults = Faults(loss=1.0, affects=lambda channel: channel == EVENTS)
        yield
        self.sender_bus.faults = Faults()

    async def until_closed(self, call_id: str) -> list[ToolEvent]:
        await until(lambda: self.delivered[call_id] and self.delivered[call_id][-1].type == "close", 120)
        return self.delivered[call_id]


async def bus_and_ends(faults: Faults, seed: int) -> Ends:
    bus = create_bus("memq://")
    await bus.open()
    return Ends(bus, faults, seed)
