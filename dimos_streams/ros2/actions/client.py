"""A client of one action server of ROS 2: goals, their feedback, their ends.

Replies on DDS do not say whose request they answer in a way that every DDS shows its users. The server's status topic
does: it names goals by their ids, and what it says of a goal counts. So one goal is sent at a time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from dimos_streams import clock
from dimos_streams.errors import SkillError
from dimos_streams.ros2.actions.goal import ActionGoal
from dimos_streams.ros2.actions.requests import send_request
from dimos_streams.ros2.actions.types import NO_STAMP, ActionChannels, Channel, GoalStatus
from dimos_streams.ros2.cdr import decode
from dimos_streams.ros2.definitions import ActionType
from dimos_streams.ros2.names import shown_type
from dimos_streams.ros2.wire import DEFAULT, Quality, TopicReader, TopicWriter, Wire

AGAIN_S = 0.5
"""Seconds after which a request without an answer is sent again."""
CANCEL_S = 1.8
"""Seconds for which an end that was asked for is waited for; the host of a skill gives it 2 s."""
_CONTRADICTION_S = 0.3
"""Seconds for which the status topic may contradict a rejection, because that may be somebody else's."""
_RESULT_S = 3.0
"""Seconds for which the result of a goal that has ended is waited for."""
_REMEMBERED = 16
_STATUS = Quality(latched=True)
"""The quality of the status topic. Of a server that forgets ended goals at once only the last but one of its statuses
names the end: the newest alone would not do."""
_STATUSES = frozenset(map(int, GoalStatus))
_FORGOTTEN_S = 60.0


class ActionClient:
    """Sends goals to one action server."""

    def __init__(
        self, wire: Wire, action: str, kind: ActionType, answer_timeout_s: float, owner: bytes, *, moves: bool
    ) -> None:
        """``action`` is the absolute name. A server that does not answer a goal for ``answer_timeout_s`` is not
        there. ``owner`` begins the ids of its goals. Of one that ``moves`` the robot goals are ended that another
        process of the owner has left behind."""
        self.action, self.kind = action, kind
        self._wire, self._answer_timeout_s = wire, answer_timeout_s
        self._owner, self._moves = owner, moves
        self._channels = ActionChannels(action, kind)
        self._goal: ActionGoal | None = None
        self._sending = False
        """True while a goal is to be sent that waits for its server."""
        self._left: deque[ActionGoal] = deque(maxlen=_REMEMBERED)

    def connect(self) -> None:
        """Announce to use the action. The wire must be open."""
        channels = self._channels
        self._goals = self._writer(channels.goal)
        self._wanted = self._writer(channels.wanted)
        self._cancels = self._writer(channels.cancel)
        self._accepted = self._reader(channels.accepted, self._on_accepted)
        self._results = self._reader(channels.result, self._on_result, decode_with=channels.read_result)
        self._reader(channels.cancelled, self._on_cancelled)
        self._reader(channels.feedback, self._on_feedback)
        self._statuses = self._wire.reader(
            channels.status.topic,
            channels.status.struct,
            _STATUS,
            partial(decode, channels.status.struct),
            self._on_status,
        )

    @property
    def there(self) -> bool:
        """True if there is a server that hears everything and is heard."""
        return not self._unmatched()

    @property
    def topics(self) -> set[str]:
        """The topics that a server has to be on, as DDS calls them."""
        return set(self._ends())

    def lost(self, goal: ActionGoal) -> bool:
        """Return whether the server that knew the goal is gone, whoever else is there now."""
        return bool(goal.servers) and goal.servers.isdisjoint(self._statuses.writers)

    def unlisted_s(self, goal: ActionGoal) -> float:
        """Return for how long the only server has named the goal no more; 0.0 while it does, or there are several."""
        return clock.monotonic() - goal.unlisted_at if goal.unlisted_at is not None and self._is_alone else 0.0

    @property
    def _is_alone(self) -> bool:
        """True if there is one server, so that what is said is said by it."""
        return self._statuses.matched == 1

    async def send(self, values: dict[str, Any], barred: Callable[[], bool]) -> ActionGoal | None:
        """Send a goal; it has been accepted when this returns, unless ``barred`` has begun meanwhile.

        While ``barred`` says so nothing is sent, and this returns None. Raises ``SkillError`` if the goal is
        rejected, if nobody answers, and for values that the type can't hold.
        """
        if self._goal is not None or self._sending:
            raise SkillError(f"{self.action} has a goal of this module already")
        deadline = clock.monotonic() + self._answer_timeout_s
        self._sending = True  # a second one that waited, too, would take the place of the first
        try:
            if not await self._await_server(deadline, barred):
                return None
            goal = self._goal = ActionGoal.new(self._owner)
        finally:
            self._sending = False
        try:
            send_request(self._goals, self._channels.goal, {"goal_id": goal.id, "goal": values})
            await self._await_acceptance(goal, deadline, barred)
        except BaseException:
            self.leave(goal)
            raise
        self._ask_for_result(goal)
        return goal

    async def result(self, goal: ActionGoal) -> dict[str, Any] | None:
        """The result of a goal that has ended, or None if it can't be had, or not be read."""
        deadline = clock.monotonic() + _RESULT_S
        while clock.monotonic() < deadline:
            for reply in reversed(goal.replies):
                if reply["status"] == goal.status:
                    found: dict[str, Any] | None = reply["result"]
                    return found
            if not await goal.change(AGAIN_S):
                self._ask_for_result(goal)
        return None

    async def cancel(self, goal: ActionGoal) -> bool:
        """Ask for a goal's end, again and again, and return whether it is over in time."""
        deadline = clock.monotonic() + CANCEL_S
        asked_at = None
        while not goal.over and (now := clock.monotonic()) < deadline:
            if asked_at is None or now - asked_at >= AGAIN_S:
                asked_at = now
                self._ask_to_cancel(goal)
            await goal.change(min(AGAIN_S, deadline - now))
        return goal.over

    def wake(self) -> None:
        """Have whoever waits for the goal look again, at once."""
        if self._goal is not None and not self._goal.status.ended:
            self._goal.changed.set()

    def done(self, goal: ActionGoal) -> None:
        """Let go of a goal. If its end was not seen, the end is still asked for."""
        if goal.over:
            self._forget(goal)
        else:
            self.leave(goal)

    def leave(self, goal: ActionGoal) -> None:
        """Let go of a goal that may still run: its end is asked for until it is seen, or for a minute."""
        self._forget(goal)
        if goal.rejected:
            return
        goal.left_at = clock.monotonic()
        self._left.append(goal)
        self._ask_to_cancel(goal)

    def tick(self) -> None:
        """Ask again for the ends of goals that were left; to be called about twice a second.

        The minute of those whose server can't be reached begins when it can be again: a cut link ends no goal.
        """
        now = clock.monotonic()
        for goal in list(self._left):
            if goal.left_at is None or not self._cancels.matched:
                goal.left_at = now
            if goal.over or now - goal.left_at > _FORGOTTEN_S:
                self._left.remove(goal)
            else:
                self._ask_to_cancel(goal)

    @property
    def has_goals(self) -> bool:
        """True if a goal is being sent, may run, or is being ended."""
        return self._sending or bool(self._known_goals())

    @property
    def ending(self) -> bool:
        """True if a goal may still run although its end has been asked for."""
        return any(goal.unwanted and not goal.over and (goal.accepted or goal.status) for goal in self._known_goals())

    @property
    def trouble(self) -> str:
        """The message that a goal has not ended though it was asked to, or that another server has each goal, too;
        empty if there is neither."""
        if self._cancels.matched and any(goal.accepted or goal.status for goal in self._left):
            return f"{self.action} does not end a goal that was cancelled: the robot may go on"
        if (servers := self._statuses.matched) > 1:
            return f"{servers} action servers offer {self.action}: unless one has just died, each goal is done by all"
        return ""

    def _known_goals(self) -> list[ActionGoal]:
        return [*([self._goal] if self._goal else []), *self._left]

    def _forget(self, goal: ActionGoal) -> None:
        """Make room for another goal, unless it has come already."""
        if self._goal is goal:
            self._goal = None

    async def _await_server(self, deadline: float, barred: Callable[[], bool]) -> bool:
        """Wait for the server, and return False if ``barred`` has begun. Raises ``SkillError`` at the deadline."""
        while not (stopped := barred()) and not self.there:
            if clock.monotonic() >= deadline:
                raise SkillError(self._absence())
            await asyncio.sleep(0.05)
        return not stopped

    async def _await_acceptance(self, goal: ActionGoal, deadline: float, barred: Callable[[], bool]) -> None:
        rejected_at: float | None = None
        while not (goal.accepted or goal.status or barred()):
            now = clock.monotonic()
            if goal.rejected:
                rejected_at = rejected_at or now
                if now - rejected_at >= _CONTRADICTION_S:
                    raise SkillError(f"{self.action} has rejected the goal")
            elif now >= deadline:
                bound = f"{self._answer_timeout_s:g} s"
                raise SkillError(f"{self.action} has not answered within {bound}; the goal is taken back")
            await goal.change(0.1)
        goal.rejected = False

    def _absence(self) -> str:
        channel = self._channels.goal
        others = [other for other in self._wire.endpoints() if other.topic == channel.topic]
        types = {other.type_name for other in others if other.direction == "in"}
        if types and channel.type_name not in types:
            shown = ", ".join(shown_type(name).removesuffix("_SendGoal_Request") for name in sorted(types))
            return f"{self.action} is there, as {shown}, not as {self.kind.name}"
        if types:
            topics = ", ".join(self._unmatched())
            return f"{self.action} is there, but {topics} does not match: it has another quality of service or type"
        return f"nobody offers the action {self.action} ({self.kind.name})"

    def _ends(self) -> dict[str, TopicReader | TopicWriter]:
        """This side of the topics that a server has to be on, by their names in DDS."""
        its = self._channels
        return {
            its.goal.topic: self._goals,
            its.wanted.topic: self._wanted,
            its.cancel.topic: self._cancels,
            its.accepted.topic: self._accepted,
            its.result.topic: self._results,
            its.status.topic: self._statuses,
        }

    def _unmatched(self) -> list[str]:
        """The topics of the action that DDS has not connected with a server's."""
        return [topic for topic, end in self._ends().items() if not end.matched]

    def _writer(self, channel: Channel) -> TopicWriter:
        return self._wire.writer(channel.topic, channel.struct, DEFAULT)

    def _reader(
        self,
        channel: Channel,
        deliver: Callable[[dict[str, Any]], None],
        decode_with: Callable[[bytes], Any] | None = None,
    ) -> TopicReader:
        read = decode_with or partial(decode, channel.struct)
        return self._wire.reader(channel.topic, channel.struct, DEFAULT, read, deliver)

    def _ask_for_result(self, goal: ActionGoal) -> None:
        send_request(self._wanted, self._channels.wanted, {"goal_id": goal.id})

    def _ask_to_cancel(self, goal: ActionGoal) -> None:
        goal.count_cancel()
        send_request(self._cancels, self._channels.cancel, {"goal_info": {"goal_id": goal.id, "stamp": NO_STAMP}})

    def _on_accepted(self, reply: dict[str, Any]) -> None:
        goal = self._goal
        if goal is not None and not (goal.accepted or goal.rejected):
            goal.accepted, goal.rejected = reply["accepted"], not reply["accepted"]
            goal.changed.set()

    def _on_result(self, reply: dict[str, Any]) -> None:
        if self._goal is not None:
            self._goal.replies.append(reply)
            self._goal.changed.set()

    def _on_cancelled(self, reply: dict[str, Any]) -> None:
        for goal in self._known_goals():
            if goal.unwanted:
                goal.take_cancel_answer(reply["return_code"])

    def _on_feedback(self, message: dict[str, Any]) -> None:
        goal = self._goal
        if goal is not None and message["goal_id"] == goal.id:
            goal.feedback = message["feedback"]
            goal.changed.set()

    def _on_status(self, message: dict[str, Any]) -> None:
        known = {status["goal_info"]["goal_id"]: status["status"] for status in message["status_list"]}
        self._end_orphans(known)
        for goal in self._known_goals():
            number = goal.status if goal.status.ended else known.get(goal.id, goal.status)
            if number != goal.status and number in _STATUSES:
                goal.status = GoalStatus(number)
                goal.servers = goal.servers or self._statuses.writers
                goal.changed.set()
            is_missing = bool(goal.status) and goal.id not in known and self._is_alone
            goal.unlisted_at = (goal.unlisted_at or clock.monotonic()) if is_missing else None

    def _end_orphans(self, statuses: Mapping[bytes, int]) -> None:
        """End what goes on of the goals of this owner that a process before this one has begun: their calls are lost,
        and nobody else would."""
        mine = {goal.id for goal in self._known_goals()}
        for id, number in statuses.items():
            if self._moves and id.startswith(self._owner) and id not in mine and number < GoalStatus.SUCCEEDED:
                self.leave(ActionGoal(id))
