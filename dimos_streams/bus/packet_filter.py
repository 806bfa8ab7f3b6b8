"""Classic BPF programs on a socket of this process, by which the kernel drops datagrams before they arrive (Linux).

The instructions are those of the kernel's networking/filter.rst. A filter on a UDP socket sees the datagram from its
UDP header on; a load past the datagram's end drops it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
import sys
from collections.abc import Iterable, Iterator

Instruction = tuple[int, int, int, int]
"""An operation, the numbers of instructions to jump if true and if false, and an operand."""

LD_W_ABS, LD_H_ABS, LD_B_ABS, LD_W, LD_H, LD_B = 0x20, 0x28, 0x30, 0x40, 0x48, 0x50  # without ABS: from X on
LD_VALUE, LD_STORED, STORE, LD_LENGTH, SUBTRACT = 0x00, 0x60, 0x02, 0x80, 0x14
TO_X_VALUE, TO_X, MULTIPLY = 0x01, 0x07, 0x24
JUMP, JEQ, JGT, JGT_X, JGE_X = 0x05, 0x15, 0x25, 0x2D, 0x3D
RET = 0x06
RANDOM = 0xFFFFF000 + 56
"""The address from which an absolute word load gives a random number."""
ACCEPT, DROP = 0xFFFFFFFF, 0
MAX_INSTRUCTIONS, INSTRUCTION_BYTES = 4096, 8

_SO_ATTACH_FILTER, _SO_DETACH_FILTER = 26, 27


def packed(program: Iterable[Instruction]) -> bytes:
    """Return a program as the kernel reads it."""
    return b"".join(struct.pack("@HBBI", *instruction) for instruction in program)


def attach(receiver: socket.socket, program: bytes) -> bool:
    """Put a packed program in place of an older one; return False if the socket has no room for it beside that.

    Raises ``OSError`` where the system has no such filters.
    """
    if not sys.platform.startswith("linux"):
        raise OSError("packet filters need Linux")
    buffer = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // INSTRUCTION_BYTES, ctypes.addressof(buffer))
    try:
        receiver.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, header)
    except OSError as error:
        if error.errno != errno.ENOMEM:
            raise
        return False
    return True


def detach(receiver: socket.socket) -> None:
    """Let everything pass again. Raises ``OSError`` if there is no filter."""
    receiver.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)


def duplicate(fd: int) -> socket.socket:
    """Return the socket of a file descriptor, with a descriptor of its own, to be closed. Raises ``OSError`` if it is
    none."""
    own = os.dup(fd)
    try:
        return socket.socket(fileno=own)
    except OSError:
        os.close(own)
        raise


def udp_sockets(before: set[int]) -> Iterator[tuple[int, socket.socket]]:
    """Yield the IPv4 UDP sockets of this process that were not open ``before``, each while it is looked at."""
    for fd in open_fds() - before:
        try:
            found = duplicate(fd)
        except OSError:  # no socket, or closed since it was listed
            continue
        with found:
            if (found.family, found.type) == (socket.AF_INET, socket.SOCK_DGRAM):
                yield fd, found


def open_fds() -> set[int]:
    """Return the process's open file descriptors; empty if /proc is not mounted."""
    try:
        listed = {int(name) for name in os.listdir("/proc/self/fd")}
    except OSError:
        return set()
    # The listing's own descriptor is among them, closed by now, and its number is the next to be given away.
    return {fd for fd in listed if os.path.exists(f"/proc/self/fd/{fd}")}
