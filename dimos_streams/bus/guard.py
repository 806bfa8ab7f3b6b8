"""Keeps datagrams away that would crash the LCM library, and those that nobody here listens to (Linux).

A datagram ("LC02", or the first "LC03" fragment) whose channel name has no terminating NUL makes LCM 1.5 read past
its end and kills the process. A fragment may claim to be all of a message of 256 MB, which LCM then delivers, or be
of a message that is larger than any that is taken. A classic BPF program on the receiving socket drops such datagrams
in the kernel.

Every socket of a port gets every datagram of a multicast group. A process that would be woken by each message of each
robot costs more with every robot that runs; so the program drops what is on a channel without a subscription, too.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
import sys
from collections.abc import Mapping, Sequence

from dimos_streams.bus.base import MAX_MESSAGE

_SO_ATTACH_FILTER, _SO_DETACH_FILTER = 26, 27
_UDP_HEADER = 8  # a filter on a UDP socket sees the datagram from its UDP header on
_SHORT, _SHORT_HEADER = 0x4C433032, 8  # "LC02", sequence number, channel
_FRAGMENT, _FRAGMENT_HEADER = 0x4C433033, 20  # "LC03", …; fragment 0 has the channel
_MESSAGE_SIZE, _FRAGMENT_OFFSET, _FRAGMENT_NUMBER, _FRAGMENT_COUNT = 8, 12, 16, 18
_MAX_FRAGMENT = 0xFFFF
_CHANNEL_MAX = 64
_NAMESPACE_MAX = 32  # longer ones are accepted
_MODULE_NAME = 8 + 8 + 4  # behind the channel: fingerprint, time, length of the name
_LD_W_ABS, _LD_H_ABS, _LD_W, _LD_H, _LD_B = 0x20, 0x28, 0x40, 0x48, 0x50  # without ABS: from X on
_TO_X_VALUE, _JUMP, _JEQ, _RET = 0x01, 0x05, 0x15, 0x06
_MULTIPLY, _TO_X, _JGT_X, _JGE_X, _JGT = 0x24, 0x07, 0x2D, 0x3D, 0x25
_ACCEPT, _DROP = 0xFFFFFFFF, 0
_MAX_INSTRUCTIONS = 4096

Namespaces = Sequence[str]
"""Prefixes of names: ``"robot1/"``."""
Channels = Mapping[str, Namespaces | None]
"""The channels that are listened to; of one with namespaces only what is about modules of these, or of none. Such a
channel's messages have the module's name behind a fingerprint and a time."""

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


def attach(fd: int, channels: Channels | None = None) -> None:
    """Attach the filter to one socket, in the place of an older one; None lets all channels pass, and so does a
    filter for which the system has no room.

    Raises ``OSError`` where the system has no such filters.
    """
    if not sys.platform.startswith("linux"):
        raise OSError("packet filters need Linux")
    with socket.socket(fileno=os.dup(fd)) as receiver:
        if _fits(receiver, _program(channels)) or _fits(receiver, _program(None)):
            return
        # The old one and a new one together are more than a socket may have.
        receiver.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)
        if not _fits(receiver, _program(None)):
            raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))


def _fits(receiver: socket.socket, program: bytes) -> bool:
    buffer = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer))
    try:
        receiver.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, header)
    except OSError as error:
        if error.errno != errno.ENOMEM:
            raise
        return False
    return True


def _program(channels: Channels | None) -> bytes:
    """Drop what claims to be LCM's but has no channel that ends, or one that nobody listens to; accept all else, LCM
    ignores it.

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
        (_TO_X_VALUE, 0, 0, _UDP_HEADER + _FRAGMENT_HEADER),
    ]
    head: list[_Instruction] = [
        (_LD_W_ABS, 0, 0, _UDP_HEADER),
        (_JEQ, 0, 2, _SHORT),
        (_TO_X_VALUE, 0, 0, _UDP_HEADER + _SHORT_HEADER),
        (_JUMP, 0, 0, 2 + len(fragment)),
        (_JEQ, 1, 0, _FRAGMENT),
        (_RET, 0, 0, _ACCEPT),
        *fragment,
    ]
    named = _accept_nul() if channels is None else _accept_channels(channels)
    if len(head) + len(named) > _MAX_INSTRUCTIONS:
        named = _accept_nul()
    return b"".join(struct.pack("@HBBI", *instruction) for instruction in (*head, *named))


def _accept_nul() -> list[_Instruction]:
    """Accept a name at X that ends within its bound."""
    code: list[_Instruction] = []
    for offset in range(_CHANNEL_MAX):
        code += [(_LD_B, 0, 0, offset), (_JEQ, 0, 1, 0), (_RET, 0, 0, _ACCEPT)]
    return [*code, (_RET, 0, 0, _DROP)]


def _accept_channels(channels: Channels) -> list[_Instruction]:
    """Accept the names of some channels at X.

    Short names come first: then no load passes the end of a datagram whose channel is among those behind it.
    """
    code: list[_Instruction] = []
    for channel in sorted(channels, key=lambda name: (len(name.encode()), name)):
        name, namespaces = channel.encode() + b"\0", channels[channel]
        accept = [(_RET, 0, 0, _ACCEPT)] if namespaces is None else _accept_modules(len(name), namespaces)
        code += _if_equal(0, name, accept)
    return [*code, (_RET, 0, 0, _DROP)]


def _accept_modules(at: int, namespaces: Namespaces) -> list[_Instruction]:
    """Accept what is about a module of some namespaces, or of none."""
    begin = at + _MODULE_NAME
    code: list[_Instruction] = []
    for namespace in namespaces:
        code += _if_equal(begin, namespace.encode(), [(_RET, 0, 0, _ACCEPT)])
    for offset in range(begin, begin + _NAMESPACE_MAX):
        ends = [(_JEQ, 0, 1, 0), (_RET, 0, 0, _ACCEPT)]
        code += [(_LD_B, 0, 0, offset), *ends, (_JEQ, 0, 1, ord("/")), (_RET, 0, 0, _DROP)]
    return [*code, (_RET, 0, 0, _ACCEPT)]


def _if_equal(at: int, value: bytes, then: list[_Instruction]) -> list[_Instruction]:
    """Go through ``then`` if the bytes at X and further are these, and else behind it."""
    tests: list[tuple[_Instruction, int]] = []
    while value:
        load, size = next((load, size) for load, size in ((_LD_W, 4), (_LD_H, 2), (_LD_B, 1)) if size <= len(value))
        tests.append(((load, 0, 0, at), int.from_bytes(value[:size], "big")))
        at, value = at + size, value[size:]
    code: list[_Instruction] = []
    for left, (take, expected) in zip(range(len(tests) - 1, -1, -1), tests, strict=True):
        # Conditional jumps reach 255 instructions only.
        code += [take, (_JEQ, 0, 2 * left, expected) if left else (_JEQ, 1, 0, expected)]
    return [*code, (_JUMP, 0, 0, len(then)), *then]
