"""A packet filter against datagrams that would crash the LCM library, and those that nobody here listens to (Linux).

A datagram ("LC02", or the first "LC03" fragment) whose channel name has no terminating NUL makes LCM 1.5 read past
its end and kills the process. A fragment may claim to be the whole of a 256 MB message, which LCM then delivers, or
be part of a message that is larger than any that is taken. Where a fragment is lost, LCM keeps the others, 16 MB in
each process. A classic BPF program on the receiving socket drops such datagrams in the kernel, and the first fragment
of what is too large for its channel, without which it is never whole; what is left of it is among the 16 MB.

A bus that stays on this machine (``ttl=0``) hears this machine only. The group is joined on the interface to which
its route leads, of which any other machine of that network can send to it; such datagrams are dropped, too.

Every socket of a port gets every datagram of a multicast group. A process that would be woken by each message of each
robot costs more with every robot that runs; so the program drops what is on a channel without a subscription, too.
"""

from __future__ import annotations

import errno
import functools
import os
from collections.abc import Mapping
from typing import NamedTuple

from dimos_streams.bus import packet_filter as bpf
from dimos_streams.bus.sizes import MAX_MESSAGE
from dimos_streams.bus.subscription import Ration

_PACKET_TYPE, _INTERFACE_TYPE = 0xFFFFF000 + 4, 0xFFFFF000 + 28
"""Addresses from which absolute loads give how a datagram came, and the type of the interface by which it came."""
_LOOPED_BACK, _LOOPBACK = 5, 772
"""How a datagram comes that this machine has sent to a group by a link (PACKET_LOOPBACK of linux/if_packet.h), and
the type of the loopback interface (ARPHRD_LOOPBACK of linux/if_arp.h)."""
_UDP_HEADER = 8  # a filter on a UDP socket sees the datagram from its UDP header on
_SHORT, _SHORT_HEADER = 0x4C433032, 8  # "LC02", sequence number, channel
_FRAGMENT, _FRAGMENT_HEADER = 0x4C433033, 20  # "LC03", …; fragment 0 has the channel
_MESSAGE_SIZE, _FRAGMENT_OFFSET, _FRAGMENT_NUMBER, _FRAGMENT_COUNT = 8, 12, 16, 18
_MAX_FRAGMENT = 0xFFFF
_CHANNEL_MAX = 64
_CHANNELS_KEPT = 1024
_NAMESPACE_MAX = 32  # longer ones are accepted
_MODULE_NAME = 8 + 8 + 4  # behind the channel: fingerprint, time, length of the name

Namespaces = tuple[str, ...]
"""Prefixes of names: ``"robot1/"``."""


class ListenedChannel(NamedTuple):
    """The messages that are listened to on a channel."""

    namespaces: Namespaces | None = None
    """Namespaces of the modules that messages may be about, besides modules in none; None for all modules. The
    messages of such a channel have the module's name behind a fingerprint and a time."""
    largest: int = MAX_MESSAGE
    """Maximum size of a message in fragments, in bytes."""
    ration: Ration | None = None
    """The part of the messages that is let through; None for all of them. Without effect where ``namespaces`` are
    given."""


Channels = Mapping[str, ListenedChannel]
"""The channels that are listened to."""


def sockets_of(before: set[int], port: int) -> list[int]:
    """File descriptors of UDP sockets bound to ``port`` that were not open ``before``."""
    return [fd for fd, receiver in bpf.udp_sockets(before) if receiver.getsockname()[1] == port]


def attach(fd: int, channels: Channels | None = None, *, of_this_machine: bool = False) -> None:
    """Attach the filter to one socket, in place of an older one. None lets all channels pass, and so does a filter
    that is too large for the system. ``of_this_machine`` drops what other machines have sent.

    Raises ``OSError`` where the system has no such filters.
    """
    origin = _OF_THIS_MACHINE if of_this_machine else b""
    with bpf.duplicate(fd) as receiver:
        if bpf.attach(receiver, _program(channels, origin)) or bpf.attach(receiver, _program(None, origin)):
            return
        bpf.detach(receiver)  # the old one and a new one together are more than a socket may have
        if not bpf.attach(receiver, _program(None, origin)):
            raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))


_OF_THIS_MACHINE = bpf.packed(
    (
        (bpf.LD_W_ABS, 0, 0, _PACKET_TYPE),
        (bpf.JEQ, 3, 0, _LOOPED_BACK),
        (bpf.LD_W_ABS, 0, 0, _INTERFACE_TYPE),
        (bpf.JEQ, 1, 0, _LOOPBACK),
        (bpf.RET, 0, 0, bpf.DROP),
    )
)
"""Instructions that drop what other machines have sent, whatever sender it names."""


def _program(channels: Channels | None, origin: bytes) -> bytes:
    """Return a program that begins with the instructions of ``origin``, and drops what claims to be LCM's but has no
    channel that ends, or one that nobody listens to, or is too large for its channel. It accepts all else: LCM
    ignores what is not its own. On the way it stores the size of a message in fragments, or 0 for a message in one
    datagram.

    A load past the datagram's end drops it, which is right here: no NUL came before the end.
    """
    largest = MAX_MESSAGE if channels is None else max((each.largest for each in channels.values()), default=0)
    head = origin + _head(largest)
    named = _accept_nul() if channels is None else _accept_channels(channels)
    if len(head) + len(named) > bpf.MAX_INSTRUCTIONS * bpf.INSTRUCTION_BYTES:
        named = _accept_nul()
    return head + named


@functools.lru_cache(maxsize=_CHANNELS_KEPT)
def _head(largest: int) -> bytes:
    """Return instructions that find the channel's name and leave its beginning in X for those that follow."""
    fragment = [
        # No message is larger than all its fragments together, and none begins behind the message's end.
        (bpf.LD_H_ABS, 0, 0, _UDP_HEADER + _FRAGMENT_COUNT),
        (bpf.MULTIPLY, 0, 0, _MAX_FRAGMENT),
        (bpf.TO_X, 0, 0, 0),
        (bpf.LD_W_ABS, 0, 0, _UDP_HEADER + _MESSAGE_SIZE),
        (bpf.STORE, 0, 0, 0),
        (bpf.JGT, 4, 0, largest),
        (bpf.JGT_X, 3, 0, 0),
        (bpf.TO_X, 0, 0, 0),
        (bpf.LD_W_ABS, 0, 0, _UDP_HEADER + _FRAGMENT_OFFSET),
        (bpf.JGE_X, 0, 1, 0),
        (bpf.RET, 0, 0, bpf.DROP),
        (bpf.LD_H_ABS, 0, 0, _UDP_HEADER + _FRAGMENT_NUMBER),
        (bpf.JEQ, 1, 0, 0),
        (bpf.RET, 0, 0, bpf.ACCEPT),
        (bpf.TO_X_VALUE, 0, 0, _UDP_HEADER + _FRAGMENT_HEADER),
    ]
    head: list[bpf.Instruction] = [
        (bpf.LD_W_ABS, 0, 0, _UDP_HEADER),
        (bpf.JEQ, 0, 4, _SHORT),
        (bpf.LD_VALUE, 0, 0, 0),
        (bpf.STORE, 0, 0, 0),
        (bpf.TO_X_VALUE, 0, 0, _UDP_HEADER + _SHORT_HEADER),
        (bpf.JUMP, 0, 0, 2 + len(fragment)),
        (bpf.JEQ, 1, 0, _FRAGMENT),
        (bpf.RET, 0, 0, bpf.ACCEPT),
        *fragment,
    ]
    return bpf.packed(head)


@functools.cache
def _accept_nul() -> bytes:
    """Return instructions that accept a name at X if it ends within its bound."""
    code: list[bpf.Instruction] = []
    for offset in range(_CHANNEL_MAX):
        code += [(bpf.LD_B, 0, 0, offset), (bpf.JEQ, 0, 1, 0), (bpf.RET, 0, 0, bpf.ACCEPT)]
    return bpf.packed([*code, (bpf.RET, 0, 0, bpf.DROP)])


def _accept_channels(channels: Channels) -> bytes:
    """Return instructions that accept the names of some channels at X.

    Short names come first: then no load passes the end of a datagram whose channel is among those behind it.
    """
    ordered = sorted(channels, key=lambda name: (len(name.encode()), name))
    accepted = (_accept_channel(each, channels[each]) for each in ordered)
    return b"".join(accepted) + bpf.packed([(bpf.RET, 0, 0, bpf.DROP)])


@functools.lru_cache(maxsize=_CHANNELS_KEPT)
def _accept_channel(channel: str, heard: ListenedChannel) -> bytes:
    """Return instructions that accept the name of one channel at X. They are cached, as each subscription makes a new
    program of the same parts."""
    name, (namespaces, largest, ration) = channel.encode() + b"\0", heard
    if namespaces is not None:
        accept = _accept_modules(len(name), namespaces)
    elif ration is not None:
        accept = _accept_share(len(name), ration)
    else:
        accept = [(bpf.RET, 0, 0, bpf.ACCEPT)]
    if largest < MAX_MESSAGE:
        too_large = [(bpf.LD_STORED, 0, 0, 0), (bpf.JGT, 0, 1, largest), (bpf.RET, 0, 0, bpf.DROP)]
        accept = [*too_large, *accept]
    return bpf.packed(_if_equal(0, name, accept))


def _accept_modules(at: int, namespaces: Namespaces) -> list[bpf.Instruction]:
    """Return instructions that accept what is about a module of some namespaces, or of none."""
    begin = at + _MODULE_NAME
    code: list[bpf.Instruction] = []
    for namespace in namespaces:
        code += _if_equal(begin, namespace.encode(), [(bpf.RET, 0, 0, bpf.ACCEPT)])
    for offset in range(begin, begin + _NAMESPACE_MAX):
        ends = [(bpf.JEQ, 0, 1, 0), (bpf.RET, 0, 0, bpf.ACCEPT)]
        code += [(bpf.LD_B, 0, 0, offset), *ends, (bpf.JEQ, 0, 1, ord("/")), (bpf.RET, 0, 0, bpf.DROP)]
    return [*code, (bpf.RET, 0, 0, bpf.ACCEPT)]


def _accept_share(at: int, ration: Ration) -> list[bpf.Instruction]:
    """Return instructions that accept what bears a mark, and a share of all else. Marks that end early come first,
    because a load past the end of a datagram drops it; marks that count from the end come last, because they replace
    X."""
    accept = (bpf.RET, 0, 0, bpf.ACCEPT)
    code: list[bpf.Instruction] = []
    for mark in sorted((mark for mark in ration.marks if mark.at >= 0), key=lambda mark: mark.at + len(mark.value)):
        code += _if_equal(at + mark.at, mark.value, [accept])
    for mark in sorted((mark for mark in ration.marks if mark.at < 0), reverse=True):
        code += [(bpf.LD_LENGTH, 0, 0, 0), (bpf.SUBTRACT, 0, 0, -mark.at), (bpf.TO_X, 0, 0, 0)]
        code += _if_equal(0, mark.value, [accept])
    some = int(ration.share * 0xFFFFFFFF)
    return [*code, (bpf.LD_W_ABS, 0, 0, bpf.RANDOM), (bpf.JGT, 1, 0, some), accept, (bpf.RET, 0, 0, bpf.DROP)]


def _if_equal(at: int, value: bytes, then: list[bpf.Instruction]) -> list[bpf.Instruction]:
    """Return instructions that go through ``then`` if the bytes from ``at`` behind X are ``value``, and skip it
    otherwise."""
    tests: list[tuple[bpf.Instruction, int]] = []
    while value:
        load, size = next(
            (load, size) for load, size in ((bpf.LD_W, 4), (bpf.LD_H, 2), (bpf.LD_B, 1)) if size <= len(value)
        )
        tests.append(((load, 0, 0, at), int.from_bytes(value[:size], "big")))
        at, value = at + size, value[size:]
    code: list[bpf.Instruction] = []
    for left, (take, expected) in zip(range(len(tests) - 1, -1, -1), tests, strict=True):
        # Conditional jumps reach 255 instructions only.
        code += [take, (bpf.JEQ, 0, 2 * left, expected) if left else (bpf.JEQ, 1, 0, expected)]
    return [*code, (bpf.JUMP, 0, 0, len(then)), *then]
