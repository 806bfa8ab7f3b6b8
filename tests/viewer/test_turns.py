"""Who asks much of a recording's clock leaves the loop to others in between."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from dimos_streams.viewer.app import MAX_WATCHERS
from dimos_streams.viewer.playback import Playback
from dimos_streams.viewer.transport_commands import PausePlayback, TransportCommand
from tests.helpers import until
from tests.viewer.mission import Mission
from tests.viewer.test_serving import heard, served, socket

_SLOW_S = 0.02
_COMMANDS = 60


@pytest.mark.slow
def test_others_have_turns_between_the_commands_of_one_client(
    mission: Mission, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried_out: list[str] = []
    busy_s = 0.0
    begun: list[tuple[float, float]] = []
    """When each command began, and how long those before it had taken."""

    def slowly(playback: Playback, command: TransportCommand) -> None:
        nonlocal busy_s
        began = time.monotonic()
        begun.append((began, busy_s))
        time.sleep(_SLOW_S)  # as long as it takes to go far
        carried_out.append(command.command)
        busy_s += time.monotonic() - began

    monkeypatch.setattr(Playback, "carry_out", slowly)

    async def scenario() -> None:
        async with (
            served(mission.log) as (_, url),
            socket(url, "/transport") as talkative,
            socket(url, "/transport") as modest,
        ):
            await asyncio.gather(heard(talkative, "transport"), heard(modest, "transport"))
            began = time.monotonic()
            for _ in range(_COMMANDS):
                await talkative.send(json.dumps({"command": "step"}))
            await until(lambda: len(carried_out) >= 3)
            before = len(carried_out)
            await modest.send(json.dumps(PausePlayback(command="pause").model_dump()))
            await until(lambda: "pause" in carried_out)
            assert carried_out.index("pause") - before <= 3, "it waits for no more than is under way"
            await until(lambda: len(carried_out) >= 20)
            last_began, spent_s = begun[-1]
            assert spent_s <= 0.6 * (last_began - began), "and everybody else has as much time as the clients"

    asyncio.run(scenario())


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/transport", "/monitor", "/live"])
def test_however_many_come_at_once_so_many_get_in(mission: Mission, path: str) -> None:
    more = 16

    async def scenario() -> None:
        async with served(mission.log) as (_, url):
            address = url.replace("http", "ws") + path
            clients = await asyncio.gather(*(connect(address, open_timeout=None) for _ in range(MAX_WATCHERS + more)))
            refused = []
            for client in clients:
                try:
                    assert await client.recv()
                except ConnectionClosed:
                    refused.append(client.close_code)
            assert refused == [1013] * more
            await asyncio.gather(*(client.close() for client in clients))
            async with socket(url, path) as another:
                assert await another.recv()

    asyncio.run(scenario())
