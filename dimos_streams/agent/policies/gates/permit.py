"""Pause and step mode as a gate."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from dimos_streams.agent.policies.gates.base import Allow, CallRequest, Verdict


class PermitGate:
    """Holds a call until ``permit`` (``Control.permit``) returns."""

    def __init__(self, permit: Callable[[CallRequest], Awaitable[None]]) -> None:
        self._permit = permit

    async def review(self, request: CallRequest) -> Verdict:
        """See ``Gate``."""
        await self._permit(request)
        return Allow(request.arguments, request.on_duplicate)
