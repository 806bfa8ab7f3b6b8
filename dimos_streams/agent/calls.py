"""The agent's calls: begun, answered, going on, continued by others, ended."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dimos_streams import clock
from dimos_streams.agent.missions import Mission
from dimos_streams.agent.queue import CallNews
from dimos_streams.errors import SkillError
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.gateway import CallView, SkillGateway

_REMEMBERED = 1000
_INTRODUCTION_S = 3.0
_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class OpenCall:
    """A call of this agent that has not closed."""

    call_id: str
    skill: str
    missions: tuple[Mission, ...] = ()
    parent: str = ""
    """The call that began it on the agent's behalf, or empty."""
    last_seq: int = 0
    """Of the newest event that was dealt with."""
    answer: asyncio.Future[ToolEvent] | None = None
    """Waits for the first update or the close; None once the call counts as answered."""


class CallManager:
    """Knows every open call of one caller and decides what becomes of each event.

    The first update or the close answers a call that is waited for; everything else goes to ``deliver`` as news,
    once. A call of this caller that it did not begin itself (a continuation, or from before a restart) is adopted:
    all its events are news.
    """

    def __init__(
        self, gateway: SkillGateway, caller: str, deliver: Callable[[CallNews], Awaitable[None]], *, key_prefix: str
    ) -> None:
        """``key_prefix`` makes idempotency keys; it must differ from one start of the agent to the next."""
        self._gateway = gateway
        self._caller = caller
        self._deliver = deliver
        self._key_prefix = key_prefix
        self._begun = 0
        self._open: dict[str, OpenCall] = {}
        self._closed: OrderedDict[str, tuple[Mission, ...]] = OrderedDict()
        self._starting = 0
        self._settled = asyncio.Event()

    @property
    def open(self) -> tuple[OpenCall, ...]:
        """Calls that have not closed, in the order in which they became known."""
        return tuple(self._open.values())

    async def start(self, skill: str, arguments: Mapping[str, Any], missions: tuple[Mission, ...] = ()) -> OpenCall:
        """Begin a call that ``answer`` will be asked about. Raises ``SkillError`` if it is refused."""
        self._starting += 1
        self._settled.clear()
        self._begun += 1
        key = f"{self._key_prefix}/{self._begun}"
        try:
            call_id = await self._gateway.call(skill, arguments, caller=self._caller, idempotency_key=key)
            call = self._track(OpenCall(call_id, skill, missions))
            call.answer = asyncio.get_running_loop().create_future()
            return call
        finally:
            self._starting -= 1
            if not self._starting:
                self._settled.set()

    async def answer(self, call: OpenCall, timeout_s: float) -> ToolEvent | None:
        """The first update or the close of a call; None if neither came in time, then both will be news."""
        if call.answer is None:
            return None
        try:
            await asyncio.wait([call.answer], timeout=timeout_s)
            return call.answer.result() if call.answer.done() else None
        finally:
            call.answer = None

    async def cancel(self, calls: Iterable[OpenCall], reason: str) -> None:
        """Ask calls to end. One that can't be asked is logged; its end will be told anyhow."""
        for call in tuple(calls):
            try:
                await self._gateway.cancel(call.call_id, reason)
            except SkillError as error:
                _logger.warning("call %s of %s can't be cancelled: %s", call.call_id, call.skill, error)

    async def observe(self, event: ToolEvent) -> None:
        """Deal with the next event of this caller's calls; waits where ``deliver`` does."""
        if event.type == "gap":
            await self._after_gap(event)
            return
        if event.call_id not in self._open and self._starting:
            await self._settled.wait()  # it may be of a call whose id is still on its way to us
        call = self._open.get(event.call_id)
        if call is None:
            if event.call_id in self._closed:
                return
            call = self._adopt(event)
        if event.seq <= call.last_seq:
            return
        call.last_seq = event.seq
        if event.type == "open":
            return
        if call.answer is not None and not call.answer.done() and event.type != "progress":
            call.answer.set_result(event)
        else:
            await self._deliver(CallNews(event, call.missions))
        if event.type == "close":
            self._forget(call)

    async def adopt_open(self) -> tuple[OpenCall, ...]:
        """Take over the calls of this caller that are open already. Raises ``SkillError``."""
        views = await self._gateway.calls(open_only=True)
        known = [view for view in views if view.caller == self._caller and view.call_id not in self._open]
        return tuple(self._track(OpenCall(v.call_id, v.skill, parent=v.parent, last_seq=v.last_seq)) for v in known)

    async def _after_gap(self, gap: ToolEvent) -> None:
        """Tell of the gap; calls whose close fell into it close now, by what the broker knows of them."""
        await self._deliver(CallNews(gap))
        try:
            if await self._close_what_has_closed(unknown_too=False):
                # A broker that has lost its journal hears of the calls that live from their modules.
                await asyncio.sleep(_INTRODUCTION_S)
                await self._close_what_has_closed(unknown_too=True)
        except SkillError as error:
            _logger.warning("after a gap the open calls can't be compared with the bridge's: %s", error)

    async def _close_what_has_closed(self, *, unknown_too: bool) -> bool:
        """Close calls that the broker says have closed; whether there are some that it does not know."""
        views = {view.call_id: view for view in await self._gateway.calls()}
        for call in self.open:
            view = views.get(call.call_id)
            if view.state == "closed" if view is not None else unknown_too:
                await self.observe(_close_event(call, view, self._caller))
        return any(call.call_id not in views for call in self.open)

    def _adopt(self, event: ToolEvent) -> OpenCall:
        parent = event.data.get("parent")
        parent = parent if event.type == "open" and isinstance(parent, str) else ""
        missions: tuple[Mission, ...] = ()
        if parent in self._open:
            missions = self._open[parent].missions
        elif parent in self._closed:
            missions = self._closed[parent]
        return self._track(OpenCall(event.call_id, event.skill, missions, parent))

    def _track(self, call: OpenCall) -> OpenCall:
        for mission in call.missions:
            mission.hold()
        self._open[call.call_id] = call
        return call

    def _forget(self, call: OpenCall) -> None:
        del self._open[call.call_id]
        self._closed[call.call_id] = call.missions
        while len(self._closed) > _REMEMBERED:
            self._closed.popitem(last=False)
        for mission in call.missions:
            mission.release()


def _close_event(call: OpenCall, view: CallView | None, caller: str) -> ToolEvent:
    """A close that stands for one that can't be had any more."""
    if view is None:
        text, outcome, result, module = "the bridge does not know this call any more", Outcome.LOST, None, ""
    else:
        text, outcome, result, module = view.text, view.outcome or Outcome.LOST, view.result, view.module
    return ToolEvent(
        utime=clock.utime(),
        call_id=call.call_id,
        seq=max(call.last_seq, view.last_seq if view else 0) + 1,
        type="close",
        module=module,
        skill=call.skill,
        caller=caller,
        text=text,
        data={"outcome": outcome.value, "result": result},
    )
