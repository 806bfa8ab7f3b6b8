"""Calls of others than the agent, which an operator's stop ends as well."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Set
from dataclasses import dataclass

from dimos_streams import clock
from dimos_streams.agent.calls.skill_catalog import SkillCatalog
from dimos_streams.agent.control.control import Control
from dimos_streams.common.names import is_near
from dimos_streams.errors import SkillError
from dimos_streams.tool_stream.audience import is_bridge
from dimos_streams.tool_stream.gateway import CallView, SkillGateway

_LOOK_EVERY_S = 0.05
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EndedOthers:
    """The result for the calls of others that were to end."""

    ended: tuple[CallView, ...]
    """The calls that have ended, as the bridge has said."""
    may_run: tuple[str, ...]
    """The ids of those that had not, as far as the bridge could be asked; and, if it could not, that there may be
    more."""


class OthersCalls:
    """Finds and ends what other callers have begun that moves the agent's robot, or is of skills that it is
    offered."""

    def __init__(
        self, agent: str, gateway: SkillGateway, catalog: SkillCatalog, control: Control, bound_s: Callable[[], float]
    ) -> None:
        """``bound_s`` returns the time in s that the calls have to end."""
        self._agent = agent
        self._gateway = gateway
        self._catalog = catalog
        self._control = control
        self._bound_s = bound_s

    async def moving(self) -> list[CallView]:
        """Return the open calls of all callers that may move the agent's robot. Raises ``SkillError``."""
        views = await self._gateway.calls(open_only=True)
        return [
            view
            for view in views
            if self._catalog.may_move(view.skill) and is_near(self._agent, view.module) and not is_bridge(view.caller)
        ]

    async def end(self, reason: str) -> EndedOthers:
        """End what other callers have begun, and wait for that within the bound. The agent is paused if any of it may
        still run then, also because the bridge can't be asked."""
        ending = _Ending(self._agent, self._gateway, self._catalog, reason)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._bound_s()):
                await ending.run()
        if ending.may_run:
            self._control.pause("calls of others may still run", ordered=False)
            named = ", ".join(filter(None, (*ending.may_run, ending.refusal)))
            _logger.error("calls of others may still run: %s", named)
        return EndedOthers(tuple(ending.ended), ending.may_run)


class _Ending:
    """Ends what other callers have begun, by one request for all of them however many they are: a request for each
    would take a thread each, which would keep the agent's loop from running. A request that fails is made again."""

    def __init__(self, agent: str, gateway: SkillGateway, catalog: SkillCatalog, reason: str) -> None:
        self._agent = agent
        self._gateway = gateway
        self._catalog = catalog
        self._reason = reason
        self._seen: dict[str, CallView] = {}
        self._left: dict[str, CallView] = {}
        self._unheard = "not asked in time"
        """The reason it is not known what runs now, empty if it is."""
        self._asked: set[str] = set()
        self.refusal = ""
        """The reason why the newest request to end was refused; empty if it was not."""

    @property
    def ended(self) -> list[CallView]:
        """The calls that have ended, as the bridge has said."""
        return [view for call_id, view in self._seen.items() if call_id not in self._left]

    @property
    def may_run(self) -> tuple[str, ...]:
        """The ids of the calls that may still run, and a text if there may be more."""
        return (*self._left, *([f"calls of others ({self._unheard})"] if self._unheard else []))

    async def run(self) -> None:
        """Ask and look until all have ended."""
        await self._catalog.refresh(at_once=True)
        while True:
            began = clock.monotonic()
            await self._look()
            if new := self._left.keys() - self._asked:
                await self._ask(new)
            if not self.may_run:
                return
            # As long as it took: of a bridge that is slow, it would only be more of a load.
            await asyncio.sleep(max(_LOOK_EVERY_S, clock.monotonic() - began))

    async def _look(self) -> None:
        """Look which calls run. If that can't be known, those of the last look count."""
        try:
            views = await self._gateway.calls(open_only=True)
        except SkillError as error:
            self._unheard = str(error)
            return
        self._unheard = ""
        others = (view for view in views if view.caller != self._agent)
        self._left = {view.call_id: view for view in others if self._catalog.concerns(view.skill)}
        self._seen.update(self._left)

    async def _ask(self, call_ids: Set[str]) -> None:
        try:
            await self._gateway.cancel_calls(sorted(call_ids), self._reason)
        except SkillError as error:
            self.refusal = str(error)
            return
        self._asked |= call_ids
        self.refusal = ""
