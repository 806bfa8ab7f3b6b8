"""DDS as the rest of the package sees it: readers and writers of bytes, and what others have on their topics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from dimos_streams.errors import DimosStreamsError
from dimos_streams.ros2.layout import RosStruct

Direction = Literal["in", "out"]


@dataclass(frozen=True, slots=True)
class Quality:
    """The quality of service of a reader or a writer."""

    reliable: bool = True
    latched: bool = False
    """Late readers get what was written before: ROS's "transient local"."""
    depth: int = 10
    """The number of the newest messages that are kept for a slow reader."""

    def __str__(self) -> str:
        return f"{'reliable' if self.reliable else 'best effort'}{', latched' if self.latched else ''}"

    def accepts(self, offered: Quality) -> bool:
        """Return whether a reader of this quality hears a writer of the other one."""
        return offered.reliable >= self.reliable and offered.latched >= self.latched


SENSOR = Quality(reliable=False, depth=5)
"""ROS's profile of sensor data, which hears every writer."""
DEFAULT = Quality()
"""ROS's profile of topics, services and feedback, heard by every reader that asks for nothing latched."""
LATCHED = Quality(latched=True, depth=1)
"""The quality of maps and static frames."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A reader or a writer that somebody else has."""

    topic: str
    """The topic as DDS calls it."""
    type_name: str
    direction: Direction
    """``out`` for a writer."""
    quality: Quality
    demands: tuple[str, ...] = ()
    """Further settings of it that nothing here has, and that keep it from being connected, as people read them."""


class DdsError(DimosStreamsError):
    """DDS could not send something."""


class TopicWriter(Protocol):
    """The protocol of the writer of one topic."""

    def write(self, data: bytes) -> None:
        """Send bytes with their encapsulation header. Never blocks. Raises ``DdsError``."""

    @property
    def matched(self) -> int:
        """The number of readers of others that hear it."""


class TopicReader(Protocol):
    """The protocol of the reader of one topic."""

    @property
    def matched(self) -> int:
        """The number of writers of others that it hears."""

    @property
    def writers(self) -> frozenset[str]:
        """The writers of others that it hears, by ids that no later one has, also of a program that starts anew."""

    @property
    def skipped(self) -> str:
        """The reason why what came last could not be decoded; empty if it could, or nothing has come."""


class Wire(Protocol):
    """One participant of a DDS domain. Its methods may be called on the loop between ``open`` and ``close``."""

    async def open(self) -> None:
        """Take part from now on. Raises ``UserError`` for what a person can mend."""

    async def close(self) -> None:
        """Leave. Twice is fine."""

    def check(self) -> None:
        """Raise ``DdsError`` if nothing is heard any more, and nothing will be."""

    def writer(self, topic: str, struct: RosStruct, quality: Quality) -> TopicWriter:
        """Announce to write a topic, as DDS calls it, of a type."""

    def reader(
        self,
        topic: str,
        struct: RosStruct,
        quality: Quality,
        decode: Callable[[bytes], Any],
        deliver: Callable[[Any], None],
    ) -> TopicReader:
        """Read a topic. ``decode`` is called off the loop, ``deliver`` on it, with what ``decode`` has made.

        Bytes for which ``decode`` raises anything are skipped, with a line in the log. When the loop is slow, the
        oldest beyond the quality's depth are dropped.
        """

    def endpoints(self) -> list[Endpoint]:
        """The readers and writers of others that are known now."""

    def mute_s(self) -> float:
        """Return for how many seconds somebody has been back, after they were gone, of whose readers and writers none
        is known, nor will be; 0 if there is nobody like that."""

    def mute_topics(self) -> set[str]:
        """Return the topics, as DDS calls them, on which everybody was who has been mute like that for ``MUTE_S``."""
