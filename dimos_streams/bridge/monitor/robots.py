"""The poses and batteries of robots, read off the bus while somebody watches."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable
from dataclasses import dataclass

from dimos_streams import clock
from dimos_streams.bus import Bus, Subscription
from dimos_streams.bus.sizes import ONE_PIECE
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.names import namespace_of
from dimos_streams.errors import MessageError, UserError
from dimos_streams.messages.base import Message
from dimos_streams.messages.codec import channel_name, decode
from dimos_streams.messages.geometry_msgs import Pose, PoseStamped
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.planar import planar_pose
from dimos_streams.messages.sensor_msgs import BatteryState
from dimos_streams.messages.std_msgs import Header
from dimos_streams.operator.messages.run import RobotView

FRESH_S = 2.0
"""Age, in seconds, beyond which a pose counts as unknown."""
BATTERY_FRESH_S = 60.0
MAX_ROBOTS = 100

_log = LimitedLog(logging.getLogger(__name__))


@dataclass(slots=True)
class _HeardMessage:
    """The bytes of a message, and when they came, in seconds on ``clock.monotonic``."""

    data: bytes
    at: float


class _NewestMessage:
    """The newest message of a channel, decoded only when somebody asks."""

    def __init__(self, bus: Bus, channel: str) -> None:
        self.channel = channel
        self.heard: _HeardMessage | None = None
        self._subscription: Subscription = bus.subscribe(channel, self._keep, capacity=1, largest=ONE_PIECE)

    def data(self, fresh_s: float) -> bytes | None:
        """The bytes of the message; None if there is none, or if it is older than ``fresh_s``."""
        heard = self.heard
        return heard.data if heard is not None and clock.monotonic() - heard.at <= fresh_s else None

    def close(self) -> None:
        self._subscription.close()

    def _keep(self, channel: str, data: bytes) -> None:
        self.heard = _HeardMessage(data, clock.monotonic())


@dataclass(frozen=True, slots=True)
class _Followed:
    """The messages of one robot that are listened to."""

    odometry: _NewestMessage | None
    pose: _NewestMessage | None
    battery: _NewestMessage | None

    @classmethod
    def of(cls, bus: Bus, prefix: str) -> _Followed:
        """Listen to a robot whose topics begin with ``prefix``; what can't be a topic is None. Raises ``BusError``;
        then nothing is listened to."""
        topics = (("odom", Odometry), ("odom", PoseStamped), ("battery", BatteryState))
        with contextlib.ExitStack() as begun:
            newest = []
            for topic, type in topics:
                newest.append(_listen(bus, f"{prefix}/{topic}", type))
                if (heard := newest[-1]) is not None:
                    begun.callback(heard.close)
            begun.pop_all()
            return cls(*newest)

    def close(self) -> None:
        for newest in (self.odometry, self.pose, self.battery):
            if newest is not None:
                newest.close()


def _listen(bus: Bus, topic: str, type: type[Message]) -> _NewestMessage | None:
    """Listen to a topic; return None if there can be none of that name, as of a robot whose namespace is too long for
    a channel. Raises ``BusError``."""
    try:
        channel = channel_name(topic, type)
    except UserError:
        return None
    return _NewestMessage(bus, channel)


class Robots:
    """Listens to ``/odom`` and ``/battery`` of each namespace."""

    def __init__(self, bus: Bus) -> None:
        self.malformed = 0
        self._bus = bus
        self._followed: dict[str, _Followed] = {}

    def follow(self, modules: Iterable[str]) -> None:
        """Listen to the robots of the namespaces of these modules, and to no others; to 100 of them at most."""
        namespaces = dict.fromkeys(map(namespace_of, modules))
        for gone in [known for known in self._followed if known not in namespaces]:
            self._followed.pop(gone).close()
        for namespace in namespaces:
            if namespace not in self._followed and len(self._followed) < MAX_ROBOTS:
                self._followed[namespace] = _Followed.of(self._bus, f"/{namespace}" if namespace else "")

    def views(self) -> dict[str, RobotView]:
        """The views of robots by namespace, only of those about which something is known."""
        found = {}
        for namespace, robot in self._followed.items():
            known = {**self._pose(robot), **self._battery(robot.battery)}
            if known:
                found[namespace] = RobotView.model_validate(known)
        return found

    def stop(self) -> None:
        """Listen no more. Twice is fine."""
        for robot in self._followed.values():
            robot.close()
        self._followed.clear()

    def _pose(self, robot: _Followed) -> dict[str, float | str]:
        found = self._stamped_pose(robot)
        return {} if found is None else pose_fields(found.header, found.pose)

    def _stamped_pose(self, robot: _Followed) -> PoseStamped | None:
        """The pose in a robot's odometry, whichever type it has; None if there is none that is fresh."""
        for newest in (robot.odometry, robot.pose):
            if newest is None or (data := newest.data(FRESH_S)) is None:
                continue
            try:
                if newest is robot.odometry:
                    odometry = decode(Odometry, data, channel=newest.channel)
                    return PoseStamped(header=odometry.header, pose=odometry.pose.pose)
                return decode(PoseStamped, data, channel=newest.channel)
            except MessageError as error:
                self._skip(newest, error)
        return None

    def _battery(self, newest: _NewestMessage | None) -> dict[str, float | str]:
        if newest is None or (data := newest.data(BATTERY_FRESH_S)) is None:
            return {}
        try:
            percentage = decode(BatteryState, data, channel=newest.channel).percentage
        except MessageError as error:
            self._skip(newest, error)
            return {}
        return battery_fields(percentage)

    def _skip(self, newest: _NewestMessage, error: MessageError) -> None:
        self.malformed += 1
        newest.heard = None
        _log.warning("skipped: %s", error)


def pose_fields(header: Header, pose: Pose) -> dict[str, float | str]:
    """The fields of a ``RobotView`` for a robot at a pose; empty if it is no pose in the plane."""
    found = planar_pose(pose)
    if found is None:
        return {}
    # To the millimetre: what a robot at rest measures is noise below it.
    x, y, yaw = (round(value, 3) for value in found)
    return {"frame_id": header.frame_id, "x": x, "y": y, "yaw": yaw}


def battery_fields(percentage: float) -> dict[str, float | str]:
    """The fields of a ``RobotView`` for a battery's charge, 0 to 1; empty for any other value."""
    return {"battery": round(percentage, 3)} if 0 <= percentage <= 1 else {}
