"""One channel of a log as CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from typing import Any

from dimos_streams.errors import MessageError, UserError, suggest
from dimos_streams.messages.base import Message, fields_of
from dimos_streams.messages.codec import decode, split_channel, type_named
from dimos_streams.recording.cut import Part, timed
from dimos_streams.recording.reader import LogReader

_PROGRESS_EVERY = 1024
_WIDEST = 64
"""Arrays of a fixed length up to this one have a column an entry; others are JSON in one cell."""


def export_csv(
    log: LogReader,
    wanted: str,
    part: Part,
    write: Callable[[str], None],
    on_progress: Callable[[LogReader], None] | None = None,
) -> int:
    """Write a header line and a line for each message; the number of messages. ``wanted`` is a topic or channel.

    The first columns are the time of the log, in µs since the Unix epoch, and in seconds since its first event.
    Raises ``UserError`` if there is no such channel, several of the topic, or its type is not known.
    """
    seen: dict[str, None] = {}
    channel, count, columns = "", 0, None
    for number, (after_s, event) in enumerate(timed([log])):
        if on_progress is not None and number % _PROGRESS_EVERY == 0:
            on_progress(log)
        seen[event.channel] = None
        if wanted not in (event.channel, split_channel(event.channel)[0]) or after_s is None:
            continue
        if channel and event.channel != channel:
            raise UserError(f"{wanted!r} has several types, name one: {channel}, {event.channel}")
        channel = event.channel
        if not part.includes(after_s, channel):
            continue
        try:
            message = decode(type_named(split_channel(channel)[1], channel), event.data, channel)
        except MessageError as error:
            raise UserError(f"can't be written as CSV: {error}") from error
        cells = dict(_cells(message, ""))
        if columns is None:
            columns = list(cells)
            write(_line(["utime", "time_s", *columns]))
        write(_line([event.utime, f"{after_s:.6f}", *cells.values()]))
        count += 1
    if not channel:
        topics = sorted({split_channel(name)[0] for name in seen})
        raise UserError(
            f"log {str(log.path)!r} has no {wanted!r}{suggest(wanted, topics)} (it has {', '.join(topics)})"
        )
    return count


def _cells(message: Message, prefix: str) -> Iterator[tuple[str, Any]]:
    sizes = {field.size for field in fields_of(type(message))}
    for field in fields_of(type(message)):
        value, path = getattr(message, field.name), prefix + field.name
        if field.name in sizes:
            continue
        if isinstance(value, Message):
            yield from _cells(value, f"{path}.")
        elif isinstance(field.size, int) and field.size <= _WIDEST and not field.is_message and field.type != "byte":
            for index, item in enumerate(value):
                yield f"{path}[{index}]", item
        elif field.size is not None:
            yield path, json.dumps(plain(value))
        else:
            yield path, value


def plain(value: Any) -> Any:
    """A message's field as plain data; bytes in hexadecimal."""
    if isinstance(value, Message):
        return {field.name: plain(getattr(value, field.name)) for field in fields_of(type(value))}
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def _line(cells: list[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(cells)
    return text.getvalue()
