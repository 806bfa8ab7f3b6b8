"""The velocity gates' answers to an operator's stop, and the robots that it may concern."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from dimos_streams import clock
from dimos_streams.bridge.calls.stops.hold_channels import is_hold_channel
from dimos_streams.bridge.calls.stops.stop_state import is_of
from dimos_streams.common.names import is_in, namespace_of
from dimos_streams.operator.gate_answers import VelocityGateAnswers
from dimos_streams.operator.gate_confirmation import GateConfirmation
from dimos_streams.operator.holding import (
    GATE,
    HOLD_PERIOD_S,
    HOLDS_KNOWN_AFTER_S,
    RELEASES,
    STOP_ROBOT,
    VelocityGateState,
)
from dimos_streams.operator.messages.hold import HoldView, VelocityGateNotHeld
from dimos_streams.operator.messages.stop import Stop
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.liveness.module_view import ModuleView

CONFIRM_S = 2.0
"""Time, in seconds, that gates have to say that they hold."""
_RELEASED_S = RELEASES * HOLD_PERIOD_S + HOLDS_KNOWN_AFTER_S
"""Time, in seconds, after which nobody else stops a robot whose gates do not hold: all ends of the hold were sent by
then, and others would have repeated theirs."""


class GateWatch:
    """Knows the gates, and waits for what they say. Use from the bus's loop only."""

    def __init__(self, directory: ModuleDirectory, covering: Callable[[str], Stop | None]) -> None:
        """``covering`` returns the order that keeps a namespace still, None if none does."""
        self._directory = directory
        self._covering = covering
        self._stopped = VelocityGateAnswers(directory, STOP_ROBOT, self._is_stopped)
        self._all = VelocityGateAnswers(directory, STOP_ROBOT, lambda module: True)
        self._confirmation = GateConfirmation(directory)

    def robots(self) -> set[str]:
        """The namespaces that have a velocity gate, or a skill that moves: what may be stopped by name."""
        moving = {namespace_of(module.name) for module, info in self._directory.skills() if info.moves}
        return self._gated() | moving

    def of(self, robot: str) -> list[VelocityGateState]:
        """The states of a robot's gates, whether it is stopped or not."""
        return [state for module, state in self._all.gates() if is_of(module.name, robot)]

    def unstopped(self) -> Iterator[tuple[ModuleView, VelocityGateState]]:
        """The gates of robots that no order keeps still, with what they say."""
        return ((module, state) for module, state in self._all.gates() if not self._is_stopped(module.name))

    def channels(self) -> Iterator[tuple[str, Stop]]:
        """The channels on which the gates of stopped robots say that they listen, each with the order for it."""
        for module, state in self._stopped.gates():
            stop = self._covering(namespace_of(module.name))
            if stop is not None and is_hold_channel(state.channel):
                yield state.channel, stop

    async def wait_confirmed(self, robot: str, began: float) -> HoldView:
        """Wait until all gates of a robot say that they hold, or it is released, for ``CONFIRM_S`` at most; return
        what they say. What they said before ``began`` does not count."""

        def settled(view: HoldView) -> bool:
            return view.confirmed or self._covering(robot) is None

        return await self._confirmation.wait(lambda: self.view(robot, began), settled, began + CONFIRM_S)

    async def held_by_others(self, robot: str) -> tuple[str, ...]:
        """Return the gates of a robot that was released which hold for a stop all the same: those who have given it
        say so again and again."""
        began = clock.monotonic()
        holding = self._holding(robot)
        until = began + _RELEASED_S if holding else began
        with self._confirmation.listening() as heard:
            while clock.monotonic() < until:
                await heard.wait(until)
                holding = self._holding(robot)
                until = began + (CONFIRM_S if holding else _RELEASED_S)
        return holding

    def view(self, robot: str, since: float = -math.inf) -> HoldView:
        """The answers of a robot's gates since a time, with the robots that have no gate."""
        view = self._stopped.view(since)
        held = tuple(gate for gate in view.held if is_of(gate, robot))
        not_held = [gate for gate in view.not_held if is_of(gate.gate, robot)]
        gated = self._gated()
        for name in sorted(self.robots() - gated):
            if self._covering(name) is not None and is_in(name, robot):
                text = "no velocity gate of it was heard of, nothing confirms that it stands"
                not_held.append(VelocityGateNotHeld(gate=name or "the robot", problem="missing", text=text))
        return HoldView(held=held, not_held=tuple(not_held))

    def _holding(self, robot: str) -> tuple[str, ...]:
        """The gates of a robot that is not stopped here which hold for an operator's stop."""
        gates = ((module.name, state) for module, state in self.unstopped() if is_of(module.name, robot))
        return tuple(name for name, state in gates if STOP_ROBOT in state.holds)

    def _gated(self) -> set[str]:
        return {namespace_of(module.name) for module in self._directory.reporting(GATE)}

    def _is_stopped(self, module: str) -> bool:
        return self._covering(namespace_of(module)) is not None
