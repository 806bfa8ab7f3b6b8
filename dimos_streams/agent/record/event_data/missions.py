"""The data of events about missions and sub-missions, from their beginning to their end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired

from typing_extensions import TypedDict

from dimos_streams.agent.models.protocol import Speaker
from dimos_streams.agent.record.event_data.base import EventData, Lenient, TextData
from dimos_streams.common.boot_time import SinceBoot


class KnownOrders(TypedDict):
    """The orders to stop the robot, or to release it, that are known; empty if there are none."""

    robot_orders: NotRequired[Lenient[list[int]]]
    """The numbers of the newest of each bridge, and of each agent to which one was said."""


class MissionStartData(TextData, SinceBoot, KnownOrders):
    """An input has begun a mission."""

    id: str
    is_done: NotRequired[bool]


class InputData(TextData):
    """A turn takes up what the operator, or the agent that delegates, has said."""

    speaker: NotRequired[Speaker]


class StopData(TextData):
    """A turn is over."""

    reason: str
    note: str
    iterations: Lenient[int]
    why: NotRequired[str]
    about: NotRequired[Sequence[str]]


class EndedData(EventData):
    """A mission was ended early."""

    reason: str
    turn_goes_on: Lenient[bool]


class DoneData(TextData):
    """A mission is over."""

    reason: str
    unfinished: Lenient[list[str]]
    requests: Lenient[int]
    input_tokens: Lenient[int]
    output_tokens: Lenient[int]
    cost: Lenient[float | None]


class SubMissionStartData(EventData):
    """A sub-agent has a task."""

    agent: Lenient[str]
    task: Lenient[str]
    calls: Lenient[list[str]]


class SubMissionEndData(EventData):
    """A sub-agent has answered, or was ended."""

    reason: Lenient[str]
