"""The chunked transfer coding of HTTP/1.1, as far as a stream of events needs it."""

from __future__ import annotations

import re

_SIZE = re.compile(rb"([0-9A-Fa-f]{1,12})[ \t]*(?:;.*)?")
_LONGEST_LINE = 4096


class ChunkedError(OSError):
    """Raised if the other side does not keep to the coding: the connection is of no use any more."""


class ChunkedDecoder:
    """Takes a body out of its chunks, however these are cut into pieces. Holds no more than a line of it."""

    def __init__(self) -> None:
        self.ended = False
        """True once the last chunk has come; what follows is ignored."""
        self.error: ChunkedError | None = None
        """The error behind the chunks that were found; nothing more comes after it."""
        self._line = b""
        self._left = 0
        """Bytes of the present chunk that are still to come."""
        self._within = False
        """True while the present chunk's line end is still to come."""

    @property
    def is_between(self) -> bool:
        """True if the next byte is the first one of a chunk."""
        return not (self._left or self._within or self._line or self.ended or self.error)

    def feed(self, piece: bytes) -> list[bytes]:
        """The bytes that ``piece`` adds to the body, chunk by chunk, as far as it can be read: see ``error``."""
        found: list[bytes] = []
        piece, self._line = self._line + piece, b""
        at = 0
        while at < len(piece) and not self.ended and self.error is None:
            if self._left:
                found.append(piece[at : at + self._left])
                at += len(found[-1])
                self._left -= len(found[-1])
                continue
            end = piece.find(b"\r\n", at)
            if end < 0:
                self._keep(piece[at:])
                break
            self._end_line(piece[at:end])
            at = end + 2
        return found

    def _keep(self, line: bytes) -> None:
        if len(line) > _LONGEST_LINE or (self._within and line != b"\r"):
            self.error = ChunkedError(f"a chunk that does not end where it should: {line[:50]!r}")
        self._line = line[:_LONGEST_LINE]

    def _end_line(self, line: bytes) -> None:
        if self._within:
            self._within = False
            if line:
                self.error = ChunkedError(f"a chunk that does not end where it should: {line[:50]!r}")
            return
        size = _SIZE.fullmatch(line)
        if size is None:
            self.error = ChunkedError(f"{line[:50]!r} is no size of a chunk")
            return
        self._left = int(size[1], 16)
        self._within = self._left > 0
        self.ended = self._left == 0


def content_size(chunk: bytes) -> int:
    """Number of bytes of the content of a whole chunk, which is given with its size and its line ends."""
    line_end = b"\r\n"
    return len(chunk) - chunk.index(line_end) - 2 * len(line_end)
