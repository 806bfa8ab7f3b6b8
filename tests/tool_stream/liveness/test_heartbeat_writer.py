"""Heartbeats that say the same again are not encoded again, and are as if they were."""

from __future__ import annotations

from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.tool_stream.liveness import heartbeat_writer
from dimos_streams.tool_stream.liveness.heartbeat_writer import HeartbeatWriter
from dimos_streams.tool_stream.liveness.instances import Instance

SAID: dict[str, Any] = {
    "health": "ok",
    "skills_version": "v",
    "skills_json": "",
    "state_json": '{"a":1}',
    "calls": [("c", 4)],
}


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The times of what was encoded, on a clock that goes on by one with each look."""
    found: list[int] = []
    times = iter(range(1, 100))
    monkeypatch.setattr(clock, "utime", lambda: next(times))

    def noted(status: ModuleStatus) -> bytes:
        found.append(status.utime)
        return encode(status)

    monkeypatch.setattr(heartbeat_writer, "encode", noted)
    return found


def beat(utime: int, module: str = "drive", **said: Any) -> ModuleStatus:
    """What a heartbeat is to say."""
    fields = {**SAID, **said}
    calls = fields.pop("calls")
    ids, seqs = [call_id for call_id, _ in calls], tuple(seq for _, seq in calls)
    return ModuleStatus(
        utime=utime, module=module, instance="i", pid=7, host="h", started_utime=5, call_ids=ids, last_seqs=seqs,
        **fields,
    )  # fmt: skip


def test_one_that_differs_in_its_time_only_is_not_encoded_again(encoded: list[int]) -> None:
    writer = HeartbeatWriter(Instance(5, "i", 7, "h"))
    found = [decode(ModuleStatus, writer.encoded("drive", **SAID)) for _ in range(3)]
    assert found == [beat(1), beat(2), beat(3)]
    assert encoded == [1]


@pytest.mark.parametrize(
    "other",
    [
        {"health": "hot"},
        {"skills_version": "w"},
        {"skills_json": "[]"},
        {"state_json": ""},
        {"calls": [("c", 5)]},
        {"calls": []},
        {"module": "arm"},
    ],
    ids=str,
)
def test_any_other_difference_is_written(encoded: list[int], other: dict[str, Any]) -> None:
    writer = HeartbeatWriter(Instance(5, "i", 7, "h"))
    found = [decode(ModuleStatus, writer.encoded(**{"module": "drive", **SAID, **said})) for said in ({}, other, {})]
    assert found == [beat(1), beat(2, **other), beat(3)]
