"""A goal of an action of ROS as its client follows it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import socket
import uuid
from collections import deque
from typing import Any

from dimos_streams.ros2.actions.types import GOAL_ID_BYTES, CancelAnswer, GoalStatus

_DENIALS = 3
"""Cancels in a row after whose denial a goal counts as not there."""
OWNER_BYTES = GOAL_ID_BYTES // 2
"""The number of bytes with which the ids of all goals of one owner begin."""


def owner_of_goals(name: str) -> bytes:
    """Return how the ids of the goals of a module of that name on this machine begin: by it the module knows, when it
    has been started again, which of a server's goals are its own."""
    return hashlib.sha256(f"{socket.gethostname()}/{name}".encode()).digest()[:OWNER_BYTES]


class ActionGoal:
    """One goal, as far as is known of it."""

    def __init__(self, id: bytes) -> None:
        self.id = id
        self.status = GoalStatus.UNKNOWN
        self.rejected = self.accepted = False
        self.feedback: dict[str, Any] | None = None
        """The newest feedback that has not been taken."""
        self.servers: frozenset[str] = frozenset()
        """The servers that were there when one of them named it first; empty before."""
        self.unlisted_at: float | None = None
        """The time since which its only server has named other goals and not it; None while it does."""
        self.replies: deque[dict[str, Any]] = deque(maxlen=4)
        self.changed = asyncio.Event()
        self.unwanted = False
        """True if its end has been asked for."""
        self.forgotten = False
        """True if its server has not got it any more."""
        self._denials = 0
        """Its newest cancels in a row that were answered by denials only."""
        self._denied = False
        """True if nothing but denials has come since its last cancel."""
        self.left_at: float | None = None
        """The time at which it was let go without its end having been seen, or None if it was not."""

    @classmethod
    def new(cls, owner: bytes) -> ActionGoal:
        """Return a goal of an owner that no server has heard of."""
        return cls(owner + uuid.uuid4().bytes[OWNER_BYTES:])

    @property
    def over(self) -> bool:
        """True if it has come to its end, or its server has not got it any more."""
        return self.forgotten or self.status.ended

    def count_cancel(self) -> None:
        """Count that its end has been asked for."""
        self.unwanted = True
        self._denials = self._denials + 1 if self._denied else 0
        self._denied = False

    def take_cancel_answer(self, code: int) -> None:
        """Take an answer to anybody's cancel of any goal: it does not say which.

        A goal that is there has each of its own cancels answered otherwise than by a denial, whatever comes between.
        One that no status has named may not have arrived; and "terminated" is also said of one that is canceling.
        """
        unknown, terminated = code == CancelAnswer.UNKNOWN_GOAL_ID, code == CancelAnswer.GOAL_TERMINATED
        if not self.status or not (unknown or (terminated and self.status is not GoalStatus.CANCELING)):
            self._denials, self._denied = 0, False
            return
        self._denied = True
        if self._denials + 1 >= _DENIALS:
            self.forgotten = True
            self.changed.set()

    async def change(self, timeout_s: float) -> bool:
        """Wait until something of it has changed; False if nothing has in time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self.changed.wait()
        changed = self.changed.is_set()
        self.changed.clear()
        return changed

    def take_feedback(self) -> dict[str, Any] | None:
        """The newest feedback, once."""
        feedback, self.feedback = self.feedback, None
        return feedback
