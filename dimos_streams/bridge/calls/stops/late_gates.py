"""Velocity gates that were down when their robot was released. They keep holds in a file, so they begin by holding
it."""

from __future__ import annotations

from collections.abc import Iterable

from dimos_streams import clock
from dimos_streams.bridge.calls.stops.hold_channels import is_hold_channel
from dimos_streams.bridge.calls.stops.stop_state import is_of
from dimos_streams.operator.holding import LATE_GATE_S, STOP_ROBOT, VelocityGateState
from dimos_streams.tool_stream.liveness.module_view import ModuleView


class LateGates:
    """Decides which gates are still to hear of a release.

    Each instance of a gate hears of it once. A gate that has said since the release that it does not hold hears
    nothing more: if it holds again later, another run has stopped the robot, and that stop stays.
    """

    def __init__(self) -> None:
        self._released: dict[str, float] = {}
        """The time of the last release, by robot."""
        self._reported: dict[str, str] = {}
        """The instance to which the release was last reported, by gate; empty for a gate that needs nothing more."""

    def release(self, robot: str) -> None:
        """A robot, or every one (``""``), is released now."""
        now = clock.monotonic()
        self._released = {name: at for name, at in self._released.items() if now - at <= LATE_GATE_S} | {robot: now}
        self._reported = {gate: instance for gate, instance in self._reported.items() if not is_of(gate, robot)}

    @property
    def awaited(self) -> bool:
        """True if any may still turn up."""
        now = clock.monotonic()
        return any(now - at <= LATE_GATE_S for at in self._released.values())

    def channels(self, gates: Iterable[tuple[ModuleView, VelocityGateState]]) -> set[str]:
        """Return the channels of those to report it to now, among gates whose robots are not stopped."""
        return {state.channel for module, state in gates if self._is_due(module, state)}

    def _is_due(self, module: ModuleView, state: VelocityGateState) -> bool:
        gate, said_at = module.name, clock.monotonic() - module.age_s
        released = max((at for robot, at in self._released.items() if is_of(gate, robot)), default=None)
        if released is None or not released < said_at <= released + LATE_GATE_S:
            return False
        if self._reported.get(gate) in ("", module.instance):
            return False
        holds = STOP_ROBOT in state.holds
        self._reported[gate] = module.instance if holds else ""
        return holds and is_hold_channel(state.channel)
