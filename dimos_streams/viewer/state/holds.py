"""The holds on robots in a recording, and what the velocity gates say of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dimos_streams.messages.codec import split_channel
from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.operator.holding import MAX_VALID_S, STOP_ROBOT, gate_state
from dimos_streams.operator.messages.hold import HoldView, VelocityGateNotHeld
from dimos_streams.operator.messages.stop import Stop, StoppedRobots
from dimos_streams.tool_stream.liveness.module_view import ModuleView

_MAX_SOURCES = 200


@dataclass(frozen=True, slots=True)
class _SaidHold:
    """The last message of somebody's hold on one channel."""

    since: int
    until: int
    """The time at which it does not count any more unless it is said again; times are µs."""
    reason: str


class Holds:
    """Takes ``Hold`` messages in the order of the log."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], _SaidHold] = {}
        """The holds by source and robot."""

    def copy(self) -> Holds:
        """Return a copy of the holds at this moment."""
        found = Holds()
        found._held = dict(self._held)
        return found

    def take(self, utime: int, channel: str, message: Hold) -> None:
        """Take a message."""
        key = message.source, split_channel(channel)[0].rpartition("/")[0].strip("/")
        before = self._held.get(key)
        if not message.hold:
            self._held.pop(key, None)
        elif before is not None or len(self._held) < _MAX_SOURCES:
            since = before.since if before is not None and before.until >= utime else utime
            valid_us = round(1e6 * min(max(0.0, message.valid_s), MAX_VALID_S))
            self._held[key] = _SaidHold(since, utime + valid_us, message.reason)

    def views(self, utime: int, modules: Iterable[ModuleView]) -> dict[str, HoldView]:
        """Return what the gates say of each hold, by source."""
        gates = list(modules)
        sources = {source for (source, _), held in self._held.items() if held.until >= utime}
        return {source: _view(source, gates) for source in sorted(sources)}

    def stopped(self, utime: int, modules: Iterable[ModuleView]) -> StoppedRobots:
        """The robots that an operator has stopped."""
        stops = tuple(
            Stop(robot=robot, utime=held.since, reason=held.reason)
            for (source, robot), held in sorted(self._held.items())
            if source == STOP_ROBOT and held.until >= utime
        )
        if not stops:
            return StoppedRobots()
        view = _view(STOP_ROBOT, modules)
        return StoppedRobots(stops=stops, held=view.held, not_held=view.not_held)


def _view(source: str, modules: Iterable[ModuleView]) -> HoldView:
    held: list[str] = []
    not_held: list[VelocityGateNotHeld] = []
    for module in modules:
        state = gate_state(module.state)
        if state is None:
            continue
        if module.alive and source in state.holds and state.still:
            held.append(module.name)
        else:
            not_held.append(_not_held(source, module))
    return HoldView(held=tuple(held), not_held=tuple(not_held))


def _not_held(source: str, module: ModuleView) -> VelocityGateNotHeld:
    if not module.alive:
        return VelocityGateNotHeld(gate=module.name, problem="silent", text=f"it is {module.health}")
    state = gate_state(module.state)
    assert state is not None, "it is a gate"
    if not state.listens:
        return VelocityGateNotHeld(gate=module.name, problem="deaf", text="it does not listen to /hold")
    if source in state.holds:
        return VelocityGateNotHeld(gate=module.name, problem="moving", text="it holds skills, but the base is driven")
    return VelocityGateNotHeld(gate=module.name, problem="not_holding", text=f"it does not hold for {source}")
