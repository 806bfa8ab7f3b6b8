"""Decides which calls models outside of the run may know of, and which they may stop. These are MCP clients, here and
at a fleet hub."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dimos_streams.bridge.calls.authority import MCP
from dimos_streams.skill import SkillInfo
from dimos_streams.tool_stream.gateway import CallFacts

if TYPE_CHECKING:
    from dimos_streams.bridge.calls.broker import Broker


def is_shown(call: CallFacts, skill: SkillInfo | None) -> bool:
    """Return whether these models may know of a call. They may if they could have begun it. If its skill is gone, and
    so is None, they may only if they did begin it."""
    return call.caller.startswith(MCP) if skill is None else skill.audience == "everyone"


def moves(call: CallFacts, skill: SkillInfo | None) -> bool:
    """Return whether a call may move a robot, so that anybody may stop it, even a call of which models may not know,
    such as an undo. A call whose skill is gone counts if a model began it."""
    return call.caller.startswith(MCP) if skill is None else skill.may_move


def shown_to_models(broker: Broker) -> Callable[[CallFacts], bool]:
    """Return a function that says of a bridge's calls what ``is_shown`` does."""
    skills = _skills(broker)
    return lambda call: is_shown(call, skills.get(call.skill))


def may_move(broker: Broker) -> Callable[[CallFacts], bool]:
    """Return a function that says of a bridge's calls what ``moves`` does."""
    skills = _skills(broker)
    return lambda call: moves(call, skills.get(call.skill))


def _skills(broker: Broker) -> dict[str, SkillInfo]:
    return {called.info.name: called.info for called in broker.directory.called()}


def stoppable_by_models(broker: Broker) -> Callable[[CallFacts], bool]:
    """Return a function that says whether these models may stop a call: they may know of it, or it may move a
    robot."""
    shown, moving = shown_to_models(broker), may_move(broker)
    return lambda call: shown(call) or moving(call)
