"""Operators' stops of an agent's robot as the agent hears of them, whether or not they have ended a call of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from dimos_streams import clock
from dimos_streams.common.listeners import Listeners
from dimos_streams.common.names import namespace_of
from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.operator.holding import STOP_ROBOT, VelocityGateState
from dimos_streams.operator.robot_orders import NO_ORDER, ORDERS, SAID, newest_order, reported_orders, said_stop
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.liveness.module_view import ModuleView

_MODULES = 1000
"""Maximum number of bridges, and of agents, whose newest numbers are remembered: also of those that are away."""


class HeardStops:
    """Hears when the robot is stopped, and when it is released: from bridges, which number these orders, from other
    agents of the robot to which an operator has said it, and from velocity gates, which a bridge may hold that is not
    heard here. Tells other agents of the stops that are said to this one."""

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
        self._asked = NO_ORDER
        """The number of the newest order that the agent's own bridge had when it was asked."""
        self._heard = NewestEntries[str, int](_MODULES)
        """The number of the newest order that each bridge has told on the bus, by name."""
        self._said = NewestEntries[str, int](_MODULES)
        """The number of the newest stop that was said to each other agent, by name."""
        self.said = NO_ORDER
        """The number of the newest stop that was said to this agent."""
        self.stop_said: Listeners[[]] = Listeners()
        """Called when ``said`` is different."""
        self.ordered: Listeners[[frozenset[int]]] = Listeners()
        """Called with the numbers of orders that were not known before."""
        self.gates_changed: Listeners[[]] = Listeners()
        """Called when a gate begins to hold for a stop, and when it says that it does so no more."""

    @property
    def newest(self) -> int:
        """The number of the newest order to a bridge that is known."""
        return max(self._asked, *self._heard.values(), NO_ORDER)

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of the newest orders that are known, to each bridge and to each other agent."""
        return frozenset({self._asked, *self._heard.values(), *self._said.values()}) - {NO_ORDER}

    def know(self, orders: Mapping[str, int]) -> None:
        """Take up the orders from before anybody was heard."""
        self._asked = newest_order(orders, self._robot)

    def catch_up(self, orders: Mapping[str, int]) -> None:
        """Take up the orders that the agent's bridge has, as one that is not heard may have had since."""
        before = self.numbers
        self.know(orders)
        self._notify_of_new(before)

    def say_stopped(self) -> None:
        """Tell other agents that an operator has said to this one that the robot is to stop."""
        self.said = max(clock.utime(), self.said + 1)
        self.stop_said.notify()

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
        before = self.numbers
        for bridge in directory.reporting(ORDERS):
            self._heard[bridge.name] = newest_order(reported_orders(bridge.state), self._robot)
        for agent in directory.reporting(SAID):
            if agent.name != self._agent:
                said = {namespace_of(agent.name): said_stop(agent.state)}
                self._said[agent.name] = newest_order(said, self._robot)
        self._notify_of_new(before)

    def _notify_of_new(self, before: frozenset[int]) -> None:
        if new := self.numbers - before:
            self.ordered.notify(new)

    def _hear_gates(self, status: ModuleStatus) -> None:
        if STOP_ROBOT not in status.state_json and status.module not in self._stopped:
            return  # each agent hears every module of every robot
        before = self._stopped
        self._stopped = now = frozenset(module.name for module, state in self._gates() if STOP_ROBOT in state.holds)
        if now != before:
            self.gates_changed.notify()
