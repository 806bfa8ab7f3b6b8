"""Random sequences of what operators do, with random timings: nobody is stranded, nothing acts after an abort, and
nothing moves the robot after a stop of it that nobody has asked for since."""

from __future__ import annotations

import asyncio
import collections
import os
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.agent.loop.states import LoopState
from dimos_streams.agent.models.protocol import ModelRequest, UserMessage
from dimos_streams.errors import SkillError
from dimos_streams.operator.messages.agent import AgentEvent
from dimos_streams.tool_stream.gateway import OfferedSkill
from dimos_streams.tool_stream.protocol.close_data import STOPPED
from tests.agent.loop.agent_in_memory import AgentInMemory
from tests.agent.loop.fake_bridge import FakeBridge, FakeCall, offered
from tests.agent.loop.function_model import Answer, FunctionModel, asks, says

pytestmark = pytest.mark.slow

SEQUENCES = int(os.environ.get("CONTROL_SEQUENCES", "2000"))
PARTS = 16
LATENCY_S = 0.02
ON_ITS_WAY_S = 0.021
ACTIONS = (
    *("pause", "resume", "step", "abort", "rollback", "undo", "decide", "cancel", "withdraw", "hand over", "say"),
    *("stop robot", "release robot"),
)
MOTIONS = ("move", "risky")


class Chaos:
    """One sequence. ``seed`` decides on everything."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.aborts: list[float] = []
        self.commands: list[asyncio.Task[Any]] = []
        self.began: dict[str, int] = {}
        """The number of aborts before each mission's input."""
        self.said: dict[str, float] = {}
        """The time of each mission's input."""
        self.stops: list[float] = []
        self.stopped = False
        self.handed: list[Any] = []
        skills: dict[str, tuple[OfferedSkill, Callable[[FakeCall], Coroutine[Any, Any, Any]]]] = {
            "move": (offered("move", motion=True, undo="back"), self.move),
            "look": (offered("look", concurrent=True), self.look),
            "follow": (offered("follow", reversible=False), self.follow),
            "risky": (offered("risky", motion=True, approval="ask", undo="back"), self.move),
            "back": (offered("back", audience="operator"), self.look),
        }
        self.bridge = FakeBridge(skills, latency_s=self.latency_s, refuse=self.refuses)
        model = FunctionModel(self.answer, lambda: self.random.choice((0.0, 0.05)))
        model.keep = False
        self.agent = AgentInMemory(self.bridge, model, {"plan": {"motions": None}})

    def latency_s(self) -> float:
        return LATENCY_S if self.random.random() < 0.2 else 0.0

    def refuses(self, skill: str) -> bool:
        return self.random.random() < 0.1 or (self.stopped and skill in MOTIONS)

    async def move(self, call: FakeCall) -> str:
        await asyncio.sleep(self.random.choice((0.05, 0.3)))
        if self.random.random() < 0.2:
            raise SkillError("blocked")
        return "moved"

    async def look(self, call: FakeCall) -> str:
        await asyncio.sleep(self.random.choice((0.0, 0.1)))
        return "seen"

    async def follow(self, call: FakeCall) -> str:
        call.send("update", "following")
        await asyncio.sleep(self.random.choice((0.2, 1.0)))
        call.send("update", "found")
        return "left"

    def answer(self, request: ModelRequest) -> Answer:
        """Calls that name the newest words that were heard, so that a check knows whose they are."""
        input = [m.text for m in request.messages if isinstance(m, UserMessage) and m.text.startswith("m")]
        if not input or self.random.random() < 0.55:
            return says("fine")
        names = self.random.choices(("move", "look", "follow", "risky"), k=self.random.choice((1, 1, 2, 3)))
        return asks(*((name, {"for": input[-1], "n": i}) for i, name in enumerate(names)))

    async def act(self, action: str) -> None:
        core = self.agent.core
        if action == "say":
            mission = await self.agent.say(f"m{len(self.began)}")
            self.began[mission.input] = len(self.aborts)
            self.said[mission.input] = clock.monotonic()
        elif action == "pause":
            core.control.pause()
        elif action == "resume":
            core.control.resume()
        elif action == "step":
            core.control.step()
        elif action in ("abort", "rollback"):
            self.aborts.append(clock.monotonic())
            self.command(core.loop.abort(rollback=action == "rollback"))
        elif action == "undo":
            self.command(core.loop.undo(2))
        elif action == "decide":
            for view in core.gate_state.approvals.pending():
                core.gate_state.approvals.decide(view.id, self.random.choice(("approve", "reject", "delete")))
        elif action == "stop robot":
            await self.stop_robot()
        elif action == "release robot":
            self.release_robot()
        elif action == "cancel":
            await core.calls.endings.cancel(core.calls.known.open[:1], "cancelled")
        elif action == "withdraw":
            for mission in list(core.loop.missions.values())[:1]:
                mission.end("cancelled")
        else:
            to = self.other if self.random.random() < 0.5 else None
            for call in core.calls.known.open:
                call.hand_over(call.missions, to)

    async def stop_robot(self) -> None:
        self.stopped = True
        self.stops.append(clock.monotonic())
        calls = self.bridge.calls_.values()
        moving = [call.id for call in calls if call.skill in MOTIONS and call.outcome is None]
        await self.bridge.cancel_calls(moving, f"{STOPPED}: enough")
        self.agent.core.oversight.robot_stops.gates_changed.notify()

    def release_robot(self) -> None:
        if self.stopped:
            self.stopped = False
            self.agent.core.oversight.robot_stops.gates_changed.notify()

    async def other(self, update: Any) -> None:
        self.handed.append(update)

    def command(self, work: Any) -> None:
        self.commands.append(asyncio.get_running_loop().create_task(work))

    async def run(self) -> None:
        async with self.agent:
            await self.act("say")
            for _ in range(self.random.randint(3, 8)):
                await asyncio.sleep(self.random.choice((0.0, 0.0, 0.01, 0.06, 0.2)))
                await self.act(self.random.choice(ACTIONS))
            await self.come_to_rest()
            self.check()

    async def come_to_rest(self) -> None:
        """All that is held is let go; then everything has to end by itself."""
        core = self.agent.core
        self.release_robot()
        await asyncio.sleep(3 * ON_ITS_WAY_S)
        async with asyncio.timeout(600):
            while (
                core.loop.missions
                or core.loop.state is not LoopState.IDLE
                or core.calls.known.open
                or len(core.queue)
            ):
                core.control.resume()
                for view in core.gate_state.approvals.pending():
                    core.gate_state.approvals.decide(view.id, "approve")
                await asyncio.sleep(0.2)
            await asyncio.gather(*self.commands, return_exceptions=True)

    def check(self) -> None:
        core, events = self.agent.core, self.agent.core.events.after(0)
        assert not core.control.waiting
        assert not core.gate_state.approvals.pending()
        assert self.agent.model.streams == 0
        for task in self.commands:
            assert isinstance(task.exception(), SkillError | None), task.exception()
        for call in self.bridge.calls_.values():
            if "for" in call.arguments:
                before = self.began[call.arguments["for"]]
                late = [call.at - at for at in self.aborts[before:] if at < call.at]
                # One whose beginning was on its way is ended as soon as it shows, unless it has ended by then.
                ended = call.reason or call.ended_at - call.at <= 2 * ON_ITS_WAY_S
                on_its_way = ended and max(late, default=0.0) <= ON_ITS_WAY_S
                assert not late or on_its_way, f"{call.skill} for {call.arguments['for']} began after an abort"
        self.check_stops(events)
        ends = collections.Counter(id for event in events if event.kind == "done" for id in event.missions)
        assert set(ends.values()) <= {1}
        assert len(ends) == len(self.began)
        delivered = collections.Counter(
            (event.data["event"]["call_id"], event.data["event"]["seq"])
            for event in events
            if event.kind in ("update", "result") and event.data.get("event") and event.data["event"]["call_id"]
        )
        delivered.update((update.event.call_id, update.event.seq) for update in self.handed)
        assert set(delivered.values()) <= {1}
        closes = {(p.event.call_id, p.event.seq) for p in self.bridge.journal if p.event.type == "close"}
        silent = {call.id for call in self.bridge.calls_.values() if call.skill == "back"}
        assert {offset for offset in closes if offset[0] not in silent} <= set(delivered)
        asked = [c["id"] for event in events if event.kind == "answer" for c in event.data["tool_calls"]]
        assert len(asked) == sum(event.kind == "result" for event in events)

    def check_stops(self, events: list[AgentEvent]) -> None:
        decided = [event for event in events if event.kind == "approval_decided"]
        approved = [event for event in decided if event.data["approval"]["state"] == "approved"]
        for call in self.bridge.calls_.values():
            stop = max((at for at in self.stops if at < call.at), default=None)
            if stop is None or call.skill not in MOTIONS or call.at - stop <= ON_ITS_WAY_S:
                continue
            since = clock.VIRTUAL_EPOCH_US + round(stop * 1e6)
            asked = (event.data["approval"]["arguments"] for event in approved if event.utime >= since)
            is_asked_for = self.said[call.arguments["for"]] >= stop or call.arguments in asked
            assert is_asked_for, f"{call.skill} {call.arguments} began unasked after the stop at {stop:.3f}"


@pytest.mark.feature("B3", "B4", "B5", "B6")
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.virtual_time
async def test_nobody_is_stranded_and_nothing_acts_after_an_abort(part: int) -> None:
    for seed in range(part, SEQUENCES, PARTS):
        try:
            await Chaos(seed).run()
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
