"""Heartbeats that say the same again are not decoded again, and are read as if they were."""

from __future__ import annotations

import pytest

from dimos_streams.errors import MessageError
from dimos_streams.messages import codec
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.tool_stream.liveness import heartbeat_reader
from dimos_streams.tool_stream.liveness.heartbeat_reader import HeartbeatReader
from dimos_streams.tool_stream.protocol.channels import STATUS


def beat(utime: int = 1, *, seq: int = 4, health: str = "ok") -> bytes:
    return encode(
        ModuleStatus(
            utime=utime, module="robot1/drive", instance="i", health=health, call_ids=["c"], last_seqs=[seq], pid=7
        )
    )


def read(reader: HeartbeatReader, data: bytes) -> ModuleStatus:
    return reader.status(reader.head(data, STATUS), data, STATUS)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What was decoded."""
    found: list[bytes] = []

    def decode(cls: type[ModuleStatus], data: bytes, channel: str) -> ModuleStatus:
        found.append(data)
        return codec.decode(cls, data, channel=channel)

    monkeypatch.setattr(heartbeat_reader, "decode", decode)
    return found


def test_one_that_differs_in_its_time_only_is_read_without_being_decoded(decoded: list[bytes]) -> None:
    reader = HeartbeatReader()
    first, second = read(reader, beat(1)), read(reader, beat(2**62))
    assert decoded == [beat(1)]
    assert (encode(first), encode(second)) == (beat(1), beat(2**62))  # nor has the first one another time now
    assert reader.head(beat(3), STATUS) == HeartbeatReader().head(beat(3), STATUS)


@pytest.mark.parametrize(
    "other", [beat(seq=5), beat(health="hot"), beat()[:-1] + b"x"], ids=["number", "health", "end"]
)
def test_any_other_difference_is_seen(other: bytes) -> None:
    reader = HeartbeatReader()
    read(reader, beat())
    assert encode(read(reader, other)) == encode(read(HeartbeatReader(), other))


def test_another_type_with_the_same_contents_is_refused() -> None:
    reader = HeartbeatReader()
    read(reader, beat())
    with pytest.raises(MessageError, match="fingerprint"):
        reader.head(b"another " + beat()[8:], STATUS)


def test_the_newest_are_kept_and_no_large_ones(decoded: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    reader = HeartbeatReader()
    many = [beat(seq=seq) for seq in range(heartbeat_reader._KEPT + 1)]
    large = beat(health="x" * heartbeat_reader._KEPT_BYTES)
    for data in (*many, large):
        read(reader, data)
    decoded.clear()
    for data in (many[-1], many[1], large, many[0]):
        read(reader, data)
    assert decoded == [large, many[0]]
