"""Compares the agent's calls with those that the broker knows: at a start, after a gap, after a journal was lost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable

from dimos_streams.agent.calls.known_calls import KnownCalls
from dimos_streams.agent.calls.open_call import NO_CONTEXT, OpenCall, made_close
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.family import parent_of
from dimos_streams.tool_stream.gateway import CallView, SkillGateway

INTRODUCTION_S = 3.0
"""The time in s until a bridge that has lost its journal has heard of the calls that live from their modules."""


class Reconciliation:
    """Finds the calls that have closed unheard, and those that are open and not known yet."""

    def __init__(
        self, gateway: SkillGateway, caller: str, known: KnownCalls, observe: Callable[[ToolEvent], Awaitable[None]]
    ) -> None:
        """``observe`` gets the closes that are made for calls whose own close was not heard."""
        self._gateway = gateway
        self._caller = caller
        self._known = known
        self._observe = observe

    async def adopt_open(self, known: Iterable[OpenCall] = ()) -> tuple[OpenCall, ...]:
        """Take over the calls of this caller that are open already, and those that a record knows of.

        Return those that no record knew. Raises ``SkillError``.
        """
        recorded = {call.call_id: call for call in known}
        new = await self._unknown(recorded)
        for call in recorded.values():
            self._known.add(call)
        return tuple(self._take_over(view) for view in new)

    def _take_over(self, view: CallView) -> OpenCall:
        asking = self._known.asking(view.parent)
        call = OpenCall(
            view.call_id,
            view.skill,
            asking.context if asking else NO_CONTEXT,
            view.parent,
            view.arguments,
            last_seq=view.last_seq,
        )
        return self._known.add(call)

    async def _unknown(self, recorded: Collection[str]) -> list[CallView]:
        """Open calls of the caller that are neither known nor ``recorded`` by their ids, and belong to no other
        call. Raises ``SkillError``."""
        views = await self._gateway.calls(open_only=True)
        own = [view for view in views if view.caller == self._caller and not parent_of(view.call_id)]
        return [view for view in own if view.call_id not in recorded and self._known.get(view.call_id) is None]

    async def close_lost(self, *, unknown_too: bool) -> bool:
        """Close calls that the broker says have closed, and with ``unknown_too`` those that it does not know; return
        whether there are unknown ones left.

        Raises ``SkillError``.
        """
        views = {view.call_id: view for view in await self._gateway.calls()}

        def is_over(call: OpenCall) -> bool:
            view = views.get(call.call_id)
            return view.state == "closed" if view is not None else unknown_too

        for call in self._known.open:
            if is_over(call):
                await self._observe(self._lost(call, views.get(call.call_id)))
        for call in self._known.memory.given_up:
            if is_over(call):
                self._known.memory.has_ended(call.call_id)
        return any(call.call_id not in views for call in self._known.may_run)

    def _lost(self, call: OpenCall, view: CallView | None) -> ToolEvent:
        if view is None:
            return made_close(call, self._caller, Outcome.LOST, "the bridge does not know this call any more")
        return made_close(call, self._caller, view.outcome or Outcome.LOST, view.text, view)
