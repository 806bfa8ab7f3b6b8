"""What a loop is made of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dimos_streams.agent.calls.call_manager import CallManager
from dimos_streams.agent.calls.open_call import Deliver
from dimos_streams.agent.calls.skill_catalog import Offers
from dimos_streams.agent.context.conversation import Conversation
from dimos_streams.agent.control.control import Control
from dimos_streams.agent.missions.limits import LoopSettings
from dimos_streams.agent.missions.message_queue import MessageQueue
from dimos_streams.agent.missions.stop_conditions import RobotState
from dimos_streams.agent.models.protocol import Model, Usage
from dimos_streams.agent.policies.gates.base import Repetition, Results, Reviewer, Tools
from dimos_streams.agent.policies.runaway import RunawayGuard
from dimos_streams.agent.record.agent_events import EventLog
from dimos_streams.operator.messages import HoldView
from dimos_streams.tool_stream.arguments.defaults import with_defaults


async def _no_gate() -> HoldView:
    return HoldView()


@dataclass(slots=True, kw_only=True)
class LoopParts:
    """The parts of one loop. A sub-agent's loop shares some of them with its parent's."""

    model: Model
    """May be replaced between answers."""
    calls: CallManager
    queue: MessageQueue
    conversation: Conversation
    events: EventLog
    control: Control
    offers: Offers
    reviewer: Reviewer
    tools: Tools
    results: Results
    new_repetition: Callable[[], Repetition]
    new_guard: Callable[[], RunawayGuard]
    """For each mission."""
    unowned: RunawayGuard | None = None
    """Of turns that are no mission's; the first of them makes it."""
    deliver: Deliver | None = None
    """Who gets the news of the calls that this loop begins; None for the agent's queue."""
    may_begin: Callable[[], bool] = lambda: True
    """Whether an idle loop may take what waits."""
    settings: LoopSettings = field(default_factory=LoopSettings)
    cost: Callable[[Usage], float | None] = lambda usage: None
    robot: Callable[[], RobotState] = RobotState
    confirm_hold: Callable[[], Awaitable[HoldView]] = _no_gate
    """What the velocity gates say of the robot's being held."""
    told_of_estimates: bool = False
    """Whether people know that tokens are estimated."""

    def polling(self) -> frozenset[str]:
        """Skills and tools that may be asked for again and again."""
        return self.tools.polling() | {name for name, skill in self.offers.offered.items() if skill.polling}

    def meant(self, calls: Iterable[tuple[str, Mapping[str, Any]]]) -> list[tuple[str, Mapping[str, Any]]]:
        """Calls with what their arguments leave out: who spells a default out repeats himself all the same."""
        offered = self.offers.offered
        return [
            (name, with_defaults(offered[name].parameters, arguments) if name in offered else arguments)
            for name, arguments in calls
        ]
