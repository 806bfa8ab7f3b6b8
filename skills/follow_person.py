"""The module that follows a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from dimos_streams.common.readable.listed import listed
from dimos_streams.live_settings import Live
from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.messages.geometry_msgs import Twist
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.odometry import OdometryFromPoses, pose_fault
from dimos_streams.messages.sensor_msgs import CameraInfo, LaserScan
from dimos_streams.messages.std_msgs import String
from dimos_streams.messages.vision_msgs import Detection2DArray
from dimos_streams.module import Module
from dimos_streams.operator.holding import HoldInput
from dimos_streams.skill import Call, skill
from dimos_streams.skills.follow_report import FollowReport
from dimos_streams.skills.follow_run import Following
from dimos_streams.skills.moving.hull import HullConfig
from dimos_streams.skills.moving.planar import STOP
from dimos_streams.skills.moving.pose_history import PoseHistory
from dimos_streams.skills.moving.speed_limits import check_against_gate
from dimos_streams.skills.moving.steering import SCAN_AGE_S
from dimos_streams.skills.own_calls import OwnCalls
from dimos_streams.skills.seeing.labels import watch_labels
from dimos_streams.skills.seeing.sighting import lens_fault
from dimos_streams.skills.seeing.wanted import Description, wanting
from dimos_streams.streams import In, Out


class FollowPersonConfig(HullConfig):
    """Settings for following and for giving up. Metres, seconds, radians."""

    distance_m: Annotated[float, Live] = Field(1.8, ge=0.5, le=6.0)
    """The distance, in metres, to keep from the person."""
    max_speed: Annotated[float, Live] = Field(1.0, gt=0.0)
    """The greatest speed, in m/s."""
    max_turn: Annotated[float, Live] = Field(1.5, gt=0.0)
    """The greatest turning speed, in rad/s."""
    distance_gain: Annotated[float, Live] = Field(1.2, gt=0.0)
    """The speed, in m/s, for each metre that the person is too far away."""
    bearing_gain: Annotated[float, Live] = Field(2.0, gt=0.0)
    """The turning speed, in rad/s, for each radian that the person is to the side."""
    motion_gain: Annotated[float, Live] = Field(0.9, ge=0.0, le=1.0)
    """The share of the person's own velocity that the robot takes on at once."""
    first_look_s: float = Field(3.0, ge=0.0)
    """The time, in seconds, to look ahead before turning to search."""
    search_s: Annotated[float, Live] = Field(12.0, ge=0.0)
    """The time, in seconds, to turn and search for somebody who matches."""
    search_turn: Annotated[float, Live] = Field(0.7, gt=0.0)
    """The turning speed while searching, in rad/s."""
    look_back_s: Annotated[float, Live] = Field(2.0, ge=0.0)
    """The time, in seconds, to face where the person was last seen, before turning on to search."""
    lost_after_s: Annotated[float, Live] = Field(1.0, gt=0.0)
    """The time, in seconds, without a sighting after which the person counts as lost."""
    frozen_after_s: float = Field(1.0, gt=0.0)
    """The time, in seconds, without a new frame after which the camera counts as frozen."""
    give_up_after_s: Annotated[float, Live] = Field(10.0, gt=0.0)
    """The time, in seconds, for which the person may be lost or the camera frozen; then the call fails."""


class FollowPerson(Module):
    """Drives after a person whom a detector sees. Without odometry the robot's frame is taken to stand still."""

    config: FollowPersonConfig
    shared_outputs = frozenset({"cmd_vel", "wanted_descriptions"})
    detections: In[Detection2DArray]
    odom: In[Odometry] = In(required=False, also=OdometryFromPoses, fault=pose_fault, fresh=True)
    scan: In[LaserScan] = In(required=False, fresh=True)
    camera_info: In[CameraInfo] = In(required=False, fault=lens_fault)
    hold: In[Hold] = In(required=False, external=True)
    cmd_vel: Out[Twist]
    wanted_descriptions: Out[String]

    @classmethod
    def longest_gaps(cls, config: FollowPersonConfig) -> Mapping[str, float]:
        """See ``Module``."""
        return {"detections": config.frozen_after_s, "scan": SCAN_AGE_S}

    async def start(self) -> None:
        """Listen to the odometry and to the holds on the robot."""
        self.poses = PoseHistory(self.clock_ahead(self.detections, self.odom))
        self._calls = OwnCalls()
        self.holds = HoldInput(self.hold, self.name)
        self.odom.on_message(self.poses.add)
        watch_labels(self, self.detections)

    def on_settings(self, changed: frozenset[str]) -> None:
        """See ``Module``: refuses more than the velocity gate lets pass."""
        check_against_gate(self, changed)

    @skill(resources={"base"}, tags={"motion"}, on_duplicate="replace", motion=True)
    async def follow_person(
        self,
        call: Call,
        description: Annotated[Description, Field(min_length=1)],
        timeout_s: Annotated[float, Field(gt=0.0)] = 120.0,
    ) -> FollowReport:
        """Follow the person who matches a description, at a distance, and say when they are lost or found again.

        Answers as soon as the person is found and goes on in the background until the time is over, the person is
        lost for good, or stop_following is called.

        Args:
            description: What the person looks like, e.g. "the man in the red shirt".
            timeout_s: Seconds after which to stop following.
        """
        with self._calls.running(call, f"following {description}"):
            try:
                with wanting(self, self.wanted_descriptions, [description]):
                    return await Following(self, call, description, lambda: self.config).run(timeout_s)
            finally:
                self.cmd_vel.publish(STOP)

    @skill(tags={"safe", "stop"})
    async def stop_following(self, call: Call) -> str:
        """Stop following whoever is being followed, and stand still."""
        ended = await self._calls.end(call, "stop_following was called")
        self.cmd_vel.publish(STOP)
        return f"Stopped {listed(ended)}" if ended else "Nobody was being followed"
