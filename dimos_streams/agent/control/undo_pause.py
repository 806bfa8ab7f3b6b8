"""Pauses as a command sees them that takes calls back: one from before it, and one that comes meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from dimos_streams.agent.control.control import Control
from dimos_streams.agent.control.undo_log import UndoEntry
from dimos_streams.agent.record.agent_events import Emit, EventKind


class UndoPause:
    """Tells whether a call may be taken back now, and for which time of it nobody waits.

    A pause from before the command, which is not interrupted, holds only what needs motion: that does not begin. A
    pause that is ordered meanwhile is the newer word: everything waits until an operator ends it.
    """

    def __init__(self, control: Control, emit: Emit, needs_motion: Callable[[UndoEntry], bool]) -> None:
        """The command begins now. ``needs_motion`` returns whether the robot has to move to take a call back."""
        self._control = control
        self._emit = emit
        self._needs_motion = needs_motion
        self._pauses = control.pauses

    @property
    def came_meanwhile(self) -> bool:
        """True if the agent is paused since the command has begun, because that was ordered."""
        return self._control.paused and self._control.pauses != self._pauses

    def forbids(self, entry: UndoEntry) -> bool:
        """Return whether the robot is held still though it has to move to take a call back."""
        return self._control.paused and self._needs_motion(entry)

    def stops_time(self, entry: UndoEntry) -> bool:
        """Return whether the time does not count that it takes to take a call back."""
        return self.came_meanwhile or self.forbids(entry)

    async def over(self) -> None:
        """Wait for the end of a pause that came meanwhile."""
        if self.came_meanwhile:
            self._emit(EventKind.NOTE, (), text="What is still to be taken back waits for `resume`")
        while self.came_meanwhile:
            await self._control.unpaused()
