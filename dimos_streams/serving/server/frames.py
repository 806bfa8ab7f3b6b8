"""Bounds on what a client says on a WebSocket: frames in a while, whatever their kind, and frames of one message.

A frame may be empty, and ``websockets`` takes apart all that a read brings: 40,000 of them, whether the client
watches or not.
"""

from __future__ import annotations

import logging

from websockets.exceptions import ProtocolError
from websockets.frames import DATA_OPCODES, CloseCode, Frame
from websockets.http11 import Response
from websockets.server import ServerProtocol
from websockets.typing import StatusLike

from dimos_streams.common.allowance import Allowance
from dimos_streams.common.secrets import redacted
from dimos_streams.serving.server.metered_h11 import MAX_PIECES

PER_S, AT_ONCE = 4000.0, 8000.0
"""Maximum number of frames that a client may send in a second, and at once: twice what a page says that watches all
there is."""


class MeteredFrames(ServerProtocol):
    """The server's side of a WebSocket, which fails a connection on which there are too many frames."""

    def __init__(self, *, max_size: int, logger: logging.Logger) -> None:
        super().__init__(max_size=max_size, logger=logger)
        self._allowance = Allowance(PER_S, AT_ONCE)
        self._pieces = 0
        """Number of frames so far of the message that has begun."""
        self.taken = 0
        """Number of frames that were taken apart."""

    def reject(self, status: StatusLike, text: str) -> Response:
        """Refuse to open a WebSocket, without secrets: the text may quote a header that has a token in it."""
        return super().reject(status, redacted(text))

    def recv_frame(self, frame: Frame) -> None:
        """Take in a frame."""
        self.taken += 1
        if not self._allowance.take():
            self._end(CloseCode.POLICY_VIOLATION, f"more than {PER_S:g} frames in a second")
        elif self._too_many_pieces(frame):
            self._end(CloseCode.MESSAGE_TOO_BIG, f"a message in more than {MAX_PIECES} frames")
        else:
            super().recv_frame(frame)

    def _too_many_pieces(self, frame: Frame) -> bool:
        if frame.opcode in DATA_OPCODES:
            self._pieces = 0 if frame.fin else self._pieces + 1
        return self._pieces > MAX_PIECES

    def _end(self, code: CloseCode, reason: str) -> None:
        # As after a client's goodbye, what else has come is forgotten.
        self.fail(code, reason)
        self.parser_exc = ProtocolError(reason)
