"""The bridge's answers that `status` reads, as far as it needs them; whatever else is in them is passed on as it
came."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, computed_field

from dimos_streams.client.orders import OrderReport
from dimos_streams.common.readable.plural import plural
from dimos_streams.operator.messages.settings import SettingChange
from dimos_streams.operator.messages.stop import GoingOn, StoppedRobots


class _AnswerModel(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)


class BroadcastCounts(_AnswerModel):
    """Counts of events on the way to the readers."""

    readers: int
    lag: int
    coalesced: int
    cut: int


class ReceiverCounts(_AnswerModel):
    """Counts of events on the way in."""

    delivered: int
    gaps: int
    malformed: int


class Counts(_AnswerModel):
    """The counts in a bridge's answer to ``GET /healthz``."""

    open_calls: int
    leases: dict[str, str]
    broadcast: BroadcastCounts
    receiver: ReceiverCounts


class HubLinkState(_AnswerModel):
    """The state of the link to a hub."""

    url: str
    robot: str
    behind: int
    """Number of events that the hub does not have; all of the journal's while it has not said what it has."""
    acknowledged: int | None
    acknowledged_age_s: float | None
    commands: bool
    """True if its commands come."""
    trouble: str

    @computed_field  # type: ignore[prop-decorator]
    @property
    def text(self) -> str:
        """The state in one line for people."""
        most = "at most " if self.acknowledged is None else ""
        behind = f"{most}{plural(self.behind, 'event')} behind" if self.behind else "up to date"
        age = self.acknowledged_age_s
        heard = "nothing acknowledged yet" if age is None else f"last acknowledged {age:.0f} s ago"
        deaf = "" if self.commands or self.trouble else "; waits for its commands"
        trouble = f"; {self.trouble}" if self.trouble else ""
        return f"{self.url} as {self.robot}: {behind}, {heard}{deaf}{trouble}"


class Health(_AnswerModel):
    """The answer to ``GET /healthz``."""

    status: str
    lost: tuple[str, ...]
    offset: int
    counts: Counts
    stopped: StoppedRobots = Field(default_factory=StoppedRobots)
    not_ending: tuple[GoingOn, ...] = ()
    hub: HubLinkState | None = None
    database: str | None = None
    """The state of a hub's database; a bridge has none."""

    @property
    def is_hub(self) -> bool:
        """True if a fleet's hub has answered, and no bridge."""
        return self.database is not None


class ModuleAnswer(_AnswerModel):
    """A module in the answer to ``GET /modules``."""

    name: str
    pid: int
    health: str
    alive: bool
    introduced: bool
    state: dict[str, Any]


class RunRobots(_AnswerModel):
    """The answer of a bridge to ``GET /robots``."""

    stopped: StoppedRobots

    @property
    def utimes(self) -> list[int]:
        """The stops, by what a release names them."""
        return [stop.utime for stop in self.stopped.stops]


class ConnectedRobot(_AnswerModel):
    """A robot in the answer of a hub to ``GET /robots``."""

    name: str
    connected: bool


class SettingsAnswer(_AnswerModel):
    """The answer to ``POST /settings``."""

    text: str
    changes: tuple[SettingChange, ...]


HEALTH = TypeAdapter(Health)
REPORT = TypeAdapter(OrderReport)
SETTINGS = TypeAdapter(SettingsAnswer)
MODULES = TypeAdapter(list[ModuleAnswer])
ROBOTS: TypeAdapter[RunRobots | list[ConnectedRobot]] = TypeAdapter(RunRobots | list[ConnectedRobot])
RUN_ROBOTS = TypeAdapter(RunRobots)
