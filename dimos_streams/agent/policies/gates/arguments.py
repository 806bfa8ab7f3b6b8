"""The gate that refuses arguments that do not fit before anybody is asked about them, and fills in what they leave
out."""

from __future__ import annotations

from dimos_streams.agent.policies.gates.base import Allow, CallRequest, Refuse, Verdict
from dimos_streams.errors import SkillError
from dimos_streams.tool_stream.arguments.defaults import checked_arguments


class ArgumentsGate:
    """Checks arguments against the skill's schema; the refusal names each field.

    The defaults of what is left out are filled in once, here: rules, plans, approvals and rejections look at what
    will be done, and that is what the skill is sent.
    """

    async def review(self, request: CallRequest) -> Verdict:
        """See ``Gate``."""
        try:
            arguments = checked_arguments(request.skill, request.arguments)
        except SkillError as error:
            return Refuse(str(error))
        return Allow(arguments, request.on_duplicate)
