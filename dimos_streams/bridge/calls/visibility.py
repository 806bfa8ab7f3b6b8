"""Decides which calls may be known to models that are no agents of the run, MCP clients and those of a fleet hub, and
which they may stop."""

from __future__ import annotations

from collections.abc import Callable

from dimos_streams.bridge.calls.authority import MCP
from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.tool_stream.gateway import CallFacts


def shown_to_models(broker: Broker) -> Callable[[CallFacts], bool]:
    """A function that returns whether these models may know of a call: of each that they could have begun, and of
    their own while its skill is gone."""
    audiences = {called.info.name: called.info.audience for called in broker.directory.called()}

    def is_shown(call: CallFacts) -> bool:
        unknown = "everyone" if call.caller.startswith(MCP) else "operator"
        return audiences.get(call.skill, unknown) == "everyone"

    return is_shown


def may_move(broker: Broker) -> Callable[[CallFacts], bool]:
    """A function that returns whether a call may move a robot, for all that is known, so that anybody may stop it:
    also one of which models may not know, as that of an undo. One whose skill is gone may, if a model began it."""
    skills = {called.info.name: called.info for called in broker.directory.called()}

    def may_move_robot(call: CallFacts) -> bool:
        skill = skills.get(call.skill)
        return call.caller.startswith(MCP) if skill is None else skill.may_move

    return may_move_robot


def stoppable_by_models(broker: Broker) -> Callable[[CallFacts], bool]:
    """A function that returns whether these models may stop a call: one that they may know of, or that may move a
    robot."""
    is_shown, moves = shown_to_models(broker), may_move(broker)
    return lambda call: is_shown(call) or moves(call)
