"""The beginning of a heartbeat, read without the rest: its sender, and the cost of reading all of it."""

from __future__ import annotations

import struct
from typing import NamedTuple

from dimos_streams.errors import MessageError
from dimos_streams.messages.codec import other_type
from dimos_streams.messages.dimos_streams import ModuleStatus

HEARTBEAT_S = 0.25
"""Seconds from one heartbeat of a module to the next."""
ENDED = "ended"
"""The health in the last heartbeat of a module that stops."""
STOPPING = "stopping"
"""The health of a module from the moment on at which it begins to stop, with the reason unless that is ``STOPS``."""
STOPS = "the module is stopping"
"""The reason that callers hear where nobody gave another."""
_PROCESS_ENDED = "gone: its process "
ORDERLY = "ended with exit code 0"
"""The end of the process of modules that have said themselves that they end."""
MAX_CALLS = 1280
"""Maximum number of calls that one heartbeat may name: those that a module runs, and those that have ended lately."""
CALLS_BYTES = 16_000
"""Maximum size of the calls in one heartbeat, in bytes, so that it is one datagram; more go into further ones."""
MAX_HEALTH = 200
"""Maximum length of a module's health, in characters."""
MAX_SKILLS_JSON = 64_000
"""Maximum size of the skills' schemas in one heartbeat, in bytes."""
_MAX_NAME = 256
_NO_SKILLS = 5
"""Bytes of an empty string on the wire."""

_FINGERPRINT = ModuleStatus._get_packed_fingerprint()
_INT, _LONG, _LENGTH = 4, 8, struct.Struct(">I")
TIME = struct.Struct(">q")
TIME_AT = len(_FINGERPRINT)
"""The index of the time."""
BEGIN = TIME_AT + TIME.size
"""The index of the module's name."""


def stopping(reason: str) -> str:
    """Return the health of a module that stops for a reason."""
    return STOPPING if reason == STOPS else f"{STOPPING}: {reason}"


def module_said(health: str) -> str:
    """Return a module's own text of its health; one that would say that it stops is in quotation marks, for whoever
    hears that believes it."""
    return f'"{health}"' if announces_end(health) else health


def stop_reason(health: str) -> str | None:
    """Return the reason for which a module stops, or None if it does not."""
    word, _, reason = health.partition(": ")
    return (reason or STOPS) if word == STOPPING else None


def announces_end(health: str) -> bool:
    """Return whether a module stops, or has stopped, by its own heartbeat."""
    return health == ENDED or stop_reason(health) is not None


def process_ended(how: str) -> str:
    """Return the health that a supervisor reports of a module whose process has ended by itself or was killed."""
    return f"{_PROCESS_ENDED}{how}"


def end_of_process(health: str) -> str | None:
    """Return how a module's process has ended, or None if a report says something else."""
    return health.removeprefix(_PROCESS_ENDED) if health.startswith(_PROCESS_ENDED) else None


class Head(NamedTuple):
    """The sender of a heartbeat, and the size of what it says."""

    module: str
    instance: str
    calls: int
    skills_bytes: int

    @property
    def cost(self) -> float:
        """The cost of reading all of it, in units of some 3 µs."""
        return 10 + self.calls + self.skills_bytes / 64 + 300 * (self.skills_bytes > _NO_SKILLS)


def head_of(data: bytes, channel: str) -> Head:
    """Return the head of a heartbeat. Raises ``MessageError`` for bytes that are not a heartbeat, or too large."""
    if not data.startswith(_FINGERPRINT):
        raise other_type(ModuleStatus, data, channel)
    try:
        module, at = _string(data, BEGIN)
        instance, at = _string(data, at)
        _, at = _string(data, at + _INT)
        at = _behind(data, at + _LONG)
        skills_at = _behind(data, at)
        at = _behind(data, skills_at)
        calls = _LENGTH.unpack_from(data, at)[0]
    except (struct.error, UnicodeDecodeError, ValueError) as error:
        raise MessageError(channel, ModuleStatus.msg_name, f"its beginning is damaged: {error}") from error
    size = at - skills_at
    if calls > MAX_CALLS or size > MAX_SKILLS_JSON:
        why = f"it names {calls} calls and has {size} bytes of skills; {MAX_CALLS} and {MAX_SKILLS_JSON} are possible"
        raise MessageError(channel, ModuleStatus.msg_name, why)
    return Head(module, instance, calls, size)


def beginning(module: str, instance: str) -> bytes:
    """Return the part of an instance's heartbeats from ``BEGIN`` on that says whose they are."""
    return b"".join(_LENGTH.pack(len(text) + 1) + text + b"\0" for text in (module.encode(), instance.encode()))


def _string(data: bytes, at: int) -> tuple[str, int]:
    end = _behind(data, at)
    if end - at > _MAX_NAME:
        raise ValueError(f"a name of {end - at} bytes")
    return data[at + _LENGTH.size : end - 1].decode(), end


def _behind(data: bytes, at: int) -> int:
    """Return the index behind the string that begins at an index."""
    end = at + _LENGTH.size + int(_LENGTH.unpack_from(data, at)[0])
    if end > len(data):
        raise ValueError("it ends too early")
    return end
