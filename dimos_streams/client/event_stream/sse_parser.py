"""Server-sent events: an incremental parser of the WHATWG event stream format."""

from __future__ import annotations

import re
from typing import NamedTuple

from dimos_streams.client.event_stream.chunked import content_size

_BOM = b"\xef\xbb\xbf"
_USUAL = re.compile(rb"event: (.+)\nid: ([^\0\n]*)\ndata: (.*)\n\n")
"""A whole event as bridges write it, which is taken apart in one step instead of line by line. It is looked for where
no line ends by CR: to look for the end of a line alone takes a third of the time."""
_ALONE = re.compile(rb"([0-9A-Fa-f]{1,12})\r\nevent: ([^\r\n]+)\nid: ([^\0\r\n]*)\ndata: ([^\r\n]*)\n\n\r\n")
"""A chunk of HTTP/1.1 with such an event and nothing else: what comes over a connection when an event comes alone."""
_DIGITS = frozenset(b"0123456789")
MAX_RETRY_MS = 10**9


class SseEvent(NamedTuple):
    """One dispatched event."""

    type: str
    """The ``event`` field, ``"message"`` if there was none."""
    data: str
    id: str
    """The last event id as of this event: its own ``id`` field or an earlier event's."""


class SseParser:
    """Turns the bytes of one connection into events, however they are cut into pieces.

    An event comes out with the bytes of its blank line, not with the next piece. An event or a line longer than
    ``max_event_bytes`` is skipped and counted; memory is bounded by twice that.
    """

    def __init__(self, *, max_event_bytes: int = 1 << 20, last_event_id: str = "") -> None:
        self.last_event_id = last_event_id
        """The id as of the newest complete event, from which a new connection resumes."""
        self.retry_ms: int | None = None
        """The time that the server asks clients to wait before they connect again, ms."""
        self.oversized = 0
        """Number of events that were skipped for their size."""
        self._max = max_event_bytes
        self._head: bytes | None = b""
        """Bytes that may be the beginning of a byte order mark; None once that is settled."""
        self._after_cr = False
        self._line = bytearray()
        self._line_too_long = False
        self._id = last_event_id
        self._type = ""
        self._data: list[str] = []
        self._size = 0
        self._too_large = False

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events that ``data`` completes, in order."""
        if self._head is not None:
            data = self._without_bom(self._head + data)
        if self._after_cr and data:
            self._after_cr = False
            if data.startswith(b"\n"):
                data = data[1:]
        events: list[SseEvent] = []
        if not self._is_within and b"\r" not in data:
            data = data[self._usual(data, events) :]
        if data:
            self._lines(data, events)
        return events

    def alone(self, chunk: bytes) -> SseEvent | None:
        """The event of a chunk, with its size and line ends, that has one event of the usual form and nothing else;
        None if it is anything else, of which ``feed`` must have the content.

        To take chunk and event apart in one step costs half of what it costs one after the other.
        """
        found = _ALONE.fullmatch(chunk)
        if found is None or len(chunk) > self._max or self._is_within or self._after_cr or self._head is not None:
            return None
        size, type, id, data = found.groups()
        if int(size, 16) != content_size(chunk):
            return None
        self.last_event_id = self._id = id.decode(errors="replace")
        return SseEvent(type.decode(errors="replace"), data.decode(errors="replace"), self._id)

    @property
    def _is_within(self) -> bool:
        """True if the beginning of an event has come, and not its end."""
        return bool(self._size or self._line or self._line_too_long or self._too_large)

    def _usual(self, data: bytes, events: list[SseEvent]) -> int:
        """Add the events at the beginning that are whole and of the usual form; return where the rest begins."""
        at = 0
        while (found := _USUAL.match(data, at)) and found.end() - at <= self._max:
            type, id, text = found.groups()
            self.last_event_id = self._id = id.decode(errors="replace")
            events.append(SseEvent(type.decode(errors="replace"), text.decode(errors="replace"), self._id))
            at = found.end()
        return at

    def _lines(self, data: bytes, events: list[SseEvent]) -> None:
        """Add the events that ``data`` completes, line by line."""
        self._after_cr = data.endswith(b"\r")
        lines = data.splitlines()  # for bytes these are CR, LF and CRLF, nothing else
        rest = b"" if data.endswith((b"\r", b"\n")) else lines.pop()
        if lines:
            lines[:1] = self._joined(lines[0])
        for line in lines:
            if not line:
                self._dispatch(events)
            elif len(line) > self._max:
                self._skip(line)
            elif not line.startswith(b":"):
                self._field(line)
        self._keep(rest)

    def _without_bom(self, data: bytes) -> bytes:
        if len(data) < len(_BOM) and _BOM.startswith(data):
            self._head = data
            return b""
        self._head = None
        return data.removeprefix(_BOM)

    def _keep(self, piece: bytes) -> None:
        """Remember the beginning of a line."""
        if self._line_too_long or not piece:
            return
        if len(self._line) + len(piece) > self._max:
            self._line_too_long = True
            self._skip(self._line or piece)
            self._line.clear()
        else:
            self._line += piece

    def _joined(self, piece: bytes) -> list[bytes]:
        """The line of which ``piece`` is the end; none if it is skipped."""
        if self._line or self._line_too_long:
            self._keep(piece)
            piece = bytes(self._line)
            self._line.clear()
        is_skipped, self._line_too_long = self._line_too_long, False
        return [] if is_skipped else [piece]

    def _skip(self, line: bytes | bytearray) -> None:
        """Note that a line is too long, and so is its event. A comment may be as long as it likes."""
        self._too_large = self._too_large or not line.startswith(b":")

    def _field(self, line: bytes) -> None:
        self._size += len(line)
        if self._size > self._max:
            self._too_large = True
            self._data.clear()
        name, _, raw = line.partition(b":")
        value = raw.removeprefix(b" ")
        if name == b"data":
            if not self._too_large:
                self._data.append(value.decode(errors="replace"))
        elif name == b"id":
            if b"\0" not in value:
                self._id = value.decode(errors="replace")
        elif name == b"event":
            self._type = value.decode(errors="replace")
        elif name == b"retry" and value and _DIGITS.issuperset(value):
            self.retry_ms = int(value) if len(value) < 10 else MAX_RETRY_MS

    def _dispatch(self, events: list[SseEvent]) -> None:
        """Add the event that a blank line ends, if there is one."""
        self.last_event_id = self._id
        if self._too_large:
            self.oversized += 1
        elif self._data:
            events.append(SseEvent(self._type or "message", "\n".join(self._data), self._id))
        self._type = ""
        self._data.clear()
        self._size = 0
        self._too_large = False
