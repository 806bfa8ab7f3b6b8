"""Operators' stops of an agent's robot as the agent hears of them, whether or not they have ended a call of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from dimos_streams.common.listeners import Listeners
from dimos_streams.common.names import namespace_of
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.operator.holding import STOP_ROBOT, VelocityGateState
from dimos_streams.operator.robot_orders import NO_ORDER, ORDERS, newest_order, reported_orders
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.liveness.module_view import ModuleView


class HeardStops:
    """Hears when the robot is stopped, and when it is released: from bridges, which number these orders, and from the
    velocity gates, which others than a bridge that is heard here may hold, too."""

    def __init__(
        self,
        agent: str,
        directory: ModuleDirectory | None,
        gates: Callable[[], Iterator[tuple[ModuleView, VelocityGateState]]],
    ) -> None:
        """``gates`` returns those of the agent's robot, with what they say. No ``directory``: nobody is heard."""
        self._robot = namespace_of(agent)
        self._directory = directory
        self._gates = gates
        self._stopped: frozenset[str] = frozenset()
        """The gates that hold for a stop."""
        self.newest = NO_ORDER
        """The number of the newest order that is known."""
        self.changed: Listeners[[]] = Listeners()
        """Called when there was an order, when a gate begins to hold for a stop, and when it says that it does so no
        more."""

    def know(self, orders: Mapping[str, int]) -> None:
        """Take up the orders from before anybody was heard."""
        self.newest = newest_order(orders, self._robot)

    def listen(self) -> Callable[[], None]:
        """Hear bridges and gates from now on. The returned function ends that, and may be called twice."""
        if self._directory is None:
            return lambda: None
        self._hear_orders(self._directory)
        return self._directory.listen(partial(self._hear, self._directory))

    def _hear(self, directory: ModuleDirectory, status: ModuleStatus) -> None:
        if ORDERS in status.state_json:
            self._hear_orders(directory)
        self._hear_gates(status)

    def _hear_orders(self, directory: ModuleDirectory) -> None:
        heard = [newest_order(reported_orders(bridge.state), self._robot) for bridge in directory.reporting(ORDERS)]
        if heard and max(heard) != self.newest:
            self.newest = max(heard)
            self.changed.notify()

    def _hear_gates(self, status: ModuleStatus) -> None:
        if STOP_ROBOT not in status.state_json and status.module not in self._stopped:
            return  # each agent hears every module of every robot
        before = self._stopped
        self._stopped = now = frozenset(module.name for module, state in self._gates() if STOP_ROBOT in state.holds)
        if now != before:
            self.changed.notify()
