"""Datagrams that crash the LCM library don't reach it. In a process of its own: without the guard it dies."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import subprocess
import sys
from collections import Counter

import pytest

from dimos_streams.bus import create_bus, packet_filter
from dimos_streams.bus.lcm import guard
from dimos_streams.bus.subscription import Mark, Ration
from tests.helpers import few_files, until
from tests.ports import free_udp_port

_VICTIM = """
import asyncio, random, socket, struct, sys
from dimos_streams.bus import create_bus
from dimos_streams.bus.lcm.url import UdpmUrl

async def main(url, count):
    where = UdpmUrl.parse(url)
    bus = create_bus(url)
    await bus.open()
    good = []
    bus.subscribe("/good", lambda channel, data: good.append(data))
    bus.subscribe_all(lambda channel, data: None)
    rng = random.Random(1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 0)
        for number in range(count):
            sender.sendto(datagram(rng), (where.group, where.port))
            if number % 100 == 0:
                bus.publish("/good", b"%d" % number)
                await asyncio.sleep(0)
    bus.publish("/good", b"last")
    while not good or good[-1] != b"last":
        await asyncio.sleep(0.01)
    print(bus.guarded, len(good))

def datagram(rng):
    magic = rng.choice([b"LC02", b"LC03", b"LC02", b"LC0", bytes(rng.randrange(256) for _ in range(4))])
    header = struct.pack(">I", rng.randrange(2**32))
    if magic == b"LC03":
        size, offset, number = rng.randrange(2**20), rng.randrange(2**20), rng.choice([0, 0, 1, 7])
        header += struct.pack(">IIHH", size, offset, number, rng.randrange(9))
    channel = b"A" * rng.randrange(80) + (b"\\0" if rng.random() < 0.3 else b"")
    body = bytes(rng.randrange(256) for _ in range(rng.choice([0, 3, 50])))
    return (magic + header + channel + body)[: rng.choice([3, 7, 8, 9, 20, 21, 2000])]

asyncio.run(asyncio.wait_for(main(sys.argv[1], int(sys.argv[2])), 50))
"""


@pytest.mark.feature("F6")
def test_a_process_survives_hostile_datagrams(bus_url: str) -> None:
    command = [sys.executable, "-c", _VICTIM, bus_url, "20000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=55, check=False)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    guarded, good = done.stdout.split()
    assert guarded == "True"
    assert int(good) >= 190


def short(channel: bytes, rest: bytes = b"") -> bytes:
    return b"LC02\0\0\0\1" + channel + rest


def fragment(size: int, offset: int, number: int, count: int, rest: bytes = b"") -> bytes:
    return struct.pack(">4sIIIHH", b"LC03", 1, size, offset, number, count) + rest


_MOST = 0xFFFF
"""Bytes of a message in one fragment, as the filter takes them."""


@pytest.mark.parametrize(
    ("datagram", "passes"),
    [
        (short(b"/a\0"), True),
        (short(b"/a\0", b"data"), True),
        (short(b"x" * 63 + b"\0"), True),
        (short(b"x" * 64 + b"\0"), False),
        (short(b"x" * 64), False),
        (short(b"/a"), False),
        (short(b""), False),
        (b"LC02", False),
        (fragment(8, 0, 0, 2, b"/a\0abcd"), True),
        (fragment(8, 0, 0, 2, b"x" * 63 + b"\0"), True),
        (fragment(8, 0, 0, 2, b"x" * 64 + b"\0"), False),
        (fragment(8, 0, 0, 2, b"/a"), False),
        (fragment(8, 4, 1, 2, b"efgh"), True),
        (fragment(8, 7, 1, 2, b"h"), True),
        (fragment(8, 8, 1, 2, b"i"), False),
        (fragment(8, 9, 1, 2, b"i"), False),
        (fragment(2 * _MOST, 0, 1, 2, b"x"), True),
        (fragment(2 * _MOST + 1, 0, 1, 2, b"x"), False),
        (fragment(8, 4, 1, 0, b"efgh"), False),
        (b"LC03" + bytes(10), False),
        (b"LC04 anything", True),
    ],
)
def test_the_filter_knows_sound_datagrams(datagram: bytes, passes: bool) -> None:
    assert is_let_through(datagram, None) is passes


def heartbeat(module: bytes) -> bytes:
    body = bytes(16) + struct.pack(">I", len(module) + 1) + module + b"\0" + bytes(40)
    return short(b"/status\0", body)


_LISTENED: guard.Channels = {
    "/scan": guard.ListenedChannel(),
    "/robot1/scan": guard.ListenedChannel(),
    "/robot1/cmd_vel#geometry_msgs.Twist": guard.ListenedChannel(largest=65_000),
    "/status": guard.ListenedChannel(("robot1/", "depot/left/"), largest=65_000),
    **{f"/robot1/{number}": guard.ListenedChannel() for number in range(40)},
}


@pytest.mark.parametrize(
    ("datagram", "passes"),
    [
        (short(b"/scan\0"), True),
        (short(b"/scan\0", b"data"), True),
        (short(b"/scan"), False),
        (short(b"/scans\0", b"data"), False),
        (short(b"/sca\0", b"data"), False),
        (short(b"/robot1/scan\0", b"data"), True),
        (short(b"/robot2/scan\0", b"data"), False),
        (short(b"/robot1/cmd_vel#geometry_msgs.Twist\0"), True),
        (short(b"/robot1/cmd_vel#geometry_msgs.Twisted\0"), False),
        (short(b"/robot1/39\0"), True),
        (short(b"/robot1/40\0"), False),
        (short(b""), False),
        (fragment(8, 0, 0, 2, b"/scan\0abcd"), True),
        (fragment(8, 0, 0, 2, b"/depth\0abcd"), False),
        (fragment(8, 4, 1, 2, b"efgh"), True),
        (fragment(8, 8, 0, 2, b"/scan\0"), False),
        (heartbeat(b"bridge"), True),
        (heartbeat(b"robot1/drive"), True),
        (heartbeat(b"robot1/arm/hand"), True),
        (heartbeat(b"depot/left/drive"), True),
        (heartbeat(b"depot/right/drive"), False),
        (heartbeat(b"robot10/drive"), False),
        (heartbeat(b"x" * 300), True),
        (fragment(65_000, 0, 0, 2, b"/robot1/cmd_vel#geometry_msgs.Twist\0abcd"), True),
        (fragment(65_001, 0, 0, 2, b"/robot1/cmd_vel#geometry_msgs.Twist\0abcd"), False),
        (fragment(65_001, 0, 0, 2, b"/scan\0abcd"), True),
        (fragment(65_001, 0, 0, 2, heartbeat(b"bridge")[8:]), False),
        (fragment(65_000, 0, 0, 2, heartbeat(b"bridge")[8:]), True),
        (fragment(65_000, 0, 0, 2, heartbeat(b"robot10/drive")[8:]), False),
        (fragment(65_001, 4, 1, 2, b"efgh"), True),
        (b"LC04 anything", True),
    ],
)
def test_the_filter_lets_through_what_is_listened_to(datagram: bytes, passes: bool) -> None:
    assert is_let_through(datagram, _LISTENED) is passes


def test_no_fragment_is_let_through_of_what_is_too_large_for_every_channel() -> None:
    small: guard.Channels = {"/a": guard.ListenedChannel(largest=500), "/b": guard.ListenedChannel(largest=2000)}
    for size, passes in ((2000, True), (2001, False)):
        assert is_let_through(fragment(size, 4, 1, 2, b"efgh"), small) is passes
    assert is_let_through(short(b"/a\0", bytes(700)), small), "of one piece; the subscription sees to it"


def test_more_channels_than_a_filter_holds_are_all_let_through() -> None:
    many = {f"/{number:060}": guard.ListenedChannel() for number in range(500)}
    assert is_let_through(short(b"/other\0"), many)
    assert not is_let_through(short(b"/other"), many)


@pytest.mark.parametrize("room", [10_000, 10**9], ids=["little", "what the system has"])
def test_a_filter_for_which_there_is_no_room_lets_all_channels_through(
    room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``room`` is how many bytes a program may have here: newer kernels have room for all that the guard makes."""
    taken: list[bool] = []
    refused = 0

    def attach(receiver: socket.socket, program: bytes) -> bool:
        taken.append(len(program) <= room and real_attach(receiver, program))
        return taken[-1]

    real_attach = packet_filter.attach
    monkeypatch.setattr(packet_filter, "attach", attach)
    other, last = short(b"/other\0"), b"LC04 comes through every filter"
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket.socket(type=socket.SOCK_DGRAM) as sender,
    ):
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(10.0)
        for number in (0, 3, 30, 60, 110, 60, 110, 30):
            taken.clear()
            listened = {f"/{each:060}": guard.ListenedChannel() for each in range(number)}
            guard.attach(receiver.fileno(), listened)
            sent = [*(short(name.encode() + b"\0") for name in listened), other, last]
            for datagram in sent:
                sender.sendto(datagram, receiver.getsockname())
            heard = list(iter(lambda: receiver.recv(1000), last))
            refused += not taken[0]
            assert (other in heard) is (not taken[0])
            assert [each for each in heard if each != other] == sent[:-2]
    assert refused < 8
    assert refused > 0 or room == 10**9


_MARKS = (Mark(2, b"known-beginning"), Mark(2, b"other"), Mark(-6, b"known\0"), Mark(-9, b"another\0\0"))
_SHARE = Ration(1e-9, _MARKS)


@pytest.mark.parametrize(
    ("body", "passes"),
    [
        (b"..known-beginning", True),
        (b"..other", True),
        (b"..other, and more", True),
        (b"..known-beginnin", False),
        (b"..anything, well-known\0", True),
        (b"..anything, another\0\0", True),
        (b"..anything, another\0", False),
        (b"..anything, well-known\0.", False),
        (b"known\0", True),
        (b"nown\0", False),
        (b"", False),
    ],
)
def test_what_bears_a_mark_comes_where_a_share_is_taken_of_the_rest(body: bytes, passes: bool) -> None:
    rationed = {"/rationed": guard.ListenedChannel(ration=_SHARE), "/free": guard.ListenedChannel()}
    assert is_let_through(short(b"/rationed\0", body), rationed) is passes
    assert is_let_through(short(b"/free\0", body), rationed)


@pytest.mark.usefixtures("lcm_library")
def test_a_subscription_takes_a_share_of_strangers_messages_and_all_of_the_others(bus_url: str) -> None:
    async def main() -> None:
        bus, counts = create_bus(bus_url), Counter[bytes]()
        await bus.open()
        subscription = bus.subscribe("/a", lambda _, data: counts.update([data]))

        async def sent(times: int) -> None:
            for number in range(times):
                bus.publish("/a", b"known and more")
                bus.publish("/a", b"a stranger's")
                if number % 10 == 0:
                    await asyncio.sleep(0.001)
            bus.publish("/a", b"known, the last")
            await until(lambda: counts[b"known, the last"])

        subscription.take_only(Ration(0.25, (Mark(0, b"known"),)))
        await sent(1000)
        assert counts[b"known and more"] == 1000
        assert 150 < counts[b"a stranger's"] < 350
        counts.clear()
        subscription.take_only(None)
        await sent(100)
        assert counts[b"known and more"] == counts[b"a stranger's"] == 100
        await bus.close()

    asyncio.run(main())


def is_let_through(datagram: bytes, channels: guard.Channels | None) -> bool:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        receiver.bind(("127.0.0.1", 0))
        guard.attach(receiver.fileno(), channels)
        for sent in (datagram, b"the end"):
            sender.sendto(sent, receiver.getsockname())
        receiver.settimeout(5)
        return receiver.recv(1000) == datagram


@pytest.mark.usefixtures("lcm_library")
def test_a_bus_has_the_kernel_let_through_what_it_listens_to(bus_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attached: list[guard.Channels | None] = []
    monkeypatch.setattr(guard, "attach", lambda fd, channels, **_: attached.append(channels))

    async def main() -> None:
        bus = create_bus(bus_url)
        await bus.open()
        scan = bus.subscribe("/scan", print, largest=100_000)
        status = bus.subscribe("/status", print, namespaces=("robot1/",), largest=60_000)
        more = bus.subscribe("/status", print, namespaces=("robot2/",), largest=65_000)
        of_all = bus.subscribe("/status", print, largest=70_000)
        for each in (of_all, more, status):
            each.close()
        everything = bus.subscribe_all(print)
        for each in (scan, everything):
            each.close()
        await bus.close()

    asyncio.run(main())
    scans, of_all_robots = guard.ListenedChannel(largest=100_000), guard.ListenedChannel(largest=70_000)
    both = guard.ListenedChannel(("robot1/", "robot2/"), largest=65_000)
    one = guard.ListenedChannel(("robot1/",), largest=60_000)
    assert attached[:4] == [
        {},
        {"/scan": scans},
        {"/scan": scans, "/status": one},
        {"/scan": scans, "/status": both},
    ]
    assert attached[4:] == [
        {"/scan": scans, "/status": of_all_robots},
        {"/scan": scans, "/status": both},
        {"/scan": scans, "/status": one},
        {"/scan": scans},
        None,
        {},
    ]  # and nothing where it is what it was, nor at the end


@pytest.mark.usefixtures("lcm_library")
def test_a_bus_without_a_file_for_its_filter_has_it_follow_what_is_wanted_later(
    bus_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    attached: list[guard.Channels] = []
    attach = guard.attach

    def attach_noted(fd: int, channels: guard.Channels, **more: bool) -> None:
        attach(fd, channels, **more)
        attached.append(channels)

    async def main() -> None:
        bus = create_bus(bus_url)
        await bus.open()
        scan, other = (bus.subscribe(channel, print) for channel in ("/scan", "/other"))
        with few_files(0), socket.socket():  # which takes the last one
            scan.take_only(few)
            other.close()
            assert attached[-1] == {"/scan": all_of_it, "/other": all_of_it}
        await until(lambda: attached[-1] == {"/scan": all_of_it._replace(ration=few)})
        scan.take_only(None)
        await bus.close()

    few, all_of_it = Ration(0.25, (Mark(0, b"known"),)), guard.ListenedChannel()
    monkeypatch.setattr(guard, "attach", attach_noted)
    monkeypatch.setattr("dimos_streams.bus.lcm.bus._AGAIN_S", 0.005)
    asyncio.run(main())
    assert "can't be changed: [Errno 24] Too many open files" in caplog.text


def test_the_sockets_to_guard_are_the_new_ones_of_the_port() -> None:
    host, port = "127.88.77.66", free_udp_port()  # which nobody has at any address
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as older, socket.socket() as stream:
        older.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        older.bind((host, port))
        before = packet_filter.open_fds()
        assert {older.fileno(), stream.fileno()} <= before
        assert guard.sockets_of(before, port) == []
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as newer,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as lower,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as higher,
            socket.socket(socket.AF_INET, socket.SOCK_STREAM) as connection,
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as local,
            open(os.devnull) as file,
        ):
            newer.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            newer.bind((host, port))
            connection.bind((host, port))
            higher.bind((host, 65535))
            fds = {one.fileno() for one in (newer, lower, higher, connection, local, file)}
            assert fds == packet_filter.open_fds() - before
            assert guard.sockets_of(before, port) == [newer.fileno()]
            others = before - {older.fileno()}  # such as this process's sockets of the same port on another address
            assert sorted(guard.sockets_of(others, port)) == sorted([older.fileno(), newer.fileno()])
        assert packet_filter.open_fds() <= before
