"""Operators' stops of an agent's robot as the agent hears of them, whether or not they have ended a call of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from dimos_streams import clock
from dimos_streams.common.listeners import Listeners
from dimos_streams.common.names import namespace_of
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.operator.holding import STOP_ROBOT, VelocityGateState
from dimos_streams.operator.robot_orders import NO_ORDER, ORDERS, SAID, newest_order, reported_orders, said_stop
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.liveness.module_view import ModuleView


class HeardStops:
    """Hears when the robot is stopped, and when it is released: from bridges, which number these orders, from other
    agents of the robot to which an operator has said it, and from the velocity gates, which others than a bridge that
    is heard here may hold, too. Tells other agents of the stops that are said to this one."""

    def __init__(
        self,
        agent: str,
        directory: ModuleDirectory | None,
        gates: Callable[[], Iterator[tuple[ModuleView, VelocityGateState]]],
    ) -> None:
        """``gates`` returns those of the agent's robot, with what they say. No ``directory``: nobody is heard."""
        self._agent, self._robot = agent, namespace_of(agent)
        self._directory = directory
        self._gates = gates
        self._stopped: frozenset[str] = frozenset()
        """The gates that hold for a stop."""
        self.newest = NO_ORDER
        """The number of the newest order to a bridge that is known."""
        self._known = frozenset({NO_ORDER})
        """The numbers of what is known, of bridges and of agents."""
        self.said = NO_ORDER
        """The number of the newest stop that was said to this agent."""
        self.told: Listeners[[]] = Listeners()
        """Called when ``said`` is different."""
        self.changed: Listeners[[]] = Listeners()
        """Called when there was an order, when a gate begins to hold for a stop, and when it says that it does so no
        more."""

    def know(self, orders: Mapping[str, int]) -> None:
        """Take up the orders from before anybody was heard."""
        self.newest = newest_order(orders, self._robot)
        self._known |= {self.newest}

    def catch_up(self, orders: Mapping[str, int]) -> None:
        """Take up the orders that the agent's bridge has, as one that is not heard may have had since."""
        before = self.newest
        self.know(orders)
        if self.newest != before:
            self.changed.notify()

    def tell(self) -> None:
        """Tell other agents that an operator has said to this one that the robot is to stop."""
        self.said = max(clock.utime(), self.said + 1)
        self.told.notify()

    def listen(self) -> Callable[[], None]:
        """Hear bridges and gates from now on. The returned function ends that, and may be called twice."""
        if self._directory is None:
            return lambda: None
        self._hear_orders(self._directory)
        return self._directory.listen(partial(self._hear, self._directory))

    def _hear(self, directory: ModuleDirectory, status: ModuleStatus) -> None:
        if ORDERS in status.state_json or SAID in status.state_json:
            self._hear_orders(directory)
        self._hear_gates(status)

    def _hear_orders(self, directory: ModuleDirectory) -> None:
        given = {newest_order(reported_orders(each.state), self._robot) for each in directory.reporting(ORDERS)}
        said = {
            newest_order({namespace_of(each.name): said_stop(each.state)}, self._robot)
            for each in directory.reporting(SAID)
            if each.name != self._agent
        }
        self.newest = max(given, default=self.newest)
        before, self._known = self._known, frozenset({NO_ORDER, self.newest, *given, *said})
        if not self._known <= before:
            self.changed.notify()

    def _hear_gates(self, status: ModuleStatus) -> None:
        if STOP_ROBOT not in status.state_json and status.module not in self._stopped:
            return  # each agent hears every module of every robot
        before = self._stopped
        self._stopped = now = frozenset(module.name for module, state in self._gates() if STOP_ROBOT in state.holds)
        if now != before:
            self.changed.notify()
