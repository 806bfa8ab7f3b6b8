"""The instances that beat under one module's name: one after another, or several at once where two runs meet."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass

from dimos_streams import clock
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.tool_stream.signature import shown_instance

SIDE_BY_SIDE_S = 0.6
"""The time, in seconds, after which instances that have both been heard run beside each other; a straggler of a dead
one is not heard for so long."""
SUPERSEDED_S = 0.75
"""The silence, in seconds, after which an instance has been followed by another one that is heard."""
UNHEARD_S = 6.0
"""The silence, in seconds, after which an established one has been followed, if heartbeats may have been missed."""
ESTABLISHED_S = 2.0
"""The time, in seconds, for which an instance speaks until it is established: heard again, it speaks again."""
FORGOTTEN_S = 10.0
"""The silence, in seconds, after which an established instance that is heard does not speak again, if another one is
established by then."""
_OVERTAKEN_S = 0.2
"""Maximum time, in seconds, by which a heartbeat of a dead instance may come later than one of its successor."""
_MAX_OTHERS = 7
_MAX_NAME = 64


@dataclass(frozen=True, slots=True, order=True)
class Instance:
    """One start of a module, as its heartbeats describe it. The elder one sorts first."""

    started_utime: int
    id: str
    pid: int
    host: str

    @classmethod
    def of(cls, status: ModuleStatus) -> Instance:
        """Return the instance that sent a heartbeat."""
        return cls(status.started_utime, status.instance[:_MAX_NAME], status.pid, status.host[:_MAX_NAME])

    def __str__(self) -> str:
        since = ""
        if 0 < self.started_utime < 2**52:  # a larger number is not a date
            when = datetime.datetime.fromtimestamp(self.started_utime / 1e6).astimezone()
            since = f" since {when:%Y-%m-%d %H:%M:%S}"
        return f"pid {self.pid} on {self.host or 'an unknown host'}{since}, instance {shown_instance(self.id)}"


@dataclass(slots=True)
class _HeardInstance:
    instance: Instance
    first: float
    last: float
    began_utime: int = 2**63
    """The time of its start by this machine's clock, as far as heartbeats show it: its own may be set otherwise."""
    noted: bool = False
    """True if it was reported as one beside the active one, or is the active one, or was."""

    def take(self, status: ModuleStatus, now: float) -> None:
        """Take its heartbeat."""
        self.last = now
        age_us = max(0, status.utime - status.started_utime)
        # One that was under way for long makes it look younger than one that came at once.
        self.began_utime = min(self.began_utime, clock.utime() - age_us)


class Instances:
    """The instances of one module, learnt from heartbeats. One of them, the *active* one, speaks for the module: the
    first that was heard, until it falls silent and another one is heard. As heartbeats may be lost among forged ones,
    an *established* one that is heard again speaks again. Of more than seven others the one silent for longest is
    forgotten."""

    def __init__(self) -> None:
        self._active: _HeardInstance | None = None
        self._established: _HeardInstance | None = None
        self._spoken_since = 0.0
        self._others: dict[str, _HeardInstance] = {}

    def heard(self, status: ModuleStatus, now: float, missed_at: float = float("-inf")) -> bool:
        """Take a heartbeat and return whether it is the active instance's. Others may have been missed at
        ``missed_at``."""
        if self._active is not None and self.is_active(status.instance):
            self._active.take(status, now)
            self._establish(self._active, now)
            return True
        instance = Instance.of(status)
        known = self._others.pop(instance.id, None) or _HeardInstance(instance, now, now)
        if self._established is not None and self._established.instance.id == instance.id:
            known = self._established
        known.take(status, now)
        if known is self._established or not self._holds(now, missed_at):
            if self._active is not None:
                self._keep(self._active)
            self._active, known.noted, self._spoken_since = known, True, now
            return True
        self._keep(known)
        return False

    def left(self, id: str) -> None:
        """Note that the active instance has said that it ends: the next instance that is heard speaks for the
        module."""
        if self._active is not None and self.is_active(id):
            self._active.last = float("-inf")
            self._established = None

    def _establish(self, active: _HeardInstance, now: float) -> None:
        established = self._established
        if now - self._spoken_since >= ESTABLISHED_S and (
            established is None or now - established.last > FORGOTTEN_S
        ):
            self._established = active

    def _keep(self, other: _HeardInstance) -> None:
        """Put an instance behind the others."""
        self._others[other.instance.id] = other
        while len(self._others) > _MAX_OTHERS:
            del self._others[next(iter(self._others))]

    @property
    def active(self) -> Instance | None:
        """The instance that speaks for the module, or None before the first heartbeat."""
        return None if self._active is None else self._active.instance

    @property
    def established(self) -> Instance | None:
        """The instance that is established, or None if there is none."""
        return None if self._established is None else self._established.instance

    @property
    def spoken_since(self) -> float:
        """The time since which the active instance speaks for the module, without another one in between."""
        return self._spoken_since

    def of_process(self, pid: int) -> Instance | None:
        """Return the instance that was last heard from a process of that number, or None."""
        of_it = [each for each in self._all() if each.instance.pid == pid]
        return max(of_it, key=lambda each: each.last).instance if of_it else None

    def begun_since(self, utime: int, *, besides: str) -> bool:
        """Return whether another instance than ``besides`` was heard that was started after a time of this machine's
        clock."""
        return any(each.began_utime > utime and each.instance.id != besides[:_MAX_NAME] for each in self._all())

    def is_active(self, id: str) -> bool:
        """Return whether an instance is the one that speaks for the module."""
        return self._active is not None and self._active.instance.id == id[:_MAX_NAME]

    def is_known(self, id: str) -> bool:
        """Return whether an instance speaks for the module, or is established: it is heard whatever others send."""
        established = self.established
        return self.is_active(id) or (established is not None and established.id == id[:_MAX_NAME])

    def alive(self, now: float) -> bool:
        """Return whether the active instance has been heard lately: then no other one speaks for the module."""
        return self._active is not None and now - self._active.last <= SUPERSEDED_S

    def _holds(self, now: float, missed_at: float) -> bool:
        """Return whether the active instance keeps its place whoever else is heard: floods drown living ones, too."""
        active = self._active
        if active is None or active is not self._established or missed_at < active.last:
            return self.alive(now)
        return now - active.last <= UNHEARD_S

    def excuse(self, break_s: float) -> None:
        """Count no silence of the last ``break_s`` seconds, nor that anybody was heard in it."""
        self._spoken_since += break_s
        for each in self._all():
            each.first += break_s
            each.last += break_s

    def contradicting(self, now: float) -> list[Instance]:
        """Return those heard while the active one, which was heard just now, was alive; each is returned once."""
        if not self._others:
            return []
        found = [other for other in self._others.values() if not other.noted and now - other.first > _OVERTAKEN_S]
        for other in found:
            other.noted = True
        return [other.instance for other in found]

    def side_by_side(self, now: float, alive_s: float) -> list[Instance]:
        """Return those that have been heard beside another and live still, eldest first; none, or at least two."""
        if not self._others:
            return []
        alive = [heard for heard in self._all() if now - heard.last <= alive_s]
        return sorted(
            one.instance for one in alive if any(_beside(one, other) for other in alive if other is not one)
        )

    def superseded(self, id: str, now: float) -> bool:
        """Return whether an instance has fallen silent while another one is heard."""
        heard = self._all()
        own = next((each for each in heard if each.instance.id == id[:_MAX_NAME]), None)
        if own is None:
            return bool(heard)
        newest = max(each.last for each in heard)
        return newest > own.last and now - own.last > SUPERSEDED_S

    def _all(self) -> list[_HeardInstance]:
        known = [self._active, self._established, *self._others.values()]
        return list({each.instance.id: each for each in known if each is not None}.values())


def _beside(one: _HeardInstance, other: _HeardInstance) -> bool:
    return min(one.last, other.last) - max(one.first, other.first) >= SIDE_BY_SIDE_S


def listed(instances: Iterable[Instance]) -> str:
    """Return several instances in words."""
    return "; ".join(map(str, instances))
