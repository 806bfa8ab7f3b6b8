"""Two runs of one blueprint on one bus: which of them goes on."""

from __future__ import annotations

import asyncio
import os

import pytest

from dimos_streams import clock
from dimos_streams.blueprint.load import resolve
from dimos_streams.bus import Bus, create_bus
from dimos_streams.errors import UserError
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.runtime.neighbours import Neighbours
from dimos_streams.runtime.options import RunOptions
from dimos_streams.runtime.parts.part import Part
from dimos_streams.runtime.parts.part_host import host_part
from dimos_streams.tool_stream.protocol.channels import STATUS

HOST = os.uname().nodename


def heartbeat(bus: Bus, module: str, pid: int, began: int) -> None:
    """One of a module that began at some time, in a process of this machine."""
    status = ModuleStatus(module=module, instance=f"{pid}{module}", pid=pid, started_utime=began)
    status.host, status.health, status.skills_version = HOST, "ok", "none"
    bus.publish(STATUS, encode(status))


@pytest.mark.virtual_time
async def test_the_run_whose_first_module_began_first_goes_on_whichever_rivals_are_seen() -> None:
    """One run began with `a`, the other with `b`: of `b` alone the younger run has the elder instance."""
    bus = create_bus("memq://")
    await bus.open()
    neighbours = Neighbours(bus, ["a", "b"])
    neighbours._directory.start()

    async def beat() -> None:
        while True:
            for module, pid, began in (("a", 1, 1), ("b", 1, 4), ("b", 2, 3)):
                heartbeat(bus, module, pid, began)
            await asyncio.sleep(0.2)

    beating = asyncio.create_task(beat())
    assert await neighbours.meet(lambda: [1]) == ""
    assert "module 'a' runs already on" in await neighbours.meet(lambda: [2])
    beating.cancel()
    await neighbours.close()


@pytest.mark.virtual_time
async def test_a_part_that_runs_already_says_nothing_of_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    bus = create_bus("memq://")
    await bus.open()
    spoken: list[str] = []
    bus.subscribe(STATUS, lambda channel, data: spoken.append(decode(ModuleStatus, data).module))
    monkeypatch.setattr("dimos_streams.runtime.neighbours.create_bus", lambda url: bus)
    monkeypatch.setattr("dimos_streams.runtime.parts.part_host.create_bus", lambda url: bus)
    part = Part.of(resolve("follow-person-split"), "robot-side", "bridge")

    async def beat() -> None:
        while True:
            heartbeat(bus, "gate", 1, 1)
            await asyncio.sleep(0.2)

    beating = asyncio.create_task(beat())
    with pytest.raises(UserError, match="module 'gate' runs already on "):
        async with host_part(part, RunOptions(bus_url="udpm://239.255.76.67:7667?ttl=0"), lambda: None):
            pass
    beating.cancel()
    assert set(spoken) == {"gate"}


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("from_s", "to_s"), [(0.0, 1.5), (0.5, 2.5)], ids=["from the beginning", "once it was heard"]
)
async def test_the_elder_run_goes_on_while_its_first_module_is_silent_for_a_moment(
    from_s: float, to_s: float
) -> None:
    bus = create_bus("memq://")
    await bus.open()
    neighbours = Neighbours(bus, ["a", "b"])
    neighbours._directory.start()
    began = clock.monotonic()

    async def beat() -> None:
        while True:
            for module, pid, start in (("a", 1, 1), ("b", 1, 4), ("a", 2, 2), ("b", 2, 3)):
                if (module, pid) != ("a", 1) or not from_s <= clock.monotonic() - began < to_s:
                    heartbeat(bus, module, pid, start)
            await asyncio.sleep(0.2)

    beating = asyncio.create_task(beat())
    assert await neighbours.meet(lambda: [1]) == ""
    beating.cancel()
    await neighbours.close()


@pytest.mark.virtual_time
async def test_a_module_that_was_restarted_is_no_neighbour_of_itself() -> None:
    bus = create_bus("memq://")
    await bus.open()
    neighbours = Neighbours(bus, ["a", "b"])
    neighbours._directory.start()
    began = clock.monotonic()

    def process_of_b() -> int:
        return 2 if clock.monotonic() - began < 1.0 else 3

    async def beat() -> None:
        while True:
            pid_of_b = process_of_b()
            for module, pid, start in (("a", 1, 2), ("b", pid_of_b, 1 if pid_of_b == 2 else 5)):
                heartbeat(bus, module, pid, start)
            await asyncio.sleep(0.05)

    beating = asyncio.create_task(beat())
    assert await neighbours.meet(lambda: [1, process_of_b()]) == ""
    beating.cancel()
    await neighbours.close()
