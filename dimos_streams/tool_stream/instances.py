"""Who beats under one module's name: one instance after another, or several at once where two runs meet."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass

from dimos_streams.messages.dimos_streams import ModuleStatus

SIDE_BY_SIDE_S = 0.6
"""Instances that have both been heard for so long run beside each other; a straggler of a dead one has not."""
SUPERSEDED_S = 0.75
"""An instance that is silent for so long while another one is heard has been followed by it."""
_MAX_INSTANCES = 8
_MAX_NAME = 64


@dataclass(frozen=True, slots=True, order=True)
class Instance:
    """One start of a module, as its heartbeats tell it. The elder is less."""

    started_utime: int
    id: str
    pid: int
    host: str

    @classmethod
    def of(cls, status: ModuleStatus) -> Instance:
        """The instance that sent a heartbeat."""
        return cls(status.started_utime, status.instance[:_MAX_NAME], status.pid, status.host[:_MAX_NAME])

    def __str__(self) -> str:
        since = ""
        if 0 < self.started_utime < 2**52:  # what is beyond is no date
            when = datetime.datetime.fromtimestamp(self.started_utime / 1e6).astimezone()
            since = f" since {when:%Y-%m-%d %H:%M:%S}"
        return f"pid {self.pid} on {self.host or 'an unknown host'}{since}, instance {self.id}"


@dataclass(slots=True)
class _Heard:
    instance: Instance
    first: float
    last: float


class Instances:
    """The instances of one module, by heartbeat; of more than eight the one silent for longest is forgotten."""

    def __init__(self) -> None:
        self._heard: dict[str, _Heard] = {}

    def heard(self, status: ModuleStatus, now: float) -> None:
        """Take a heartbeat."""
        instance = Instance.of(status)
        known = self._heard.pop(instance.id, None) or _Heard(instance, now, now)
        known.last = now
        self._heard[instance.id] = known  # behind the others
        while len(self._heard) > _MAX_INSTANCES:
            del self._heard[next(iter(self._heard))]

    def side_by_side(self, now: float, alive_s: float) -> list[Instance]:
        """Those that have been heard beside another one and live still, eldest first; empty, or at least two."""
        alive = [heard for heard in self._heard.values() if now - heard.last <= alive_s]
        return sorted(
            one.instance for one in alive if any(_beside(one, other) for other in alive if other is not one)
        )

    def superseded(self, id: str, now: float) -> bool:
        """Whether an instance has fallen silent while another one is heard."""
        own = self._heard.get(id)
        newest = max((heard.last for heard in self._heard.values()), default=float("-inf"))
        if own is None:
            return bool(self._heard)
        return newest > own.last and now - own.last > SUPERSEDED_S


def _beside(one: _Heard, other: _Heard) -> bool:
    return min(one.last, other.last) - max(one.first, other.first) >= SIDE_BY_SIDE_S


def listed(instances: Iterable[Instance]) -> str:
    """Several of them, in words."""
    return "; ".join(map(str, instances))
