"""The ``report`` calls that the monitor holds open while somebody watches, and what agents say in them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from dimos_streams import clock
from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.bridge.calls.state.journalled_call import CLOSED
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.tasks import OwnedTasks
from dimos_streams.errors import DimosStreamsError, UnknownCallError
from dimos_streams.operator.agents import AgentView
from dimos_streams.operator.known_names import MONITOR, REPORT
from dimos_streams.operator.messages.agent import AgentEvent, AgentSnapshot
from dimos_streams.operator.reporting import report_of
from dimos_streams.tool_stream.event import ToolEvent

_RETRY_S = 1.0

_log = LimitedLog(logging.getLogger(__name__))


class Reports:
    """One ``report`` call for each agent that is watched. For an agent, an open one means that somebody watches.

    Their events are not journalled: a snapshot is of use to watchers only, and until the next one.
    """

    def __init__(self, broker: Broker, on_first: Callable[[], None]) -> None:
        """``on_first`` is called at an agent's first snapshot."""
        self.snapshots: dict[str, AgentSnapshot] = {}
        """The newest snapshot of each agent, by its name, as long as it reports."""
        self.malformed = 0
        self._broker = broker
        self._on_first = on_first
        self._agents: dict[str, str] = {}
        """The names of the agents that report, by the ids of their calls."""
        self._wanted: frozenset[str] = frozenset()
        self._opening: set[str] = set()
        self._retry_at: dict[str, float] = {}
        """Times before which an agent is not asked again, by its name, as long as they have not come."""
        self._tasks = OwnedTasks()

    def want(self, agents: Iterable[AgentView]) -> None:
        """Have these agents report, and no others. Call it again and again, because agents come and go."""
        wanted = {agent.name: agent for agent in agents if agent.reports and agent.available}
        self._wanted = frozenset(wanted)
        now = clock.monotonic()
        self._retry_at = {name: at for name, at in self._retry_at.items() if now < at}
        for call_id, name in list(self._agents.items()):
            has_ended = self._has_ended(call_id)
            if has_ended or name not in wanted:
                self.snapshots.pop(self._agents.pop(call_id), None)
            if not has_ended and name not in wanted:
                self._tasks.spawn(self._cancel(call_id), name="report")
        for name, agent in wanted.items():
            known = name in self._opening or name in self._agents.values()
            if not known and name not in self._retry_at:
                self._opening.add(name)
                self._tasks.spawn(self._open(agent), name="report")

    def read(self, event: ToolEvent) -> AgentEvent | None:
        """Read an event of a report; return what happened in an agent, or None if it reports nothing of that kind."""
        name = self._agents.get(event.call_id)
        if name is None:
            return None
        if event.type == "close":
            del self._agents[event.call_id]
            self.snapshots.pop(name, None)
            return None
        try:
            reported = report_of(event.data)
        except ValueError as error:
            self.malformed += 1
            _log.warning("report of %r skipped: %s", name, error)
            return None
        if isinstance(reported, AgentSnapshot):
            is_first = name not in self.snapshots
            self.snapshots[name] = reported
            if is_first:
                self._on_first()
            return None
        return reported

    def end_left(self, agent: str | None = None) -> None:
        """End calls that are left of an earlier life of this process, of one agent or of all."""
        for call in self._broker.ledger.calls.open:
            reports = not call.journalled and call.caller == MONITOR
            if reports and call.call_id not in self._agents and agent in (None, call.module):
                self._tasks.spawn(self._cancel(call.call_id), name="report")

    async def stop(self) -> None:
        """Forget about all of them; the calls go on, and the next life of this process finds them. Twice is fine."""
        await self._tasks.end()

    async def _open(self, agent: AgentView) -> None:
        self._retry_at[agent.name] = clock.monotonic() + _RETRY_S
        try:
            call_id = await self._broker.call(agent.skill(REPORT), {}, caller=MONITOR, journalled=False)
        except DimosStreamsError as error:
            _log.warning("agent %r does not report: %s", agent.name, error)
        else:
            if agent.name not in self._wanted:  # whoever watched has left meanwhile
                await self._cancel(call_id)
                return
            self._agents[call_id] = agent.name
            # Now, and not before: for the agent somebody has watched all the time.
            self.end_left(agent.name)
        finally:
            self._opening.discard(agent.name)

    def _has_ended(self, call_id: str) -> bool:
        """Return whether a report has ended, though its close may have been lost in a flood of others' events."""
        call = self._broker.ledger.calls.get(call_id)
        return call is None or call.state == CLOSED

    async def _cancel(self, call_id: str) -> None:
        try:
            await self._broker.cancel(call_id, "nobody watches any more")
        except UnknownCallError:
            pass  # it has ended long ago
        except DimosStreamsError as error:
            _log.warning("report %s can't be ended: %s", call_id, error)
