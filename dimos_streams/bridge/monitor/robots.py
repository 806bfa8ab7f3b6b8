"""Where robots are and how full their batteries, read off the bus while somebody watches."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from dimos_streams import clock
from dimos_streams.bus import Bus, Subscription
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.namespaces import namespace_of
from dimos_streams.errors import MessageError
from dimos_streams.messages.codec import channel_name, decode
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.planar import planar_pose
from dimos_streams.messages.sensor_msgs import BatteryState
from dimos_streams.operator.messages.run import RobotView

FRESH_S = 2.0
"""A pose that is older counts as unknown."""
BATTERY_FRESH_S = 60.0
MAX_ROBOTS = 100

_log = LimitedLog(logging.getLogger(__name__))


@dataclass(slots=True)
class _HeardRobot:
    data: bytes
    at: float


class _NewestMessage:
    """The newest message of a channel, decoded only when somebody asks."""

    def __init__(self, bus: Bus, channel: str) -> None:
        self.channel = channel
        self.heard: _HeardRobot | None = None
        self._subscription: Subscription = bus.subscribe(channel, self._keep, capacity=1)

    def data(self, fresh_s: float) -> bytes | None:
        """Its bytes, None if it is older."""
        heard = self.heard
        return heard.data if heard is not None and clock.monotonic() - heard.at <= fresh_s else None

    def close(self) -> None:
        self._subscription.close()

    def _keep(self, channel: str, data: bytes) -> None:
        self.heard = _HeardRobot(data, clock.monotonic())


class Robots:
    """Listens to ``/odom`` and ``/battery`` of each namespace."""

    def __init__(self, bus: Bus) -> None:
        self.malformed = 0
        self._bus = bus
        self._followed: dict[str, tuple[_NewestMessage, _NewestMessage]] = {}

    def follow(self, modules: Iterable[str]) -> None:
        """Listen to the robots of the namespaces of these modules, and to no others; to 100 of them at most."""
        namespaces = dict.fromkeys(map(namespace_of, modules))
        for gone in self._followed.keys() - namespaces.keys():
            for newest in self._followed.pop(gone):
                newest.close()
        for namespace in namespaces:
            if namespace not in self._followed and len(self._followed) < MAX_ROBOTS:
                prefix = f"/{namespace}" if namespace else ""
                self._followed[namespace] = (
                    _NewestMessage(self._bus, channel_name(f"{prefix}/odom", Odometry)),
                    _NewestMessage(self._bus, channel_name(f"{prefix}/battery", BatteryState)),
                )

    def views(self) -> dict[str, RobotView]:
        """By namespace, only those that something is known of."""
        found = {}
        for namespace, (odom, battery) in self._followed.items():
            known = {**self._pose(odom), **self._battery(battery)}
            if known:
                found[namespace] = RobotView.model_validate(known)
        return found

    def stop(self) -> None:
        """Listen no more. Twice is fine."""
        for newest in self._followed.values():
            for one in newest:
                one.close()
        self._followed.clear()

    def _pose(self, newest: _NewestMessage) -> dict[str, float | str]:
        data = newest.data(FRESH_S)
        if data is None:
            return {}
        try:
            odometry = decode(Odometry, data, channel=newest.channel)
        except MessageError as error:
            self._skip(newest, error)
            return {}
        pose = planar_pose(odometry.pose.pose)
        if pose is None:
            return {}
        # To the millimetre: what a robot at rest measures is noise below it.
        x, y, yaw = (round(value, 3) for value in pose)
        return {"frame_id": odometry.header.frame_id, "x": x, "y": y, "yaw": yaw}

    def _battery(self, newest: _NewestMessage) -> dict[str, float | str]:
        data = newest.data(BATTERY_FRESH_S)
        if data is None:
            return {}
        try:
            percentage = decode(BatteryState, data, channel=newest.channel).percentage
        except MessageError as error:
            self._skip(newest, error)
            return {}
        return {"battery": round(percentage, 3)} if 0 <= percentage <= 1 else {}

    def _skip(self, newest: _NewestMessage, error: MessageError) -> None:
        self.malformed += 1
        newest.heard = None
        _log.warning("skipped: %s", error)
