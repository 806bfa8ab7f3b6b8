"""The link by which ``run`` sees and influences the run that it started: through the bridge, or else over the bus."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dimos_streams import clock
from dimos_streams.cli.bridge_client.agents import find_say
from dimos_streams.cli.bridge_client.calls.event_watch import EventWatch, Show, watching, watching_bus
from dimos_streams.cli.bridge_client.connection import BridgeAddress, BridgeUnreachableError, open_gateway
from dimos_streams.common.tasks import ends_within
from dimos_streams.errors import CallInDoubtError, DimosStreamsError, SkillUnavailableError, UserError
from dimos_streams.operator.agents import is_conversation
from dimos_streams.operator.known_names import CLI

if TYPE_CHECKING:
    from dimos_streams.bus import Bus
    from dimos_streams.tool_stream.event import ToolEvent
    from dimos_streams.tool_stream.gateway import SkillGateway

_INTRODUCTION_S = 5.0
"""Maximum time, in seconds, after the start until the bridge knows the agent's skill."""
_MISSED_S = 9.0
"""Maximum time, in seconds, for which a bridge's closes of what ran in a dead process are waited for: longer than it
takes to miss one on a busy machine."""
_LOSSES_S = 1.0
"""Maximum time, in seconds, for which the end of a run waits for what its bridge has heard of recorders."""


@dataclass(frozen=True)
class RunLink:
    """The events of all calls, and what can be done about them."""

    watch: EventWatch
    gateway: SkillGateway | None
    cancel: Callable[[str, str], Awaitable[None]]
    bridge: BridgeAddress | None = None
    """The address of the bridge if it is reached over HTTP, else None."""

    async def introduced(self, modules: Collection[str]) -> None:
        """Wait, within a bound, until the bridge knows the skills of modules: what is said before is not understood.

        Bridges of our own process know that from the start.
        """
        if self.bridge is None:
            return
        with contextlib.suppress(TimeoutError, BridgeUnreachableError):
            async with asyncio.timeout(_INTRODUCTION_S):
                while not await _knows(self.bridge, modules):  # noqa: ASYNC110 - nobody signals it
                    await asyncio.sleep(0.02)

    async def say(self, text: str, skill: str | None = None) -> ToolEvent:
        """Tell the agent something; return the close of that call. Raises ``UserError`` if there is no agent.

        ``skill`` is the skill of the agent that is meant; without it there must be only one agent. Only for runs with
        a bridge.
        """
        assert self.gateway is not None, "only a run with a bridge can be asked to say something"
        call_id = await self._begin_saying(self.gateway, text, skill)
        return await self.watch.wait(call_id, "close")

    async def end_calls(self, reason: str, bound_s: float, *, down: Collection[str] = ()) -> None:
        """Cancel all open calls, and those begun meanwhile; wait for their closes, but not longer than the bound.

        Those of the modules that are ``down`` are closed by a bridge, as soon as it has missed their process.
        """
        with contextlib.suppress(TimeoutError, DimosStreamsError):
            if not await ends_within(bound_s, self._cancel_all(reason)) and self.gateway is not None:
                closed = self.watch.until(lambda: not any(call.module in down for call in self.watch.open.values()))
                await ends_within(_MISSED_S, closed)

    async def _cancel_all(self, reason: str) -> None:
        asked: set[str] = set()
        watch = self.watch
        while watch.open:
            # Skills before the conversations that led to them, so that their closes have this reason; but
            # all at once: an agent that hears of the first one's close alone says that its mission failed.
            unasked = [call for call in watch.open.items() if call[0] not in asked]
            unasked.sort(key=lambda call: is_conversation(call[1]))
            await asyncio.gather(*(self.cancel(call_id, reason) for call_id, _ in unasked))
            asked.update(call_id for call_id, _ in unasked)
            await watch.until(lambda: not watch.open or not asked.issuperset(watch.open))

    async def _begin_saying(self, gateway: SkillGateway, text: str, skill: str | None) -> str:
        deadline = clock.monotonic() + _INTRODUCTION_S
        while True:
            try:
                return await gateway.call(await find_say(gateway, skill or ""), {"text": text}, caller=CLI)
            except (UserError, SkillUnavailableError) as error:
                if isinstance(error, CallInDoubtError) or clock.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.05)


async def _knows(bridge: BridgeAddress, modules: Collection[str]) -> bool:
    from dimos_streams.cli.bridge_client.answers import MODULES

    return {view.name for view in await bridge.get("/modules", MODULES) if view.introduced}.issuperset(modules)


async def recording_losses(bridge: BridgeAddress, recorders: Collection[str]) -> list[str]:
    """Return a line for each recorder that is not well, by what a live run's bridge has heard. One that does not
    answer tells of nothing."""
    from dimos_streams.cli.bridge_client.answers import MODULES

    with contextlib.suppress(TimeoutError, DimosStreamsError):
        async with asyncio.timeout(_LOSSES_S):
            modules = await bridge.get("/modules", MODULES)
            return [f"recording: {each.health}" for each in modules if each.name in recorders and each.health != "ok"]
    return []


def local_link(gateway: SkillGateway | None, bus: Bus, show: Show) -> AbstractAsyncContextManager[RunLink]:
    """Return a link to a run in this process, through its bridge if it has one."""
    return bus_link(bus, show) if gateway is None else gateway_link(gateway, show)


@asynccontextmanager
async def gateway_link(gateway: SkillGateway, show: Show) -> AsyncIterator[RunLink]:
    """Yield a link through a gateway, from the first event of its journal that comes from now on."""
    async with watching(gateway, show, after=await gateway.offset()) as watch:
        yield RunLink(watch, gateway, gateway.cancel)


@asynccontextmanager
async def http_link(url: str, token: str | None, show: Show) -> AsyncIterator[RunLink]:
    """Yield a link through a bridge's HTTP interface."""
    address = BridgeAddress(url, token)
    async with open_gateway(address) as gateway, gateway_link(gateway, show) as link:
        yield replace(link, bridge=address)


@asynccontextmanager
async def bus_link(bus: Bus, show: Show) -> AsyncIterator[RunLink]:
    """Yield a link over an open bus, where there is no bridge."""
    from dimos_streams.tool_stream.calling.withdrawal import request_end

    async def cancel(call_id: str, reason: str) -> None:
        request_end(bus, call_id, reason)

    async with watching_bus(bus, show) as watch:
        yield RunLink(watch, None, cancel)


@asynccontextmanager
async def own_bus_link(url: str, show: Show) -> AsyncIterator[RunLink]:
    """Yield a link over a bus of our own, where there is no bridge."""
    from dimos_streams.bus import create_bus

    bus = create_bus(url)
    await bus.open()
    try:
        async with bus_link(bus, show) as link:
            yield link
    finally:
        await bus.close()
