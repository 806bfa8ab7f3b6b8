"""Arguments that do not fit are refused before anybody is asked about them."""

from __future__ import annotations

from dimos_streams.agent.gates.base import Allow, CallRequest, Refuse, Verdict
from dimos_streams.errors import SkillError
from dimos_streams.tool_stream.schemas import check_arguments


class ArgumentsGate:
    """Checks arguments against the skill's schema; the refusal names each field."""

    async def review(self, request: CallRequest) -> Verdict:
        """See ``Gate``."""
        try:
            check_arguments(request.skill, request.arguments)
        except SkillError as error:
            return Refuse(str(error))
        return Allow(request.arguments, request.on_duplicate)
