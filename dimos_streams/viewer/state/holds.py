"""The holds on robots in a recording, and what the velocity gates say of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.messages.codec import split_channel
from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.operator.gate_answers import hold_view, why_not_held
from dimos_streams.operator.holding import STOP_ROBOT, HoldTable, VelocityGateState, gate_state
from dimos_streams.operator.messages.hold import HoldView, VelocityGateNotHeld
from dimos_streams.operator.messages.stop import Stop, StoppedRobots
from dimos_streams.tool_stream.liveness.module_view import ModuleView

_MAX_ROBOTS = 64


@dataclass(slots=True)
class _HeldRobot:
    """The holders of one robot, as its velocity gate and its skills know them."""

    table: HoldTable = field(default_factory=lambda: HoldTable("the recording"))
    since: dict[str, int] = field(default_factory=dict)
    """The time at which each source that holds began to, µs."""

    def copy(self) -> _HeldRobot:
        return _HeldRobot(self.table.copy(), dict(self.since))

    def take(self, utime: int, message: Hold) -> None:
        before = self.table.sources(_seconds(utime))
        self.table.update(message, _seconds(utime))
        now = self.table.sources(_seconds(utime))
        self.since = {source: self.since[source] if source in before else utime for source in now}


class Holds:
    """Takes ``Hold`` messages in the order of the log."""

    def __init__(self) -> None:
        self._robots = NewestEntries[str, _HeldRobot](_MAX_ROBOTS)
        """The holds by robot; the one of the newest message stands last."""

    def copy(self) -> Holds:
        """Return a copy of the holds at this moment."""
        found = Holds()
        for robot, held in self._robots.items():
            found._robots[robot] = held.copy()
        return found

    def take(self, utime: int, channel: str, message: Hold) -> None:
        """Take a message, at a time that is not before that of the last one."""
        robot = split_channel(channel)[0].rpartition("/")[0].strip("/")
        held = self._robots.get(robot) or _HeldRobot()
        held.take(utime, message)
        self._robots[robot] = held

    def views(self, utime: int, modules: Iterable[ModuleView]) -> dict[str, HoldView]:
        """Return what the gates say of each hold, by source."""
        gates = list(modules)
        sources = {source for held in self._robots.values() for source in held.table.sources(_seconds(utime))}
        return {source: _view(source, gates) for source in sorted(sources)}

    def stopped(self, utime: int, modules: Iterable[ModuleView]) -> StoppedRobots:
        """The robots that an operator has stopped."""
        stops = tuple(
            Stop(robot=robot, utime=held.since[STOP_ROBOT], reason=hold.reason)
            for robot, held in sorted(self._robots.items())
            for hold in held.table.holding(_seconds(utime))
            if hold.source == STOP_ROBOT
        )
        if not stops:
            return StoppedRobots()
        view = _view(STOP_ROBOT, modules)
        return StoppedRobots(stops=stops, held=view.held, not_held=view.not_held)


def _seconds(utime: int) -> float:
    return utime / 1e6


def _view(source: str, modules: Iterable[ModuleView]) -> HoldView:
    gates = ((module, gate_state(module.state)) for module in modules)
    return hold_view({gate.name: _problem_of(gate, state, source) for gate, state in gates if state is not None})


def _problem_of(gate: ModuleView, state: VelocityGateState, source: str) -> VelocityGateNotHeld | None:
    if not gate.alive:
        return VelocityGateNotHeld(gate=gate.name, problem="silent", text=f"it is {gate.health}")
    return why_not_held(gate.name, state, source)
