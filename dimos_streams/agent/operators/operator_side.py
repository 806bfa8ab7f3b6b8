"""All by which operators reach one agent."""

from __future__ import annotations

from collections.abc import Iterable

from dimos_streams.agent.control.console_watch import ConsoleWatch
from dimos_streams.agent.control.stop_words import StopWords, StopWordSettings
from dimos_streams.agent.loop.states import LoopState
from dimos_streams.agent.models.offline_grammar import robots_of
from dimos_streams.agent.operators.saying import InputHandler
from dimos_streams.agent.operators.snapshots import Snapshots
from dimos_streams.agent.operators.stop_order import StopOrder
from dimos_streams.agent.policies.approvals import ApprovalRegistry
from dimos_streams.agent.work import AgentWork


class OperatorSide:
    """The input of operators to an agent, their order to stop, their consoles, and what these show."""

    def __init__(
        self,
        agent: str,
        stop_words: StopWordSettings,
        work: AgentWork,
        approvals: ApprovalRegistry,
        snapshots: Snapshots,
    ) -> None:
        self._agent = agent
        self._loop = work.loop
        parts = work.loop.parts
        self.stop_order = StopOrder(StopWords(stop_words), self._names, work)
        self.input_handler = InputHandler(work, approvals, self.stop_order)
        self.console = ConsoleWatch(approvals, parts.oversight.control, parts.transcript.emit, self._abort_unwatched)
        self.snapshots = snapshots

    def _names(self) -> Iterable[str]:
        """The names by which operators may call the agent and its robots."""
        return "robot", *self._agent.split("/"), *robots_of(self._loop.parts.toolbox.catalog.offered)

    def _abort_unwatched(self, why: str) -> None:
        if self._loop.missions and self._loop.state is not LoopState.CLOSED:
            self._loop.begin_abort(why)
