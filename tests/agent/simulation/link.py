"""A link to the bridge that is cut, or on which answers get lost."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any, TypeVar

from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.errors import NoAnswerError
from dimos_streams.testing import CrashablePart, PartGateway

T = TypeVar("T")


class Link(PartGateway):
    """A ``SkillGateway`` of one process."""

    def __init__(self, part: CrashablePart, *, random: random.Random) -> None:
        super().__init__(part, random=random)
        self.is_cut = False
        self.loses_answers = False

    @property
    def broker(self) -> Broker:
        """The bridge's broker. Raises ``NoAnswerError`` while it is down."""
        return self._broker()

    async def ask(self, request: Coroutine[Any, Any, T]) -> T:
        """Ask the bridge for something. Raises ``NoAnswerError``."""
        return await self._ask(request)

    async def _ask(self, request: Coroutine[Any, Any, T]) -> T:
        if self.is_cut:
            request.close()
            raise NoAnswerError("the link is cut", may_have_arrived=False)
        answer = await super()._ask(request)
        if self.is_cut or (self.loses_answers and self._random.random() < 0.5):
            raise NoAnswerError("the answer is lost", may_have_arrived=True)
        return answer

    def _serve(self, connection: Any, after: int, caller: str | None, call_id: str | None) -> asyncio.Task[None]:
        if not self.is_cut:
            return super()._serve(connection, after, caller, call_id)

        async def end() -> None:
            connection.end()

        return asyncio.get_running_loop().create_task(end())
