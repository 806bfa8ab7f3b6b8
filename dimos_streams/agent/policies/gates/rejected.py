"""The gate that goes on refusing what an operator has rejected in this mission."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dimos_streams.agent.policies.canonical import shown
from dimos_streams.agent.policies.gates.base import Allow, CallRequest, Refuse, Verdict
from dimos_streams.agent.policies.rejections import Rejections


class RejectedGate:
    """Refuses a rejected call, free motion or not, in whatever part of the mission; nobody is asked again."""

    def __init__(self, rejections: Rejections) -> None:
        self._rejections = rejections

    async def review(self, request: CallRequest) -> Verdict:
        """See ``Gate``."""
        return self._refusal(request, request.arguments) or Allow(
            request.arguments, request.on_duplicate, again=lambda arguments: self._refusal(request, arguments)
        )

    def _refusal(self, request: CallRequest, arguments: Mapping[str, Any]) -> Refuse | None:
        reason = self._rejections.why(request.skill.name, arguments, request.missions)
        if reason is None:
            return None
        call = shown(request.skill.name, arguments)
        why = f": {reason}" if reason else ""
        text = f"Not run: the operator has rejected {call} in this mission{why}. Do not ask for it again as it is."
        return Refuse(text, charged=False)
