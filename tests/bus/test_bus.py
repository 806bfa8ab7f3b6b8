"""All transports behave alike."""

from __future__ import annotations

import asyncio
import itertools
import logging
import operator
import os
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from dimos_streams import clock
from dimos_streams.bus import Bus, bus_url, create_bus
from dimos_streams.bus.lcm import guard
from dimos_streams.bus.lcm.url import UdpmUrl
from dimos_streams.bus.memory import MemoryBus
from dimos_streams.bus.sizes import MAX_MESSAGE
from dimos_streams.bus.subscription import SLICE_S
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.errors import BusError, UserError
from tests.helpers import until

TOPIC = "/odd+|name#std_msgs.String"


@pytest.fixture(params=["memory", "lcm", "lcm without its library", "zenoh"])
def url(request: pytest.FixtureRequest, bus_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "zenoh":
        return str(request.getfixturevalue("zenoh_url"))
    if request.param == "lcm without its library":
        monkeypatch.setitem(sys.modules, "lcm", None)
    return "memq://" if request.param == "memory" else bus_url


def with_bus(url: str, scenario: Callable[[Bus], Awaitable[None]]) -> None:
    async def main() -> None:
        bus = create_bus(url)
        await bus.open()
        try:
            async with asyncio.timeout(10):
                await scenario(bus)
        finally:
            await bus.close()
            await bus.close()

    asyncio.run(main())


def test_messages_arrive_in_order_on_their_channel_only(url: str) -> None:
    async def scenario(bus: Bus) -> None:
        got: list[bytes] = []
        everything: list[str] = []
        bus.subscribe(TOPIC, lambda _, data: got.append(data))
        bus.subscribe_all(lambda channel, _: everything.append(channel))
        for number in range(500):
            bus.publish(TOPIC, b"%d" % number)
            bus.publish("/odd+name#std_msgs.String", b"other")
        assert got == []
        await until(lambda: len(everything) == 1000)
        assert got == [b"%d" % number for number in range(500)]
        assert everything.count(TOPIC) == 500
        statistics = bus.statistics()
        assert (statistics.published, statistics.received, statistics.dropped) == (1000, 1500, 0)
        assert statistics.published_bytes == sum(len(data) for data in got) + 500 * len(b"other")
        assert bus.notice == "", "malformed datagrams are kept out"

    with_bus(url, scenario)


def test_a_slow_handler_loses_the_oldest_and_it_is_counted(url: str) -> None:
    async def scenario(bus: Bus) -> None:
        got: list[bytes] = []
        subscription = bus.subscribe(TOPIC, lambda _, data: got.append(data), capacity=10)
        for number in range(200):
            bus.publish(TOPIC, b"%d" % number)
        await until(lambda: subscription.statistics().received == 200)
        await until(lambda: subscription.statistics().waiting == 0)
        dropped = subscription.statistics().dropped
        assert dropped + len(got) == 200
        assert got == sorted(got, key=int)
        assert got[-1] == b"199"
        if url.startswith("memq"):  # from LCM they come in as many pieces as its thread makes of them
            assert got == [b"%d" % number for number in range(190, 200)]

    with_bus(url, scenario)


@pytest.mark.parametrize("kind", [RuntimeError, asyncio.CancelledError])
def test_an_exception_in_a_handler_hits_nobody_else(
    kind: type[BaseException], url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "dimos_streams.bus.subscription._log", LimitedLog(logging.getLogger(__name__), period_s=600.0)
    )

    async def scenario(bus: Bus) -> None:
        got: list[bytes] = []

        def broken(channel: str, data: bytes) -> None:
            raise kind("broken handler")

        subscription = bus.subscribe(TOPIC, broken)
        bus.subscribe(TOPIC, lambda _, data: got.append(data))
        for _ in range(50):
            bus.publish(TOPIC, b"x")
        await until(lambda: len(got) == 50 and subscription.statistics().errors == 50)
        assert caplog.text.count("Traceback") == 1

    with_bus(url, scenario)


def test_a_closed_subscription_gets_nothing_more(url: str) -> None:
    async def scenario(bus: Bus) -> None:
        first: list[bytes] = []
        second: list[bytes] = []

        def once(channel: str, data: bytes) -> None:
            first.append(data)
            subscription.close()
            subscription.close()

        subscription = bus.subscribe(TOPIC, once)
        bus.subscribe(TOPIC, lambda _, data: second.append(data))
        for _ in range(5):
            bus.publish(TOPIC, b"x")
        await until(lambda: len(second) == 5)
        assert first == [b"x"]
        assert bus.statistics().received >= 6

    with_bus(url, scenario)


def test_only_an_open_bus_works(url: str) -> None:
    bus = create_bus(url)
    for use in (
        lambda: bus.publish(TOPIC, b""),
        lambda: bus.subscribe(TOPIC, lambda channel, data: None),
        lambda: bus.subscribe_all(lambda channel, data: None),
    ):
        with pytest.raises(BusError, match="is not open"):
            use()


def test_who_subscribes_again_gets_each_message_once(url: str) -> None:
    async def scenario(bus: Bus) -> None:
        got: list[bytes] = []
        for subscribe in (bus.subscribe_all, lambda handler: bus.subscribe(TOPIC, handler)):
            subscribe(lambda _, data: got.append(data)).close()
            subscription = subscribe(lambda _, data: got.append(data))
            for number in range(3):
                bus.publish(TOPIC, b"%d" % number)
            await until(lambda: len(got) >= 3)
            await asyncio.sleep(0.02)
            assert got == [b"0", b"1", b"2"]
            subscription.close()
            got.clear()

    with_bus(url, scenario)


class Noting(MemoryBus):
    """A transport that notes what it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[str] = []

    def _listen(self, channel: str | None, capacity_bytes: int) -> None:
        super()._listen(channel, capacity_bytes)
        self.noted.append(f"listen {channel}")

    def _unlisten(self, channel: str | None) -> None:
        super()._unlisten(channel)
        self.noted.append(f"unlisten {channel}")

    def _on_changed(self) -> None:
        self.noted.append("changed")


@pytest.mark.virtual_time
async def test_a_transport_listens_for_the_first_subscription_and_until_the_last_has_ended() -> None:
    def take(channel: str, data: bytes) -> None:
        """Take it."""

    bus = Noting()
    with pytest.raises(BusError):
        bus.subscribe("/a", take)
    assert bus.noted == []
    await bus.open()
    for channel in ("/a", None):
        first, second = (bus.subscribe_all(take) if channel is None else bus.subscribe(channel, take) for _ in "12")
        assert bus.noted == [f"listen {channel}", "changed", "changed"]
        first.close()
        first.close()
        assert bus.noted[3:] == ["changed"]
        second.close()
        assert bus.noted[4:] == [f"unlisten {channel}", "changed"]
        bus.noted.clear()
    assert bus.subscriptions() == []
    await bus.close()


@pytest.mark.virtual_time
async def test_a_bus_in_memory_keeps_nothing_of_channels_that_nobody_listens_to() -> None:
    bus = MemoryBus()
    await bus.open()
    for number in range(3):
        first, second = (bus.subscribe(f"/{number}", lambda channel, data: None) for _ in range(2))
        first.close()
        assert bus.has_subscribers(f"/{number}")
        second.close()
    assert not bus._subscribers.by_channel
    await bus.close()


def test_nothing_is_handled_once_the_bus_is_closed(url: str) -> None:
    async def scenario(bus: Bus) -> None:
        got: list[bytes] = []
        bus.subscribe_all(lambda _, data: got.append(data))
        bus.subscribe(TOPIC, lambda _, data: got.append(data))
        bus.publish(TOPIC, b"x")
        await bus.close()
        await asyncio.sleep(0.02)
        assert got == []
        assert bus.subscriptions() == []

    with_bus(url, scenario)


def test_what_waits_is_bounded_in_bytes_and_what_was_handled_does_not_count() -> None:
    async def scenario(bus: Bus) -> None:
        megabyte, got = bytes(1 << 20), 0

        def count(channel: str, data: bytes) -> None:
            nonlocal got
            got += 1

        subscription = bus.subscribe(TOPIC, count)
        for _ in range(40):
            bus.publish(TOPIC, megabyte)
            await asyncio.sleep(0)
        await until(lambda: got == 40)
        for _ in range(40):
            bus.publish(TOPIC, megabyte)
        assert subscription.statistics().dropped == 24
        bus.publish(TOPIC, 7 * megabyte)
        assert subscription.statistics().waiting == 10, "7 went for the newest"
        await until(lambda: got == 50)

    with_bus("memq://", scenario)


@pytest.mark.feature("A5")
def test_a_few_large_messages_do_not_push_out_many_small_ones() -> None:
    async def scenario(bus: Bus) -> None:
        heard: list[bytes] = []
        subscription = bus.subscribe(TOPIC, lambda _, data: heard.append(data), capacity_bytes=10_000)
        for number in range(20):
            bus.publish(TOPIC, b"%d" % number)
            bus.publish(TOPIC, b"x" * 9_900)
        await until(lambda: not subscription.waiting)
        assert [data for data in heard if len(data) < 3] == [b"%d" % number for number in range(20)]
        assert subscription.statistics().dropped == 19
        for number in range(20):
            bus.publish(TOPIC, b"%d" % (number % 10) * 4_000)
        await until(lambda: not subscription.waiting)
        assert [data[:1] for data in heard[-2:]] == [b"8", b"9"], "of equals the newest count"

    with_bus("memq://", scenario)


def test_lcm_leaves_no_descriptor_and_no_thread(bus_url: str) -> None:
    async def cycle() -> None:
        bus = create_bus(bus_url)
        await bus.open()
        bus.subscribe(TOPIC, lambda channel, data: None)
        bus.subscribe_all(lambda channel, data: None)
        bus.publish(TOPIC, b"x")
        await bus.close()

    def count() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

    asyncio.run(cycle())
    before = count()
    for _ in range(10):
        asyncio.run(cycle())
    # A thread of Zenoh may still have been ending before, and so may count there.
    assert all(map(operator.le, count(), before)), (before, count())


def test_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bus_url() == "udpm://239.255.76.67:7667?ttl=0"
    monkeypatch.setenv("LCM_DEFAULT_URL", "udpm://239.1.2.3:4567")
    assert bus_url() == "udpm://239.1.2.3:4567"
    assert bus_url("memq://") == "memq://"
    assert str(UdpmUrl.parse("udpm://239.1.2.3:4567")) == "udpm://239.1.2.3:4567?ttl=0"
    assert "recv_buf_size=" in UdpmUrl.parse("udpm://").for_lcm()
    with pytest.raises(BusError, match="'tcp://x'"):
        create_bus("tcp://x")
    with pytest.raises(UserError, match=r"10\.0\.0\.1 is no multicast address"):
        create_bus("udpm://10.0.0.1:7667")
    with pytest.raises(UserError, match="99999"):
        create_bus("udpm://239.255.76.67:99999")


def test_who_wants_only_some_channels_is_not_troubled_with_others(url: str) -> None:
    async def scenario(bus: Bus) -> None:
        some: list[str] = []
        everything: list[str] = []
        bus.subscribe_all(lambda channel, _: some.append(channel), wants=lambda channel: channel.startswith("/a"))
        assert bus.has_subscribers("/a")
        assert not url.startswith("memq") or not bus.has_subscribers("/b"), (
            "who publishes there may spare the trouble"
        )
        one, other = bus.subscribe("/b", lambda *_: None), bus.subscribe("/b", lambda *_: None)
        assert bus.has_subscribers("/b")
        whole = bus.subscribe_all(lambda channel, _: everything.append(channel))
        for channel in ("/a", "/b", "/c", "/ab"):
            bus.publish(channel, b"")
        await until(lambda: "/ab" in everything)
        await until(lambda: "/ab" in some)
        assert some == ["/a", "/ab"]
        assert [channel for channel in everything if channel.startswith("/")] == ["/a", "/b", "/c", "/ab"]
        for subscription in (one, whole):
            subscription.close()
        assert other in bus.subscriptions()
        assert bus.has_subscribers("/b")
        other.close()
        assert not url.startswith("memq") or not bus.has_subscribers("/b")
        bus.publish("/a", b"")
        await until(lambda: len(some) == 3)
        assert everything[-1] == "/ab"

    with_bus(url, scenario)


def test_counts_include_subscriptions_that_have_ended(url: str) -> None:
    async def scenario(bus: Bus) -> None:
        def broken(channel: str, data: bytes) -> None:
            raise RuntimeError

        for handler in (broken, lambda *_: None):
            ended = bus.subscribe(TOPIC, handler)
            for _ in range(3):
                bus.publish(TOPIC, b"12345")
                await until(lambda ended=ended: ended.statistics().handled == ended.statistics().received > 0)  # type: ignore[misc]
            await until(lambda ended=ended: ended.statistics().handled == 3)  # type: ignore[misc]
            ended.close()
        full = bus.subscribe(TOPIC, lambda *_: None, capacity_bytes=5)
        for number, size in enumerate((6, 5, 6), 1):
            bus.publish(TOPIC, bytes(size))
            await until(lambda number=number: full.statistics().received == number)  # type: ignore[misc]
        for _ in range(2):
            now = bus.statistics()
            assert (now.published, now.published_bytes) == (9, 47)
            assert (now.received, now.dropped, now.errors) == (9, 2, 3), "two are too large for their queue"
            full.close()
            full.close()

    with_bus(url, scenario)


def test_what_is_too_large_is_not_sent_and_not_counted(url: str) -> None:
    async def scenario(bus: Bus) -> None:
        got: list[int] = []
        bus.subscribe(TOPIC, lambda _, data: got.append(len(data)))
        bus.publish(TOPIC, bytes(MAX_MESSAGE + 1))
        if not url.startswith("udpm"):
            bus.publish(TOPIC, bytes(MAX_MESSAGE))
        else:
            bus.publish("/" + 63 * "x", b"a name that LCM does not take")
        bus.publish(TOPIC, b"x")
        await until(lambda: 1 in got)
        assert got == ([1] if url.startswith("udpm") else [MAX_MESSAGE, 1])
        assert bus.statistics().published == len(got)

    with_bus(url, scenario)


@pytest.mark.parametrize(("count", "seconds"), [(200, 0.0), (4, 0.003)])
def test_a_busy_subscription_leaves_the_loop_to_others(url: str, count: int, seconds: float) -> None:
    """It has its turn for 64 messages, or for `SLICE_S`, at a time."""

    async def scenario(bus: Bus) -> None:
        handled: list[int] = []
        seen: list[int] = []

        def slow(channel: str, data: bytes) -> None:
            time.sleep(seconds)
            handled.append(len(data))

        async def others() -> None:
            while len(handled) < count:
                seen.append(len(handled))
                await asyncio.sleep(0)

        bus.subscribe(TOPIC, slow)
        for _ in range(count):
            bus.publish(TOPIC, b"x")
        await others()
        seen.append(count)
        most = 1 if seconds else 64
        assert max(later - now for now, later in itertools.pairwise(seen)) <= most

    with_bus(url, scenario)


def test_a_turn_is_bounded_also_where_the_loop_counts_milliseconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(bus: Bus) -> None:
        now = 0.0
        monkeypatch.setattr(clock, "monotonic", lambda: now)
        handled = 0

        def handle(channel: str, data: bytes) -> None:
            nonlocal now, handled
            now += SLICE_S * 0.4
            handled += 1

        bus.subscribe(TOPIC, handle)
        for _ in range(30):
            bus.publish(TOPIC, b"x")
        for turn in range(10):
            await asyncio.sleep(0)
            assert handled == 3 * (turn + 1)

    with_bus("memq://", scenario)


def test_a_queue_has_room_for_one_at_least() -> None:
    async def scenario(bus: Bus) -> None:
        got: list[bytes] = []
        with pytest.raises(ValueError, match="capacity must be at least 1, not 0"):
            bus.subscribe(TOPIC, lambda *_: None, capacity=0)
        bus.subscribe(TOPIC, lambda _, data: got.append(data), capacity=1)
        for number in range(3):
            bus.publish(TOPIC, b"%d" % number)
        await until(lambda: got)
        assert got == [b"2"]

    with_bus("memq://", scenario)


def test_a_bus_that_was_closed_can_be_opened_again_and_opening_twice_is_fine(url: str) -> None:
    async def scenario(bus: Bus) -> None:
        await bus.open()
        got: list[bytes] = []
        subscription = bus.subscribe(TOPIC, lambda _, data: got.append(data))
        bus.publish(TOPIC, b"x")
        await until(lambda: got)
        await bus.close()
        assert bus.notice == ""
        with pytest.raises(BusError, match="is not open"):
            bus.publish(TOPIC, b"x")
        subscription.close()
        await bus.open()
        bus.subscribe(TOPIC, lambda _, data: got.append(data))
        bus.publish(TOPIC, b"y")
        await until(lambda: len(got) == 2)
        assert got == [b"x", b"y"]

    with_bus(url, scenario)


def test_a_process_that_can_not_be_guarded_says_so(
    bus_url: str, lcm_library: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(fd: int, channels: object, *, of_this_machine: bool) -> None:
        raise OSError("no filters here")

    async def scenario(bus: Bus) -> None:
        assert bus.notice == "no packet guard, a malformed datagram can end this process"
        await bus.close()
        assert bus.notice == ""

    for name, instead, why in (
        ("attach", refuse, "no filters here"),
        ("sockets_of", lambda before, port: [], "the receiving socket was not found"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(guard, name, instead)
            with_bus(bus_url, scenario)
        assert f"can end this process: {why}" in caplog.text
        assert f"is taken, too: {why}" in caplog.text


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("udpm://", "udpm://239.255.76.67:7667?ttl=0"),
        ("udpm://224.0.0.1", "udpm://224.0.0.1:7667?ttl=0"),
        ("udpm://:1234", "udpm://239.255.76.67:1234?ttl=0"),
        ("udpm://239.1.2.3:4567?ttl=1", "udpm://239.1.2.3:4567?ttl=1"),
        ("udpm://?recv_buf_size=9&ttl=1", "udpm://239.255.76.67:7667?ttl=1&recv_buf_size=9"),
    ],
)
def test_what_a_url_leaves_out(text: str, whole: str) -> None:
    url = UdpmUrl.parse(text)
    assert str(url) == whole
    own = dict(parse_qsl(urlsplit(whole).query))
    for_lcm = urlsplit(url.for_lcm())
    assert dict(parse_qsl(for_lcm.query)) == {"recv_buf_size": str(4 << 20), **own}
    assert (for_lcm.scheme, for_lcm.netloc) == ("udpm", urlsplit(whole).netloc)


@pytest.mark.parametrize("text", ["memq", "udpm", "", "file://x", "udpm:239.1.2.3"])
def test_what_is_no_url_of_a_bus(text: str) -> None:
    with pytest.raises(BusError, match="valid: 'memq://' or for example 'udpm://"):
        create_bus(text)
    with pytest.raises(BusError, match="a multicast group has no users"):
        create_bus("udpm://me@239.1.2.3:4567")


class _Filtering(MemoryBus):
    """A bus that renews a filter whenever what is listened to changes."""

    fails = False

    def _on_changed(self) -> None:
        if self.fails:
            raise BusError("the kernel refuses the filter")


@pytest.mark.virtual_time
@pytest.mark.parametrize("of_all", [False, True])
async def test_a_subscription_whose_filter_fails_is_not_left_behind(of_all: bool) -> None:
    bus = _Filtering()
    await bus.open()
    got: list[bytes] = []

    def handler(channel: str, data: bytes) -> None:
        got.append(data)

    bus.fails = True
    with pytest.raises(BusError, match="refuses the filter"):
        bus.subscribe_all(handler) if of_all else bus.subscribe(TOPIC, handler)
    assert (bus.subscriptions(), bus.has_subscribers(TOPIC)) == ([], False)
    bus.fails = False
    bus.subscribe(TOPIC, handler)
    bus.publish(TOPIC, b"once")
    await until(lambda: got)
    await asyncio.sleep(0)
    assert got == [b"once"]
    await bus.close()


@pytest.mark.virtual_time
@pytest.mark.parametrize("of_all", [False, True])
async def test_a_subscription_ends_though_its_filter_fails(of_all: bool, caplog: pytest.LogCaptureFixture) -> None:
    """What comes is then more than anybody wants, and whoever ends it has more to end."""
    bus = _Filtering()
    await bus.open()
    subscription = bus.subscribe_all(print) if of_all else bus.subscribe(TOPIC, print)
    bus.fails = True
    subscription.close()
    assert (bus.subscriptions(), bus.has_subscribers(TOPIC)) == ([], False)
    assert "the kernel refuses the filter" in caplog.text
    await bus.close()
