"""The description of a whole recording for a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dimos_streams import __version__
from dimos_streams.messages.codec import split_channel
from dimos_streams.messages.sensor_msgs import CompressedImage, Image
from dimos_streams.recording.reader import LogReader
from dimos_streams.tool_stream.protocol.channels import EVENTS, STATUS
from dimos_streams.viewer.index import Index

_SHOWN = 3


def about_recording(index: Index, logs: Sequence[LogReader]) -> dict[str, Any]:
    """Return its name, its span, the marks on its slider, and ``notes``: what is missing or damaged, in words."""
    metadata = index.metadata
    blueprint = (metadata and metadata.blueprint) or {}
    return {
        "name": ", ".join(log.path.name for log in logs),
        "blueprint": str(blueprint.get("name", "")),
        "mode": metadata.mode if metadata is not None else "",
        "begin": index.begin,
        "end": index.end,
        "marks": index.marks.shown(),
        "notes": list(_notes(index)),
    }


def _notes(index: Index) -> Iterator[str]:
    """Yield notes on what is missing, damaged or of another version, for somebody who looks at the recording."""
    metadata = index.metadata
    yield from index.damages
    for set_back in index.set_backs[:_SHOWN]:
        after_s = (set_back.utime - index.begin) / 1e6
        yield f"In the log {set_back}; its times go on from there, {after_s:.1f} s after the beginning"
    if metadata is None:
        yield "The log does not describe itself: another program wrote it, or its beginning is missing or damaged"
    elif metadata.version != __version__:
        yield f"It was recorded by version {metadata.version or '?'}, this is {__version__}"
    types = {split_channel(channel)[1] for channel in index.channels}
    if EVENTS not in index.channels:
        yield "Not in the recording: calls of skills, and what was said"
    if STATUS not in index.channels:
        yield "Not in the recording: modules and their skills"
    if not types & {Image.msg_name, CompressedImage.msg_name}:
        yield "Not in the recording: pictures"
    if index.order.gaps:
        yield f"Not in the recording: {index.order.gaps} events of calls, which gaps stand for"
    if index.marks.left_out:
        yield f"{index.marks.left_out} events of calls have no mark of their own; steps go to each"
    for channel, count in list(index.unreadable.items())[:_SHOWN]:
        yield f"{count} messages of {channel} can't be read"
