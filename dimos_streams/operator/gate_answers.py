"""The velocity gates' answers to a hold: a holder of a robot believes these, and not what was sent."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

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
        held: list[str] = []
        not_held: list[VelocityGateNotHeld] = []
        for module, state in self.gates():
            problem = self._problem_of(module, state, since)
            if problem is None:
                held.append(module.name)
            else:
                not_held.append(problem)
        return HoldView(held=tuple(held[:_MAX_GATES]), not_held=tuple(not_held[:_MAX_GATES]))

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
        if not state.listens:
            return VelocityGateNotHeld(gate=module.name, problem="deaf", text="it does not listen to /hold")
        if self._source not in state.holds:
            others = f", only for {', '.join(state.holds)}" if state.holds else ""
            return VelocityGateNotHeld(
                gate=module.name, problem="not_holding", text=f"it does not hold for {self._source}{others}"
            )
        if not state.still:
            return VelocityGateNotHeld(
                gate=module.name, problem="moving", text="it holds skills, but the base is driven"
            )
        return None


def _silence(age_s: float) -> str:
    """The text about a silence; coarse, so that not every moment has a text of its own."""
    return f"it has been silent for {f'{age_s:.0f}' if age_s < 10 else 'more than 10'} s"
