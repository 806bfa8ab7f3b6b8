"""Where LCM's library can't be loaded, Python's sockets speak its protocol; here the two speak with each other."""

from __future__ import annotations

import asyncio
import random
import select
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from dimos_streams.bus import create_bus
from dimos_streams.bus.lcm import udpm
from dimos_streams.bus.lcm.udpm import UdpmSocket
from dimos_streams.bus.lcm.url import UdpmUrl
from dimos_streams.bus.sizes import MAX_MESSAGE
from dimos_streams.errors import UserError
from tests.helpers import open_files

Got = list[tuple[str, bytes]]
SIZES = [0, 1, 1400, 60_000, 65_000, 65_490, 65_499, 65_500, 90_000, 150_000]


@pytest.fixture
def ours(bus_url: str) -> Iterator[UdpmSocket]:
    made = UdpmSocket(UdpmUrl.parse(bus_url))
    yield made
    made.close()
    made.close()


@pytest.fixture
def got(ours: UdpmSocket) -> Got:
    """The messages on channels that begin with a slash; LCM says something to itself on another."""
    found: Got = []
    ours.subscribe("/.*", lambda channel, data: found.append((channel, data)))
    return found


@pytest.fixture
def raw(bus_url: str) -> Iterator[Any]:
    """Sends datagrams as they are."""
    url = UdpmUrl.parse(bus_url)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 0)
        yield lambda datagram: sender.sendto(datagram, (url.group, url.port))


def handle(receiver: Any) -> None:
    """All that has been sent: on one machine it is there when it was sent."""
    while select.select([receiver.fileno()], [], [], 0.1)[0]:
        receiver.handle_timeout(0)


def handle_until(receiver: Any, found: Got, count: int) -> None:
    while len(found) < count:
        assert select.select([receiver.fileno()], [], [], 5)[0]
        receiver.handle_timeout(0)


def payload(size: int) -> bytes:
    return random.Random(size).randbytes(size)


def fragment(number: int, total: int, offset: int, index: int, count: int, rest: bytes) -> bytes:
    return struct.pack(">4sIIIHH", b"LC03", number, total, offset, index, count) + rest


@pytest.mark.feature("F7")
def test_the_library_understands_it(bus_url: str, ours: UdpmSocket, lcm_library: Any) -> None:
    # A receive buffer of the system's default size overflows now and then at three fragments, whoever sends them.
    library = lcm_library.LCM(UdpmUrl.parse(bus_url).for_lcm())
    found: Got = []
    library.subscribe("/.*", lambda channel, data: found.append((channel, data)))
    for number, size in enumerate(SIZES, 1):
        ours.publish("/a#b", payload(size))
        handle_until(library, found, number)
    assert found == [("/a#b", payload(size)) for size in SIZES]


@pytest.mark.feature("F7")
def test_it_understands_the_library(bus_url: str, ours: UdpmSocket, got: Got, lcm_library: Any) -> None:
    library = lcm_library.LCM(bus_url)
    for number, size in enumerate(SIZES, 1):
        library.publish("/a#b", payload(size))
        handle_until(ours, got, number)
    assert got == [("/a#b", payload(size)) for size in SIZES]


def test_patterns_fit_whole_names(ours: UdpmSocket) -> None:
    found: list[str] = []
    subscription = ours.subscribe("/a|/b", lambda channel, _: found.append(channel))
    for channel in ("/a", "/b", "/ab", "x/b"):
        ours.publish(channel, b"")
    handle(ours)
    assert found == ["/a", "/b"]
    ours.unsubscribe(subscription)
    ours.publish("/a", b"")
    handle(ours)
    assert found == ["/a", "/b"]


@pytest.mark.parametrize("channel", ["/" + 63 * "x", "/" + 32 * "ü", "/a\0b"])
def test_names_that_lcm_does_not_take(ours: UdpmSocket, channel: str) -> None:
    with pytest.raises(OSError, match="63 bytes"):
        ours.publish(channel, b"")


def test_what_is_no_message_is_left_out(ours: UdpmSocket, got: Got, raw: Any) -> None:
    random_ = random.Random(3)
    raw(b"LC02\0\0\0\1" + b"/" + 64 * b"x" + b"\0data")
    raw(b"XXXX" + fragment(1, 4, 0, 0, 1, b"/a\0data")[4:])
    handle(ours)
    assert got == []
    raw(fragment(1, 4, 0, 0, 1, b"/a\0data"))
    raw(b"LC03\0\0\0\1")
    raw(b"LC02\0\0\0\1/a")
    handle(ours)
    assert got == [("/a", b"data")], "what is left of it in the buffer is no part of the next datagram"
    raw(b"")
    raw(b"LC02")
    raw(b"LC02\0\0\0\1" + b"/" + 64 * b"x")
    raw(b"LC02\0\0\0\1" + b"/" + 64 * b"x" + b"\0data")
    raw(b"LC02\0\0\0\1/\xff\0data")
    raw(fragment(1, 1 << 28, 0, 0, 2, b"/a\0"))
    raw(fragment(1, 8, 0, 0, 0, b"/a\0"))
    raw(fragment(1, 8, 0, 5, 2, b"/a\0"))
    for _ in range(300):
        raw(random_.choice([b"LC02", b"LC03", b""]) + random_.randbytes(random_.randrange(60)))
    handle(ours)
    got.clear()  # some of it happened to be a message
    raw(b"LC02\0\0\0\1/a\0data")
    handle(ours)
    assert got == [("/a", b"data")]


def test_fragments_make_a_message_only_together(ours: UdpmSocket, got: Got, raw: Any) -> None:
    first, second = fragment(7, 8, 0, 0, 2, b"/a\0abcd"), fragment(7, 8, 4, 1, 2, b"efgh")
    raw(second)
    raw(first)
    raw(first)
    raw(second)
    raw(second)
    raw(fragment(8, 8, 0, 0, 2, b"/a\0abcd"))
    raw(fragment(9, 8, 4, 1, 2, b"efgh"))
    raw(fragment(10, 8, 0, 0, 2, b"/a\0abcd"))
    raw(fragment(10, 8, 3, 1, 2, b"defgh"))
    handle(ours)
    assert got == [("/a", b"abcdefgh")]


@pytest.mark.parametrize("order", ["0112", "0102", "00112", "01012"])
def test_a_repeated_fragment_counts_once(ours: UdpmSocket, got: Got, raw: Any, order: str) -> None:
    parts = [fragment(7, 9, 0, 0, 3, b"/a\0abc"), fragment(7, 9, 3, 1, 3, b"def"), fragment(7, 9, 6, 2, 3, b"ghi")]
    for index in order:
        raw(parts[int(index)])
    handle(ours)
    assert got == [("/a", b"abcdefghi")]


def test_a_sender_that_begins_anew_is_not_taken_for_a_repeat(ours: UdpmSocket, got: Got, raw: Any) -> None:
    raw(fragment(0, 8, 0, 0, 2, b"/a\0abcd"))
    raw(fragment(0, 8, 0, 0, 2, b"/a\0ABCD"))
    raw(fragment(0, 8, 4, 1, 2, b"EFGH"))
    raw(fragment(0, 8, 0, 0, 2, b"/a\0abcd"))
    raw(fragment(0, 8, 0, 0, 2, b"/b\0abcd"))
    raw(fragment(0, 8, 4, 1, 2, b"efgh"))
    handle(ours)
    assert got == [("/a", b"ABCDEFGH"), ("/b", b"abcdefgh")]


def test_senders_are_kept_apart(bus_url: str, ours: UdpmSocket, got: Got, raw: Any) -> None:
    other = UdpmSocket(UdpmUrl.parse(bus_url))
    raw(fragment(0, 8, 0, 0, 2, b"/a\0abcd"))
    other.publish("/b", payload(100_000))
    raw(fragment(0, 8, 4, 1, 2, b"efgh"))
    handle(ours)
    assert got == [("/b", payload(100_000)), ("/a", b"abcdefgh")]
    other.close()


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("ttl=x", "ttl is a whole number up to 255, not 'x'"),
        ("ttl=-1", "not '-1'"),
        ("ttl=256", "not '256'"),
        ("ttl=٣", "not '٣'"),
        ("ttl=", "not ''"),
        ("tll=1", r"there is no option 'tll'; did you mean 'ttl'\? \(options: ttl, recv_buf_size\)"),
        ("x", "there is no option 'x'"),
        ("recv_buf_size=much", "not 'much'"),
    ],
)
def test_a_bad_option_is_a_users_mistake(option: str, why: str) -> None:
    with pytest.raises(UserError, match=why):
        UdpmUrl.parse(f"udpm://239.255.76.67:7667?{option}")


def test_what_is_never_completed_is_bounded(
    ours: UdpmSocket, got: Got, bus_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(udpm, "_MAX_HELD", 12)
    others = [UdpmSocket(UdpmUrl.parse(bus_url)) for _ in range(2)]
    for other in others:
        other._sending.sendto(fragment(1, 10, 0, 0, 2, b"/a\0abcdefg"), other._address)
    for other in others:
        other._sending.sendto(fragment(1, 10, 7, 1, 2, b"hij"), other._address)
        other.close()
    handle(ours)
    assert got == [("/a", b"abcdefghij")], "the one that began first was given up"


def test_messages_have_a_greatest_size(ours: UdpmSocket, got: Got) -> None:
    with pytest.raises(OSError, match=f"messages {MAX_MESSAGE}"):
        ours.publish("/a", bytes(MAX_MESSAGE + 1))
    sent: list[bytes] = []
    ours._sending.close()
    ours._sending = Sending(sent)  # type: ignore[assignment]
    ours.publish("/" + 62 * "x", payload(MAX_MESSAGE))
    assert max(map(len, sent)) == 65507, "as much as a datagram can have"
    headers = [struct.unpack(">4sIIIHH", datagram[:20]) for datagram in sent]
    assert {(magic, size, count) for magic, _, size, _, _, count in headers} == {(b"LC03", MAX_MESSAGE, len(sent))}
    assert [index for *_, index, _ in headers] == list(range(len(sent)))
    bodies = [sent[0][20 + 64 :], *(datagram[20:] for datagram in sent[1:])]
    assert sent[0][20 : 20 + 64] == b"/" + 62 * b"x" + b"\0"
    assert b"".join(bodies) == payload(MAX_MESSAGE)
    assert [offset for _, _, _, offset, _, _ in headers] == [sum(map(len, bodies[:n])) for n in range(len(bodies))]


class Sending:
    """A socket that keeps what is sent."""

    def __init__(self, sent: list[bytes]) -> None:
        self.sent = sent

    def sendto(self, datagram: bytes, address: tuple[str, int]) -> None:
        self.sent.append(datagram)

    def close(self) -> None:
        pass


def test_messages_are_numbered_one_by_one_and_the_numbers_begin_again(ours: UdpmSocket) -> None:
    sent: list[bytes] = []
    ours._sending.close()
    ours._sending = Sending(sent)  # type: ignore[assignment]
    for _ in range(2):
        ours.publish("/a", b"")
    ours._number = 0xFFFF_FFFF
    for size in (100_000, 0):
        ours.publish("/a", bytes(size))
    assert [struct.unpack(">I", datagram[4:8])[0] for datagram in sent] == [0, 1, 0xFFFF_FFFF, 0xFFFF_FFFF, 0]


def test_what_the_fragments_lack_is_not_made_up(ours: UdpmSocket, got: Got, raw: Any) -> None:
    raw(fragment(7, 9, 0, 0, 2, b"/a\0abcd"))
    raw(fragment(7, 9, 4, 1, 2, b"efgh"))
    raw(fragment(8, 8, 0, 0, 2, b"/a\0abcd"))
    raw(fragment(8, 8, 5, 1, 2, b"fgh"))
    for index, (offset, rest) in enumerate(((0, b"/a\0abcd"), (5, b"efgh"), (8, b"ijkl"))):
        raw(fragment(10, 12, offset, index, 3, rest))
    raw(fragment(9, 7, 0, 0, 2, b"/a\0abcd"))
    raw(fragment(9, 7, 4, 1, 2, b"efgh"))
    for other in (
        fragment(1, 8, 4, 1, 2, b"efgh"),
        fragment(5, 9, 4, 1, 2, b"efgh"),
        fragment(5, 8, 4, 1, 3, b"efgh"),
    ):
        raw(fragment(5, 8, 0, 0, 2, b"/a\0abcd"))
        raw(other)
    handle(ours)
    assert got == []
    raw(fragment(5, 8, 4, 1, 2, b"efgh"))
    handle(ours)
    assert got == [("/a", b"abcdefgh")], "those that were of no message changed nothing"


def test_of_many_senders_those_that_began_first_are_given_up(bus_url: str, ours: UdpmSocket, got: Got) -> None:
    senders = [UdpmSocket(UdpmUrl.parse(bus_url)) for _ in range(65)]
    for number, sender in enumerate(senders):
        sender._sending.sendto(fragment(1, 8, 0, 0, 2, b"/%d\0abcd" % number), sender._address)
    handle(ours)
    for sender in senders:
        sender._sending.sendto(fragment(1, 8, 4, 1, 2, b"efgh"), sender._address)
        sender.close()
    handle(ours)
    assert got == [(f"/{number}", b"abcdefgh") for number in range(1, 65)]


def test_a_name_has_63_bytes_at_most(ours: UdpmSocket, got: Got, raw: Any) -> None:
    name = "/" + 62 * "x"
    raw(b"LC02\0\0\0\1" + name.encode() + b"\0data")
    raw(fragment(1, 4, 0, 0, 1, name.encode() + b"\0data"))
    ours.publish(name, b"data")
    handle(ours)
    assert got == [(name, b"data")] * 3


def refuse_option(monkeypatch: pytest.MonkeyPatch, refused: int) -> None:
    """Have the system refuse one option of sockets."""

    class Refusing(socket.socket):
        def setsockopt(self, level: int, option: int, *value: Any) -> None:
            if (level, option) == (socket.IPPROTO_IP, refused):
                raise OSError("refused")
            super().setsockopt(level, option, *value)

    monkeypatch.setattr("dimos_streams.bus.lcm.udpm.socket.socket", Refusing)


def test_a_socket_that_can_not_be_opened_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    before = open_files()
    kept = []
    for option in (socket.IP_MULTICAST_TTL, socket.IP_ADD_MEMBERSHIP):
        refuse_option(monkeypatch, option)
        with pytest.raises(OSError, match="refused") as error:
            UdpmSocket(UdpmUrl.parse("udpm://239.255.76.67:7667?ttl=0"))
        kept.append(error)  # with its frames, and what they hold
    assert open_files() <= before


_ROUTED_TO_LOOPBACK = """
ip link set lo up
ip link add ours type veth peer name theirs
ip link set ours up
ip link set theirs up
ip address add 192.0.2.9/24 dev ours
ip route add 224.0.0.0/4 dev lo
exec "$@"
"""
_HEARS_ITSELF = """
from dimos_streams.bus.lcm.udpm import UdpmSocket
from dimos_streams.bus.lcm.url import UdpmUrl
socket = UdpmSocket(UdpmUrl.parse("udpm://239.255.76.67:7667?ttl=0"))
socket.subscribe("/a", lambda channel, data: print(channel, data))
socket.publish("/a", b"data")
while socket.handle_timeout(0):
    pass
"""


@pytest.mark.slow
def test_a_route_to_loopback_is_followed_where_another_interface_has_an_address() -> None:
    """As LCM's own documentation sets it up, and our advice where there is no route."""
    command = ["unshare", "--net", "sh", "-ec", _ROUTED_TO_LOOPBACK, "sh", sys.executable, "-c", _HEARS_ITSELF]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and not done.stderr.startswith("Traceback"):
        pytest.skip(f"no network can be made here: {done.stderr.strip()}")
    assert (done.stdout, done.stderr) == ("/a b'data'\n", "")


def test_a_bus_opens_though_what_is_no_message_comes_without_end(
    bus_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The packet filter lets it through: it is for who reads to tell that it is none."""
    monkeypatch.setitem(sys.modules, "lcm", None)
    monkeypatch.setattr(UdpmSocket, "handle_timeout", lambda self, timeout_ms: 1)

    async def scenario() -> None:
        bus = create_bus(bus_url)
        await bus.open()
        await bus.close()

    asyncio.run(scenario())
