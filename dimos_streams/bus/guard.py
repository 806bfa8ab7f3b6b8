"""Keeps datagrams away that would crash the LCM library (Linux).

A datagram ("LC02", or the first "LC03" fragment) whose channel name has no terminating NUL makes LCM 1.5 read past
its end and kills the process. A fragment may claim to be all of a message of 256 MB, which LCM then delivers, or be
of a message that is larger than any that is taken. A classic BPF program on the receiving socket drops such datagrams
in the kernel.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import sys

from dimos_streams.bus.base import MAX_MESSAGE

_SO_ATTACH_FILTER = 26
_UDP_HEADER = 8  # a filter on a UDP socket sees the datagram from its UDP header on
_SHORT, _SHORT_HEADER = 0x4C433032, 8  # "LC02", sequence number, channel
_FRAGMENT, _FRAGMENT_HEADER = 0x4C433033, 20  # "LC03", …; fragment 0 has the channel
_MESSAGE_SIZE, _FRAGMENT_OFFSET, _FRAGMENT_NUMBER, _FRAGMENT_COUNT = 8, 12, 16, 18
_MAX_FRAGMENT = 0xFFFF
_CHANNEL_MAX = 64
_LD_W_ABS, _LD_H_ABS, _LD_B_ABS, _JEQ, _RET = 0x20, 0x28, 0x30, 0x15, 0x06
_MULTIPLY, _TO_X, _JGT_X, _JGE_X, _JGT = 0x24, 0x07, 0x2D, 0x3D, 0x25
_ACCEPT, _DROP = 0xFFFFFFFF, 0

_Instruction = tuple[int, int, int, int]


def sockets_of(before: set[int], port: int) -> list[int]:
    """File descriptors of UDP sockets bound to ``port`` that were not open ``before``."""
    found = []
    for fd in open_fds() - before:
        try:
            if not os.readlink(f"/proc/self/fd/{fd}").startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(fd)) as duplicate:
                kind = duplicate.family, duplicate.type
                if kind == (socket.AF_INET, socket.SOCK_DGRAM) and duplicate.getsockname()[1] == port:
                    found.append(fd)
        except OSError:  # closed since it was listed: not the one looked for
            continue
    return found


def open_fds() -> set[int]:
    """The process's open file descriptors; empty where /proc is not mounted."""
    try:
        listed = {int(name) for name in os.listdir("/proc/self/fd")}
    except OSError:
        return set()
    # The listing's own descriptor is among them, closed by now, and its number is the next to be given away.
    return {fd for fd in listed if os.path.exists(f"/proc/self/fd/{fd}")}


def attach(fd: int) -> None:
    """Attach the filter to one socket. Raises ``OSError`` where the system has no such filters."""
    if not sys.platform.startswith("linux"):
        raise OSError("packet filters need Linux")
    program = _program()
    buffer = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer))
    with socket.socket(fileno=os.dup(fd)) as duplicate:
        duplicate.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, header)


def _program() -> bytes:
    """Drop what claims to be LCM's but has no channel that ends; accept all else, LCM ignores it.

    A load past the datagram's end drops it, which is right here: no NUL came before the end.
    """
    fragment = [
        # No message is larger than all its fragments together, and none begins behind the message's end.
        (_LD_H_ABS, 0, 0, _UDP_HEADER + _FRAGMENT_COUNT),
        (_MULTIPLY, 0, 0, _MAX_FRAGMENT),
        (_TO_X, 0, 0, 0),
        (_LD_W_ABS, 0, 0, _UDP_HEADER + _MESSAGE_SIZE),
        (_JGT, 4, 0, MAX_MESSAGE),
        (_JGT_X, 3, 0, 0),
        (_TO_X, 0, 0, 0),
        (_LD_W_ABS, 0, 0, _UDP_HEADER + _FRAGMENT_OFFSET),
        (_JGE_X, 0, 1, 0),
        (_RET, 0, 0, _DROP),
        (_LD_H_ABS, 0, 0, _UDP_HEADER + _FRAGMENT_NUMBER),
        (_JEQ, 1, 0, 0),
        (_RET, 0, 0, _ACCEPT),
        *_accept_nul_within(_UDP_HEADER + _FRAGMENT_HEADER),
    ]
    short = _accept_nul_within(_UDP_HEADER + _SHORT_HEADER)
    code: list[_Instruction] = [
        (_LD_W_ABS, 0, 0, _UDP_HEADER),
        (_JEQ, 0, len(short), _SHORT),
        *short,
        (_JEQ, 1, 0, _FRAGMENT),
        (_RET, 0, 0, _ACCEPT),
        *fragment,
    ]
    return b"".join(struct.pack("@HBBI", *instruction) for instruction in code)


def _accept_nul_within(start: int) -> list[_Instruction]:
    code: list[_Instruction] = []
    for offset in range(_CHANNEL_MAX):
        code += [(_LD_B_ABS, 0, 0, start + offset), (_JEQ, 0, 1, 0), (_RET, 0, 0, _ACCEPT)]
    return [*code, (_RET, 0, 0, _DROP)]
