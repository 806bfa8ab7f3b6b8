"""A live robot whose language model is hostile, while operators pause, abort, decide and talk, and processes die.

``DIMOS_STREAMS_HOSTILE_SECONDS`` and ``DIMOS_STREAMS_HOSTILE_SEED`` make it longer and another one; what came of it
is logged, ``--log-cli-level=INFO`` shows it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import signal
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from dimos_streams import clock
from dimos_streams.blueprint.load import resolve
from dimos_streams.errors import SkillError
from dimos_streams.testing.model_server import ModelServer
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.gateway import CallView
from tests.helpers import until
from tests.live.hostile_model import OPERATORS_SKILLS, HostileModel
from tests.live.mission import Mission, running
from tests.live.promises import by_call, check_journal, read_journal

SECONDS = float(os.environ.get("DIMOS_STREAMS_HOSTILE_SECONDS", "10"))
SEED = int(os.environ.get("DIMOS_STREAMS_HOSTILE_SEED", "1"))
BRAKING_S = 1.0
"""A base that was moving when it was held stands by then."""

pytestmark = [pytest.mark.live, pytest.mark.timeout(SECONDS + 120)]
_logger = logging.getLogger(__name__)
_INPUTS = ("drive a bit", "look out for somebody in red", "what do you see?", "go on", "\ud83d tell me a joke")


class Operators:
    """Do what operators do, at random by a seed, and check what they are shown against what the robot does."""

    def __init__(self, mission: Mission, seed: int) -> None:
        self.mission = mission
        self.random = random.Random(seed)
        self.done: Counter[str] = Counter()
        self.held_s = 0.0

    async def run(self, seconds: float) -> None:
        deadline = clock.monotonic() + seconds
        often, seldom = [self.talk, self.pause], [self.decide, self.abort, self.stop, self.step, self.strike]
        acts = [*often * 4, *seldom]
        while clock.monotonic() < deadline:
            act = self.random.choice(acts)
            with contextlib.suppress(SkillError):  # the agent is on its way back, or does not want to
                await act()
                self.done[act.__name__] += 1
            await asyncio.sleep(self.random.uniform(0.0, 0.6))

    async def ask(self, skill: str, **arguments: object) -> CallView:
        """Call one of the agent's skills and wait for its close. Raises ``SkillError`` if it is not taken."""
        call_id = await self.mission.gateway.call(skill, arguments, caller="operator")
        async with asyncio.timeout(30):
            while True:
                view = next(iter([v for v in await self.mission.gateway.calls() if v.call_id == call_id]), None)
                if view is not None and view.state == "closed":
                    return view
                await asyncio.sleep(0.02)

    async def talk(self) -> None:
        await self.mission.gateway.call("say", {"text": self.random.choice(_INPUTS)}, caller="operator")

    async def pause(self) -> None:
        report = await self.ask("pause", reason="let me see")
        if report.outcome is Outcome.COMPLETED and report.result["held"]:
            await self._stands(report, self.random.uniform(0.2, 1.0))
        await self.ask("resume")

    async def _stands(self, report: CallView, seconds: float) -> None:
        """What was said to be held stands, and no call begins in the agent's name."""
        since, since_utime = clock.monotonic() + BRAKING_S, clock.utime() + int(BRAKING_S * 1e6)
        await asyncio.sleep(BRAKING_S + seconds)
        moved = [speed for at, speed in self.mission.speeds if at >= since and speed > 0.05]
        assert not moved, f"it moved at {max(moved)} after {report.text!r}"
        begun = [e for e in self.mission.events if _begins_for(e, "agent") and e.utime > since_utime]
        assert not begun, f"{begun[0].skill} began after {report.text!r}"
        self.held_s += seconds

    async def abort(self) -> None:
        report = await self.ask("abort", rollback=self.random.random() < 0.3)
        if report.outcome is Outcome.COMPLETED and report.result["unfinished"]:
            await self._stands(report, 0.5)
            await self.ask("resume")

    async def stop(self) -> None:
        await self.ask("say", text="stop")

    async def step(self) -> None:
        await self.ask("step", mode="on")
        await self.ask("step")
        await self.ask("step", mode="off")

    async def decide(self) -> None:
        for approval in (await self.ask("approvals")).result or ():
            decision = self.random.choice(["approve", "reject", "delete"])
            await self.ask("decide", approval=approval["id"], decision=decision, reason="as I like")

    async def strike(self) -> None:
        struck = self.random.choice(["agent", "bridge"])
        if self.mission.process(struck).pid is not None:  # else it is waiting to be restarted
            self.mission.kill(struck, signal.SIGKILL)


def _begins_for(event: ToolEvent, caller: str) -> bool:
    return event.type == "open" and event.caller == caller and not event.data.get("refused")


def check_authority(journal: Sequence[ToolEvent]) -> None:
    """No call in the agent's name reached a skill for operators, whoever asked for it."""
    reached = [e for e in journal if _begins_for(e, "agent") and e.skill in OPERATORS_SKILLS]
    assert not reached, reached


@pytest.mark.feature("B3", "D2", "E9")
def test_a_hostile_model_neither_moves_a_held_robot_nor_wedges_its_agent(
    bus_url: str, free_port: int, tmp_path: Path
) -> None:
    model = HostileModel(SEED)
    with ModelServer(model).in_thread() as server:
        blueprint = resolve("agent-openai").configured(
            {
                "agent.base_url": server.url,
                "agent.model": "openai:hostile",
                "agent.approval": {"rules": [{"skill": "go_to", "action": "ask"}], "timeout_s": 20},
                "agent.limits.deadline_s": 60,
                "agent.zones": [{"name": "kitchen", "polygon": [[1, -1], [3, -1], [3, 1], [1, 1]]}],
            }
        )

        async def main() -> None:
            async with (
                asyncio.timeout(SECONDS + 100),
                running(bus_url, free_port, tmp_path, blueprint) as mission,
            ):
                operators = Operators(mission, SEED)
                await operators.run(SECONDS)
                await finish(mission, operators)
                journal = await read_journal(mission.gateway)
                _logger.info("%s; %d requests, held for %.1f s, outcomes %s", dict(operators.done),
                             len(server.requests), operators.held_s, _outcomes(journal))  # fmt: skip
                check_journal(journal)
                check_authority(journal)

        async def finish(mission: Mission, operators: Operators) -> None:
            """From one moment on the model behaves: so does the agent then."""
            await until(lambda: all(process.state == "ready" for process in mission.supervisor.processes()), 30)
            model.behaved = True
            await until_taken(operators, "abort")
            await until_taken(operators, "resume")
            said = await until_taken(operators, "say", text="Are you there?")
            assert (said.outcome, said.text) == (Outcome.COMPLETED, "I hear you."), said
            await mission.end_calls()

        async def until_taken(operators: Operators, skill: str, **arguments: object) -> CallView:
            async with asyncio.timeout(30):
                while True:
                    try:
                        return await operators.ask(skill, **arguments)
                    except SkillError:
                        await asyncio.sleep(0.1)

        asyncio.run(main())


def _outcomes(journal: Sequence[ToolEvent]) -> dict[str, int]:
    closes = (events[-1] for events in by_call(journal).values())
    return dict(Counter(f"{event.skill}: {event.outcome}" for event in closes))
