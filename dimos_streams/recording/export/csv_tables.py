"""One channel of a log as CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dimos_streams.errors import MessageError, UserError, suggest
from dimos_streams.messages import registry
from dimos_streams.messages.base import Message, fields_of, to_json_value
from dimos_streams.messages.codec import decode, split_channel
from dimos_streams.recording.cut import LogPart, check_found, timed
from dimos_streams.recording.format import LogEvent
from dimos_streams.recording.reader import LogReader, OnProgress

_WIDEST = 64
"""Arrays of a fixed length up to this one have a column an entry; others are JSON in one cell, see
``to_json_value``."""
_FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
"""Beginnings of texts that spreadsheets may take for formulas, which run commands or fetch addresses; the last four
are ``=+-@`` in full width."""
_LINE_END = "\r\n"
"""The end of a line as the writer is told it: it puts quotes around cells that have such characters in them."""


@dataclass(slots=True)
class Rows:
    """The counts of a channel's messages: written and left out."""

    written: int = 0
    damaged: int = 0
    """The number of messages that were left out."""


def csv_lines(
    log: LogReader, wanted: str, part: LogPart, rows: Rows, on_progress: OnProgress | None = None
) -> Iterator[str]:
    """A header line and a line for each message of a topic or channel, which ``rows`` counts.

    The first columns are the log's time, in µs since the Unix epoch and in seconds since its first event; messages
    may have a ``utime`` of their own. A text that a spreadsheet might take for a formula has an apostrophe before it:
    anybody on the bus may have written it. Raises ``UserError`` if there is no such channel or several of the topic,
    if its type is not known, and if the part has nothing of it.
    """
    for after_s, event in _events_of(log, wanted, on_progress):
        message_type = _type_of(event.channel)
        if not part.includes(after_s, event.channel):
            continue
        try:
            cells = dict(_cells(decode(message_type, event.data, event.channel), ""))
        except MessageError:
            rows.damaged += 1
            continue
        if not rows.written:
            yield _line(["log_utime", "time_s", *cells])
        yield _line([event.utime, f"{after_s:.6f}", *map(_no_formula, cells.values())])
        rows.written += 1
    check_found(rows.written + rows.damaged, [log], part)


def _events_of(log: LogReader, wanted: str, on_progress: OnProgress | None) -> Iterator[tuple[float, LogEvent]]:
    """The events of a topic or channel, with their times.

    Raises ``UserError`` at the end if there is no such channel, and when there is a second one of the topic.
    """
    seen: dict[str, None] = {}
    channel = ""
    for after_s, event in timed([log], on_progress):
        seen[event.channel] = None
        if wanted not in (event.channel, split_channel(event.channel)[0]) or after_s is None:
            continue
        if channel and event.channel != channel:
            raise UserError(f"{wanted!r} has several types, name one: {channel}, {event.channel}")
        channel = event.channel
        yield after_s, event
    if not channel:
        topics = sorted({split_channel(name)[0] for name in seen})
        raise UserError(
            f"log {str(log.path)!r} has no {wanted!r}{suggest(wanted, topics)} (it has {_listed(topics)})"
        )


def _type_of(channel: str) -> type[Message]:
    name = split_channel(channel)[1]
    found = registry.find(name)
    if found is None:
        raise UserError(f"{channel!r} can't be written as CSV: its type is not known here{registry.hint(name)}")
    return found


def _listed(topics: list[str]) -> str:
    return ", ".join(topics) or "no events"


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
            yield path, json.dumps(to_json_value(value))
        else:
            yield path, value


def _line(cells: list[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator=_LINE_END).writerow(cells)
    return text.getvalue().removesuffix(_LINE_END)


def _no_formula(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell
