"""The skills and calls that MCP clients reach: those of a bridge, or of whatever else offers as much."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import dropwhile, islice
from typing import Any, Protocol, TypeVar

from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.bridge.calls.visibility import may_move, shown_to_models
from dimos_streams.operator.messages.stop import CancelReport
from dimos_streams.skill import SkillInfo
from dimos_streams.tool_stream.gateway import CallFacts, CallView


class McpCalls(Protocol):
    """Skills and calls. All raise ``SkillError`` for what is impossible, ``UnknownCallError`` for unknown calls."""

    def skills(self) -> list[SkillInfo]:
        """Return the skills that are offered now, whoever they are for: one of each name, which ``begin`` calls."""

    async def meet(self, is_known: Callable[[], bool]) -> None:
        """Wait until a skill is known, if those that may have it may not have been heard yet."""

    async def begin(self, skill: str, arguments: Mapping[str, Any], caller: str, key: str | None) -> str:
        """Begin a call, unless the caller has begun it before with the same idempotency key; return its id."""

    def has_begun(self, caller: str, key: str) -> bool:
        """Return whether a caller is known to have begun a call with an idempotency key."""

    async def begun_with(self, caller: str, key: str) -> str | None:
        """The call that a caller has begun with an idempotency key, also at another server; None if none is known."""

    async def view(self, call_id: str) -> CallView:
        """A call as it stands."""

    async def calls(
        self, wanted: Callable[[CallFacts], bool], *, open_only: bool = False, before: str | None = None
    ) -> Iterator[CallView]:
        """The remembered calls that are wanted, newest first, each as it is when its turn comes: those that began
        ``before`` a call, if its id is given."""

    async def cancel(self, call_id: str, reason: str) -> None:
        """Ask a call to end."""

    async def wait_closed(self, call_id: str, within_s: float) -> None:
        """Wait for a call's close, for ``within_s`` at most."""

    async def cancel_all(self, calls: list[CallView], reason: str, caller: str) -> CancelReport:
        """Ask calls to end for a caller, and give them a moment for it. Raises nothing for some of them: the report
        says it."""

    def is_over(self, call: CallView) -> Callable[[], bool]:
        """A function that returns whether a call that was looked at can have no events any more."""

    async def shown(self) -> Callable[[CallFacts], bool]:
        """A function that returns whether clients may know of a call."""

    async def may_move(self) -> Callable[[CallFacts], bool]:
        """A function that returns whether a call may move a robot, for all that is known, so that clients may stop it
        whether they may know of it or not."""


class _HasId(Protocol):
    @property
    def call_id(self) -> str: ...


HasId = TypeVar("HasId", bound=_HasId)


def began_before(call_id: str | None, newest_first: Iterable[HasId]) -> Iterator[HasId]:
    """Return the calls behind the one of an id, all without an id."""
    if call_id is None:
        return iter(newest_first)
    return islice(dropwhile(lambda call: call.call_id != call_id, newest_first), 1, None)


class BrokerCalls:
    """The skills and calls of a bridge."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def skills(self) -> list[SkillInfo]:
        """See ``McpCalls``; as their modules describe them."""
        return [called.info for called in self._broker.directory.called()]

    async def meet(self, is_known: Callable[[], bool]) -> None:
        """See ``McpCalls``."""
        await self._broker.directory.meet(is_known)

    async def begin(self, skill: str, arguments: Mapping[str, Any], caller: str, key: str | None) -> str:
        """See ``McpCalls``."""
        return await self._broker.call(skill, arguments, caller=caller, idempotency_key=key)

    def has_begun(self, caller: str, key: str) -> bool:
        """See ``McpCalls``."""
        return self._broker.has_begun(caller, key)

    async def begun_with(self, caller: str, key: str) -> str | None:
        """See ``McpCalls``."""
        return self._broker.begun_with(caller, key)

    async def view(self, call_id: str) -> CallView:
        """See ``McpCalls``."""
        return await self._broker.view(call_id)

    async def calls(
        self, wanted: Callable[[CallFacts], bool], *, open_only: bool = False, before: str | None = None
    ) -> Iterator[CallView]:
        """See ``McpCalls``. Views are made of those only that are taken: a thousand would hold the loop up."""
        calls = self._broker.ledger.calls
        newest_first = reversed(calls.open if open_only else list(calls))
        return (call.view() for call in began_before(before, newest_first) if wanted(call))

    async def cancel(self, call_id: str, reason: str) -> None:
        """See ``McpCalls``."""
        await self._broker.cancel(call_id, reason)

    async def wait_closed(self, call_id: str, within_s: float) -> None:
        """See ``McpCalls``."""
        await self._broker.wait(call_id, "close", within_s)

    async def cancel_all(self, calls: list[CallView], reason: str, caller: str) -> CancelReport:
        """See ``McpCalls``. Calls of the caller that have not begun yet don't begin any more, nor do motions that
        other models have asked for."""
        return await self._broker.cancels.cancel_for_model([call.call_id for call in calls], reason, caller)

    def is_over(self, call: CallView) -> Callable[[], bool]:
        """See ``McpCalls``."""
        known = self._broker.ledger.calls.get(call.call_id)
        return lambda: known is None or known.closed.is_set()

    async def shown(self) -> Callable[[CallFacts], bool]:
        """See ``McpCalls``."""
        return shown_to_models(self._broker)

    async def may_move(self) -> Callable[[CallFacts], bool]:
        """See ``McpCalls``."""
        return may_move(self._broker)
