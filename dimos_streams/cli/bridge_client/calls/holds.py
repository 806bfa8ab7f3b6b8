"""The notes for a person while somebody holds the robot that a call is to move: who, and what lets it go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from dimos_streams.cli.bridge_client.agents import offered_agents
from dimos_streams.cli.terminal.output import note
from dimos_streams.common.tasks import end_tasks_silently
from dimos_streams.operator.holding import STOP_ROBOT, holders_in

if TYPE_CHECKING:
    from dimos_streams.cli.bridge_client.calls.event_watch import EventWatch
    from dimos_streams.tool_stream.gateway import SkillGateway


@asynccontextmanager
async def naming_holders(gateway: SkillGateway, watch: EventWatch, call_id: str, bridge: str) -> AsyncIterator[None]:
    """Say on standard error once of each who holds the robot which a call, or a call of the mission that it is, is to
    move. ``bridge`` has the options that name the bridge, as typed behind a command."""
    naming = asyncio.ensure_future(_name_holders(gateway, watch, call_id, bridge))
    try:
        yield
    finally:
        await end_tasks_silently(naming)


async def _name_holders(gateway: SkillGateway, watch: EventWatch, call_id: str, bridge: str) -> None:
    named: set[str] = set()
    while True:
        await watch.until(lambda: bool(_holders(watch, call_id) - named))
        found = _holders(watch, call_id) - named
        agents = [agent.name for agent in (await offered_agents(gateway)).agents]
        for holder in sorted(found):
            note(_way_on(holder, agents, bridge))
        named.update(found)


def _holders(watch: EventWatch, call_id: str) -> set[str]:
    """Return who holds the robot, as the newest events of the call and of the calls of its module say, by the names
    that they have at the bridge or hub."""
    call = watch.open.get(call_id)
    if call is None:
        return set()
    whose = [event for event in watch.open.values() if event.call_id == call_id or event.caller == call.module]
    return {f"{event.robot}/{name}" if event.robot else name for event in whose for name in holders_in(event.text)}


def _way_on(holder: str, agents: list[str], bridge: str) -> str:
    if holder.rpartition("/")[2] == STOP_ROBOT:
        return f"held by an operator's stop of the robot: `dimos-streams release-robot{bridge}` lets it move again"
    if holder not in agents:
        return f"held by {holder!r}, until that lets the robot move again"
    named = f" --agent {holder}" if len(agents) > 1 else ""
    return f"held by the pause of agent {holder!r}: `dimos-streams resume{named}{bridge}` lets it go on"
