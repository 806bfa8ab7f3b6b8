"""The module that patrols: a guard on its round."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.operator.holding import HoldInput
from dimos_streams.operator.messages.scene import WaypointView, scene_state
from dimos_streams.skill import Call, skill
from dimos_streams.skills.drive import Drive, DriveConfig
from dimos_streams.skills.follow_person import FollowPerson, FollowPersonConfig
from dimos_streams.skills.moving.planar import STOP
from dimos_streams.skills.moving.pose_history import PoseHistory
from dimos_streams.skills.moving.scene import way
from dimos_streams.skills.moving.speed_limits import check_against_gate
from dimos_streams.skills.own_calls import OwnCalls
from dimos_streams.skills.patrol_report import PatrolReport
from dimos_streams.skills.patrol_run import Patrolling
from dimos_streams.skills.seeing.labels import watch_labels
from dimos_streams.skills.seeing.sighting import lens_fault
from dimos_streams.skills.seeing.wanted import Description, cleaned_descriptions, wanting
from dimos_streams.streams import In, Out

Waypoint = tuple[float, float]
"""x and y in the odom frame, metres."""


class PatrolConfig(ModuleConfig):
    """Settings for a patrol: its round, whom to look out for, and what to do about them. Metres, seconds, degrees."""

    waypoints: tuple[Waypoint, ...] = Field(min_length=1)
    """The points of a round, in order."""
    look_around_deg: Annotated[float, Live] = Field(360.0, ge=0.0, le=1080.0)
    """The angle, in degrees, to turn at each way-point."""
    return_home: bool = True
    """Whether the round ends where it began."""
    leg_timeout_s: Annotated[float, Live] = Field(60.0, gt=0.0)
    """Maximum time, in seconds, to a way-point, not counting holds; then the robot goes on to the next one."""
    watch_for: tuple[Description, ...] = Field(("person",), min_length=1)
    """The descriptions of whom to watch for, if a call has none."""
    confidence: Annotated[float, Live] = Field(0.5, ge=0.0, le=1.0)
    """The least score of a detection that counts."""
    confirm_frames: Annotated[int, Live] = Field(3, ge=1, le=10)
    """The number of frames in a row that must show somebody."""
    frozen_after_s: float = Field(3.0, gt=0.0)
    """The time, in seconds, without a new frame after which that is reported."""
    follow_s: Annotated[float, Live] = Field(20.0, ge=0.0)
    """The time, in seconds, to follow somebody, if a call says nothing else."""
    again_after_s: Annotated[float, Live] = Field(60.0, ge=0.0)
    """The time, in seconds, for which somebody who was followed is left alone."""
    drive: DriveConfig = Field(default_factory=lambda: DriveConfig.model_validate({"max_speed": 0.5}))
    follow: FollowPersonConfig = Field(default_factory=lambda: FollowPersonConfig.model_validate({}))


class Patrol(Module):
    """Goes its round, and follows and reports whom it meets."""

    config: PatrolConfig
    shared_outputs = frozenset({"cmd_vel", "wanted_descriptions"})
    detections: In[Detection2DArray]
    odom: In[Odometry] = In(also=OdometryFromPoses, fault=pose_fault, fresh=True)
    scan: In[LaserScan] = In(required=False, fresh=True)
    camera_info: In[CameraInfo] = In(required=False, fault=lens_fault)
    hold: In[Hold] = In(required=False, external=True)
    cmd_vel: Out[Twist]
    wanted_descriptions: Out[String]

    @classmethod
    def longest_gaps(cls, config: PatrolConfig) -> Mapping[str, float]:
        """See ``Module``."""
        drive, follow = Drive.longest_gaps(config.drive), FollowPerson.longest_gaps(config.follow)
        return {**drive, **follow, "detections": config.frozen_after_s}

    async def start(self) -> None:
        """Listen to the odometry."""
        self.poses = PoseHistory(self.clock_ahead(self.detections, self.odom))
        self._calls = OwnCalls()
        self.holds = HoldInput(self.hold, self.name)
        self.odom.on_message(self.poses.add)
        watch_labels(self, self.detections)
        self.show_way(None)

    def on_settings(self, changed: frozenset[str]) -> None:
        """See ``Module``: refuses more than the velocity gate lets pass."""
        check_against_gate(self, changed)

    @skill(resources={"base"}, tags={"motion"}, on_duplicate="reject", motion=True)
    async def patrol(
        self,
        call: Call,
        rounds: Annotated[int, Field(ge=1, le=1000)] = 1,
        watch_for: Annotated[list[Description], Field(max_length=16)] | None = None,
        follow_s: Annotated[float, Field(ge=0.0)] | None = None,
    ) -> PatrolReport:
        """Go the round of way-points, look out for people, follow whoever appears, report them, and go on.

        Answers at once and goes on in the background until the rounds are done, or stop_patrol is called.

        Args:
            rounds: How often to go round.
            watch_for: Descriptions of whom to look out for, e.g. ["a man in red"]; without it anybody.
            follow_s: For how long to follow somebody, in seconds; 0 only reports them.
        """
        wanted = cleaned_descriptions(watch_for or self.config.watch_for, "watch_for")
        follow_for = self.config.follow_s if follow_s is None else follow_s
        with self._calls.running(call, "patrolling"):
            try:
                with wanting(self, self.wanted_descriptions, wanted):
                    return await Patrolling(self, call, wanted, follow_for).run(rounds)
            finally:
                self.show_way(None)
                self.cmd_vel.publish(STOP)

    @skill(tags={"safe", "stop"})
    async def stop_patrol(self, call: Call) -> str:
        """Stop patrolling, and stand still."""
        ended = await self._calls.end(call, "stop_patrol was called")
        self.cmd_vel.publish(STOP)
        return f"Stopped {listed(ended)}" if ended else "Nobody was patrolling"

    def show_way(self, goal: complex | None, then: Iterable[complex] = ()) -> None:
        """Have maps show where the robot goes now, and the points that it goes to then."""
        points = enumerate(self.config.waypoints, start=1)
        waypoints = tuple(WaypointView(name=str(number), x=x, y=y) for number, (x, y) in points)
        self.report_state(scene_state(way(goal, then).model_copy(update={"waypoints": waypoints})))
