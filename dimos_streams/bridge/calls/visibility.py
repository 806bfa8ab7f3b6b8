"""Decides which calls models outside of the run may know of, and which they may stop. These are MCP clients, here and
at a fleet hub."""

from __future__ import annotations

from collections.abc import Callable

from dimos_streams.bridge.calls.authority import MCP
from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.tool_stream.gateway import CallFacts


def shown_to_models(broker: Broker) -> Callable[[CallFacts], bool]:
    """Return a function that says whether these models may know of a call. They may if they could have begun it; if
    its skill is gone, only if they have begun it."""
    audiences = {called.info.name: called.info.audience for called in broker.directory.called()}

    def is_shown(call: CallFacts) -> bool:
        unknown = "everyone" if call.caller.startswith(MCP) else "operator"
        return audiences.get(call.skill, unknown) == "everyone"

    return is_shown


def may_move(broker: Broker) -> Callable[[CallFacts], bool]:
    """Return a function that says whether a call may move a robot, so that anybody may stop it, even a call of which
    models may not know, such as an undo. A call whose skill is gone counts if a model began it."""
    skills = {called.info.name: called.info for called in broker.directory.called()}

    def may_move_robot(call: CallFacts) -> bool:
        skill = skills.get(call.skill)
        return call.caller.startswith(MCP) if skill is None else skill.may_move

    return may_move_robot


def stoppable_by_models(broker: Broker) -> Callable[[CallFacts], bool]:
    """Return a function that says whether these models may stop a call: they may know of it, or it may move a
    robot."""
    is_shown, moves = shown_to_models(broker), may_move(broker)
    return lambda call: is_shown(call) or moves(call)
