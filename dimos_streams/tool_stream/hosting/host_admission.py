"""A call as it comes from the bus, and the check whether it may begin here: by its arguments, its skill, its caller,
and what runs already."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dimos_streams.common.readable.shortening import shortened
from dimos_streams.errors import CallRejectedError, MessageError, SkillError, UnknownSkillError
from dimos_streams.messages.dimos_streams import SkillCall
from dimos_streams.skill import OnLoss, SkillSpec
from dimos_streams.tool_stream.arguments.schemas import check_arguments, check_size
from dimos_streams.tool_stream.audience import refusal
from dimos_streams.tool_stream.hosting.failures import logged_bug
from dimos_streams.tool_stream.hosting.hosted_module import HostedModule
from dimos_streams.tool_stream.hosting.settings_change import SET
from dimos_streams.tool_stream.protocol.call_message import on_loss_of
from dimos_streams.tool_stream.protocol.channels import CALLS
from dimos_streams.tool_stream.protocol.json_fields import arguments_object

_MAX_SHOWN = 120
"""Maximum characters of an argument in texts about a call."""
LATE_S = 60.0
"""Maximum time, in seconds, before its module began at which a request was sent that may be for the module's
predecessor. An older one is of a log that is played, or of a clock that differs."""
_MAX_TEXT = 4000
"""Maximum length of the text of an ``open``, in characters."""
_MAX_OPEN = 1000
"""Maximum number of calls that a module runs at a time; more are rejected."""
_MAX_OF_ONE = 750
"""Maximum number of these that are of one skill: a flood of what agents are told keeps nobody from pausing one."""


@dataclass(frozen=True, slots=True)
class IncomingCall:
    """A call that has come from the bus, as far as it could be read: what its ``open`` event says."""

    hosted: HostedModule
    message: SkillCall
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Empty if they could not be read, or are too large for an event."""
    on_loss: OnLoss | None = None

    @property
    def text(self) -> str:
        """The text of its ``open``."""
        return f"{self.message.skill}({_listed(self.arguments)})"[:_MAX_TEXT]

    @property
    def data(self) -> dict[str, Any]:
        """The data of its ``open``."""
        spec = self.hosted.skills.get(self.message.skill)
        prefix = self.hosted.module.context.namespace
        resources = sorted(f"{prefix}{resource}" for resource in spec.policy.resources) if spec else []
        lasting = {"on_loss": self.on_loss} if self.on_loss == "continue" else {}
        return {"arguments": self.arguments, "parent": self.message.parent, "resources": resources, **lasting}


def read_call(message: SkillCall) -> tuple[dict[str, Any], OnLoss | None]:
    """Return the arguments of a call and its ``on_loss``. Raises ``CallRejectedError`` if they are invalid."""
    try:
        return arguments_object(message.arguments_json, CALLS, SkillCall.msg_name), on_loss_of(message, CALLS)
    except MessageError as error:
        given = f"arguments_json is {shortened(repr(message.arguments_json), _MAX_SHOWN)}"
        raise CallRejectedError(
            f"{error} ({given}; valid: a JSON object by the names of the skill's parameters, or nothing)"
        ) from error


def may_be_done_twice(hosted: HostedModule, message: SkillCall, started_utime: int) -> bool:
    """Return whether a motion was asked for before its module began: a predecessor may have begun it, and the bridge
    closes it as lost."""
    spec = hosted.skills.get(message.skill)
    may_move = spec is not None and spec.policy.may_move
    return may_move and 0 < started_utime - message.utime < LATE_S * 1e6


def admitted(
    hosted: HostedModule, message: SkillCall, arguments: Mapping[str, Any], size: int
) -> tuple[SkillSpec, dict[str, Any]]:
    """Return the skill that is called, and its arguments. Raises ``SkillError`` for a call that can't begin."""
    spec = hosted.skills.get(message.skill)
    check_size(message.skill, size)
    if spec is None:
        offered = (each for each, spec in hosted.skills.items() if each != SET and spec.policy.audience != "bridge")
        raise UnknownSkillError(message.skill, offered)
    _check_audience(spec, message)
    checked = _validated(spec, message, arguments)
    if len(hosted.calls) >= _MAX_OPEN:
        raise CallRejectedError(f"module {message.module!r} runs {_MAX_OPEN} calls already")
    if sum(call.skill == message.skill for call in hosted.calls.values()) >= _MAX_OF_ONE:
        raise CallRejectedError(f"module {message.module!r} runs {_MAX_OF_ONE} calls of {message.skill!r} already")
    if spec.policy.moves and hosted.loss.runaway:
        raise CallRejectedError(
            f"module {message.module!r} can't move the robot: its call {hosted.loss.runaway} does not end"
            f"{hosted.loss.consequence}"
        )
    return spec, checked


def _validated(spec: SkillSpec, message: SkillCall, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments as the skill's function takes them. Pydantic would also read a number from ``"4"``: the
    skill's schema says what it takes, here as at the bridge, which not every call comes through."""
    try:
        checked = spec.validate(arguments)
        check_arguments(spec.info(), arguments)
        return checked
    except SkillError:
        raise
    except Exception as error:  # of an author's own check of a value
        raise CallRejectedError(logged_bug(message.call_id, message.skill, error)) from error


def _check_audience(spec: SkillSpec, message: SkillCall) -> None:
    """Raise ``SkillError`` if the skill is not for its caller. The bridge checks this too, but calls may come from
    elsewhere."""
    why = refusal(message.skill, spec.policy.audience, caller=message.caller, parent=message.parent)
    if why:
        raise CallRejectedError(why)


def _listed(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={shortened(json.dumps(value), _MAX_SHOWN)}" for name, value in arguments.items())
