"""A form in which a message is shown, and what it needs to know besides the message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dimos_streams.foxglove.call_table import TracedCalls
from dimos_streams.messages.std_msgs import Header

Value = dict[str, Any]

SHARED_FRAMES = frozenset({"map", "earth"})
"""Frames that are one and the same for all robots of a run, by convention (ROS's REP 105)."""


@dataclass(frozen=True, slots=True)
class TopicContext:
    """The context of one message: whose it is, and the calls of the run so far."""

    robot: str = ""
    """The namespace of the topic, as ``"robot1"``; empty for none."""
    calls: TracedCalls = field(default_factory=TracedCalls)

    def frame(self, name: str) -> str:
        """A frame as viewers know it: with its robot's name in front, since a viewer has one tree for all robots."""
        if not self.robot or not name or name in SHARED_FRAMES or name.startswith(f"{self.robot}/"):
            return name
        return f"{self.robot}/{name}"

    def stamped(self, header: Header) -> Value:
        """The time and the frame of a header."""
        return {**stamp_of(header), "frame_id": self.frame(header.frame_id)}


@dataclass(frozen=True, slots=True)
class Form:
    """One form of a type of messages: the suffix of its topic, its schema's name, and what makes its object."""

    suffix: str
    schema: str
    make: Callable[[Any, TopicContext], Value | None]
    """The function that makes the object; it gives None for a message that has nothing to be shown in this form."""


def stamp_of(header: Header) -> Value:
    """The time of a header."""
    return {"timestamp": {"sec": header.stamp.sec, "nsec": header.stamp.nsec}}


def timestamp(utime: int) -> Value:
    """A time in µs since the Unix epoch."""
    seconds, microseconds = divmod(utime, 1_000_000)
    return {"sec": seconds, "nsec": microseconds * 1000}
