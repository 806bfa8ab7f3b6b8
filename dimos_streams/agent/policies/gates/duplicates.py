"""A second call while one runs: what the agent adds to the broker's handling of it.

The broker (``bridge/calls/broker.py``) knows the calls of all callers: it refuses a duplicate, or ends the running
call and waits for that before the new one begins, or lets both run, by what the skill declares or the caller asks
for. What an agent asks for is found here: from its config, or, if the skill declares ``confirm``, from the model,
whose tool gets a parameter for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from dimos_streams.agent.policies.gates.base import Allow, CallRequest, Refuse, Verdict
from dimos_streams.skill import OnDuplicate, public_names
from dimos_streams.tool_stream.gateway import OfferedSkill

PARAMETER = "on_duplicate"
_CHOICES = ("allow", "replace")
_DESCRIPTION = (
    "Leave it out at first. If you are told that such a call runs already, repeat the call with 'allow' to run both, "
    "or 'replace' to end the running one first."
)


class DuplicatesGate:
    """Takes the model's choice out of the arguments, and applies the config's."""

    def __init__(self, policies: Mapping[str, OnDuplicate], *, agent: str) -> None:
        """``policies`` override what skills declare; their keys are names as the module ``agent``, whose they are,
        sees them."""
        self._policies = {name: policy for skill, policy in policies.items() for name in public_names(skill, agent)}

    def parameters(self, skill: OfferedSkill) -> Mapping[str, Any]:
        """Return the skill's schema as a model is to see it."""
        if not self._asks_the_model(skill):
            return skill.parameters
        choice = {"type": "string", "enum": list(_CHOICES), "description": _DESCRIPTION}
        properties = {**skill.parameters.get("properties", {}), PARAMETER: choice}
        return {**skill.parameters, "properties": properties}

    async def review(self, request: CallRequest) -> Verdict:
        """See ``Gate``."""
        asked = self._policies.get(request.skill.name)
        if not self._asks_the_model(request.skill) or PARAMETER not in request.arguments:
            return Allow(request.arguments, asked)
        choice = request.arguments[PARAMETER]
        if choice is not None and choice not in _CHOICES:
            return Refuse(f"{PARAMETER} is {choice!r}; it can be left out, or be one of {', '.join(_CHOICES)}")
        arguments = {name: value for name, value in request.arguments.items() if name != PARAMETER}
        return Allow(arguments, cast("OnDuplicate | None", choice) or asked)

    def _asks_the_model(self, skill: OfferedSkill) -> bool:
        policy = self._policies.get(skill.name, skill.on_duplicate)
        return policy == "confirm" and PARAMETER not in skill.parameters.get("properties", {})
