"""WebSocket clients that send frames without end: others do not wait for them, and who keeps to the bounds notices
nothing of these."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from pathlib import Path

import pytest
import requests

from dimos_streams.serving.server import web_socket
from dimos_streams.serving.server.frames import AT_ONCE, PER_S
from dimos_streams.serving.server.metered_h11 import MAX_PIECES
from tests.bridge.serving import served
from tests.hostile.frames import KINDS, PING, TEXT, frame, sending, upgrade
from tests.recording.logs import some_events, write_log
from tests.viewer.open_recordings import served_in_a_thread

pytestmark = [pytest.mark.feature("F6"), pytest.mark.slow]

_BOUND_S = 1.0
"""Generous; 0.1 s is what a quiet machine keeps with ease. It was 15 s."""
_TOO_MANY = int(AT_ONCE + 10 * PER_S)
_ATTACK_S = 0.5


def asked_s(method: str, url: str) -> float:
    begun = time.monotonic()
    assert requests.request(method, url, timeout=30).status_code == 200
    return time.monotonic() - begun


def said(
    connection: socket.socket, data: bytes, until: bytes = b"no end", late_s: float = 0.0, *, hangs_up: bool = False
) -> bytes:
    """Send something, and take what comes, until it has an end or the server ends the connection. Who ``hangs_up``
    then need not have sent all."""
    found = bytearray()
    with contextlib.ExitStack() as stack:
        sender = threading.Thread(target=_send, args=(connection, data))
        sender.start()
        stack.callback(sender.join)
        if hangs_up:
            stack.callback(connection.shutdown, socket.SHUT_RDWR)
        time.sleep(late_s)
        with contextlib.suppress(ConnectionResetError):
            while until not in found and (more := connection.recv(65536)):
                found += more
    return bytes(found)


def _send(connection: socket.socket, data: bytes) -> None:
    with contextlib.suppress(ConnectionError):
        connection.sendall(data)


def last_word(connection: socket.socket, data: bytes) -> tuple[int, str]:
    """Send something, and read the code and reason of the goodbye that follows."""
    goodbye = said(connection, data).rpartition(b"\x88")[2]
    return int.from_bytes(goodbye[1:3]), goodbye[3 : goodbye[0] + 1].decode()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "texts"])
def test_nobody_waits_for_who_sends_frames_without_end(kind: str, settled_log: pytest.LogCaptureFixture) -> None:
    with served() as bridge:
        begun, worst, lines = time.monotonic(), 0.0, list[str]()
        with sending(bridge.port, "/monitor", kind, connections=2):
            while time.monotonic() < begun + _ATTACK_S or not lines:
                for method, path in (("POST", "/calls/cancel"), ("GET", "/healthz")):
                    worst = max(worst, asked_s(method, bridge.url + path))
                lines = [record.message for record in settled_log.records]
        assert worst < _BOUND_S
        assert all("was cut off" in line for line in lines)
        assert len(lines) <= 2 + time.monotonic() - begun


def test_who_sends_too_many_frames_hears_why_it_is_cut_off() -> None:
    with served() as bridge:
        for path in ("/monitor", "/live"):
            with upgrade(bridge.port, path) as connection:
                assert last_word(connection, frame(PING) * _TOO_MANY) == (1008, "more than 4000 frames in a second")


def test_a_message_in_too_many_pieces_is_cut_off() -> None:
    with served() as bridge:
        pieces = frame(0, last=False) * (MAX_PIECES - 1)
        begin = frame(TEXT, b"{", last=False) + pieces
        with upgrade(bridge.port, "/monitor") as connection:
            assert last_word(connection, begin + frame(0, last=False)) == (1009, "a message in more than 4096 frames")
        with upgrade(bridge.port, "/monitor") as connection:
            found = said(connection, begin + frame(0, b"}") + frame(TEXT, b"{}") + frame(PING), until=b"\x8a\x00")
            while found.count(b'"type":"error"') < 2:
                found += connection.recv(65536)


def test_a_viewer_is_served_by_the_same_rules(tmp_path: Path) -> None:
    with served_in_a_thread(write_log(tmp_path / "run.lcmlog", some_events(10))) as url:
        port = int(url.rsplit(":", 1)[1])
        for path in ("/monitor", "/live", "/transport"):
            with upgrade(port, path) as connection:
                assert last_word(connection, frame(PING) * _TOO_MANY)[0] == 1008


def test_who_says_much_at_once_is_answered_to_all_of_it() -> None:
    each = [frame(TEXT, b"?%d" % number) + frame(PING, b"!%d" % number) for number in range(1000)]
    with served() as bridge, upgrade(bridge.port, "/monitor") as connection:
        found = said(connection, b"".join(each), until=b"!999")
        while found.count(b'"type":"error"') < len(each):
            found += connection.recv(65536)
    assert all(b"\x8a%c!%d" % (1 + len(str(number)), number) in found for number in range(1000))


def test_what_has_come_is_read_on_where_nothing_is_answered() -> None:
    seen = frame(TEXT, b'{"seen": "/odom"}')
    with served() as bridge, upgrade(bridge.port, "/live") as connection:
        assert b"\x8a\x01!" in said(connection, seen * 1000 + frame(PING, b"!"), until=b"\x8a\x01!")


def test_who_reads_late_hears_why_it_was_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_socket, "_GOODBYE_S", 30.0)  # a busy machine may let the client read for a second, or not
    pings, why = frame(PING, b"x" * 125) * _TOO_MANY, b"\x03\xf0more than 4000 frames in a second"
    with served() as bridge, upgrade(bridge.port, "/live", receive_buffer=4096) as connection:
        assert why in said(connection, pings, until=why, late_s=0.3, hangs_up=True)


def test_who_takes_nothing_is_owed_an_answer_to_its_last_ping_only() -> None:
    count = int(AT_ONCE)
    with served() as bridge:
        bridge.keep_send_buffers_small()
        with upgrade(bridge.port, "/monitor", receive_buffer=4096) as connection:
            for number in range(count):
                connection.sendall(frame(PING, b"%0125d" % number))
            assert asked_s("GET", f"{bridge.url}/healthz") < _BOUND_S
            last, found = b"%0125d" % (count - 1), b""
            while last not in found:
                found += connection.recv(65536)
        assert found.count(b"\x8a\x7d") < count
