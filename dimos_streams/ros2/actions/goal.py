"""A goal of an action of ROS as its client follows it."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections import deque
from typing import Any

from dimos_streams.ros2.actions.types import GoalStatus


class ActionGoal:
    """One goal, as far as is known of it."""

    def __init__(self) -> None:
        self.id = uuid.uuid4().bytes
        self.status = GoalStatus.UNKNOWN
        self.rejected = self.accepted = False
        self.feedback: dict[str, Any] | None = None
        """The newest feedback that has not been taken."""
        self.servers: frozenset[str] = frozenset()
        """The servers that were there when one of them named it first; empty before."""
        self.replies: deque[dict[str, Any]] = deque(maxlen=4)
        self.changed = asyncio.Event()
        self.unwanted = False
        """True if its end has been asked for."""
        self.left_at: float | None = None
        """The time at which it was let go without its end having been seen, or None if it was not."""

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
