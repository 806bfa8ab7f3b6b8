"""A running call as its skill sees it, with the other skills as it may use them."""

from __future__ import annotations

import abc
import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

OnUpdate = Callable[[str, Mapping[str, Any]], Awaitable[None] | None]
"""A callback that gets text and data of what a child says; a coroutine function is awaited."""


class SkillClient(Protocol):
    """The other skills as a running skill may use them: check, start, cancel."""

    async def check(self, skill: str, arguments: Mapping[str, Any]) -> None:
        """Raise ``UnknownSkillError``, ``SkillArgumentError`` or ``CallRejectedError`` if such a call would be
        refused for its form, or because its skill is not for skills to begin."""

    async def start(
        self,
        skill: str,
        arguments: Mapping[str, Any],
        *,
        on_wait: Callable[[], Awaitable[None]] | None = None,
    ) -> str:
        """Begin a call on behalf of this call's caller, who gets its events, and return its id. It goes on when this
        call ends; ``run`` is for a part of this call.

        If the caller is an agent, the call passes the agent's gates as one that its model makes, and may wait for
        long: ``on_wait`` is awaited once when it does. If this method is cancelled, the call does not begin any more.
        Raises ``CallRejectedError`` if it is refused, and ``SkillError`` if nobody takes it within a bound.
        """

    async def run(
        self,
        skill: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        on_update: OnUpdate | None = None,
        on_wait: Callable[[], Awaitable[None]] | None = None,
        quiet: bool = True,
        **named: Any,
    ) -> Any:
        """Run another skill as a part of this call, to its end; return its result, as JSON has it.

        The call of that skill, the *child*, belongs to this one: it ends when this one ends, in whatever way, and
        when this method is cancelled, which waits a moment for it. The child may use the resources that this call
        holds. ``on_update`` gets text and data of each of its updates and of its progress; unless it is ``quiet``
        they are this call's updates too. It passes the gates of an agent as a call that ``start`` begins does; for
        ``on_wait`` see there.

        Arguments whose names are this method's own are given in ``arguments``. Raises ``SkillRunError`` with the
        child's outcome and text if it did not complete or was refused.
        """

    async def cancel(self, call_id: str, reason: str) -> None:
        """Ask a call to end. Returns at once. The call's close has the reason, and the name of this call's caller."""


class Call(abc.ABC):
    """One running invocation of a skill, seen from inside it."""

    id: str
    skill: str
    module: str
    caller: str
    parent: str
    """The id of the call that began this one; empty if none did."""
    arguments: Mapping[str, Any]
    skills: SkillClient
    loop: asyncio.AbstractEventLoop
    """The loop on which the call's methods may be used; other threads use ``ToolStream``."""
    cancel_reason: str | None
    """The reason for which it was asked to end, or None as long as nobody has asked."""
    unsent: dict[asyncio.Task[None], None]
    """Tasks that send updates for which nobody waits; the call closes after them."""

    @abc.abstractmethod
    async def update(self, text: str, **data: Any) -> None:
        """Send the caller a text that must arrive. The first update answers the call; the skill goes on.

        Waits while the reader is too far behind. Raises ``StreamClosedError`` after the call's close.
        """

    @abc.abstractmethod
    def progress(self, text: str, **data: Any) -> None:
        """Send the caller a text that the next progress makes obsolete. As often as you like; never waits.

        Raises ``StreamClosedError`` after the call's close.
        """
