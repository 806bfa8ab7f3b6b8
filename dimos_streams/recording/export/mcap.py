"""A log as an MCAP file: JSON messages with JSON schemas."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dimos_streams.common.names import namespace_of
from dimos_streams.errors import MessageError, UserError
from dimos_streams.foxglove.conversion.message_views import MessageViews
from dimos_streams.foxglove.conversion.schemas import schema_named
from dimos_streams.messages import registry
from dimos_streams.messages.codec import decode, split_channel
from dimos_streams.recording.cut import LogPart, check_found, refuse_itself, timed
from dimos_streams.recording.files.whole import whole_file
from dimos_streams.recording.format import LogEvent
from dimos_streams.recording.metadata import Metadata
from dimos_streams.recording.reader import LogReader, OnProgress

if TYPE_CHECKING:
    from mcap.writer import Writer

_LATEST_NS = 2**64 - 1
"""The last moment that MCAP has; the first one is that of 1970."""


@dataclass(slots=True)
class Exported:
    """The counts of what went into the file."""

    messages: int = 0
    """The number of messages in the file, which has several for one that is shown in several forms."""
    channels: int = 0
    unknown: dict[str, int] = field(default_factory=dict)
    """The number of messages that were left out because their types are not known, by channel."""
    damaged: dict[str, int] = field(default_factory=dict)
    untimed: dict[str, int] = field(default_factory=dict)
    """The number of messages that were left out because MCAP has no such time, by channel."""


def export_mcap(log: LogReader, target: Path, part: LogPart, on_progress: OnProgress | None = None) -> Exported:
    """Write a part of a log, which is open. Raises ``UserError`` without the extra ``mcap``, for a part without
    events, and for one with an unknown type if a package that the environment names can't be used, and the errors of
    ``whole_file``; then nothing is written."""
    try:
        from mcap.writer import Writer
    except ImportError as error:
        raise UserError("MCAP files need mcap: pip install 'dimos-streams[mcap]'") from error
    refuse_itself(target, [log])
    _check_types(log, part)
    done = Exported()
    file: _McapFile | None = None
    metadata: LogEvent | None = None
    begins: int | None = None
    with ExitStack() as stack:
        for after_s, event in timed([log], on_progress):
            if after_s is None:
                metadata = metadata or event
                continue
            begins = event.utime if begins is None else begins
            if part.includes(after_s, event.channel):
                if file is None:
                    stream = stack.enter_context(open(stack.enter_context(whole_file(target)), "wb"))
                    file = _McapFile(Writer(stream), _views(metadata), done)
                file.add(event._replace(utime=begins + round(after_s * 1e6)))
        if file is not None:
            file.finish(metadata)
    check_found(file is not None, [log], part)
    return done


class _McapFile:
    """The file, with the schemas and channels that it has so far."""

    def __init__(self, writer: Writer, views: MessageViews, done: Exported) -> None:
        self._writer = writer
        self._views = views
        self._done = done
        self._schemas: dict[str, int] = {}
        self._channels: dict[tuple[str, str], int] = {}
        writer.start(profile="", library="dimos-streams")

    def add(self, event: LogEvent) -> None:
        """Write the views of a message; one that can't be read, or be written, is counted."""
        topic, type_name = split_channel(event.channel)
        nanoseconds = event.utime * 1000
        message_type = registry.find(type_name)
        if message_type is None:
            _count(self._done.unknown, event.channel)
            return
        if not 0 <= nanoseconds <= _LATEST_NS:
            _count(self._done.untimed, event.channel)
            return
        try:
            message = decode(message_type, event.data, event.channel)
        except MessageError:
            _count(self._done.damaged, event.channel)
            return
        for form, value in self._views.shown(topic, message):
            channel = self._channel(topic + form.suffix, form.schema)
            data = json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
            self._writer.add_message(channel, nanoseconds, data, nanoseconds, sequence=event.number & 0xFFFF_FFFF)
            self._done.messages += 1

    def finish(self, metadata: LogEvent | None) -> None:
        """Write the recording's metadata, if it has some, and the file's end."""
        if metadata is not None:
            _add_metadata(self._writer.add_metadata, metadata)
        self._writer.finish()  # type: ignore[no-untyped-call]

    def _channel(self, name: str, schema: str) -> int:
        if schema not in self._schemas:
            text = json.dumps(schema_named(schema)).encode()
            self._schemas[schema] = self._writer.register_schema(schema, "jsonschema", text)
        key = name, schema
        if key not in self._channels:
            self._channels[key] = self._writer.register_channel(name, "json", self._schemas[schema])
            self._done.channels += 1
        return self._channels[key]


def _count(counts: dict[str, int], channel: str) -> None:
    counts[channel] = counts.get(channel, 0) + 1


def _check_types(log: LogReader, part: LogPart) -> None:
    """Raise ``UserError`` for an unknown type if the package that has it may be one that the environment names and
    that can't be used."""
    if not registry.problems_of_environment():
        return
    for after_s, event in timed([log]):
        name = split_channel(event.channel)[1]
        is_wanted = after_s is not None and part.includes(after_s, event.channel)
        if is_wanted and name and registry.find(name) is None:
            raise UserError(
                f"{event.channel!r} can't be written as MCAP: its type is not known here{registry.hint(name)}"
            )


def _views(metadata: LogEvent | None) -> MessageViews:
    """Return views that tell robots' topics apart by the metadata's blueprint; without one no frame is told apart."""
    known = None if metadata is None else Metadata.readable(metadata.data)
    return MessageViews(map(namespace_of, known.modules if known is not None else ()))


def _add_metadata(add: Callable[[str, dict[str, str]], object], event: LogEvent) -> None:
    metadata = Metadata.readable(event.data)
    if metadata is None:
        return
    fields = metadata.model_dump(mode="json", exclude={"messages"})
    add("recording", {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()})
