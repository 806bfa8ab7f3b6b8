"""Pause and step mode as a gate."""

from __future__ import annotations

from collections.abc import Callable

from dimos_streams.agent.policies.gates.base import Allow, CallRequest, Permit, Verdict


class PermitGate:
    """Holds a call until it has the operator's permit, which is looked at again when the call begins."""

    def __init__(self, permit: Callable[[CallRequest], Permit]) -> None:
        self._permit = permit

    async def review(self, request: CallRequest) -> Verdict:
        """See ``Gate``."""
        permit = self._permit(request)
        await permit.wait()
        return Allow(request.arguments, request.on_duplicate, permit=permit)
