"""Requests that another thread cuts short."""

from __future__ import annotations

import threading

import pytest
import requests

from dimos_streams.client.http_session import CuttableSession
from tests.client.event_server import Peer, event_server


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
