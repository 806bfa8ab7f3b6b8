"""Calls of others than the agent, which an operator's stop ends as well."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass

from dimos_streams.agent.calls.skill_catalog import Offers
from dimos_streams.agent.control.control import Control
from dimos_streams.errors import SkillError
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
    """Ends what other callers have begun that moves the agent's robot, or is of skills that it is offered."""

    def __init__(
        self, agent: str, gateway: SkillGateway, offers: Offers, control: Control, bound_s: Callable[[], float]
    ) -> None:
        """``bound_s`` returns the time in s that the calls have to end."""
        self._agent = agent
        self._gateway = gateway
        self._offers = offers
        self._control = control
        self._bound_s = bound_s

    async def end(self, reason: str) -> EndedOthers:
        """End what other callers have begun, and wait for that within the bound. The agent is paused if any of it may
        still run then, also because the bridge can't be asked."""
        ending = _Ending(self._agent, self._gateway, self._offers, reason)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._bound_s()):
                await ending.run()
        if ending.may_run:
            self._control.pause("calls of others may still run")
            named = ", ".join((*ending.may_run, *ending.refusals.values()))
            _logger.error("calls of others may still run: %s", named)
        return EndedOthers(tuple(ending.ended), ending.may_run)


class _Ending:
    """Ends what other callers have begun. A request that fails is made again; it keeps no other call running."""

    def __init__(self, agent: str, gateway: SkillGateway, offers: Offers, reason: str) -> None:
        self._agent = agent
        self._gateway = gateway
        self._offers = offers
        self._reason = reason
        self._seen: dict[str, CallView] = {}
        self._left: dict[str, CallView] = {}
        self._unheard = "not asked in time"
        """The reason it is not known what runs now, empty if it is."""
        self._asked: set[str] = set()
        self.refusals: dict[str, str] = {}
        """The reasons why calls could not be asked to end, by their ids."""

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
        await self._offers.refresh(at_once=True)
        while True:
            await self._look()
            await asyncio.gather(*(self._ask(call_id) for call_id in self._left if call_id not in self._asked))
            if not self.may_run:
                return
            await asyncio.sleep(_LOOK_EVERY_S)

    async def _look(self) -> None:
        """Look which calls run. If that can't be known, those of the last look count."""
        try:
            views = await self._gateway.calls(open_only=True)
        except SkillError as error:
            self._unheard = str(error)
            return
        self._unheard = ""
        others = (view for view in views if view.caller != self._agent)
        self._left = {view.call_id: view for view in others if self._offers.concerns(view.skill)}
        self._seen.update(self._left)

    async def _ask(self, call_id: str) -> None:
        try:
            await self._gateway.cancel(call_id, self._reason)
        except SkillError as error:
            self.refusals[call_id] = str(error)
            return
        self._asked.add(call_id)
        self.refusals.pop(call_id, None)
