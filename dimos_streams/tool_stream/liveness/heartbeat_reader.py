"""The reading of heartbeats, of which most say what their instance has said before, only later."""

from __future__ import annotations

import operator

from dimos_streams.common.names import NAME_RULE, is_name
from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.errors import MessageError
from dimos_streams.messages.base import fields_of
from dimos_streams.messages.codec import decode
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.tool_stream.liveness.heartbeat import BEGIN, TIME, TIME_AT, Head, head_of
from dimos_streams.tool_stream.protocol.call_ids import CALL_ID_RULE, is_call_id

_KEPT, _KEPT_BYTES = 256, 1024
"""Maximum number of heartbeats that are kept to compare others with, and the maximum size of each, in bytes."""
_FIELDS = tuple(field.name for field in fields_of(ModuleStatus))
_values = operator.attrgetter(*_FIELDS)
_SHOWN = 60
"""Maximum length of what may be no name in an error, in characters."""


class HeartbeatReader:
    """A reader of heartbeats that decodes one anew only if it differs in more than its time from those before."""

    def __init__(self) -> None:
        self._kept = NewestEntries[bytes, tuple[Head, ModuleStatus]](_KEPT)
        """The newest valid heartbeats, by their bytes without the time."""
        self._data = self._said = b""
        """The heartbeat that was looked at last, as it is and without its time."""

    def head(self, data: bytes, channel: str) -> Head:
        """See ``head_of``."""
        kept = self._kept.get(self._without_time(data))
        return head_of(data, channel) if kept is None else kept[0]

    def status(self, head: Head, data: bytes, channel: str) -> ModuleStatus:
        """Return the heartbeat that has a head. Raises ``MessageError`` for one that can't be decoded, or in which a
        module or call has no possible name."""
        said = self._without_time(data)
        if (kept := self._kept.get(said)) is not None:
            return _later(kept[1], *TIME.unpack_from(data, TIME_AT))
        status = decode(ModuleStatus, data, channel=channel)
        _check_names(status, channel)
        if len(data) <= _KEPT_BYTES:
            self._kept[said] = head, status
        return status

    def _without_time(self, data: bytes) -> bytes:
        if data is not self._data:
            self._data, self._said = data, data[:TIME_AT] + data[BEGIN:]
        return self._said


def _later(status: ModuleStatus, utime: int) -> ModuleStatus:
    again: ModuleStatus = ModuleStatus.__new__(ModuleStatus)
    for name, value in zip(_FIELDS, _values(status), strict=True):
        setattr(again, name, value)
    again.utime = utime
    return again


def _check_names(status: ModuleStatus, channel: str) -> None:
    """Raise ``MessageError`` for a heartbeat of a module, or with a call, that no module or call is called."""
    fault = "" if is_name(status.module) else f"its module is {status.module[:_SHOWN]!r}; {NAME_RULE}"
    if not (fault or all(map(is_call_id, status.call_ids))):
        fault = f"the id of a call in it is none; {CALL_ID_RULE}"
    if fault:
        raise MessageError(channel, ModuleStatus.msg_name, fault)
