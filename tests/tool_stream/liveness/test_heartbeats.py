"""Heartbeats as bytes: their head, their size, and what is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dimos_streams.errors import MessageError
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.tool_stream.liveness.heartbeat import MAX_CALLS, MAX_SKILLS_JSON, Head, head_of
from dimos_streams.tool_stream.protocol.channels import STATUS


@pytest.mark.slow
@given(st.text(max_size=50), st.text(max_size=50), st.integers(0, 20), st.text(max_size=100), st.text(max_size=100))
def test_the_head_of_a_heartbeat_is_what_all_of_it_says(
    module: str, instance: str, calls: int, version: str, skills: str
) -> None:
    whole = ModuleStatus(
        utime=5, module=module, instance=instance, pid=3, host="h", started_utime=9, health="ok",
        skills_version=version, skills_json=skills, call_ids=["c"] * calls, last_seqs=[1] * calls,
    )  # fmt: skip
    data = encode(whole)
    head = head_of(data, STATUS)
    assert (head.module, head.instance, head.calls) == (module, instance, calls)
    assert 0 <= head.skills_bytes - len(skills.encode()) <= 10
    assert head.cost == 10 + calls + head.skills_bytes / 64 + (300 if skills else 0)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"module": "m" * 251}, ""),
        ({"module": "m" * 252}, "a name of 257 bytes"),
        ({"instance": "m" * 252}, "a name of 257 bytes"),
        ({"host": "m" * 252}, "a name of 257 bytes"),
        ({"call_ids": ["c"] * MAX_CALLS, "last_seqs": [1] * MAX_CALLS}, ""),
        ({"call_ids": ["c"] * (MAX_CALLS + 1), "last_seqs": [1] * (MAX_CALLS + 1)}, "it names 1281 calls"),
        ({"skills_json": "x" * (MAX_SKILLS_JSON - 5)}, ""),
        ({"skills_json": "x" * (MAX_SKILLS_JSON - 4)}, "has 64001 bytes of skills"),
    ],
)
def test_no_module_sends_a_larger_heartbeat(more: dict[str, object], why: str) -> None:
    data = encode(ModuleStatus(**{"module": "m", "instance": "1", **more}))  # type: ignore[arg-type]
    if not why:
        assert isinstance(head_of(data, STATUS), Head)
        return
    with pytest.raises(MessageError, match=why):
        head_of(data, STATUS)


def test_a_heartbeat_that_is_cut_off_is_none() -> None:
    data = encode(ModuleStatus(module="m", instance="1", skills_json="x" * 100))
    whole = head_of(data, STATUS)
    least = data.index(b"x" * 100) + 100 + len(b"\0") + 4
    assert head_of(data[:least], STATUS) == whole, "its calls and its state may be missing"
    for size in range(least):
        with pytest.raises(MessageError, match="beginning is damaged" if size >= 8 else "fingerprint"):
            head_of(data[:size], STATUS)
    with pytest.raises(MessageError, match="fingerprint"):
        head_of(b"\0" + data[1:], STATUS)
