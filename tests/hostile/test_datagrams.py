"""A live robot on a bus full of hostile datagrams: nothing ends, nothing is logged at length, good traffic is served.

``DIMOS_STREAMS_FUZZ_DATAGRAMS`` makes it longer.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from pathlib import Path

import pytest

from dimos_streams import clock
from dimos_streams.bus import create_bus
from dimos_streams.messages.base import Message
from dimos_streams.messages.codec import channel_name, encode
from dimos_streams.messages.dimos_streams import Hold, SkillCall
from dimos_streams.operator.holding import GATE
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.protocol.channels import CALLS
from tests.helpers import until
from tests.hostile.datagrams import MAX_DATAGRAM, DatagramFuzzer, Sender
from tests.hostile.watch import Watch
from tests.live.mission import Mission, running

COUNT = int(os.environ.get("DIMOS_STREAMS_FUZZ_DATAGRAMS", "20000"))
SEED = int(os.environ.get("DIMOS_STREAMS_FUZZ_SEED", "1"))
_BATCH = 50
_PAUSE_S = 0.008
_SAMPLES = 20

pytestmark = [pytest.mark.live, pytest.mark.timeout(60 + COUNT / 1000)]

_logger = logging.getLogger(__name__)


async def samples(bus_url: str, mission: Mission) -> dict[str, list[bytes]]:
    """Sound messages of all channels of a robot that does something."""
    found: dict[str, list[bytes]] = {}

    def take(channel: str, data: bytes) -> None:
        kept = found.setdefault(channel, [])
        if len(kept) < _SAMPLES and len(data) < MAX_DATAGRAM - 100:
            kept.append(data)

    bus = create_bus(bus_url)
    await bus.open()
    bus.subscribe_all(take)
    await mission.follow()
    assert (await mission.call("say", text="stop")).outcome is Outcome.COMPLETED
    call = SkillCall(call_id="x", module="drive", skill="turn", caller="x", arguments_json='{"angle_deg": 5}')
    found[CALLS].append(encode(call))
    await bus.close()
    assert len(found) >= 15
    return {channel: kept for channel, kept in found.items() if kept}


async def attack(bus_url: str, fuzzer: DatagramFuzzer) -> None:
    sender = Sender(bus_url)
    for _ in range(0, COUNT, _BATCH):
        sender.send([fuzzer.datagram() for _ in range(_BATCH)])
        await asyncio.sleep(_PAUSE_S)
    sender.close()


def begin_unnameable_call(bus_url: str) -> None:
    """A sound call that would run for minutes, with an id that is no part of any URL: nobody could end it."""
    arguments = json.dumps({"descriptions": ["a person in a purple shirt"]})
    call = SkillCall(call_id="../../etc", module="lookout", skill="look_out_for", arguments_json=arguments)
    send(bus_url, CALLS, call)


def send(bus_url: str, channel: str, message: Message) -> None:
    sender = Sender(bus_url)
    sender.send([b"LC02\0\0\0\0" + channel.encode() + b"\0" + encode(message)])
    sender.close()


_READ_BY_S = 1.0
"""Time, in seconds, in which a gate has read what was sent to it, and has sent its state anew."""


async def end_holds(bus_url: str, mission: Mission) -> None:
    """Damaged copies of sound holds are sound at times, and newer than all that their source says for a minute."""
    newest = 2**63 - 1

    async def holding() -> set[str]:
        states = [module["state"].get(GATE, {}) for module in json.loads(await mission.modules())]
        return {source for state in states for source in state.get("holds", ())}

    free_since = clock.monotonic()
    while clock.monotonic() < free_since + _READ_BY_S:  # a busy gate reads holds behind the state that it sends
        for source in await holding():
            free_since = clock.monotonic()
            send(bus_url, channel_name("/hold", Hold), Hold(source=source, utime=newest, seq=newest))
        await asyncio.sleep(0.2)


async def use(mission: Mission) -> int:
    """Use the robot until cancelled; how often it did what it was asked."""
    served = 0
    try:
        while True:
            served += (await mission.call("observe")).outcome is Outcome.COMPLETED
    except asyncio.CancelledError:
        return served


@pytest.mark.feature("A5", "F6")
def test_a_bus_full_of_hostile_datagrams(bus_url: str, free_port: int, tmp_path: Path) -> None:
    async def main() -> None:
        async with running(bus_url, free_port, tmp_path) as mission:
            fuzzer = DatagramFuzzer(await samples(bus_url, mission), SEED)
            watch = Watch(mission, tmp_path / "logs")
            using = asyncio.create_task(use(mission))
            await attack(bus_url, fuzzer)
            using.cancel()
            served = await using
            _logger.info("%d datagrams in %.1f s, %d calls served; %s", COUNT, watch.seconds(), served, watch)
            watch.check()
            assert served >= 1
            await until(lambda: mission.speeds[-1][0] > clock.monotonic() - 0.5)
            # Damaged copies of sound calls are sound at times: what they began is ended first.
            begin_unnameable_call(bus_url)
            await mission.end_calls()
            await end_holds(bus_url, mission)
            turning = clock.monotonic()
            turns = [await mission.call("turn", angle_deg=20)]
            while turns[-1].outcome is not Outcome.COMPLETED and clock.monotonic() < turning + 20:
                turns.append(await mission.call("turn", angle_deg=20))
            assert turns[-1].outcome is Outcome.COMPLETED, f"{turns}; {await mission.modules()}"

    asyncio.run(main())
