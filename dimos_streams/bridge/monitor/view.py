"""The state that watchers are shown, as bytes that are encoded once for all of them."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from pydantic_core import to_json

from dimos_streams.operator.agents import is_called
from dimos_streams.operator.messages.run import MonitorSnapshot

_FIELDS = tuple(MonitorSnapshot.model_fields)


class StateView:
    """A snapshot at one moment. Frozen, and compared by identity: an equal one is not made twice."""

    def __init__(self, utime: int, snapshot: MonitorSnapshot) -> None:
        self.utime = utime
        self.snapshot = snapshot
        self._whole: bytes | None = None
        self._changes: WeakKeyDictionary[StateView, bytes] = WeakKeyDictionary()
        """The changes since earlier views that somebody was shown last: each view would keep all those before it."""

    def whole(self) -> bytes:
        """A ``snapshot`` message."""
        if self._whole is None:
            self._whole = message("snapshot", utime=self.utime, snapshot=self.snapshot)
        return self._whole

    def since(self, before: StateView) -> bytes:
        """A ``change`` message: the fields that are different from those of an earlier view."""
        if before not in self._changes:
            different = {
                name: getattr(self.snapshot, name)
                for name in _FIELDS
                if getattr(self.snapshot, name) != getattr(before.snapshot, name)
            }
            self._changes[before] = message("change", utime=self.utime, change=different)
        return self._changes[before]


def message(type: str, **fields: Any) -> bytes:
    """A message without its ``seq``."""
    return to_json({"type": type, **fields}, inf_nan_mode="null")


def numbered(seq: int, message: bytes) -> str:
    """A message as it is sent."""
    return f'{{"seq":{seq},{message[1:].decode()}'


def part_of(snapshot: MonitorSnapshot, agent: str | None) -> MonitorSnapshot:
    """The part of the state that belongs to one agent; modules, skills and robots are everybody's."""
    if agent is None:
        return snapshot
    calls = tuple(call for call in snapshot.calls if is_called(call.caller, agent))
    own = {call.call_id for call in calls}
    return snapshot.model_copy(
        update={
            "agents": {name: view for name, view in snapshot.agents.items() if is_called(name, agent)},
            "calls": calls,
            "not_ending": tuple(call for call in snapshot.not_ending if call.call_id in own),
            "leases": {resource: holder for resource, holder in snapshot.leases.items() if holder in own},
        }
    )
