"""The missions of one agent while they last: begun in the loop, ended at their deadline, reported at their end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

from dimos_streams import clock
from dimos_streams.agent.loop.loop import AgentLoop
from dimos_streams.agent.missions.mission import Mission
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.agent.record.event_data.missions import KnownOrders
from dimos_streams.agent.subagents.delegation import Delegation
from dimos_streams.common.boot_time import since_boot


class OpenMissions:
    """Opens missions and sees them to their end."""

    def __init__(self, loop: AgentLoop, delegation: Delegation, *, before: Collection[str] = ()) -> None:
        """``loop`` is the agent's own; the limits of its model bound how long a mission may last. ``before`` are the
        ids of the missions that a process before this one has begun."""
        self._loop = loop
        self._delegation = delegation
        self._emit = loop.parts.transcript.emit
        self._before = before
        self._deadlines: dict[str, asyncio.TimerHandle] = {}

    def was_begun_before(self, id: str) -> bool:
        """Return whether a process before this one has begun a mission: its input is not to be heard once more."""
        return id in self._before

    def begin(
        self, id: str, input: str, *, on_over: Callable[[], None] = lambda: None, is_done: bool = False
    ) -> Mission:
        """Begin a mission; it lasts until nothing of it is left to do. If it ``is_done`` already, a restarted agent
        does not resume it."""
        mission = self.open(id, input, on_over)
        self.limit(mission)
        mission.known_orders = self._loop.parts.oversight.robot_stops.numbers
        since, known = since_boot(), _known(mission)
        if is_done:
            self._emit(EventKind.MISSION_START, (id,), id=id, text=input, **since, **known, is_done=True)
        else:
            self._emit(EventKind.MISSION_START, (id,), id=id, text=input, **since, **known)
        return mission

    def open(self, id: str, input: str, on_over: Callable[[], None] = lambda: None) -> Mission:
        """Open a mission that the loop works on; it is over when nothing of it is left to do. It may last for ever,
        until it is given its ``limit``."""

        def over() -> None:
            self._on_over(mission)
            on_over()

        mission = Mission(id, over, input=input, on_end=self._on_end)
        self._loop.add_mission(mission)
        return mission

    def limit(self, mission: Mission) -> None:
        """End a mission when it has lasted for as long as it may; that counts from its beginning, in whatever process
        that was. If the machine was booted since, and its clock set back, it gets no more than the whole time."""
        deadline_s = self._loop.parts.model.limits.deadline_s
        if deadline_s is None:
            return
        left_s = min(deadline_s, deadline_s - (clock.utime() - mission.began_utime) / 1e6)
        if left_s > 0:
            timer = asyncio.get_running_loop().call_later(left_s, mission.end, "deadline")
            self._deadlines[mission.id] = timer
        else:
            mission.end("deadline")

    def close(self) -> None:
        """Cancel all deadlines. Twice is fine."""
        for timer in self._deadlines.values():
            timer.cancel()
        self._deadlines.clear()

    def _on_end(self, mission: Mission) -> None:
        self._loop.on_end(mission)
        self._delegation.withdraw(mission)

    def _on_over(self, mission: Mission) -> None:
        if mission.id not in self._loop.missions:
            return
        self._loop.remove_mission(mission)
        timer = self._deadlines.pop(mission.id, None)
        if timer is not None:
            timer.cancel()
        spent = mission.spent
        self._emit(
            EventKind.DONE,
            (mission.id,),
            reason=mission.reason,
            text=mission.text,
            unfinished=list(mission.unfinished),
            requests=spent.requests,
            input_tokens=spent.input_tokens,
            output_tokens=spent.output_tokens,
            cost=spent.cost,
        )


def _known(mission: Mission) -> KnownOrders:
    return {"robot_orders": sorted(mission.known_orders)} if mission.known_orders else {}
