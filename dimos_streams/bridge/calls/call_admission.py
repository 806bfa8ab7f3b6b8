"""The admission of calls: what is checked and waited for before one begins, in whatever way it is begun."""

from __future__ import annotations

from typing import NamedTuple

from dimos_streams.bridge.calls.authority import Authority, by_model
from dimos_streams.bridge.calls.call_checker import CallChecker
from dimos_streams.bridge.calls.contention import Contention
from dimos_streams.bridge.calls.ledger import MAX_OPEN, Ledger
from dimos_streams.bridge.calls.reviews import CallReviews
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.errors import CallRejectedError
from dimos_streams.skill import SkillInfo


class _Room(NamedTuple):
    """Maximum number of open calls, and of those that wait to begin, at which one more is let in."""

    open: int
    waiting: int


_FOR_MODELS = _Room(MAX_OPEN * 3 // 4, 100)
"""The room for calls of agents and MCP clients, and what such calls ask for."""
_FOR_OTHERS = _Room(MAX_OPEN, 150)
_FOR_ORDERS = _Room(MAX_OPEN + 100, 200)
"""The room for what operators say to agents: whoever fills all other room keeps nobody from pausing an agent, or from
deciding on what waits."""


class CallAdmission:
    """Checks calls, has them wait for what they need, and begins them. Use from the bus's loop only."""

    def __init__(
        self,
        ledger: Ledger,
        authority: Authority,
        checker: CallChecker,
        contention: Contention,
        reviews: CallReviews,
    ) -> None:
        self._ledger = ledger
        self._authority = authority
        self._checker = checker
        self._contention = contention
        self._reviews = reviews

    async def admit(self, call: CallState) -> None:
        """Name a call's skill in full, check the call, wait for what it needs as far as allowed, and begin it.

        Raises ``SkillError`` if it can't.
        """
        if not call.parent:
            self._authority.check_caller(call)
        parent = self._ledger.calls.get(call.parent)
        call.overruled = {} if parent is None else parent.overruled
        waiting = self._ledger.waiting
        waiting[call.call_id] = call
        try:
            await self._authority.resolve_skill(call)
            room = self._room_for(call, self._checker.check(call))
            if len(waiting) > room.waiting or len(self._ledger.calls.open) >= room.open:
                most = f"{room.open} may be open at a time, and {room.waiting} wait"
                raise CallRejectedError(f"too many calls are open or waiting ({most}); try again later")
            if self._authority.reviewer(call) is None:
                self._contention.begin(call, await self._contention.make_way(call))
            else:
                await self._reviews.begin(call)
        finally:
            waiting.pop(call.call_id, None)

    def _room_for(self, call: CallState, skill: SkillInfo) -> _Room:
        if by_model(call):
            return _FOR_MODELS
        is_order = not call.parent and (skill.audience == "operator" or self._authority.is_agent(call.module))
        return _FOR_ORDERS if is_order else _FOR_OTHERS
