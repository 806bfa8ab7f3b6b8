"""The signatures of requests."""

from __future__ import annotations

from dimos_streams.tool_stream.signature import parse_signature, signed


def test_signatures() -> None:
    for receiver, instance in (("bridge", "i-1"), ("bridge", "")):
        assert parse_signature(signed(receiver, instance)) == (receiver, instance)
    assert signed("bridge", "") == "bridge"
