"""Writes the report of a recording."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from dimos_streams.errors import UserError
from dimos_streams.recording.cut import refuse_itself
from dimos_streams.recording.files.whole import whole_file
from dimos_streams.recording.reader import LogReader, OnProgress
from dimos_streams.recording.report.collect import collect
from dimos_streams.recording.report.model import Recorded
from dimos_streams.recording.report.page import page

MAX_BYTES = 4_000_000
LEAST_BYTES = 200_000


def write_report(
    logs: Sequence[LogReader],
    target: Path,
    *,
    max_bytes: int = MAX_BYTES,
    on_progress: OnProgress | None = None,
) -> int:
    """Write the report of logs, which are open and count as one, as one HTML file, and return its size in bytes.

    The same logs give the same file. Content beyond ``max_bytes`` is left out, which the report says. Raises
    ``UserError`` for logs without events, and the errors of ``whole_file``.
    """
    if max_bytes < LEAST_BYTES:
        raise UserError(f"a report has at least {LEAST_BYTES} bytes, so {max_bytes} is no bound for it")
    refuse_itself(target, logs)
    text = within(collect(logs, on_progress), max_bytes)
    with whole_file(target) as path:
        path.write_bytes(text)
    return len(text)


def within(recorded: Recorded, max_bytes: int) -> bytes:
    """The page; as long as it is too large, half of its pictures, lines and calls are left out."""
    text = page(recorded).encode()
    while len(text) > max_bytes and (recorded.frames or recorded.lines or recorded.calls):
        recorded = _halved(recorded)
        text = page(recorded).encode()
    return text


def _halved(recorded: Recorded) -> Recorded:
    frames, lines, calls = (len(each) // 2 for each in (recorded.frames, recorded.lines, recorded.calls))
    return dataclasses.replace(
        recorded,
        frames=recorded.frames[:frames],
        frames_left_out=recorded.frames_left_out + len(recorded.frames) - frames,
        lines=recorded.lines[:lines],
        lines_left_out=recorded.lines_left_out + len(recorded.lines) - lines,
        calls=recorded.calls[:calls],
        left_out=recorded.left_out + len(recorded.calls) - calls,
    )
