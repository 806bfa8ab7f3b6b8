"""The content of a recording's report. Times are µs since the Unix epoch, places metres in the odom frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from dimos_streams.common.names import namespace_of
from dimos_streams.common.polygon import Point
from dimos_streams.messages.codec import split_channel
from dimos_streams.operator.agents import public_name
from dimos_streams.operator.known_names import SAY
from dimos_streams.recording.metadata import Metadata
from dimos_streams.recording.report.occupancy import Cell, Occupancy, standing
from dimos_streams.recording.report.series import PlottedSeries
from dimos_streams.recording.report.way import Way
from dimos_streams.recording.summary import LogSummary

MAX_ROBOTS = 100
"""The largest number of robots that a report knows."""
ODOM = "odom"
"""The last part of a topic that says where a robot is."""


@dataclass(frozen=True, slots=True)
class KeyMoment:
    """An event of a call that people read."""

    utime: int
    type: str
    """``open``, ``update``, ``close`` or ``gap``."""
    text: str
    event: str = ""
    """The skill's own name for it: ``lost``, ``found``; empty if it has none."""


@dataclass(slots=True)
class ReportedCall:
    """One call, as its events tell it."""

    call_id: str
    skill: str
    module: str
    caller: str
    opened: int
    parent: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    resources: tuple[str, ...] = ()
    closed: int | None = None
    """The time of its close, or None if it was open at the end of the recording."""
    outcome: str = ""
    text: str = ""
    """The newest event's text."""
    result: Any = None
    moments: list[KeyMoment] = field(default_factory=list)
    """The first ones; bounded."""
    updates: int = 0
    progress: int = 0
    gaps: int = 0
    """The number of its events that are not in the recording."""

    @property
    def is_talk(self) -> bool:
        """True if the call is an operator's talk with an agent."""
        return self.skill == public_name(self.module, SAY)

    @property
    def label(self) -> str:
        """The title of the call: for a mission the text that was said, for any other call its skill."""
        said = self.arguments.get("text") if self.is_talk else None
        return f"“{said}”" if isinstance(said, str) and said else self.skill


@dataclass(frozen=True, slots=True)
class ConversationLine:
    """One line of a conversation."""

    utime: int
    role: str
    """``operator``, ``assistant``, ``tool``, ``event``, ``note``, ``error``; ``call`` where no agent is involved."""
    who: str
    text: str
    details: str = ""
    """Details that are folded away: arguments, JSON."""
    is_error: bool = False
    mission: str = ""
    """The operator's call in which it was said; empty for lines that belong to no mission."""


@dataclass(frozen=True, slots=True)
class DrawnZone:
    """A part of the floor that a robot may enter only by an approved plan."""

    robot: str
    name: str
    polygon: tuple[Point, ...]


@dataclass(slots=True)
class MapScene:
    """The things that stand still."""

    zones: list[DrawnZone] = field(default_factory=list)
    waypoints: list[tuple[str, Point]] = field(default_factory=list)
    """Way-points with their names."""
    goals: list[tuple[str, Point]] = field(default_factory=list)
    """The points that calls were to go to, with their skills."""
    people: dict[str, list[Point]] = field(default_factory=dict)
    """The places where people were seen, by label."""
    floors: dict[str, Occupancy] = field(default_factory=dict)
    """The cells that the scans of each robot have shown, by namespace."""

    @property
    def obstacles(self) -> list[Cell]:
        """See ``standing``."""
        return standing(self.floors)


@dataclass(frozen=True, slots=True)
class DetectionBox:
    """Something that a detector saw in a picture: pixels of its corner and sizes."""

    label: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class KeyFrame:
    """A picture with the reasons why it is shown."""

    utime: int
    """The time at which it was recorded."""
    topic: str
    jpeg: bytes
    width: int
    height: int
    boxes: tuple[DetectionBox, ...]
    captions: tuple[tuple[int, str], ...]
    """The moments that it belongs to: time, and what happened."""


@dataclass(slots=True)
class Recorded:
    """The whole content of the report."""

    summary: LogSummary
    first: int
    last: int
    calls: list[ReportedCall] = field(default_factory=list)
    """The calls in the order in which they were opened; bounded."""
    left_out: int = 0
    """The number of calls beyond the bound."""
    lines: list[ConversationLine] = field(default_factory=list)
    lines_left_out: int = 0
    ways: dict[str, Way] = field(default_factory=dict)
    """The robots' ways, by namespace."""
    scene: MapScene = field(default_factory=MapScene)
    series: dict[str, PlottedSeries] = field(default_factory=dict)
    """The series by title, with unit: ``"speed, m/s"``."""
    holds: list[tuple[int, int, str]] = field(default_factory=list)
    """The times in which somebody wanted the robot still: beginning, end, source and reason."""
    frames: list[KeyFrame] = field(default_factory=list)
    has_pictures: bool = False
    frames_left_out: int = 0
    """The number of pictures that are too large."""
    repeated: int = 0
    unreadable: dict[str, int] = field(default_factory=dict)
    """The number of messages that are no messages of their types, by channel."""
    damages: list[str] = field(default_factory=list)
    damaged_bytes: int = 0

    @property
    def missions(self) -> dict[str, ReportedCall]:
        """The calls by which operators talked with agents, by their ids."""
        return {call.call_id: call for call in self.calls if call.is_talk}

    @property
    def namespaces(self) -> frozenset[str]:
        """The namespaces of the modules, and of topics that say where a robot is: other programs name no modules."""
        topics = (split_channel(channel)[0] for channel in self.summary.channels)
        poses = [topic.removeprefix("/") for topic in topics if topic.endswith(f"/{ODOM}")]
        modules = self.metadata.modules if self.metadata is not None else ()
        return frozenset(islice(dict.fromkeys(map(namespace_of, (*modules, *poses))), MAX_ROBOTS))

    @property
    def metadata(self) -> Metadata | None:
        """The recording's metadata, or None for logs of other programs."""
        return self.summary.metadata
