"""The bridge of the same process, as the agent sees it: it may come later, go, and come back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping
from typing import Any, Unpack

from dimos_streams.client.iterators import closing
from dimos_streams.errors import SkillUnavailableError
from dimos_streams.module import Services
from dimos_streams.tool_stream.gateway import CallTerms, CallView, JournalEntry, OfferedSkill, SkillGateway

_LOOK_S = 0.05


class LocalGateway:
    """A ``SkillGateway`` that passes everything on to the one that is offered at the moment.

    While none is offered, ``events`` waits and everything else raises ``SkillUnavailableError``.
    """

    def __init__(self, services: Services) -> None:
        self._services = services

    async def skills(self) -> list[OfferedSkill]:
        """See ``SkillGateway``."""
        return await self._gateway().skills()

    async def call(self, skill: str, arguments: Mapping[str, Any], *, caller: str, **terms: Unpack[CallTerms]) -> str:
        """See ``SkillGateway``."""
        return await self._gateway().call(skill, arguments, caller=caller, **terms)

    async def cancel(self, call_id: str, reason: str) -> None:
        """See ``SkillGateway``."""
        await self._gateway().cancel(call_id, reason)

    async def cancel_calls(self, call_ids: Collection[str], reason: str) -> None:
        """See ``SkillGateway``."""
        await self._gateway().cancel_calls(call_ids, reason)

    async def calls(self, *, open_only: bool = False) -> list[CallView]:
        """See ``SkillGateway``."""
        return await self._gateway().calls(open_only=open_only)

    async def offset(self) -> int:
        """See ``SkillGateway``."""
        return await self._gateway().offset()

    async def robot_orders(self) -> Mapping[str, int]:
        """See ``SkillGateway``."""
        return await self._gateway().robot_orders()

    async def events(
        self, *, after: int, caller: str | None = None, call_id: str | None = None
    ) -> AsyncGenerator[JournalEntry, None]:
        """See ``SkillGateway``."""
        while True:
            gateway = self._offered()
            if gateway is not None:
                async with closing(gateway.events(after=after, caller=caller, call_id=call_id)) as events:
                    async for entry in events:
                        after = entry.offset
                        yield entry
            await asyncio.sleep(_LOOK_S)

    def _offered(self) -> SkillGateway | None:
        return self._services.get(SkillGateway)  # type: ignore[type-abstract]

    def _gateway(self) -> SkillGateway:
        gateway = self._offered()
        if gateway is None:
            raise SkillUnavailableError("no bridge runs in this process at the moment")
        return gateway
