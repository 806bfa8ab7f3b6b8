"""Both transports behave alike."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Awaitable, Callable

import pytest

from dimos_streams.bus import Bus, bus_url, create_bus
from dimos_streams.bus.url import UdpmUrl, check_route
from dimos_streams.errors import BusError, UserError
from dimos_streams.limited_log import LimitedLog
from tests.helpers import until

TOPIC = "/odd+|name#std_msgs.String"


@pytest.fixture(params=["memory", "lcm", "lcm without its library"])
def url(request: pytest.FixtureRequest, bus_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
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


def test_an_exception_in_a_handler_hits_nobody_else(
    url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dimos_streams.bus.base._log", LimitedLog(logging.getLogger(__name__)))

    async def scenario(bus: Bus) -> None:
        got: list[bytes] = []

        def broken(channel: str, data: bytes) -> None:
            raise RuntimeError("broken handler")

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


def test_a_machine_without_a_route_is_told_what_mends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    check_route("udpm://239.255.76.67:7667")
    monkeypatch.setattr(UdpmUrl, "route_problem", lambda self: "Network is unreachable")
    check_route("memq://")
    with pytest.raises(BusError, match=r"no route for multicast to 239\.1\.2\.3 .*ip route add 224"):
        check_route("udpm://239.1.2.3:4567")


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
    assert count() == before


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
