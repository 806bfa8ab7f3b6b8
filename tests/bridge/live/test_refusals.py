"""A bus that refuses subscriptions for a while costs viewers no more than that while, and leaves nothing behind."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dimos_streams.bridge.live.kinds import topic_infos
from dimos_streams.bridge.live.requests import TopicRequest
from dimos_streams.bridge.live.topics import LiveTopics
from dimos_streams.bus import Bus, Subscription, create_bus
from dimos_streams.errors import BusError
from tests.bridge.live.watched_topics import CHANNELS
from tests.helpers import until

pytestmark = pytest.mark.virtual_time

REQUEST = TopicRequest()


@contextlib.asynccontextmanager
async def live_topics() -> AsyncIterator[tuple[LiveTopics, Bus]]:
    bus = create_bus("memq://")
    await bus.open()
    live = LiveTopics(bus, topic_infos(CHANNELS, CHANNELS.values()))
    yield live, bus
    live.stop()
    assert not bus.subscriptions()
    await bus.close()


def refuse(bus: Bus, patch: pytest.MonkeyPatch, channel: str = "") -> None:
    """Have a bus refuse one channel, or all."""
    subscribe = bus.subscribe

    def refusing(asked: str, *args: Any, **options: Any) -> Subscription:
        if channel in ("", asked):
            raise BusError("the packet filter can't be changed")
        return subscribe(asked, *args, **options)

    patch.setattr(bus, "subscribe", refusing)


async def test_rates_are_measured_as_soon_as_the_bus_refuses_no_more(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with live_topics() as (live, bus):
        refuse(bus, monkeypatch)
        live.view()
        await until(lambda: "can't be counted: the packet filter can't be changed" in caplog.text)
        monkeypatch.undo()
        await until(lambda: live.topic("/level").hz == 0.0)


async def test_a_viewer_that_leaves_while_the_bus_refuses_is_gone_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with live_topics() as (live, bus):
        live.view()
        leaving = live.view()
        leaving.watch({"/level": REQUEST})
        await until(lambda: live.topic("/level").hz == 0.0)
        refuse(bus, monkeypatch)
        leaving.close()
        assert (live.viewers, live.topic("/level").watched, live.topic("/level").hz) == (1, False, None)
        monkeypatch.undo()
        await until(lambda: live.topic("/level").hz == 0.0)


async def test_a_viewer_whose_topic_is_refused_watches_nothing_once_it_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with live_topics() as (live, bus):
        viewer = live.view()
        viewer.watch({"/scan": REQUEST})
        refuse(bus, monkeypatch, "/note#std_msgs.String")
        with pytest.raises(BusError):
            viewer.watch({"/level": REQUEST, "/note": REQUEST, "/odom": REQUEST})
        watched = [name for name in ("/scan", "/level", "/note", "/odom") if live.topic(name).watched]
        assert watched == ["/level"]
        viewer.close()
        assert (live.viewers, live.topic("/level").watched) == (0, False)
