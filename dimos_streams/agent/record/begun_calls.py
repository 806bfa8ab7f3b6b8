"""The data that the record has of a call that has begun, so that it can be taken back, whoever has begun it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dimos_streams.agent.record.event_data.calls import CallOpenData
from dimos_streams.skill import SkillTraits


def begun_call(
    skill: str,
    traits: SkillTraits,
    arguments: Mapping[str, Any],
    *,
    call_id: str,
    tool_call_id: str = "",
    parent: str | None = None,
    agents: Sequence[str],
) -> CallOpenData:
    """Return the data of a ``call_open``. ``tool_call_id`` is empty if no model has asked for the call, ``parent`` is
    the call whose skill has; ``agents`` are the sub-agents whose lists it is held to."""
    begun: CallOpenData = {
        "tool_call_id": tool_call_id,
        "call_id": call_id,
        "skill": skill,
        "arguments": dict(arguments),
        "undo": traits.undo,
        "reversible": traits.reversible,
        "senses": traits.senses,
    }
    if parent is not None:
        begun["parent"] = parent
    if agents:
        begun["agents"] = list(agents)
    return begun
