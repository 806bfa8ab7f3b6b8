"""The places of robots and the charge of their batteries, as a recording has them."""

from __future__ import annotations

from collections.abc import Iterable

from dimos_streams.bridge.monitor.robots import BATTERY_FRESH_S, FRESH_S, MAX_ROBOTS, battery_fields, pose_fields
from dimos_streams.common.names import namespace_of
from dimos_streams.errors import MessageError
from dimos_streams.messages.codec import channel_name, decode
from dimos_streams.messages.geometry_msgs import PoseStamped
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.sensor_msgs import BatteryState
from dimos_streams.operator.messages.run import RobotView
from dimos_streams.recording.format import LogEvent

_ENDS = tuple(
    channel_name(topic, cls)
    for topic, cls in (("/odom", Odometry), ("/odom", PoseStamped), ("/battery", BatteryState))
)


class Poses:
    """Keeps the newest message of each robot's topics, and reads it when somebody asks."""

    def __init__(self) -> None:
        self._newest: dict[str, tuple[int, bytes]] = {}
        """The newest message by channel: its time, µs, and its bytes."""

    def copy(self) -> Poses:
        """Return a copy of the poses at this moment."""
        found = Poses()
        found._newest = dict(self._newest)
        return found

    def take(self, event: LogEvent) -> None:
        """Take a message; one of another topic is left alone."""
        known = event.channel in self._newest
        if known or (event.channel.endswith(_ENDS) and len(self._newest) < len(_ENDS) * MAX_ROBOTS):
            self._newest[event.channel] = event.utime, event.data

    def views(self, utime: int, modules: Iterable[str]) -> dict[str, RobotView]:
        """The robots of the namespaces of these modules, as they are at a time of the log."""
        found = {}
        for namespace in list(dict.fromkeys(map(namespace_of, modules)))[:MAX_ROBOTS]:
            prefix = f"/{namespace}" if namespace else ""
            odometry, pose, battery = (prefix + end for end in _ENDS)
            known = self._pose(utime, odometry, pose) | self._battery(utime, battery)
            if known:
                found[namespace] = RobotView.model_validate(known)
        return found

    def _pose(self, utime: int, odometry: str, pose: str) -> dict[str, float | str]:
        try:
            if (data := self._fresh(odometry, utime, FRESH_S)) is not None:
                moved = decode(Odometry, data, odometry)
                return pose_fields(moved.header, moved.pose.pose)
            if (data := self._fresh(pose, utime, FRESH_S)) is not None:
                posed = decode(PoseStamped, data, pose)
                return pose_fields(posed.header, posed.pose)
        except MessageError:
            self._newest.pop(odometry, None)
        return {}

    def _battery(self, utime: int, channel: str) -> dict[str, float | str]:
        data = self._fresh(channel, utime, BATTERY_FRESH_S)
        try:
            return {} if data is None else battery_fields(decode(BatteryState, data, channel).percentage)
        except MessageError:
            del self._newest[channel]
            return {}

    def _fresh(self, channel: str, utime: int, fresh_s: float) -> bytes | None:
        """The newest bytes of a channel, or None if there are none or they are older."""
        at, data = self._newest.get(channel, (0, b""))
        return data if data and utime - at <= fresh_s * 1e6 else None
