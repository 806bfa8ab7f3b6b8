"""Reads LCM logs, whole or damaged, in memory that does not grow with the file.

Where an event's header is damaged, or garbage lies between events, the reader goes on at the next event and notes
what it left out. An event whose length leads to no other event is searched for one inside: then it was the length
that was damaged, and no intact event is swallowed. A whole event that is larger than the largest message of a bus,
as another program may have logged, is left out unread.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from dimos_streams.bus.sizes import MAX_MESSAGE
from dimos_streams.common.process.disk import why_endless
from dimos_streams.errors import UserError
from dimos_streams.recording.format import (
    HEADER,
    LONGEST_CHANNEL,
    POSSIBLE_HEADER,
    SYNC,
    SYNC_BYTES,
    LogEvent,
    number_after,
    successor,
)

if TYPE_CHECKING:
    from dimos_streams.recording.files.numbered_syncs import NumberedSyncs

_CHUNK = 1 << 20
_FIRST_LOOK = 4096
"""The bytes that are looked through first: what is searched for is near, or else each look is twice as far."""
_PEEK = 12
"""The bytes of the following event that are looked at: its sync word and its number."""
_PROGRESS_EVERY = 1024
_MAX_DAMAGES = 1000
_MAX_NAMES = 10_000
UNFINISHED = "the log ends inside an event"


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes of a log that were left out."""

    offset: int
    length: int
    why: str

    def __str__(self) -> str:
        return f"{self.length} bytes at {self.offset}: {self.why}"


class LogReader:
    """One log file. Use with ``with``; each ``events()`` begins at the beginning."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.size = 0
        self.position = 0
        """The position behind the newest event that ``events`` gave, for progress bars."""
        self.end = 0
        """The position behind the newest whole event, which may be one that can't be given."""
        self.end_number = -1
        """The number of that event."""
        self.damages: list[Damage] = []
        """The damages that the newest ``events`` left out so far, bounded."""
        self.damaged_bytes = 0
        self._fd = -1

    def open(self) -> LogReader:
        """Open the file. Raises ``UserError`` if it can't be read."""
        try:
            self._fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would wait for its other end
            status = os.fstat(self._fd)
            self.size = status.st_size
            if why := why_endless(status):
                raise OSError(errno.ESPIPE, why)
            os.pread(self._fd, 1, 0)
        except OSError as error:
            self.close()
            raise UserError(f"log {str(self.path)!r}: {error.strerror}") from error
        return self

    def close(self) -> None:
        """Close the file. Twice is fine."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> LogReader:
        return self.open()

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def events(self, start: int = 0) -> Iterator[LogEvent]:
        """Yield all events in the order of the file, beginning with the one whose header is at ``start``. Never
        raises for what the file contains.

        It is one loop without calls for a whole event, for speed. It looks at the file through a window of it::

            in the file    base  …  at                        at + length
            in the window  0     …  i        begin            stop           stop + _PEEK
                                    | header | channel | data | the next one's |

        What follows a whole event is the beginning of the next one; if it is not, a length may be damaged.
        """
        self.damages, self.damaged_bytes, self.end, self.end_number = [], 0, 0, -1
        unpack, header_size, size = HEADER.unpack_from, HEADER.size, self.size
        make, names = tuple.__new__, _ChannelNames()  # in half of the time that the class itself takes
        window, base, at = b"", 0, start
        while at < size:
            i = at - base
            if i + header_size > len(window):
                window, base, i = self._read(at, _CHUNK), at, 0
                if len(window) < header_size:
                    break
            sync, number, utime, channel_length, data_length = unpack(window, i)
            possible = sync == SYNC and 0 < channel_length <= LONGEST_CHANNEL and data_length >= 0
            length = header_size + channel_length + data_length
            if not possible or at + length > size:
                at = self._skip_header(at, possible=possible)
                continue
            if data_length > MAX_MESSAGE:
                at = self._skip_large(at, length, number)
                continue
            if i + length + _PEEK > len(window):
                window, base, i = self._read(at, max(_CHUNK, 2 * (length + _PEEK))), at, 0
                if len(window) < length:  # the file has become shorter since it was opened
                    break
            begin, stop = i + header_size, i + length
            if window[stop : stop + _PEEK] != successor(number):
                inside = self._swallowed(at, length, number, window[stop : stop + 4])
                if inside is not None:
                    at = self._skip(at, inside, "an event with a damaged length")
                    continue
            self.end, self.end_number = at + length, number
            channel = names[window[begin : begin + channel_length]]
            if channel is None:
                at = self._skip(at, at + length, "an event whose channel name is not text")
                continue
            event = make(LogEvent, (number, utime, channel, window[begin + channel_length : stop], at))
            self.position = at = at + length
            yield event
        if at < size:
            self._skip(at, size, UNFINISHED)
        self.position = size

    def _skip_header(self, at: int, *, possible: bool) -> int:
        """Leave out bytes that begin with no header, or with a ``possible`` one whose length is impossible."""
        following = self._find_event(at + 1, self.size)
        if not possible:
            return self._skip(at, following, "no event begins here")
        return self._skip(at, following, UNFINISHED if following == self.size else "an event of impossible length")

    def _skip_large(self, at: int, length: int, number: int) -> int:
        """Leave out an event larger than any message: all of it if its successor or the file's end is where it should
        be, and otherwise what lies before the next event."""
        end = at + length
        if self._read(end, _PEEK) == successor(number):
            following = end
        elif end == self.size:
            following = self._swallowed(at, length, number, b"") or end
        else:
            following = self._find_event(at + 1, self.size)
        if following == end:
            self.end, self.end_number = end, number
        return self._skip(at, following, "an event larger than any message")

    @cached_property
    def _syncs(self) -> NumberedSyncs:
        from dimos_streams.recording.files.numbered_syncs import NumberedSyncs  # which needs numpy, for damage only

        return NumberedSyncs(self._read)

    def _swallowed(self, at: int, length: int, number: int, following: bytes) -> int | None:
        """Return the position at which an event begins inside the one at ``at``, whose successor is not where it
        should be, or None if the event is whole and only what follows it is odd."""
        begin, end = at + 1, at + length  # what looks like a header may be garbage that an event follows
        found = self._syncs.find(number_after(number), begin, end)
        if found is not None and self._plausible(found):
            return found
        if end == self.size or following == SYNC_BYTES:
            return None
        inside = self._find_event(begin, end)
        return inside if inside < end else None

    def _find_event(self, start: int, stop: int) -> int:
        """Return the position at which the first event from ``start`` on seems to begin, or ``stop``."""
        return next((found for found in self._possible_headers(start, stop) if self._plausible(found)), stop)

    def _plausible(self, at: int) -> bool:
        """Return whether an event may begin here: its lengths are possible and its channel is a name."""
        head = self._read(at, HEADER.size + LONGEST_CHANNEL)
        if len(head) < HEADER.size:
            return False
        _, _, _, channel_length, data_length = HEADER.unpack_from(head)
        if not (0 < channel_length <= LONGEST_CHANNEL and 0 <= data_length <= MAX_MESSAGE):
            return False
        end = at + HEADER.size + channel_length + data_length
        return end <= self.size and _decoded(head[HEADER.size : HEADER.size + channel_length]) is not None

    def _possible_headers(self, start: int, stop: int) -> Iterator[int]:
        """Yield the positions of headers with possible lengths from ``start`` on and before ``stop``; bytes are read
        once for all."""
        overlap, at, length = HEADER.size - 1, start, _FIRST_LOOK
        while at < stop:
            chunk = self._read(at, min(length, stop - at) + overlap)
            yield from (at + found.start() for found in POSSIBLE_HEADER.finditer(chunk))
            at, length = at + length, min(2 * length, _CHUNK)

    def _skip(self, at: int, to: int, why: str) -> int:
        """Note what lies between; adjacent damages become one."""
        self.damaged_bytes += to - at
        last = self.damages[-1] if self.damages else None
        if last is not None and last.offset + last.length == at:
            self.damages[-1] = Damage(last.offset, last.length + to - at, last.why)
        elif len(self.damages) < _MAX_DAMAGES:
            self.damages.append(Damage(at, to - at, why))
        self.position = to
        return to

    def _read(self, offset: int, length: int) -> bytes:
        """Return ``length`` bytes from an offset on; fewer only at the file's end."""
        data = os.pread(self._fd, length, offset)
        while 0 < len(data) < min(length, self.size - offset):
            more = os.pread(self._fd, length - len(data), offset + len(data))
            if not more:  # the file has become shorter since it was opened
                break
            data += more
        return data


OnProgress = Callable[[LogReader], None]
"""What is called now and then with the log that is read; its ``position`` says how far that is."""


def events_of_logs(logs: Iterable[LogReader], on_progress: OnProgress | None = None) -> Iterator[LogEvent]:
    """Yield the events of logs, which are open, one log after the other."""
    for log in logs:
        for number, event in enumerate(log.events()):
            yield event
            if on_progress is not None and number % _PROGRESS_EVERY == 0:
                on_progress(log)
        if on_progress is not None:
            on_progress(log)


class _ChannelNames(dict[bytes, str | None]):
    """The channels by their bytes, as far as they were met, and None for bytes that are no text."""

    def __missing__(self, raw: bytes) -> str | None:
        if len(self) >= _MAX_NAMES:
            self.clear()
        self[raw] = name = _decoded(raw)
        return name


def _decoded(name: bytes) -> str | None:
    try:
        text = name.decode()
    except UnicodeDecodeError:
        return None
    return text if "\0" not in text else None
