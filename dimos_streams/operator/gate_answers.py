"""The velocity gates' answers to a hold: a holder of a robot believes these, and not what was sent."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from dimos_streams import clock
from dimos_streams.operator.holding import GATE, VelocityGateState, gate_state
from dimos_streams.operator.messages.hold import HoldView, VelocityGateNotHeld
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.liveness.module_view import ModuleView

_MAX_GATES = 50


class VelocityGateAnswers:
    """The answers of those velocity gates that a source's hold concerns."""

    def __init__(self, directory: ModuleDirectory | None, source: str, concerns: Callable[[str], bool]) -> None:
        """``concerns`` says whether a gate has to hold for ``source``, by its module's name. Without a ``directory``
        there are no gates."""
        self._directory = directory
        self._source = source
        self._concerns = concerns
        self.channel = ""
        """The channel on which ``source`` holds: whatever gate listens there is concerned as well. Empty for none."""
        self._instances: dict[str, str] = {}
        """The instance of each gate, so that no damaged message makes it no gate any more."""

    def view(self, since: float = -math.inf) -> HoldView:
        """The gates' present answer; what they said before ``since`` does not count."""
        return hold_view({module.name: self._problem_of(module, state, since) for module, state in self.gates()})

    def gates(self) -> Iterator[tuple[ModuleView, VelocityGateState]]:
        """The concerned modules that have said since their start that they are gates, with what they say now."""
        if self._directory is None:
            return
        modules = {module.name: module for module in self._directory.reporting(GATE)}
        once_gates = [self._directory.module(name) for name in self._instances if name not in modules]
        modules |= {module.name: module for module in once_gates if module is not None}
        for name, module in sorted(modules.items()):
            state = gate_state(module.state)
            if not self._concerns(name) and not self._listens(name, state):
                continue
            if state is not None:
                self._instances[name] = module.instance
            if self._instances.get(name) == module.instance:
                yield module, state or VelocityGateState(listens=False, still=False)

    def _listens(self, name: str, state: VelocityGateState | None) -> bool:
        """Return whether a gate listens where ``source`` holds, or did when it was understood last."""
        return name in self._instances if state is None else bool(self.channel) and state.channel == self.channel

    def _problem_of(self, module: ModuleView, state: VelocityGateState, since: float) -> VelocityGateNotHeld | None:
        if not module.alive or clock.monotonic() - module.age_s < since:
            return VelocityGateNotHeld(gate=module.name, problem="silent", text=_silence(module.age_s))
        return why_not_held(module.name, state, self._source)


def why_not_held(gate: str, state: VelocityGateState, source: str) -> VelocityGateNotHeld | None:
    """Return why a gate that says this does not hold for a source; None if it does."""
    if not state.listens:
        return VelocityGateNotHeld(gate=gate, problem="deaf", text="it does not listen to /hold")
    if source not in state.holds:
        others = f", only for {', '.join(state.holds)}" if state.holds else ""
        return VelocityGateNotHeld(gate=gate, problem="not_holding", text=f"it does not hold for {source}{others}")
    if not state.still:
        return VelocityGateNotHeld(gate=gate, problem="moving", text="it holds skills, but the base is driven")
    return None


def hold_view(problems: Mapping[str, VelocityGateNotHeld | None]) -> HoldView:
    """Return the answer of all gates, of which each has its problem, or None if it holds."""
    held = [gate for gate, problem in problems.items() if problem is None]
    not_held = [problem for problem in problems.values() if problem is not None]
    return HoldView(held=tuple(held[:_MAX_GATES]), not_held=tuple(not_held[:_MAX_GATES]))


def _silence(age_s: float) -> str:
    """The text about a silence; coarse, so that not every moment has a text of its own."""
    return f"it has been silent for {f'{age_s:.0f}' if age_s < 10 else 'more than 10'} s"
