"""DDS without DDS, for tests in virtual time: what is written is seen, and what others would write is delivered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dimos_streams.errors import MessageError
from dimos_streams.ros2.actions.types import NO_STAMP, ActionChannels, CancelAnswer, GoalStatus
from dimos_streams.ros2.cdr import decode, encode
from dimos_streams.ros2.definitions import ActionType
from dimos_streams.ros2.layout import RosStruct
from dimos_streams.ros2.names import dds_type
from dimos_streams.ros2.wire import DdsError, Endpoint, Quality


@dataclass
class _End:
    """A reader or a writer; it is matched while the others' ends of its topic are there."""

    wire: FakeWire
    topic: str
    type_name: str

    @property
    def matched(self) -> int:
        return len(self.wire.writers) if self.wire.others.get(self.topic) == self.type_name else 0

    @property
    def skipped(self) -> str:
        return self.wire.skipped.get(self.topic, "")

    @property
    def writers(self) -> frozenset[str]:
        return self.wire.writers if self.matched else frozenset()

    def write(self, data: bytes) -> None:
        self.wire.sent.append((self.topic, data))
        for taker in self.wire.takers.get(self.topic, []) if self.matched else ():
            asyncio.get_running_loop().call_soon(taker, data)


@dataclass
class FakeWire:
    """A ``Wire``."""

    others: dict[str, str] = field(default_factory=dict)
    """The type of each topic on which somebody else is."""
    writers: frozenset[str] = frozenset({"first"})
    """The writers of each of these topics."""
    qualities: dict[str, Quality] = field(default_factory=dict)
    asked: dict[str, Quality] = field(default_factory=dict)
    """The qualities with which topics are read here."""
    sent: list[tuple[str, bytes]] = field(default_factory=list)
    takers: dict[str, list[Callable[[bytes], None]]] = field(default_factory=dict)
    """Those of others who hear a topic that is written here."""
    skipped: dict[str, str] = field(default_factory=dict)
    """By topic, why what came last could not be decoded."""
    closed: bool = False
    deaf: bool = False
    mute_for_s: float = 0.0
    mute_on: frozenset[str] = frozenset()
    """The topics on which who is mute was before."""
    _readers: dict[str, list[tuple[Callable[[bytes], Any], Callable[[Any], None]]]] = field(default_factory=dict)

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        self.closed = True

    def check(self) -> None:
        if self.deaf:
            raise DdsError("DDS is read no more")

    def writer(self, topic: str, struct: RosStruct, quality: Quality) -> _End:
        return _End(self, topic, dds_type(struct.name))

    def reader(
        self,
        topic: str,
        struct: RosStruct,
        quality: Quality,
        decode: Callable[[bytes], Any],
        deliver: Callable[[Any], None],
    ) -> _End:
        self.asked[topic] = quality
        self._readers.setdefault(topic, []).append((decode, deliver))
        return _End(self, topic, dds_type(struct.name))

    def mute_s(self) -> float:
        return self.mute_for_s

    def mute_topics(self) -> set[str]:
        return set(self.mute_on)

    def endpoints(self) -> list[Endpoint]:
        sides = {"rq": "in", "rr": "out"}
        return [
            Endpoint(topic, type_name, side, self.qualities.get(topic, Quality(latched=True)))  # type: ignore[arg-type]
            for topic, type_name in self.others.items()
            for side in ([sides[topic[:2]]] if topic[:2] in sides else ["in", "out"])
        ]

    def deliver(self, topic: str, data: bytes) -> None:
        """What somebody else has written."""
        for read, take in self._readers.get(topic, []):
            try:
                message = read(data)
            except MessageError as error:
                self.skipped[topic] = str(error)
                continue
            self.skipped.pop(topic, None)
            take(message)


class FakeServer:
    """An action server as rclcpp's is, that does what a test says."""

    def __init__(self, wire: FakeWire, action: str, kind: ActionType) -> None:
        self.wire, self.kind = wire, kind
        self.channels = ActionChannels(action, kind)
        self.goals: dict[bytes, dict[str, Any]] = {}
        """By id, all that were received."""
        self.cancelled: list[bytes] = []
        """Ids whose end was asked for."""
        self.statuses: dict[bytes, GoalStatus] = {}
        self.waiting: set[bytes] = set()
        self.results: dict[bytes, dict[str, Any]] = {}
        self.accepts, self.answers, self.obeys = True, True, True
        self.come()
        wire.takers[self.channels.goal.topic] = [self._on_goal]
        wire.takers[self.channels.cancel.topic] = [self._on_cancel]
        wire.takers[self.channels.wanted.topic] = [self._on_wanted]

    @property
    def newest(self) -> bytes:
        """The id of the newest goal."""
        return list(self.goals)[-1]

    def come(self) -> None:
        for channel in self._all():
            self.wire.others[channel.topic] = channel.type_name

    def go(self) -> None:
        for channel in self._all():
            self.wire.others.pop(channel.topic, None)

    def forget(self) -> None:
        """Be as one that has just been started."""
        self.statuses.clear()
        self.waiting.clear()
        self.results.clear()

    def feedback(self, values: dict[str, Any], goal: bytes = b"") -> None:
        value = {"goal_id": goal or self.newest, "feedback": values}
        self._send(self.channels.feedback.topic, self.channels.feedback.struct, value)

    def end(self, status: GoalStatus, result: dict[str, Any], goal: bytes = b"") -> None:
        goal = goal or self.newest
        self.results[goal] = result
        self.statuses[goal] = status
        if goal in self.waiting:
            self.reply_result(status, result)
        self.say_status()

    def reply_result(self, status: GoalStatus, result: dict[str, Any]) -> None:
        self._send(self.channels.result.topic, self.channels.results[0], {"status": status, "result": result})

    def reply_accepted(self, accepted: bool) -> None:
        answer = {"accepted": accepted, "stamp": NO_STAMP}
        self._send(self.channels.accepted.topic, self.channels.accepted.struct, answer)

    def reply_cancelled(self, code: CancelAnswer) -> None:
        answer = {"return_code": code, "goals_canceling": []}
        self._send(self.channels.cancelled.topic, self.channels.cancelled.struct, answer)

    def say_status(self) -> None:
        listed = [
            {"goal_info": {"goal_id": goal, "stamp": NO_STAMP}, "status": status}
            for goal, status in self.statuses.items()
        ]
        self._send(self.channels.status.topic, self.channels.status.struct, {"status_list": listed})

    def _all(self) -> list[Any]:
        channels = self.channels
        return [
            *(channels.goal, channels.accepted, channels.wanted, channels.result, channels.cancel),
            *(channels.cancelled, channels.feedback, channels.status),
        ]

    def _send(self, topic: str, struct: RosStruct, value: dict[str, Any]) -> None:
        self.wire.deliver(topic, encode(struct, value))

    def _on_goal(self, data: bytes) -> None:
        request = decode(self.channels.goal.struct, data)
        self.goals[request["goal_id"]] = request["goal"]
        if not self.answers:
            return
        self.reply_accepted(self.accepts)
        if self.accepts:
            self.statuses[request["goal_id"]] = GoalStatus.EXECUTING
            self.say_status()

    def _on_cancel(self, data: bytes) -> None:
        goal = decode(self.channels.cancel.struct, data)["goal_info"]["goal_id"]
        self.cancelled.append(goal)
        code = self._answer(goal)
        self.reply_cancelled(code)
        if code is CancelAnswer.NONE:
            self.statuses[goal] = GoalStatus.CANCELED
            self.say_status()

    def _answer(self, goal: bytes) -> CancelAnswer:
        status = self.statuses.get(goal)
        if status is None:
            return CancelAnswer.UNKNOWN_GOAL_ID
        if status.ended or status is GoalStatus.CANCELING:
            return CancelAnswer.GOAL_TERMINATED
        return CancelAnswer.NONE if self.obeys else CancelAnswer.REJECTED

    def _on_wanted(self, data: bytes) -> None:
        goal = decode(self.channels.wanted.struct, data)["goal_id"]
        self.waiting.add(goal)
        if self.statuses.get(goal, GoalStatus.UNKNOWN).ended and goal in self.results:
            self.reply_result(self.statuses[goal], self.results[goal])
