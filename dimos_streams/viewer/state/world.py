"""The state of a recorded run at one of its moments, folded from what was recorded before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from dimos_streams.bridge.calls.state.call_state import CANCEL_OVERDUE_S, CallState
from dimos_streams.bridge.calls.state.journalled_call import CLOSED
from dimos_streams.bridge.calls.state.leases import Leases
from dimos_streams.bridge.calls.stops.cancels import going_on
from dimos_streams.common.json.reading import parse_json
from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.errors import MessageError
from dimos_streams.messages.base import Message
from dimos_streams.messages.codec import decode, split_channel
from dimos_streams.messages.dimos_streams import Hold, ModuleStatus, SkillCall, SkillCancel
from dimos_streams.operator.known_names import MONITOR
from dimos_streams.operator.messages.agent import AgentEvent, AgentSnapshot
from dimos_streams.operator.messages.run import RobotView
from dimos_streams.operator.messages.stop import GoingOn, StoppedRobots
from dimos_streams.recording.format import LogEvent
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.liveness.module_view import ModuleView
from dimos_streams.tool_stream.protocol.channels import CALLS, CANCELS, STATUS
from dimos_streams.tool_stream.review import review_skill
from dimos_streams.viewer.state.agents import Agents
from dimos_streams.viewer.state.holds import Holds
from dimos_streams.viewer.state.modules import Modules
from dimos_streams.viewer.state.poses import Poses

M = TypeVar("M", bound=Message)

MAX_CLOSED = 100
"""The largest number of ended calls that each kept moment remembers; the journal has the events of all."""
MAX_OPEN = 1000
MAX_CHANNELS = 1000
"""The largest number of channels that are shown; those that come later in the log are not."""


class RecordedWorld:
    """Takes messages of the log and events of calls, each in order. It implements the monitor's ``Sources``.

    ``copy`` is cheap, because what does not change any more is shared.
    """

    def __init__(self, models: Mapping[str, str] | None = None) -> None:
        """Make the state before the first event; ``models`` are those of the agents of the recording's blueprint."""
        self.utime = 0
        """The moment, µs: nothing that was taken is later."""
        self.offset = 0
        """The offset, in the journal, of the newest event that was taken."""
        self.newest: dict[str, int] = {}
        """The position on the tape at which the newest message of each channel begins."""
        self._modules = Modules()
        self._agents = Agents(models)
        self._holds = Holds()
        self._poses = Poses()
        self._open: dict[str, CallState] = {}
        self._closed = NewestEntries[str, CallState](MAX_CLOSED)
        self._own: set[str] = set()
        """Open calls that no copy shares: only these may be changed."""
        self._cancelled: dict[str, int] = {}
        """The time at which open calls were first asked to end, µs."""

    def copy(self) -> RecordedWorld:
        """Return a copy of the state at this moment; what one of both takes then is not known to the other."""
        found = RecordedWorld()
        found.utime, found.offset = self.utime, self.offset
        found.newest = dict(self.newest)
        found._modules, found._agents = self._modules.copy(), self._agents.copy()
        found._holds, found._poses = self._holds.copy(), self._poses.copy()
        found._open, found._closed, found._cancelled = dict(self._open), self._closed.copy(), dict(self._cancelled)
        self._own.clear()
        return found

    def take(self, event: LogEvent) -> None:
        """Take the next message of the log. Raises ``MessageError`` for one that can't be read; others may follow."""
        self.utime = max(self.utime, event.utime)
        if event.channel in self.newest or len(self.newest) < MAX_CHANNELS:
            self.newest[event.channel] = event.offset
        channel = event.channel
        if channel == STATUS:
            self._modules.take(event.utime, _read(ModuleStatus, event))
        elif channel == CALLS:
            self._request(_read(SkillCall, event))
        elif channel == CANCELS:
            self._cancel(event.utime, _read(SkillCancel, event))
        elif split_channel(channel)[1] == Hold.msg_name:
            self._holds.take(self.utime, channel, _read(Hold, event))
        else:
            self._poses.take(event)

    def hear(self, offset: int, event: ToolEvent) -> None:
        """Take the next event of the calls, the one at this offset."""
        self.offset = offset
        if event.call_id in self._closed or (event.call_id not in self._open and len(self._open) >= MAX_OPEN):
            return
        is_new = event.call_id not in self._open
        call = self._to_change(event)
        if event.type == "open" and not is_new:
            call.resources = CallState.from_event(event).resources or call.resources
        call.apply(event)
        if call.state == CLOSED:
            self._close(call)
        self._agents.take(event)

    def report(self, event: ToolEvent) -> AgentEvent | None:
        """Take what an agent reports to consoles, and return what happened in it, or None if it does not say."""
        return self._agents.report(event)

    def calls(self) -> list[CallState]:
        """Return all calls that are remembered: those that have ended, then the open ones, each oldest first."""
        return [*self._closed.values(), *self._open.values()]

    def call(self, call_id: str) -> CallState | None:
        """Return a remembered call, or None if none has that id."""
        return self._open.get(call_id) or self._closed.get(call_id)

    def modules(self) -> list[ModuleView]:
        """See ``Sources``."""
        return self._modules.views(self.utime)

    def agents(self) -> Mapping[str, AgentSnapshot]:
        """See ``Sources``."""
        names = [module.name for module in self.modules() if review_skill(module.skills) is not None]
        calls: dict[str, tuple[str, ...]] = {}
        for call in self._open.values():
            if call.caller in names:
                calls[call.caller] = (*calls.get(call.caller, ()), call.call_id)
        holds = self._holds.views(self.utime, self.modules())
        return self._agents.snapshots(self.utime, names, calls, holds)

    def open_calls(self) -> Sequence[CallState]:
        """See ``Sources``."""
        return list(self._open.values())

    def leases(self) -> dict[str, str]:
        """See ``Sources``."""
        leases = Leases()
        for call in self._open.values():
            leases.grant(call.call_id, call.resources)
        return leases.holders()

    def robots(self, modules: Iterable[str]) -> dict[str, RobotView]:
        """See ``Sources``."""
        return self._poses.views(self.utime, modules)

    def stopped(self) -> StoppedRobots:
        """See ``Sources``."""
        return self._holds.stopped(self.utime, self.modules())

    def lingering(self) -> Sequence[GoingOn]:
        """See ``Sources``."""
        return [
            going_on(call, since)
            for call_id, since in self._cancelled.items()
            if self.utime - since > CANCEL_OVERDUE_S * 1e6 and (call := self._open.get(call_id)) is not None
        ]

    def _to_change(self, event: ToolEvent) -> CallState:
        """Return the call of an event, as one that may be changed."""
        known = self._open.get(event.call_id)
        if known is not None and event.call_id in self._own:
            return known
        call = CallState.from_event(event) if known is None else known.copy()
        self._open[event.call_id] = call
        self._own.add(event.call_id)
        return call

    def _request(self, message: SkillCall) -> None:
        known = message.call_id in self._open or message.call_id in self._closed
        if known or message.caller == MONITOR or len(self._open) >= MAX_OPEN:
            return  # it is repeated until its module has begun it
        try:
            arguments = parse_json(message.arguments_json)
        except ValueError as error:
            raise MessageError(CALLS, SkillCall.msg_name, f"its arguments are no JSON: {error}") from error
        skill = self._modules.skill(message.skill)
        self._open[message.call_id] = CallState(
            call_id=message.call_id,
            skill=message.skill,
            module=message.module,
            caller=message.caller,
            parent=message.parent,
            arguments=arguments if isinstance(arguments, dict) else {},
            resources=skill.resources if skill is not None else (),
            on_loss="continue" if message.on_loss == "continue" else "stop",
            requested_utime=message.utime,
        )

    def _cancel(self, utime: int, message: SkillCancel) -> None:
        if message.call_id in self._open and not message.outcome:
            self._cancelled.setdefault(message.call_id, utime)

    def _close(self, call: CallState) -> None:
        del self._open[call.call_id]
        self._own.discard(call.call_id)
        self._cancelled.pop(call.call_id, None)
        call.last, call.progress = None, {}
        self._closed[call.call_id] = call


def _read(cls: type[M], event: LogEvent) -> M:
    return decode(cls, event.data, event.channel)
