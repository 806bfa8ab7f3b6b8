"""The missions of the agent's process before this one that were not over: begun again, and gone on with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from dimos_streams import clock
from dimos_streams.agent.missions.message_queue import MessageQueue, Notice, OperatorInput
from dimos_streams.agent.missions.mission import Mission
from dimos_streams.agent.open_missions import OpenMissions
from dimos_streams.agent.policies.runaway import RunawayGuards
from dimos_streams.agent.record.agent_events import Emit, EventKind
from dimos_streams.agent.resumption.state import AskedBatch, UnfinishedMission
from dimos_streams.agent.tools.toolbox import Toolbox


class MissionsBefore:
    """Begins missions of a record again in the agent's own loop."""

    def __init__(
        self, queue: MessageQueue, emit: Emit, missions: OpenMissions, unfinished: Iterable[UnfinishedMission]
    ) -> None:
        """``queue`` is that of the agent's own loop."""
        self._queue = queue
        self._emit = emit
        self._missions = missions
        self._unfinished = tuple(unfinished)
        self.by_id: Mapping[str, Mission] = {each.id: self._begin(each) for each in self._unfinished}
        """The missions that go on."""

    def keep_counts(self, guards: RunawayGuards, toolbox: Toolbox) -> None:
        """Show the guards of the missions what they did before: a restart begins no count anew."""
        for unfinished in self._unfinished:
            guard = self.by_id[unfinished.id].guard = guards.new()
            for asked, at in zip(unfinished.asked, _times(unfinished.asked), strict=True):
                if asked.calls:
                    guard.observe(toolbox.meant(asked.calls), toolbox.polling(), at=at)

    def go_on(self) -> bool:
        """Go on with all; return whether the model was in the middle of one that goes on."""
        for unfinished in self._unfinished:
            self._go_on_with(unfinished)
        return any(each.in_turn and not each.end_state.ended for each in self._unfinished)

    def _begin(self, unfinished: UnfinishedMission) -> Mission:
        mission = self._missions.open(unfinished.id, unfinished.input)
        mission.began_utime = unfinished.began_utime or mission.began_utime
        mission.known_orders = unfinished.known_orders
        mission.spent = unfinished.spent
        mission.end_state = replace(unfinished.end_state, ended="")  # ``_go_on_with`` ends its calls, too
        return mission

    def _go_on_with(self, unfinished: UnfinishedMission) -> None:
        mission = self.by_id[unfinished.id]
        if unfinished.end_state.ended:
            mission.end(unfinished.end_state.ended)
        else:
            self._missions.limit(mission)
        if mission.ended:
            mission.let_go()
            return
        text = "the agent was restarted and goes on with this mission"
        self._emit(EventKind.NOTE, (mission.id,), text=text)
        if not unfinished.heard:
            self._queue.put_nowait(OperatorInput(unfinished.input, (mission,)))
        elif unfinished.in_turn:
            self._queue.put_nowait(Notice("", (mission,)))
        else:
            mission.let_go()


def _times(asked: Sequence[AskedBatch]) -> list[float]:
    """The times of answers on the loop's clock, none before the one that precedes it, and none in the future.

    Where the machine's clock was set back, what was before that moves back as far: what counts is the pace of a
    mission, which the recorded times still tell on either side.
    """
    found: list[float] = []
    now, utime = clock.monotonic(), clock.utime()
    age = set_back = 0
    for batch in reversed(asked):
        recorded = utime - batch.utime + set_back
        set_back += max(0, age - recorded)
        age = max(age, recorded)
        found.append(now - age / 1e6)
    return found[::-1]
