"""The sources of a run's state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.monitor.reports import Reports
from dimos_streams.bridge.monitor.robots import Robots
from dimos_streams.operator.messages.agent import AgentSnapshot
from dimos_streams.operator.messages.run import RobotView
from dimos_streams.operator.messages.stop import GoingOn, StoppedRobots
from dimos_streams.tool_stream.liveness.module_view import ModuleView


class Sources(Protocol):
    """A run at this moment; a recording at one of its moments."""

    def modules(self) -> list[ModuleView]:
        """Return all modules that were heard of, ordered by name."""

    def agents(self) -> Mapping[str, AgentSnapshot]:
        """The snapshots that agents report, by the names of their modules."""

    def open_calls(self) -> Sequence[CallState]:
        """The calls that are not closed, oldest first, including those that only the bridge reads."""

    def leases(self) -> dict[str, str]:
        """Held resources with the ids of their calls."""

    def robots(self, modules: Iterable[str]) -> dict[str, RobotView]:
        """The poses and batteries of the robots of these modules, by namespace."""

    def stopped(self) -> StoppedRobots:
        """The robots that an operator has stopped."""

    def lingering(self) -> Sequence[GoingOn]:
        """Calls that were asked to end and go on all the same."""


class RunSources:
    """The sources of a run that the bridge is part of."""

    def __init__(self, broker: Broker, reports: Reports, robots: Robots) -> None:
        self._broker = broker
        self._reports = reports
        self._robots = robots

    def modules(self) -> list[ModuleView]:
        """See ``Sources``."""
        return self._broker.directory.modules()

    def agents(self) -> Mapping[str, AgentSnapshot]:
        """See ``Sources``."""
        return self._reports.snapshots

    def open_calls(self) -> Sequence[CallState]:
        """See ``Sources``."""
        return self._broker.ledger.calls.open

    def leases(self) -> dict[str, str]:
        """See ``Sources``."""
        return self._broker.ledger.leases.holders()

    def robots(self, modules: Iterable[str]) -> dict[str, RobotView]:
        """See ``Sources``."""
        self._robots.follow(modules)
        return self._robots.views()

    def stopped(self) -> StoppedRobots:
        """See ``Sources``."""
        return self._broker.stops.stopped()

    def lingering(self) -> Sequence[GoingOn]:
        """See ``Sources``."""
        return self._broker.cancels.lingering()
