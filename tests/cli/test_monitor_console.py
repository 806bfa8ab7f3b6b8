"""What `monitor` does with a bridge that is none."""

from __future__ import annotations

import asyncio
import json

import pytest

from dimos_streams.cli.bridge_client.connection import BridgeAddress, BridgeUnreachableError
from dimos_streams.cli.consoles.monitor_console import watch
from tests.client.event_server import Peer, event_server

_COUNTS = {
    "open_calls": 0,
    "leases": {},
    "broadcast": {"readers": 0, "lag": 0, "coalesced": 0, "cut": 0},
    "receiver": {"delivered": 0, "gaps": 0, "malformed": 0},
}
_HEALTH = json.dumps({"status": "ok", "lost": [], "offset": 1, "counts": _COUNTS}).encode()


def test_the_token_is_not_taken_along_to_where_a_redirection_leads() -> None:
    def lead(peer: Peer) -> None:
        if peer.target == "/healthz":
            peer.answer("200 OK", _HEALTH)
        else:
            peer.answer("302 Found", b"", f"Location: {elsewhere.url.replace('http', 'ws')}\r\n")

    with event_server(lambda peer: peer.answer("400 Bad Request")) as elsewhere, event_server(lead) as bridge:
        address = BridgeAddress(bridge.url.removesuffix("/events"), "t0ken")
        with pytest.raises(BridgeUnreachableError, match=r"refuses to be watched: .*302"):
            asyncio.run(watch(address, "", as_json=False))
        assert [peer.headers.get("authorization") for peer in bridge.requests] == ["Bearer t0ken"] * 2
        assert elsewhere.requests == []
