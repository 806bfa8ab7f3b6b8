"""Lets a call take the place of one that runs: that one is ended first, and the world looked at again after that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dimos_streams import clock
from dimos_streams.agent.calls.call_scope import CallScope
from dimos_streams.errors import CallRejectedError
from dimos_streams.skill import OnDuplicate
from dimos_streams.tool_stream.gateway import ENDS_ITS_OWN, CallView, OfferedSkill

REPLACE_S: Final = 10.0
"""The time in s for a call to end whose place another one takes."""
_LOOK_S: Final = 0.5
"""Time, in seconds, between looks at the bridge for an end that was not heard of."""


class Replacement:
    """Makes way for one call that may replace its duplicates.

    The bridge would do that, too, but would begin the call right when the old one has ended: with nobody looking at
    where that has left the robot, or whether the operator has paused meanwhile. So the call is asked for with
    ``reject``; the call that the bridge names as its duplicate is ended, and the new one is asked for again. Only the
    agent's own calls are ended, by a sub-agent those in its reach: what an operator or a program has begun is theirs
    to end.
    """

    def __init__(
        self,
        scope: CallScope,
        skill: OfferedSkill,
        arguments: Mapping[str, Any],
        on_duplicate: OnDuplicate | None,
    ) -> None:
        self._calls = scope.calls
        self._scope = scope
        self._skill = skill
        self._arguments = arguments
        self._replaces = (on_duplicate or skill.on_duplicate) == "replace" and not skill.protected
        self.on_duplicate: OnDuplicate | None = "reject" if self._replaces else on_duplicate
        """The ``on_duplicate`` that the bridge is asked for."""

    async def make_way(self, rejected: CallRejectedError) -> None:
        """End the call that is in the way, and wait for that; then the new one may be tried again.

        Raises ``rejected`` if that call is not a duplicate, and another ``CallRejectedError`` if it does not end in
        time.
        """
        if not (self._replaces and rejected.holder):
            raise rejected
        holder = await self._calls.open_view(rejected.holder)
        if holder is None:  # it has ended since
            return
        if not self._is_duplicate(holder):
            raise rejected
        if holder.caller != self._calls.caller:
            raise CallRejectedError(f"{rejected}{ENDS_ITS_OWN}", holder=holder.call_id)
        if not self._scope.may_replace(holder.call_id):
            raise CallRejectedError(str(await self._scope.refusal(holder.call_id)), holder=holder.call_id)
        await self._calls.endings.cancel_by_id(holder.call_id, f"replaced by another call of {self._skill.name!r}")
        deadline = clock.monotonic() + REPLACE_S
        while await self._calls.open_view(holder.call_id) is not None:
            if clock.monotonic() >= deadline:
                await self._give_up(holder.call_id)
            await self._calls.known.wait_closed(holder.call_id, _LOOK_S)

    def _is_duplicate(self, other: CallView) -> bool:
        return other.skill == self._skill.name and self._skill.are_duplicates(self._arguments, other.arguments)

    async def _give_up(self, call_id: str) -> None:
        """Give up the agent's own call, which did not end when it was cancelled and may drive on. Raises
        ``CallRejectedError``."""
        stubborn = [call for call in self._calls.known.open if call.call_id == call_id]
        await self._calls.endings.give_up(stubborn, "another call was to take its place")
        text = f"call {call_id!r} was to be replaced but did not end within {REPLACE_S:g} s"
        raise CallRejectedError(text, holder=call_id)
