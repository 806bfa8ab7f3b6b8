"""A robot's measurements on its way: poses, speed, battery, obstacles, people, and who held it still."""

from __future__ import annotations

import cmath
import math
from collections import defaultdict
from collections.abc import Callable, Collection

from dimos_streams.common.names import namespace_of_topic
from dimos_streams.common.polygon import Point
from dimos_streams.errors import MessageError
from dimos_streams.messages.base import Message
from dimos_streams.messages.codec import decode, split_channel, type_named
from dimos_streams.messages.detections import place_of
from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.messages.geometry_msgs import PoseStamped
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.planar import planar_pose
from dimos_streams.messages.scan import why_blind
from dimos_streams.messages.sensor_msgs import BatteryState, LaserScan
from dimos_streams.messages.vision_msgs import Detection2DArray
from dimos_streams.recording.format import LogEvent
from dimos_streams.recording.report.markup import cut
from dimos_streams.recording.report.model import MAX_ROBOTS, ODOM, MapScene
from dimos_streams.recording.report.occupancy import CELL_M, Occupancy
from dimos_streams.recording.report.series import LARGEST, PlottedSeries
from dimos_streams.recording.report.way import Stand, Way

_MAX_CELLS = 30_000
_MAX_PEOPLE = 400
_MAX_LABELS = 12
_MAX_NAME = 200
_MAX_HOLDS = 500
_FARTHEST_SEEN_M = 100.0
"""A place that is farther away is a detector's mistake, which would make a point of everything else on the map."""
_STALE_US = 2_000_000
"""A pose that is older says nothing of where a scan was made."""
_EVERY_US = {
    "nav_msgs.Odometry": 90_000,
    "geometry_msgs.PoseStamped": 90_000,
    "sensor_msgs.BatteryState": 900_000,
    "sensor_msgs.LaserScan": 900_000,
    "vision_msgs.Detection2DArray": 450_000,
}
"""The shortest time between messages of a channel that are read: a drawing shows no more."""


class Senses:
    """Takes the events of a log, in order. Channels that it does not know are left alone."""

    def __init__(self, scene: MapScene, namespaces: Collection[str]) -> None:
        """``namespaces`` are those that a topic's robot is told by."""
        self.scene = scene
        self.ways: dict[str, Way] = {}
        self.series: dict[str, PlottedSeries] = {}
        self.holds: list[tuple[int, int, str]] = []
        self.unreadable: dict[str, int] = {}
        self._namespaces = namespaces
        self._read_at: dict[str, int] = {}
        self._holding: dict[str, tuple[int, int, str]] = {}
        self._people: dict[str, set[tuple[int, int]]] = defaultdict(set)
        self._readers: dict[str, Callable[[str, int, Message], None]] = {
            ODOM: self._read_pose,
            "battery": self._read_battery,
            "scan": self._read_scan,
            "detections": self._read_detections,
            "hold": self._read_hold,
        }

    def take(self, event: LogEvent) -> None:
        """Take the next one."""
        topic, type_name = split_channel(event.channel)
        reader = self._readers.get(topic.rpartition("/")[2])
        if reader is None or not self._is_due(event, type_name):
            return
        try:
            message = decode(type_named(type_name, event.channel), event.data, event.channel)
        except MessageError:
            self.unreadable[event.channel] = self.unreadable.get(event.channel, 0) + 1
            return
        reader(namespace_of_topic(topic, self._namespaces), event.utime, message)

    def finish(self) -> None:
        """Close the holds that last: a hold that is open at the end lasts until then."""
        for held in self._holding.values():
            self._keep_hold(held)
        self._holding.clear()

    def _is_due(self, event: LogEvent, type_name: str) -> bool:
        every = _EVERY_US.get(type_name, 0)
        if every and 0 <= event.utime - self._read_at.get(event.channel, -every) < every:
            return False
        self._read_at[event.channel] = event.utime
        return True

    def _read_pose(self, robot: str, utime: int, message: Message) -> None:
        if isinstance(message, Odometry):
            pose = planar_pose(message.pose.pose)
            speed = math.hypot(message.twist.twist.linear.x, message.twist.twist.linear.y)
            if speed <= LARGEST:
                self._series(robot, "speed, m/s").add(utime, speed)
        elif isinstance(message, PoseStamped):
            pose = planar_pose(message.pose)
        else:
            return
        if pose is not None and (robot in self.ways or len(self.ways) < MAX_ROBOTS):
            self.ways.setdefault(robot, Way()).add(Stand(utime, *pose))

    def _read_battery(self, robot: str, utime: int, message: Message) -> None:
        if isinstance(message, BatteryState) and 0 <= message.percentage <= 1:
            self._series(robot, "battery, %").add(utime, 100 * message.percentage)

    def _read_scan(self, robot: str, utime: int, message: Message) -> None:
        stand = self._stand(robot, utime)
        if not isinstance(message, LaserScan) or stand is None or why_blind(message):
            return
        if abs(stand.x) <= LARGEST and abs(stand.y) <= LARGEST:
            floors = self.scene.floors
            room = _MAX_CELLS - sum(map(len, floors.values()))
            floors.setdefault(robot, Occupancy()).add(stand.x, stand.y, stand.yaw, message, room=room)

    def _read_detections(self, robot: str, utime: int, message: Message) -> None:
        stand = self._stand(robot, utime)
        if not isinstance(message, Detection2DArray) or stand is None:
            return
        for detection in message.detections:
            place = place_of(detection)
            if place is not None and abs(place) < _FARTHEST_SEEN_M:
                self._see(cut(detection.results[0].hypothesis.class_id, _MAX_NAME), _placed(stand, place))

    def _see(self, label: str, at: Point) -> None:
        """Keep where somebody was, once for each step of a few cells."""
        cell = round(at[0] / (2 * CELL_M)), round(at[1] / (2 * CELL_M))
        seen = self._people[label] if label in self._people or len(self._people) < _MAX_LABELS else None
        if seen is not None and cell not in seen and len(seen) < _MAX_PEOPLE:
            seen.add(cell)
            self.scene.people.setdefault(label, []).append(at)

    def _read_hold(self, robot: str, utime: int, message: Message) -> None:
        if not isinstance(message, Hold):
            return
        key = f"{robot}/{message.source}"
        held = self._holding.get(key)
        if message.hold:
            began = utime if held is None else held[0]
            reason = cut(message.reason, _MAX_NAME) or (held[2].partition(": ")[2] if held else "")
            text = f"{message.source}: {reason}" if reason else message.source
            if held is not None or len(self._holding) < MAX_ROBOTS:
                self._holding[key] = began, utime, text
        elif held is not None:
            self._keep_hold((held[0], utime, held[2]))
            del self._holding[key]

    def _keep_hold(self, held: tuple[int, int, str]) -> None:
        if len(self.holds) < _MAX_HOLDS:
            self.holds.append(held)

    def _series(self, robot: str, what: str) -> PlottedSeries:
        return self.series.setdefault(f"{robot}: {what}" if robot else what, PlottedSeries())

    def _stand(self, robot: str, utime: int) -> Stand | None:
        way = self.ways.get(robot)
        newest = None if way is None else way.newest
        return newest if newest is not None and utime - newest.utime <= _STALE_US else None


def _placed(stand: Stand, point: complex) -> Point:
    """A point of base_link in the odom frame."""
    turned = point * cmath.rect(1.0, stand.yaw)
    return stand.x + turned.real, stand.y + turned.imag
