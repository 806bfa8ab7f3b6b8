"""What a page asks of the moment that is shown: where it goes, what it shows there, and that it stands."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dimos_streams.messages.codec import channel_name, decode, encode
from dimos_streams.messages.geometry_msgs import Twist, Vector3
from dimos_streams.tool_stream.protocol.channels import EVENTS
from dimos_streams.tool_stream.wire.packing import pack_event
from dimos_streams.viewer.bus import ReplayBus
from dimos_streams.viewer.playback import Playback
from dimos_streams.viewer.transport_commands import Play, Seek, StepPlayback
from tests.bridge.scene import event
from tests.recording.logs import START, Raw, write_log
from tests.viewer.open_recordings import indexed

pytestmark = [pytest.mark.feature("I3"), pytest.mark.virtual_time]
TWIST = channel_name("/cmd_vel", Twist)
SECOND = 1_000_000


@asynccontextmanager
async def playback_of(tmp_path: Path) -> AsyncIterator[tuple[Playback, list[float]]]:
    """A recording of a minute: a velocity each second, an event of a call every ten; and what is shown of it."""
    shown: list[float] = []
    rows: list[Raw] = []
    for second in range(60):
        rows.append((START + second * SECOND, TWIST, encode(Twist(linear=Vector3(x=float(second))))))
        if second % 10 == 5:
            rows.append((START + second * SECOND, EVENTS, pack_event(event(1, "open", call_id=f"c{second}"))))
    bus = ReplayBus()
    await bus.open()
    with indexed(write_log(tmp_path / "a.lcmlog", rows)) as index:
        playback = Playback(index, bus)
        bus.subscribe(TWIST, lambda channel, data: shown.append(decode(Twist, data, channel=channel).linear.x))
        await asyncio.sleep(0.01)
        yield playback, shown
        playback.close()


async def test_whoever_goes_far_sees_at_once_what_was_newest_there(tmp_path: Path) -> None:
    async with playback_of(tmp_path) as (playback, shown):
        shown.clear()
        for second in (50, 20):
            playback.carry_out(Seek(command="seek", utime=START + second * SECOND + 1))
            await asyncio.sleep(0.01)
        assert shown == [50.0, 20.0]


async def test_whoever_steps_to_an_event_stands_there(tmp_path: Path) -> None:
    async with playback_of(tmp_path) as (playback, _):
        playback.carry_out(Play(command="play"))
        for back, second in ((False, 5), (False, 15), (True, 5)):
            playback.carry_out(StepPlayback(command="step", back=back))
            assert (playback.transport.playing, playback.utime() - START) == (False, second * SECOND)
