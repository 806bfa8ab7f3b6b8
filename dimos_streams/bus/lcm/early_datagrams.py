"""Datagrams that come to a receiving socket before it has its packet filter, which only one that is open can have.

They are no messages to anybody, since nothing is subscribed to yet, and the filter might have dropped them: on a LAN
any machine can send them. But the system keeps them, and who subscribes next would get them.
"""

from __future__ import annotations

import fcntl
import logging
import struct
import termios
import time
from collections.abc import Sequence

from dimos_streams.bus.lcm.thread_placement import is_runnable

_LOOK_S, _MOST_LOOKS = 0.0005, 2000
"""Time between two looks, in seconds, and how many there are at most: on a busy machine a thread may wait long."""

_logger = logging.getLogger(__name__)


def wait_until_taken(sockets: Sequence[int], thread: int) -> None:
    """Wait until a thread has taken all that is in the sockets that it reads, and is done with it. Their filter lets
    nothing further in meanwhile."""
    for _ in range(_MOST_LOOKS):
        # In this order: a thread that has taken the last datagram is runnable until it is done with it.
        if not any(_has_more(fd) for fd in sockets) and not is_runnable(thread):
            return
        time.sleep(_LOOK_S)
    _logger.warning("what came to the bus before its packet filter was there may be taken for messages")


def _has_more(fd: int) -> bool:
    return bool(struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, bytes(4)))[0])
