"""The agent's calls: begun, going on, continued by others, ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dimos_streams.agent.calls.call_endings import CallEndings, OnGivenUp, nothing_to_do
from dimos_streams.agent.calls.call_events import CallEvents
from dimos_streams.agent.calls.call_starts import CallStarts
from dimos_streams.agent.calls.known_calls import KnownCalls
from dimos_streams.agent.calls.open_call import NO_CONTEXT, CallContext, Deliver, OpenCall
from dimos_streams.agent.calls.reconciliation import Reconciliation
from dimos_streams.operator.robot_orders import NO_ORDER
from dimos_streams.skill import OnDuplicate
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.gateway import CallView, SkillGateway


class CallManager:
    """The calls of one caller, and all that deals with them.

    ``known`` finds those that are open, ``memory`` those that are not; ``starts`` says what is about to begin;
    ``incoming`` deals with events, ``endings`` ends calls, and ``reconciliation`` compares them with the bridge's.
    """

    def __init__(
        self,
        gateway: SkillGateway,
        caller: str,
        deliver: Deliver,
        *,
        key_prefix: str,
        robot_order: Callable[[], int] = lambda: NO_ORDER,
        on_orders: Callable[[Mapping[str, int]], None] = lambda orders: None,
        on_given_up: OnGivenUp = nothing_to_do,
    ) -> None:
        """``deliver`` gets the updates of calls. ``key_prefix`` makes idempotency keys; it must differ from one start
        of the agent to the next. ``robot_order`` and ``on_orders`` are as for ``CallStarts``.

        ``on_given_up`` gets calls before they are given up, and returns what it has done about that.
        """
        self._gateway = gateway
        self.caller = caller
        self.known = KnownCalls()
        self.memory = self.known.memory
        self.starts = CallStarts(gateway, caller, self.memory, key_prefix, robot_order, on_orders)
        self.endings = CallEndings(gateway, caller, self.known, self._observe_made, on_given_up)
        self.reconciliation = Reconciliation(gateway, caller, self.known, self._observe_made)
        self.incoming = CallEvents(self.known, self.starts, self.endings, self.reconciliation, deliver)

    async def start(
        self,
        skill: str,
        arguments: Mapping[str, Any],
        context: CallContext = NO_CONTEXT,
        *,
        on_duplicate: OnDuplicate | None = None,
        time_limit_s: float | None = None,
        silent: bool = False,
        on_late: Callable[[str], None] = lambda call_id: None,
        stands: Callable[[], bool] = lambda: True,
    ) -> OpenCall:
        """Begin a call, whose ``answer`` is waited for. Raises ``SkillError`` if it is refused.

        After ``time_limit_s`` it is cancelled, and given up if that does not help. No event of one that is ``silent``
        is delivered. If starting is cancelled, a call that begins nevertheless is ended, and ``on_late`` called with
        its id. ``stands`` is as for ``CallStarts.start``.
        """
        call = OpenCall("", skill, context, arguments=dict(arguments), silent=silent, on_late=on_late)
        await self.starts.start(call, on_duplicate, stands)
        self.known.add(call)
        self.endings.limit(call, time_limit_s)
        return call

    async def open_view(self, call_id: str) -> CallView | None:
        """Return the open call of that id, of any caller, or None if there is none. Raises ``SkillError``."""
        views = await self._gateway.calls(open_only=True)
        return next((view for view in views if view.call_id == call_id), None)

    async def stop(self) -> None:
        """End the tasks of its own; the calls themselves go on. Twice is fine."""
        self.memory.stop()
        await self.endings.stop()

    async def _observe_made(self, close: ToolEvent) -> None:
        """Deal with a close that was made for a call whose own one can't be had."""
        await self.incoming.observe(close)
