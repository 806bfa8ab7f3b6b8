"""The check whether a call can begin now, whatever else runs."""

from __future__ import annotations

from dimos_streams.bridge.calls.authority import Authority
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.calls.state.remembered_calls import Calls
from dimos_streams.bridge.calls.stops.robot_stops import RobotStops
from dimos_streams.bridge.calls.stops.undos import check_undos
from dimos_streams.common.names import NAME_RULE, is_name
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.errors import CallRejectedError, SkillUnavailableError
from dimos_streams.skill import SkillInfo
from dimos_streams.tool_stream.arguments.schemas import check_arguments
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory

_SHOWN = 80
"""Maximum length of a name in an error, in characters."""


class CallChecker:
    """Checks calls against what their skills, their callers and operators' stops allow."""

    def __init__(self, directory: ModuleDirectory, authority: Authority, stops: RobotStops, calls: Calls) -> None:
        self._directory = directory
        self._authority = authority
        self._stops = stops
        self._calls = calls

    def check(self, call: CallState) -> SkillInfo:
        """Check that the skill can be called now with these arguments, set the call's module, resources and
        ``on_loss``, and return the skill. Raises ``SkillError``."""
        if not is_name(call.skill):
            raise CallRejectedError(f"skill is {shortened(repr(call.skill), _SHOWN)}; {NAME_RULE}")
        module, info = self._directory.find_named(call.skill)
        self._authority.check(call, info)
        self._stops.check(call, module, info)
        check_undos(call, module.name, info, self._calls.open, self._authority.is_agent)
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
        call.module, call.asked, call.asked_started_utime = module.name, module.instance, module.started_utime
        call.resources, call.on_loss = info.resources, call.asked_on_loss or info.on_loss
        return info
