"""The settings of a robot that runs ROS 2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from dimos_streams.common.schemas.bounds import Bounds
from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.module import ModuleConfig
from dimos_streams.ros2.definitions import MAX_DEFINITION, NAVIGATE_TO_POSE
from dimos_streams.ros2.domain import LOOPBACK
from dimos_streams.ros2.names import checked_namespace, checked_topic, checked_type
from dimos_streams.ros2.wire import DEFAULT, LATCHED, SENSOR, Quality
from dimos_streams.skill.policy import Approval
from dimos_streams.skill.tags import Tags

QualityName = Literal["sensor", "default", "latched"]
QUALITIES: Mapping[QualityName, Quality] = {"sensor": SENSOR, "default": DEFAULT, "latched": LATCHED}

RosName = Annotated[str, AfterValidator(checked_topic)]
RosType = Annotated[str, AfterValidator(checked_type)]


class TopicSetting(FrozenModel):
    """One row of the table of topics."""

    topic: RosName
    """The topic's name in ROS; one that does not begin with a slash is relative to the namespace."""
    type: RosType | None = None
    """The type in ROS, such as `geometry_msgs/msg/TwistStamped`."""
    qos: QualityName | None = None
    """The quality of service; None is `sensor` for what is read, `default` for what is written."""


def _spelled_out(value: Any) -> Any:
    return {"topic": value} if isinstance(value, str) else value


TopicRow = Annotated[TopicSetting, BeforeValidator(_spelled_out)]

STANDARD_TOPICS = {
    "odom": TopicSetting(topic="odom"),
    "scan": TopicSetting(topic="scan"),
    "tf": TopicSetting(topic="/tf"),
    "tf_static": TopicSetting(topic="/tf_static", qos="latched"),
    "cmd_vel": TopicSetting(topic="cmd_vel"),
}


class ActionSetting(FrozenModel):
    """One row of the table of actions, which a skill is made of."""

    action: RosName
    """The action's name in ROS; one that does not begin with a slash is relative to the namespace."""
    type: RosType = NAVIGATE_TO_POSE
    """The action's type in ROS."""
    definition: str = Field(default="", max_length=MAX_DEFINITION)
    """The text of the `.action` file, if the type is not known."""
    types: dict[RosType, Annotated[str, Field(max_length=MAX_DEFINITION)]] = Field(default={}, max_length=64)
    """The texts of the `.msg` files of types that it uses and that are not known, by type."""
    description: str = Field(default="", max_length=2000)
    """The skill's description for callers; if empty, one is made of the action's type."""
    moves: bool = True
    """Whether it moves the base: then it needs the lease of the base, and ends when the robot is held still."""
    limits: dict[str, Bounds] = Field(default={}, max_length=64)
    """The least and the greatest value of a goal's numbers, by their paths."""
    time_limit_s: float | None = Field(default=600.0, gt=0.0)
    """Maximum time, in seconds, for a call; None for any time."""
    answer_timeout_s: float = Field(default=5.0, gt=0.0)
    """The time, in seconds, after which a server that has not answered a goal counts as absent."""
    frame: str = Field(default="map", min_length=1)
    """The frame of navigation's goals."""
    tags: Tags = ("motion",)
    """The tags of the skill, by which agents' configs choose it."""
    approval: Approval = "never"
    """``ask`` if an operator is asked before an agent's call."""


def _spelled_out_action(value: Any) -> Any:
    return {"action": value} if isinstance(value, str) else value


ActionRow = Annotated[ActionSetting, BeforeValidator(_spelled_out_action)]
SkillName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,59}$")]


class Ros2RobotConfig(ModuleConfig):
    """Settings for the robot on DDS, and for which of its topics are streams of this module."""

    domain_id: int = Field(0, ge=0, le=232)
    """The `ROS_DOMAIN_ID` of the robot."""
    namespace: Annotated[str, AfterValidator(checked_namespace)] = ""
    """The namespace of the robot's topics, such as `/robot1`."""
    interface: str = Field(LOOPBACK, min_length=1)
    """The one network interface that is used; on `lo` nothing leaves the machine."""
    peers: tuple[str, ...] = Field((), max_length=16)
    """The addresses at which the robot is looked for; if empty, it is looked for by multicast, and on `lo` on this
    machine only."""
    topics: dict[str, TopicRow] = Field(STANDARD_TOPICS, max_length=64)
    """The topics by the names of streams: each a topic's name, or its topic, type and qos."""
    actions: dict[SkillName, ActionRow] = Field({}, max_length=32)
    """The actions by the names of skills: each an action's name, or its action, type and more."""
    needed: tuple[str, ...] = ("odom",)
    """The streams that must come from ROS for the robot to move: while one is silent, the module sends it zeros."""
    needed_timeout_s: float = Field(1.0, gt=0.0)
    """The time, in seconds, without a message after which a needed stream counts as silent."""
    cmd_timeout_s: float = Field(0.4, gt=0.0, le=0.4)
    """The age, in seconds, from which a velocity counts as zero."""
    scan_yaw_deg: float | None = Field(None, ge=-360.0, le=360.0)
    """The direction of the lidar's zero, in degrees to the left of straight ahead; None for straight ahead."""
    cmd_frame: str = "base_link"
    """The `frame_id` of stamped velocities."""
