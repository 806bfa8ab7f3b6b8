"""How a mission ends follows from what happens by one rule, for an agent that lives and for who reads its record."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dimos_streams import clock
from dimos_streams.agent.missions.end_state import EndState
from dimos_streams.agent.missions.message_queue import OperatorInput
from dimos_streams.agent.missions.mission import Mission, roots
from dimos_streams.agent.models.protocol import Finish, TextDelta, TokenUsage
from dimos_streams.agent.resumption.mission_reader import read_unfinished
from dimos_streams.tool_stream.protocol.close_data import STOPPED
from tests.agent.loop.agent_in_memory import AgentInMemory
from tests.agent.loop.function_model import Answer, FunctionModel, asks, says
from tests.agent.loop.line_world import LineWorld

AGENTS = {"helper": {"description": "does things", "prompt": "helper"}}
CUT_AFTER_S = 0.5
"""In the midst of what takes a second."""


def ends(finish: str, text: str = "well") -> Answer:
    return [TextDelta(text), TokenUsage(1, 1), Finish(finish)]


ANSWERS: dict[str, Answer] = {
    "says": says("done"),
    "is silent": says(""),
    "failed": ends("call_failed"),
    "not understood": ends("not_understood"),
    "asked for nothing": ends("tool_calls"),
    "fails": asks(("fail", {"n": 1})),
    "fails, then moves": asks(("fail", {"n": 2}), ("move", {"by": 1})),
    "follows": asks(("follow", {})),
    "hangs": asks(("hang", {})),
    "looks twice": asks(("look", {"for_s": 0}), ("look", {})),
    "asks for what is not there": asks(("fly", {})),
    "delegates": asks(("delegate", {"agent": "helper", "task": "go on"})),
}
DEEDS = ("wait", "cancel", "stop", "release", "withdraw", "interrupt", "say", "pause", "resume", "abort")


class Life:
    """An agent with what happens to it. Its model gives the ``answers``, and then says that all is done."""

    def __init__(self, answers: list[str]) -> None:
        self.world = LineWorld()
        self.missions: list[Mission] = []
        left = iter(answers)
        model = FunctionModel(lambda request: ANSWERS[next(left, "says")])
        self.agent: AgentInMemory = self.world.with_model(model, agents=AGENTS, answer_timeout_s=2)

    async def lead(self, deeds: list[str]) -> None:
        async with self.agent:
            self.missions.append(await self.agent.say("go"))
            for deed in deeds:
                await asyncio.sleep(CUT_AFTER_S)
                await self._do(deed)
                self.compare()
            await self.agent.core.loop.abort("enough")
            self.compare()

    async def _do(self, deed: str) -> None:
        calls = [call.call_id for call in self.agent.core.calls.known.open]
        match deed:
            case "cancel" | "stop" if calls:
                await self.world.bridge.cancel(calls[-1], "enough" if deed == "cancel" else f"{STOPPED}: a child")
            case "release":
                self.world.released.set()
            case "withdraw":
                self.missions[0].end("cancelled")
            case "interrupt":
                self.missions.append(self.agent.core.missions.begin(f"now{len(self.missions)}", "now"))
                self.agent.core.loop.cut()  # a sub-agent would hear the input in place of the agent
                self.agent.core.queue.put_nowait(OperatorInput("now", (self.missions[-1],), now=True))
            case "say":
                self.missions.append(await self.agent.say("and then"))
            case "pause":
                self.agent.core.control.pause()
            case "resume":
                self.agent.core.control.resume()
            case "abort":
                await self.agent.core.loop.abort("no more")

    def compare(self) -> None:
        """Fail unless the record says of each mission what is so."""
        events = self.agent.core.events.after(0)
        turn = self.agent.core.loop.turn
        for mission in self.missions:
            if turn is not None and mission in turn.missions:
                continue  # its record is whole when the turn is
            own = [event for event in events if mission.id in roots(event.missions)]
            assert shown(read_unfinished(mission.id, own).end_state) == shown(mission.end_state)


def shown(state: EndState) -> dict[str, Any]:
    """A state; of a mission that was ended early without what is said of that, which no record has."""
    return asdict(state) | ({"why": "", "text": ""} if state.ended else {})


@pytest.mark.feature("D4")
@given(
    st.lists(st.sampled_from(list(ANSWERS)), min_size=1, max_size=8),
    st.lists(st.sampled_from(DEEDS), min_size=1, max_size=8),
)
@example(["delegates", "fails"], ["wait"])
@example(["looks twice", "hangs"], ["wait", "wait", "interrupt", "wait"])
@example(["follows", "says", "asks for what is not there"], ["cancel", "wait"])
@example(["follows", "says", "fails", "not understood"], ["pause", "release", "say", "resume", "wait"])
@settings(max_examples=25, deadline=None, derandomize=True)
def test_the_record_says_how_each_mission_stands(answers: list[str], deeds: list[str]) -> None:
    clock.run_virtual(Life(answers).lead(deeds))
