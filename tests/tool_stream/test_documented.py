"""docs/tool-streams.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from dimos_streams import module
from dimos_streams.bridge.calls import watchdog
from dimos_streams.runtime import neighbours
from dimos_streams.runtime.live import slots
from dimos_streams.runtime.options import RunOptions
from dimos_streams.tool_stream.hosting import heart, host_admission, loss
from dimos_streams.tool_stream.liveness import heartbeat, instances, module_view
from dimos_streams.tool_stream.receiving import acks, nacks, reorder_buffer
from dimos_streams.tool_stream.sending import call_writer, receivers
from dimos_streams.tool_stream.sending.call_writer import PublisherLimits

_PAGE = Path(__file__).parents[2] / "docs" / "tool-streams.md"


def test_timers_and_bounds() -> None:
    limits, delays = PublisherLimits(), nacks.NACK_DELAYS_S
    short = ", ".join(f"{delay * 1000:g}" for delay in delays[:5])
    assert set(delays[5:]) == {delays[-1]}
    expected = {
        "nacks.REORDER_WINDOW_S": f"{nacks.REORDER_WINDOW_S * 1000:g} ms",
        "nacks.NACK_DELAYS_S": f"{short} ms, {len(delays) - 5} times {delays[-1] * 1000:g} ms, then a `gap`:"
        f" {sum(delays):.1f} s in all",
        "acks.ACK_DELAY_S": f"after {acks.ACK_DELAY_S * 1000:g} ms, or {acks.ACK_EVERY} events",
        "reorder_buffer.MAX_PENDING": f"{reorder_buffer.MAX_PENDING}",
        "PublisherLimits.window": f"{limits.window};",
        "call_writer.RECEIVER_ANSWERS_S": f"has {call_writer.RECEIVER_ANSWERS_S:g} s",
        "receivers.RECEIVER_GONE_S": f"{receivers.RECEIVER_GONE_S:g} s without",
        "receivers.RECEIVER_FORGOTTEN_S": f"{receivers.RECEIVER_FORGOTTEN_S:g} s, at most {receivers.MAX_RECEIVERS} ",
        "PublisherLimits.history": f"{limits.history} and {limits.history_bytes >> 20} MB",
        "PublisherLimits.closed_calls": f"{limits.closed_calls},",
        "heartbeat.HEARTBEAT_S": f"every {heartbeat.HEARTBEAT_S:g} s",
        "heart.HEARTBEAT_RETRY_S": f"{heart.HEARTBEAT_RETRY_S:g} s,",
        "neighbours.NAME_PROBE_S": f"{neighbours.NAME_PROBE_S:g} s; {neighbours.LEAVES_WITHIN_S:g} s if",
        "instances.SIDE_BY_SIDE_S": f"{instances.SIDE_BY_SIDE_S:g} s",
        "instances.SUPERSEDED_S": f"{instances.SUPERSEDED_S:g} s",
        "instances.ESTABLISHED_S": f"{instances.ESTABLISHED_S:g} s",
        "module.LOSS_BOUND_S": f"{module.LOSS_BOUND_S:g} s",
        "loss.CUT_OFF_AFTER_S": f"{loss.CUT_OFF_AFTER_S:g} s",
        "loss.OVERDUE_AFTER_S": f"{loss.OVERDUE_AFTER_S:g} s",
        "host_admission.LATE_S": f"{host_admission.LATE_S:g} s",
        "watchdog.CONTINUE_S": f"{watchdog.CONTINUE_S:g} s",
        "RunOptions.hang_bound_s": f"{RunOptions().hang_bound_s:g} s, and",
        "slots.START_BOUND_S": f"{slots.START_BOUND_S:g} s, counted",
        "module_view.ALIVE_S": f"{module_view.ALIVE_S:g} s without",
    }
    rows = dict(re.findall(r"^\| [^|]+ \| ([^|]+) \| `([^`]+)`[^|]*\|$", _PAGE.read_text(), re.MULTILINE))
    values = {name: value for value, name in rows.items()}
    for name, value in expected.items():
        assert values[name].startswith(value), name
