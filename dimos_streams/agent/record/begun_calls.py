"""The data that the record has of a call that has begun, so that it can be taken back, whoever has begun it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dimos_streams.skill import SkillTraits

AGENTS = "agents"
"""The key of an event's data about a call that names the sub-agents whose lists it is held to."""


def begun_call(
    skill: str, traits: SkillTraits, arguments: Mapping[str, Any], *, call_id: str, tool_call_id: str
) -> dict[str, Any]:
    """Return the data of a ``call_open``. ``tool_call_id`` is empty if no model has asked for the call."""
    return {
        "tool_call_id": tool_call_id,
        "call_id": call_id,
        "skill": skill,
        "arguments": dict(arguments),
        "undo": traits.undo,
        "reversible": traits.reversible,
        "senses": traits.senses,
    }


def whose_list(agents: Sequence[str]) -> dict[str, list[str]]:
    """Return the sub-agents whose lists a call is held to, as data of its events; empty if there are none."""
    return {AGENTS: list(agents)} if agents else {}
