"""All by which operators reach one agent."""

from __future__ import annotations

from collections.abc import Iterable

from dimos_streams.agent.control.console_watch import ConsoleWatch
from dimos_streams.agent.control.stop_words import StopWords, StopWordSettings
from dimos_streams.agent.loop.loop import AgentLoop
from dimos_streams.agent.loop.states import LoopState
from dimos_streams.agent.model_watch import ModelWatch
from dimos_streams.agent.models.offline_grammar import robots_of
from dimos_streams.agent.open_missions import OpenMissions
from dimos_streams.agent.operators.saying import InputHandler
from dimos_streams.agent.operators.snapshots import Snapshots
from dimos_streams.agent.operators.stop_order import StopOrder
from dimos_streams.agent.policies.gates.gate_state import GateState
from dimos_streams.agent.record.agent_events import EventLog
from dimos_streams.agent.skill_watch import SkillWatch
from dimos_streams.agent.subagents.delegation import Delegation


class OperatorSide:
    """The input of operators to an agent, their order to stop, their consoles, and what these show."""

    def __init__(
        self,
        agent: str,
        stop_words: StopWordSettings,
        events: EventLog,
        loop: AgentLoop,
        missions: OpenMissions,
        delegation: Delegation,
        gate_state: GateState,
        model_watch: ModelWatch,
        skill_watch: SkillWatch,
    ) -> None:
        """``loop`` is the agent's own."""
        self._agent = agent
        self._loop = loop
        approvals = gate_state.approvals
        self.stop_order = StopOrder(StopWords(stop_words), self._names, loop, missions)
        self.input_handler = InputHandler(loop, missions, delegation, approvals, self.stop_order)
        self.console = ConsoleWatch(approvals, loop.parts.oversight.control, events.emit, self._abort_unwatched)
        self.snapshots = Snapshots(agent, events, loop, gate_state, model_watch, skill_watch)

    def _names(self) -> Iterable[str]:
        """The names by which operators may call the agent and its robots."""
        return "robot", *self._agent.split("/"), *robots_of(self._loop.parts.toolbox.catalog.offered)

    def _abort_unwatched(self, why: str) -> None:
        if self._loop.missions and self._loop.state is not LoopState.CLOSED:
            self._loop.begin_abort(why)
