"""The agent's calls: begun, going on, continued by others, ended."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

from dimos_streams.agent.calls.call_endings import CallEndings, OnGivenUp, nothing_to_do
from dimos_streams.agent.calls.call_events import CallEvents
from dimos_streams.agent.calls.call_starts import CallStarts
from dimos_streams.agent.calls.known_calls import KnownCalls
from dimos_streams.agent.calls.open_call import CallContext, Deliver, OpenCall
from dimos_streams.agent.calls.reconciliation import Reconciliation
from dimos_streams.agent.missions.mission import Mission
from dimos_streams.agent.policies.gates.base import Reviewer
from dimos_streams.skill import OnDuplicate
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.gateway import CallView, SkillGateway


class CallManager:
    """Begins the calls of one caller, and takes over those that run already.

    What becomes of their events is decided by ``incoming``, how they end by ``endings``; ``known`` finds them.
    """

    def __init__(
        self,
        gateway: SkillGateway,
        caller: str,
        deliver: Deliver,
        *,
        key_prefix: str,
        on_given_up: OnGivenUp = nothing_to_do,
    ) -> None:
        """``deliver`` gets the updates of calls. ``key_prefix`` makes idempotency keys; it must differ from one start
        of the agent to the next.

        ``on_given_up`` gets calls before they are given up, and returns what it has done about that.
        """
        self._gateway = gateway
        self.caller = caller
        self.known = KnownCalls()
        memory = self.known.memory
        self._starts = CallStarts(gateway, caller, memory, key_prefix)
        self.endings = CallEndings(gateway, caller, memory, self._observe_made, on_given_up)
        self.reconciliation = Reconciliation(gateway, caller, self.known, self._observe_made)
        self.incoming = CallEvents(self.known, self._starts, self.endings, self.reconciliation, deliver)

    @property
    def open(self) -> tuple[OpenCall, ...]:
        """The calls that have not closed, in the order in which they became known."""
        return self.known.open

    @property
    def starting(self) -> bool:
        """True if a call is about to begin."""
        return self._starts.under_way

    def next_start_over(self) -> Coroutine[Any, Any, object]:
        """Return what waits until one of the calls that are about to begin now is open, or is known not to begin."""
        return self._starts.next_over()

    @property
    def given_up(self) -> tuple[OpenCall, ...]:
        """The calls that were given up and may still run: their end has not been reported."""
        return self.known.memory.given_up

    async def start(
        self,
        skill: str,
        arguments: Mapping[str, Any],
        missions: tuple[Mission, ...] = (),
        *,
        on_duplicate: OnDuplicate | None = None,
        deliver: Deliver | None = None,
        reviewer: Reviewer | None = None,
        time_limit_s: float | None = None,
        silent: bool = False,
        on_late: Callable[[str], None] = lambda call_id: None,
    ) -> OpenCall:
        """Begin a call, whose ``answer`` is waited for. Raises ``SkillError`` if it is refused.

        ``deliver`` gets its updates; None stands for the agent's queue. ``reviewer`` is the one that has let it
        begin. After ``time_limit_s`` it is cancelled, and given up if that does not help. If starting is cancelled, a
        call that begins nevertheless is ended, and ``on_late`` called with its id.
        """
        context = CallContext(missions, deliver, reviewer)
        call = OpenCall("", skill, context, arguments=dict(arguments), silent=silent, on_late=on_late)
        await self._starts.start(call, on_duplicate)
        self.known.add(call)
        self.endings.limit(call, time_limit_s)
        return call

    async def cancel_by_id(self, call_id: str, reason: str) -> None:
        """Ask a call to end, also one of which no event has come yet. Raises ``SkillError`` if it can't be asked."""
        if (call := self.known.get(call_id)) is not None:
            call.ask_to_end(reason)
        await self._gateway.cancel(call_id, reason)

    async def open_view(self, call_id: str) -> CallView | None:
        """Return the open call of that id, of any caller, or None if there is none. Raises ``SkillError``."""
        views = await self._gateway.calls(open_only=True)
        return next((view for view in views if view.call_id == call_id), None)

    async def adopt_open(self, known: Iterable[OpenCall] = ()) -> tuple[OpenCall, ...]:
        """Take over the calls of this caller that are open already, and those that a record knows of.

        Return those that no record knew. Raises ``SkillError``.
        """
        recorded = {call.call_id: call for call in known}
        new = await self.reconciliation.unknown(recorded)
        for call in recorded.values():
            self.known.add(call)
        return tuple(self._take_over(view) for view in new)

    async def stop(self) -> None:
        """End the tasks of its own; the calls themselves go on. Twice is fine."""
        self.known.memory.stop()
        await self.endings.stop()

    def _take_over(self, view: CallView) -> OpenCall:
        asking = self.known.asking(view.parent)
        call = OpenCall(
            view.call_id,
            view.skill,
            asking.context if asking else CallContext(),
            view.parent,
            view.arguments,
            last_seq=view.last_seq,
        )
        return self.known.add(call)

    async def _observe_made(self, close: ToolEvent) -> None:
        """Deal with a close that was made for a call whose own one can't be had."""
        await self.incoming.observe(close)
