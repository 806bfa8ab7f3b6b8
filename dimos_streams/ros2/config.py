"""The settings of a robot that runs ROS 2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from dimos_streams.module import ModuleConfig
from dimos_streams.ros2.names import checked_namespace, checked_topic, checked_type
from dimos_streams.ros2.participant import LOOPBACK
from dimos_streams.ros2.wire import DEFAULT, LATCHED, SENSOR, Quality

QualityName = Literal["sensor", "default", "latched"]
QUALITIES: Mapping[QualityName, Quality] = {"sensor": SENSOR, "default": DEFAULT, "latched": LATCHED}

RosName = Annotated[str, AfterValidator(checked_topic)]
RosType = Annotated[str, AfterValidator(checked_type)]


class TopicSetting(BaseModel):
    """One row of the table of topics."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    topic: RosName = Field(description="as ROS calls it; without a slash at its beginning it is in the namespace")
    type: RosType | None = Field(default=None, description="on ROS's side, such as geometry_msgs/msg/TwistStamped")
    qos: QualityName | None = Field(
        default=None, description="None is sensor for what is read, default for what is written"
    )


def _spelled_out(value: Any) -> Any:
    return {"topic": value} if isinstance(value, str) else value


TopicRow = Annotated[TopicSetting, BeforeValidator(_spelled_out)]

STANDARD_TOPICS = {
    "odom": TopicSetting(topic="odom"),
    "scan": TopicSetting(topic="scan"),
    "tf": TopicSetting(topic="/tf"),
    "cmd_vel": TopicSetting(topic="cmd_vel"),
}


class Ros2RobotConfig(ModuleConfig):
    """Where the robot is on DDS, and which of its topics are streams of this module."""

    domain_id: int = Field(0, ge=0, le=232, description="ROS_DOMAIN_ID of the robot")
    namespace: Annotated[str, AfterValidator(checked_namespace)] = Field("", description="such as /robot1")
    interface: str = Field(
        LOOPBACK, min_length=1, description="the one network interface that is used; on lo nothing leaves the machine"
    )
    peers: tuple[str, ...] = Field(
        (), max_length=16, description="addresses to look for the robot at; empty is by multicast, but for lo"
    )
    topics: dict[str, TopicRow] = Field(
        STANDARD_TOPICS, max_length=64, description="by the name of the stream: a topic, or topic, type and qos"
    )
    needed: tuple[str, ...] = Field(("odom",), description="without these from ROS the robot is made to stand")
    needed_timeout_s: float = Field(1.0, gt=0.0, description="one that is silent for longer is not there")
    cmd_timeout_s: float = Field(0.4, gt=0.0, le=0.4, description="a velocity older than this counts as zero")
    cmd_frame: str = Field("base_link", description="frame_id of stamped velocities")
