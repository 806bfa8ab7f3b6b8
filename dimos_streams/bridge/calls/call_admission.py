"""The admission of calls: what is checked and waited for before one begins, in whatever way it is begun."""

from __future__ import annotations

from typing import NamedTuple

from dimos_streams import clock
from dimos_streams.bridge.calls.authority import Authority, by_model
from dimos_streams.bridge.calls.contention import Contention
from dimos_streams.bridge.calls.ledger import MAX_OPEN, Ledger
from dimos_streams.bridge.calls.reviews import CallReviews
from dimos_streams.bridge.calls.sending.call_sender import CallSender
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.calls.stops.robot_stops import RobotStops
from dimos_streams.bridge.calls.stops.stop_skills import overrule_what_waits
from dimos_streams.bridge.calls.stops.undos import check_undos
from dimos_streams.common.names import NAME_RULE, is_name
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.errors import CallRejectedError, SkillUnavailableError
from dimos_streams.skill import SkillInfo
from dimos_streams.skill.tags import STOP
from dimos_streams.tool_stream.arguments.schemas import check_arguments
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory


class _Room(NamedTuple):
    """Maximum number of open calls, and of those that wait to begin, at which one more is let in."""

    open: int
    waiting: int


_FOR_MODELS = _Room(MAX_OPEN * 3 // 4, 100)
"""The room for calls of agents and MCP clients, and what such calls ask for."""
_FOR_OTHERS = _Room(MAX_OPEN, 150)
_FOR_ORDERS = _Room(MAX_OPEN + 100, 200)
"""The room for what operators say to agents: whoever fills all other room keeps nobody from pausing an agent, or from
deciding on what waits."""
_SHOWN = 80
"""Maximum length of a name in an error, in characters."""


class CallAdmission:
    """Checks calls, has them wait for what they need, and begins them. Use from the bus's loop only."""

    def __init__(
        self,
        ledger: Ledger,
        directory: ModuleDirectory,
        sender: CallSender,
        authority: Authority,
        stops: RobotStops,
        reviews: CallReviews,
    ) -> None:
        self._ledger = ledger
        self._directory = directory
        self._sender = sender
        self._authority = authority
        self._stops = stops
        self._reviews = reviews
        self._contention = Contention(ledger, sender, self._check_form, authority.may_replace)

    async def admit(self, call: CallState) -> None:
        """Name a call's skill in full, check the call, wait for what it needs as far as allowed, and begin it.

        Raises ``SkillError`` if it can't.
        """
        if not call.parent:
            self._authority.admit(call)
        self._authority.name(call)
        parent = self._ledger.calls.get(call.parent)
        call.overruled = {} if parent is None else parent.overruled
        room = self._room_for(call, self._check_form(call))
        waiting = self._ledger.waiting
        waiting[call.call_id] = call
        try:
            if len(waiting) > room.waiting or len(self._ledger.calls.open) >= room.open:
                most = f"{room.open} may be open at a time, and {room.waiting} wait"
                raise CallRejectedError(f"too many calls are open or waiting ({most}); try again later")
            if self._authority.reviewer(call) is None:
                await self._contention.make_way(call)
                self.begin(call)
            else:
                await self._reviews.begin(call, self._contention.make_way, self.begin)
        finally:
            waiting.pop(call.call_id, None)

    def begin(self, call: CallState) -> None:
        """Begin a call that may begin. Raises ``CallRejectedError`` if it is too late for that."""
        if call.begin_by is not None and clock.steady() > call.begin_by:
            raise CallRejectedError(f"the command to call {call.skill!r} expired before the call could begin")
        call.requested_utime = clock.utime()
        call.since = clock.monotonic()
        self._ledger.begin(call)
        self._sender.request(call)
        found = self._directory.known(call.skill)
        if found is not None and STOP in found[1].tags:
            overrule_what_waits(self._ledger, call)

    def _room_for(self, call: CallState, skill: SkillInfo) -> _Room:
        if by_model(call):
            return _FOR_MODELS
        is_order = not call.parent and (skill.audience == "operator" or self._authority.is_agent(call.module))
        return _FOR_ORDERS if is_order else _FOR_OTHERS

    def _check_form(self, call: CallState) -> SkillInfo:
        """Check that the skill can be called now with these arguments, set the call's module, resources and
        ``on_loss``, and return the skill. Raises ``SkillError``."""
        if not is_name(call.skill):
            raise CallRejectedError(f"skill is {shortened(repr(call.skill), _SHOWN)}; {NAME_RULE}")
        module, info = self._directory.find(call.skill)
        self._authority.check(call, info)
        self._stops.check(call, module, info)
        check_undos(call, module.name, info, self._ledger.calls.open, self._authority.is_agent)
        check_arguments(info, call.arguments)
        if not module.alive:
            last = "; `stop-robot` needs no agent" if self._authority.is_agent(module.name) else ""
            raise SkillUnavailableError(
                f"skill {call.skill!r} is not available: its module {module.name!r} is {module.health}{last}"
            )
        if module.rivals and info.may_move:
            raise SkillUnavailableError(
                f"skill {call.skill!r} would be done by each instance of its module {module.name!r}, and may move two"
                f" robots: {module.health}; end all but one"
            )
        call.module, call.resources, call.on_loss = module.name, info.resources, call.asked_on_loss or info.on_loss
        return info
