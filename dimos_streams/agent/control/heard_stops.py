"""Operators' stops of an agent's robot as the agent hears of them, whether or not they have ended a call of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dimos_streams.common.listeners import Listeners
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.operator.holding import STOP_ROBOT, VelocityGateState
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.liveness.module_view import ModuleView


class HeardStops:
    """Hears from the velocity gates when the robot is stopped, and when it is released."""

    def __init__(
        self, directory: ModuleDirectory | None, gates: Callable[[], Iterator[tuple[ModuleView, VelocityGateState]]]
    ) -> None:
        """``gates`` returns those of the agent's robot, with what they say. No ``directory``: there are none."""
        self._directory = directory
        self._gates = gates
        self._stopped: frozenset[str] = frozenset()
        """The gates that hold for a stop."""
        self.changed: Listeners[[]] = Listeners()
        """Called when a gate begins to hold for a stop, and when it says that it does so no more."""

    def listen(self) -> Callable[[], None]:
        """Hear the gates from now on. The returned function ends that, and may be called twice."""
        return (lambda: None) if self._directory is None else self._directory.listen(self._hear)

    def _hear(self, status: ModuleStatus) -> None:
        if STOP_ROBOT not in status.state_json and status.module not in self._stopped:
            return  # each agent hears every module of every robot
        before = self._stopped
        self._stopped = now = frozenset(module.name for module, state in self._gates() if STOP_ROBOT in state.holds)
        if now != before:
            self.changed.notify()
