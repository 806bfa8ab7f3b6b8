"""Requests that another thread cuts short."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import random
import re
import socket
import ssl
import threading
import tracemalloc
from functools import partial
from pathlib import Path

import pytest
import requests

from dimos_streams.client import http_session
from dimos_streams.client.http_gateway import HttpGateway
from dimos_streams.client.http_session import MAX_ANSWER, CuttableSession, Tls
from dimos_streams.errors import NoAnswerError, SkillError
from tests.certificates import certificates
from tests.client.event_server import Peer, Play, event_server


def test_a_body_can_be_cut_whose_connection_is_not_kept() -> None:
    def play(peer: Peer) -> None:
        peer.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nbegun")
        peer.hang_up_noticed()

    with event_server(play) as server, CuttableSession() as session:
        cutter = threading.Thread(target=session.cut)
        with session.get(server.url, stream=True, timeout=30, allow_redirects=False) as response:
            assert response.raw.read(5) == b"begun"
            cutter.start()
            assert not response.raw.read(1)
        cutter.join()
        with pytest.raises(requests.ConnectionError):
            session.get(server.url, timeout=30)


@pytest.mark.parametrize(
    "unusable",
    [
        pytest.param((socket.AF_INET, "255.255.255.255"), id="no-network-leads-to-it"),
        pytest.param((socket.AF_UNSPEC, "::1"), id="a-machine-without-its-family"),
    ],
)
def test_an_address_that_fails_at_once_gives_way_to_the_next(
    unusable: tuple[int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def look_up(host: str, port: int, *_: object, **__: object) -> list[object]:
        addresses = unusable, (socket.AF_INET, "127.0.0.1")
        return [(family, socket.SOCK_STREAM, 0, "", (address, port)) for family, address in addresses]

    with (
        event_server(lambda peer: peer.send(b"HTTP/1.1 204 No Content\r\n\r\n")) as server,
        CuttableSession() as session,
    ):
        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        assert session.get(server.url, timeout=30).status_code == 204


def test_a_request_that_no_network_carries_has_not_arrived() -> None:
    with pytest.raises(NoAnswerError, match="can't be reached") as caught:
        asyncio.run(HttpGateway("http://255.255.255.255:1").begin("go", {}, caller="test"))
    assert not caught.value.may_have_arrived


def endless(peer: Peer) -> None:
    peer.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    while not peer.gone.is_set():
        peer.send(b"A" * 65536)


def elsewhere(peer: Peer) -> None:
    size = 4 * MAX_ANSWER
    peer.send(b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /other\r\nContent-Length: %d\r\n\r\n" % size)
    for _ in range(size // 65536):
        peer.send(b"A" * 65536)


def _drips(peer: Peer, head: bytes) -> None:
    peer.send(head)
    while not peer.gone.wait(0.01):
        with contextlib.suppress(OSError):
            peer.send(b"A")


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nX-Long: ",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
    ],
    ids=["the head", "a body with a length", "a body without one"],
)
def test_an_answer_that_drips_ends(head: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its parts is in time."""
    monkeypatch.setattr(http_session, "WHOLE_S", -29.8)
    late = pytest.raises(requests.ReadTimeout, match=r"^its answer was not whole within 0\.2 s$")
    with event_server(partial(_drips, head=head)) as server, CuttableSession() as session, late as told:
        session.get(server.url, timeout=30)
    assert http_session.why(told.value) == "its answer was not whole within 0.2 s"


def packed(peer: Peer) -> None:
    peer.answer("200 OK", gzip.compress(bytes(2**20)), "Content-Encoding: gzip\r\n")


@pytest.mark.parametrize(
    ("play", "why"),
    [
        (endless, f"it answers with more than {MAX_ANSWER} bytes"),
        (elsewhere, f"it answers with more than {MAX_ANSWER} bytes"),
        (packed, "it answers with the encoding 'gzip' (HTTP 200), for which nobody asked; it is not read"),
    ],
)
def test_answers_without_end_and_packed_ones_are_not_read(play: Play, why: str) -> None:
    tracemalloc.start()
    try:
        with event_server(play) as server:
            with CuttableSession() as session, pytest.raises(requests.RequestException) as told:
                session.get(server.url, timeout=30, allow_redirects=False)
            gateway = HttpGateway(server.url.removesuffix("/events"), rng=random.Random(1))
            with contextlib.closing(gateway), pytest.raises(SkillError, match=re.escape(why)):
                asyncio.run(gateway.offset())
        assert str(told.value) == why
        assert server.requests[0].headers["accept-encoding"] == "identity"
        assert tracemalloc.get_traced_memory()[1] < 3 * MAX_ANSWER
    finally:
        tracemalloc.stop()


def test_a_redirection_is_not_read_before_anybody_has_looked_at_it() -> None:
    def play(peer: Peer) -> None:
        peer.send(b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /other\r\nContent-Length: 9\r\n\r\nbegun")
        peer.hang_up_noticed()

    with (
        event_server(play) as server,
        CuttableSession() as session,
        session.get(server.url, stream=True, timeout=3, allow_redirects=False) as response,
    ):
        assert response.status_code == 307
        assert response.raw.read(5) == b"begun"


def test_an_answer_that_breaks_off_is_none() -> None:
    def play(peer: Peer) -> None:
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbegun")

    with (
        event_server(play) as server,
        CuttableSession() as session,
        pytest.raises(requests.exceptions.ChunkedEncodingError),
    ):
        session.get(server.url, timeout=30, allow_redirects=False)


def _shake_hands(listening: socket.socket, context: ssl.SSLContext) -> None:
    with contextlib.suppress(OSError), listening.accept()[0] as connection:
        context.wrap_socket(connection, server_side=True).close()


@pytest.mark.parametrize(
    ("trusts", "why"),
    [(False, "can't be reached: its certificate is not trusted: "), (True, "no answer")],
)
def test_a_handshake_that_fails_has_carried_no_request(trusts: bool, why: str, tmp_path: Path) -> None:
    """A connection that ends behind it may have."""
    files = certificates(tmp_path / "authority")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files["cert"], files["key"])

    async def ask(port: int) -> NoAnswerError:
        tls = Tls(files["ca"]) if trusts else None
        gateway = HttpGateway(f"https://127.0.0.1:{port}", rng=random.Random(1), tls=tls)
        with pytest.raises(NoAnswerError, match=why) as refused:
            await gateway.cancel("c1", "over")
        return refused.value

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = threading.Thread(target=_shake_hands, args=(listening, context))
        server.start()
        assert asyncio.run(ask(listening.getsockname()[1])).may_have_arrived == trusts
        server.join()
