"""A running mission whose processes are killed and stopped at random, on a bus that loses a fifth of all messages.

``DIMOS_STREAMS_CHAOS_SECONDS`` and ``DIMOS_STREAMS_CHAOS_SEED`` make it longer and another one; what came of it is
logged, ``--log-cli-level=INFO`` shows it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import signal
from collections import Counter
from pathlib import Path

import pytest

from dimos_streams import clock
from dimos_streams.errors import SkillError
from dimos_streams.testing import FaultInjection, Faults
from dimos_streams.tool_stream.event import ToolEvent
from tests.helpers import until
from tests.live.mission import INPUT, Mission, running
from tests.live.promises import by_call, check_conversation, check_journal, check_reader, read_journal

SECONDS = float(os.environ.get("DIMOS_STREAMS_CHAOS_SECONDS", "8"))
SEED = int(os.environ.get("DIMOS_STREAMS_CHAOS_SEED", "1"))
LOSS = 0.2

pytestmark = [pytest.mark.live, pytest.mark.timeout(SECONDS + 80)]

_logger = logging.getLogger(__name__)

_VICTIMS = ("skills", "bridge", "agent", "gate", "perception", "robot")
_COMMANDS = (INPUT, "stop", "turn left 40 degrees", "look out for a person in a green shirt", "observe")


class Chaos:
    """Strikes processes and gives commands, in the order of its seed, until time is up."""

    def __init__(self, mission: Mission, seed: int) -> None:
        self.mission = mission
        self.random = random.Random(seed)
        self.strikes: list[str] = []

    async def run(self, seconds: float) -> None:
        tasks = [asyncio.create_task(work) for work in (self._strike(), self._command(random.Random(SEED)))]
        done, _ = await asyncio.wait(tasks, timeout=seconds)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for task in done:
            task.result()
        for process in self.mission.supervisor.processes():
            self._signal(process.label, signal.SIGCONT)

    async def _strike(self) -> None:
        while True:
            await asyncio.sleep(self.random.uniform(0.2, 1.5))
            victim, kills = self.random.choice(_VICTIMS), self.random.random() < 0.5
            self.strikes.append(f"{'kill' if kills else 'stop'} {victim}")
            if kills:
                self._signal(victim, signal.SIGKILL)
                continue
            self._signal(victim, signal.SIGSTOP)
            await asyncio.sleep(self.random.uniform(0.1, 3.0))
            self._signal(victim, signal.SIGCONT)

    async def _command(self, choice: random.Random) -> None:
        while True:
            with contextlib.suppress(SkillError):  # whoever is to hear it is away at the moment
                await self.mission.gateway.call("say", {"text": choice.choice(_COMMANDS)}, caller="operator")
            await asyncio.sleep(choice.uniform(0.2, 2.0))

    def _signal(self, process: str, number: signal.Signals) -> None:
        pid = self.mission.process(process).pid
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


async def settle(mission: Mission) -> list[ToolEvent]:
    """Wait until all processes are up and all calls closed; then the events that a new reader gets."""
    await until(lambda: all(process.state == "ready" for process in mission.supervisor.processes()), 30)
    await mission.end_calls()
    journal = await read_journal(mission.gateway)
    await until(lambda: len(mission.events) > 0 and mission.events[-1] == journal[-1])
    return journal


def test_nothing_is_lost_while_processes_die(bus_url: str, free_port: int, tmp_path: Path) -> None:
    async def main() -> None:
        faults = FaultInjection(Faults(loss=LOSS), seed=SEED)
        async with (
            asyncio.timeout(SECONDS + 70),
            running(bus_url, free_port, tmp_path, wrap_bus=faults, hang_bound_s=4.0) as mission,
        ):
            await mission.follow()
            chaos = Chaos(mission, SEED)
            await chaos.run(SECONDS)
            began = clock.monotonic()
            journal = await settle(mission)
            _logger.info("%s", ", ".join(chaos.strikes))
            check_journal(journal)
            check_reader(mission.events, journal)
            checked = check_conversation(journal)
            outcomes = [str(events[-1].outcome) for events in by_call(journal).values()]
            _logger.info(
                "%d strikes, settled after %.1f s; %d events, calls %s, %d of them in the agent's conversation",
                len(chaos.strikes),
                clock.monotonic() - began,
                len(journal),
                dict(Counter(outcomes)),
                checked,
            )
            assert checked
            await until(lambda: mission.speeds[-1][1] < 0.05)

    asyncio.run(main())
