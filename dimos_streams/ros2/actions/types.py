"""The topics and types of a ROS action on DDS: three services and two topics."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from dimos_streams.errors import MessageError
from dimos_streams.messages.std_msgs import Time
from dimos_streams.ros2.cdr import decode
from dimos_streams.ros2.definitions import ActionType
from dimos_streams.ros2.layout import UNBOUNDED, RosField, RosStruct, plain, struct_of
from dimos_streams.ros2.names import dds_reply, dds_request, dds_topic, dds_type

GOAL_ID_BYTES = 16


class GoalStatus(IntEnum):
    """``action_msgs/msg/GoalStatus``."""

    UNKNOWN = 0
    ACCEPTED = 1
    EXECUTING = 2
    CANCELING = 3
    SUCCEEDED = 4
    CANCELED = 5
    ABORTED = 6

    @property
    def ended(self) -> bool:
        """True if the goal has come to its end."""
        return self >= GoalStatus.SUCCEEDED


class CancelAnswer(IntEnum):
    """The return codes of ``action_msgs/srv/CancelGoal``."""

    NONE = 0
    REJECTED = 1
    UNKNOWN_GOAL_ID = 2
    GOAL_TERMINATED = 3


@dataclass(frozen=True, slots=True)
class Channel:
    """One topic of DDS with its type."""

    topic: str
    type_name: str
    struct: RosStruct


_ID = RosField("goal_id", "uint8", GOAL_ID_BYTES)
_STAMP = RosField("stamp", plain(struct_of(Time)))
_INFO = RosStruct("action_msgs/msg/GoalInfo", (_ID, _STAMP))
_STATUS = RosStruct("action_msgs/msg/GoalStatus", (RosField("goal_info", _INFO), RosField("status", "int8")))
_STATUSES = RosStruct("action_msgs/msg/GoalStatusArray", (RosField("status_list", _STATUS, UNBOUNDED),))
_OUTCOME = RosField("status", "int8")
_CANCEL_REQUEST = RosStruct("action_msgs/srv/CancelGoal_Request", (RosField("goal_info", _INFO),))
_CANCEL_RESPONSE = RosStruct(
    "action_msgs/srv/CancelGoal_Response",
    (RosField("return_code", "int8"), RosField("goals_canceling", _INFO, UNBOUNDED)),
)

NO_STAMP = {"sec": 0, "nanosec": 0}


class ActionChannels:
    """The topics of one action."""

    def __init__(self, action: str, kind: ActionType) -> None:
        """``action`` is its absolute name."""
        self.action, self.kind = action, kind
        services = f"{action}/_action"
        goal = RosStruct(f"{kind.name}_SendGoal_Request", (_ID, RosField("goal", kind.goal)))
        accepted = RosStruct(f"{kind.name}_SendGoal_Response", (RosField("accepted", "bool"), _STAMP))
        wanted = RosStruct(f"{kind.name}_GetResult_Request", (_ID,))
        feedback = RosStruct(f"{kind.name}_FeedbackMessage", (_ID, RosField("feedback", kind.feedback)))
        response = f"{kind.name}_GetResult_Response"
        self.results = tuple(RosStruct(response, (_OUTCOME, RosField("result", form))) for form in kind.results)
        # Cyclone drops what does not fit the description of its topic, and takes what is longer.
        described = self.results[0] if len(self.results) == 1 else RosStruct(response, (_OUTCOME,))
        self.goal = _channel(dds_request(f"{services}/send_goal"), goal)
        self.accepted = _channel(dds_reply(f"{services}/send_goal"), accepted)
        self.wanted = _channel(dds_request(f"{services}/get_result"), wanted)
        self.result = _channel(dds_reply(f"{services}/get_result"), described)
        self.cancel = _channel(dds_request(f"{services}/cancel_goal"), _CANCEL_REQUEST)
        self.cancelled = _channel(dds_reply(f"{services}/cancel_goal"), _CANCEL_RESPONSE)
        self.feedback = _channel(dds_topic(f"{services}/feedback"), feedback)
        self.status = _channel(dds_topic(f"{services}/status"), _STATUSES)

    def read_result(self, data: bytes) -> dict[str, Any]:
        """Return the status, and the result in the first form that fits, or None if none does, since the status
        counts more.

        Raises ``MessageError`` if there is no status.
        """
        for struct in self.results:
            try:
                found: dict[str, Any] = decode(struct, data)
            except MessageError:
                continue
            return found
        (status,) = data[4:5] or (None,)
        if status is None:
            raise MessageError("", self.result.struct.name, "it is empty")
        return {"status": status, "result": None}


def _channel(topic: str, struct: RosStruct) -> Channel:
    return Channel(topic, dds_type(struct.name), struct)
