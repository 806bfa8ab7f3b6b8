"""Random trees of calls over some processes that are killed at random: no call outlives what it belongs to."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.module import RunContext
from dimos_streams.testing import Faults
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.family import ancestors_of
from tests.bridge.calls.families import Composer, open_calls
from tests.bridge.scene import SimulatedProcess, closed, scene
from tests.helpers import until

PROCESSES = 4
ROUNDS = 4
END_WITHIN_S = 2.0


def random_tree(rng: random.Random, depth: int) -> list[Any]:
    """Branches, each with the process that runs it."""
    if depth == 0:
        return []
    return [
        [f"p{rng.randrange(PROCESSES)}", random_tree(rng, rng.randrange(depth))] for _ in range(rng.randrange(1, 4))
    ]


def size(tree: list[Any]) -> int:
    return 1 + sum(size(branch) for _, branch in tree)


@pytest.mark.slow
@pytest.mark.virtual_time
@pytest.mark.feature("K1")
@pytest.mark.parametrize("seed", range(6))
async def test_no_call_outlives_what_it_belongs_to(seed: int) -> None:
    rng = random.Random(seed)
    faults = Faults(loss=0.1) if seed % 2 else Faults()
    async with scene(faults=faults, worker=False) as world:
        processes: dict[str, tuple[SimulatedProcess, Composer]] = {}

        async def start(name: str) -> None:
            composer = Composer(name=f"{name}/composer", context=RunContext(namespace=f"{name}/"))
            processes[name] = await world.add(composer), composer

        def alive(name: str) -> bool:
            view = world.broker.directory.module(name)
            return view is not None and view.alive

        for number in range(PROCESSES):
            await start(f"p{number}")
        for name in processes:
            await world.offered(f"{name}_spread")
        for _ in range(ROUNDS):
            tree = random_tree(rng, 4)
            given = {"tree": tree, "seconds": rng.uniform(0.1, 8.0)}
            root = await world.broker.call("p0_spread", given, caller="me")
            await asyncio.sleep(rng.uniform(0.0, 4.0))
            killed = rng.choice([*processes, ""])
            orphans: set[str] = set()
            if killed:
                process, composer = processes.pop(killed)
                process.bus.partitioned = True
                orphans = {call.call_id for call in world.broker.ledger.calls.open} - set(composer.running)
                orphans = {call_id for call_id in orphans if {*ancestors_of(call_id)} & {*composer.running}}
                died = clock.monotonic()

                def orphaned() -> bool:
                    running = {call_id for _, other in processes.values() for call_id in other.running}
                    return bool(running & orphans)  # noqa: B023

                await until(lambda: not orphaned())
                assert clock.monotonic() - died <= END_WITHIN_S, orphans
            view = await closed(world.broker, root, 60.0)
            if not killed:
                assert (view.outcome, view.result) == (Outcome.COMPLETED, size(tree)), view.text
            elif view.outcome is Outcome.COMPLETED:
                assert view.result == size(tree)
            await until(lambda: not open_calls(world), 30.0)
            assert not any(composer.running for _, composer in processes.values())
            if killed:
                await process.host.stop()
                world.processes.remove(process)
                await asyncio.sleep(2)
                await start(killed)
                await until(lambda: alive(f"{killed}/composer"))  # noqa: B023
