"""The summary of logs that `recording info` shows: as lines and a table, or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dimos_streams.cli.commands.of_logs.opened_logs import SHOWN, note_damage
from dimos_streams.cli.terminal.output import write, write_table
from dimos_streams.common.readable.byte_size import byte_size
from dimos_streams.common.readable.dates import utc_text
from dimos_streams.common.readable.plural import plural

if TYPE_CHECKING:
    from dimos_streams.recording.reader import LogReader
    from dimos_streams.recording.summary import ChannelSummary, LogSummary


def summary_dict(summary: LogSummary, logs: Sequence[LogReader]) -> dict[str, Any]:
    """Return a summary for JSON."""
    metadata, beyond = summary.metadata, summary.beyond
    return {
        "files": [str(log.path) for log in logs],
        "bytes": sum(log.size for log in logs),
        "events": summary.events,
        "first_utime": summary.first,
        "span_s": summary.span_s,
        "channels": [summary.channels[name].to_dict(summary.first) for name in sorted(summary.channels)],
        "beyond": None if beyond is None else {"messages": beyond.count, "bytes": beyond.size},
        "clock_set_back": [{"event": one.event, "seconds": one.us / 1e6} for one in summary.set_backs],
        "impossible_stamps": summary.impossible,
        "silences": [{"at_s": (at - summary.first) / 1e6, "seconds": us / 1e6} for at, us in summary.gaps],
        "damaged_bytes": sum(log.damaged_bytes for log in logs),
        "damage": [
            {"file": str(log.path), "offset": one.offset, "length": one.length, "why": one.why}
            for log in logs
            for one in log.damages
        ],
        "metadata": None if metadata is None else metadata.model_dump(mode="json", exclude={"messages"}),
        "other_runs": summary.other_runs,
        "metadata_fault": summary.metadata_fault if metadata is None else "",
    }


def write_summary(summary: LogSummary, logs: Sequence[LogReader]) -> None:
    """Write a summary for people."""
    size = sum(log.size for log in logs)
    write(f"{' '.join(str(log.path) for log in logs)}: {plural(summary.events, 'event')}, {byte_size(size)}")
    if summary.events:
        write(f"{summary.span_s:.3f} s from {utc_text(summary.first)}")
    _write_metadata(summary)
    _write_channels(summary)
    _write_times(summary)
    note_damage(logs)


def _write_metadata(summary: LogSummary) -> None:
    """Write what the log says of itself."""
    if summary.metadata is not None:
        write(summary.metadata.title)
        for title in summary.other_runs:
            write(f"and {title}: a log of several runs, of which `replay --modules` takes the first one's blueprint")
    elif summary.metadata_fault:
        write(f"what the log says of itself can't be read: {summary.metadata_fault}")


def _write_channels(summary: LogSummary) -> None:
    if rows := [_channel_row(summary, channel) for _, channel in sorted(summary.channels.items())]:
        write_table(("TOPIC", "EVENTS", "RATE", "SIZE", "TYPE", "LONGEST GAP"), rows)
    if beyond := summary.beyond:
        write(
            f"{plural(beyond.count, 'further event')} are of other channels than the first {len(summary.channels)}:"
            f" they are only counted, {byte_size(beyond.size)} in all"
        )


def _channel_row(summary: LogSummary, channel: ChannelSummary) -> tuple[str, ...]:
    rate = "" if channel.rate_hz is None else f"{channel.rate_hz:.1f} Hz"
    after_s = (channel.longest_at - summary.first) / 1e6
    gap = "" if channel.gap_s is None else f"{channel.gap_s:.2f} s after {after_s:.1f} s"
    return channel.topic, str(channel.count), rate, byte_size(channel.size), channel.type_name or "?", gap


def _write_times(summary: LogSummary) -> None:
    """Write where nothing was recorded, and which times of events are not what they seem."""
    for at, length in summary.gaps[:SHOWN]:
        write(f"nothing at all was recorded for {length / 1e6:.1f} s after {(at - summary.first) / 1e6:.1f} s")
    for set_back in summary.set_backs[:SHOWN]:
        after_s = (set_back.utime - summary.first) / 1e6
        write(f"{set_back}; times are counted on from there, {after_s:.1f} s after the beginning")
    for impossible in summary.impossible[:SHOWN]:
        write(f"{impossible}; it keeps its time")
    if summary.older.count:
        write(f"{summary.older}; these keep their times")
