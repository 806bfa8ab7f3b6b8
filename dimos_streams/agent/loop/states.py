"""The loop's states and the transitions between them, stated once; ``docs/agent-loop.md`` shows the same table."""

from __future__ import annotations

import enum

from dimos_streams.common.listeners import Listeners


class LoopState(enum.StrEnum):
    """The state of the loop. Whether it is paused is another matter: see ``control.Mode``."""

    IDLE = "idle"
    """The loop waits for messages, or for what keeps it from taking them."""
    STREAMING = "streaming"
    """An iteration has begun: the model answers."""
    EXECUTING = "executing"
    """The calls that the answer asks for are reviewed, run, and waited for."""
    SETTLING = "settling"
    """An abort is under way: what was in flight is cancelled and waited for, within a bound."""
    UNDOING = "undoing"
    """Calls are taken back, newest first."""
    CLOSED = "closed"
    """The loop has ended for good."""


_S = LoopState

TRANSITIONS: dict[LoopState, frozenset[LoopState]] = {
    _S.IDLE: frozenset({_S.STREAMING, _S.SETTLING, _S.UNDOING, _S.CLOSED}),
    _S.STREAMING: frozenset({_S.EXECUTING, _S.IDLE, _S.SETTLING, _S.CLOSED}),
    _S.EXECUTING: frozenset({_S.STREAMING, _S.IDLE, _S.SETTLING, _S.CLOSED}),
    _S.SETTLING: frozenset({_S.IDLE, _S.UNDOING, _S.CLOSED}),
    _S.UNDOING: frozenset({_S.IDLE, _S.SETTLING, _S.CLOSED}),
    _S.CLOSED: frozenset(),
}
"""The states that may follow each state. Staying in a state is not a transition."""


class IllegalTransitionError(RuntimeError):
    """Raised for a bug in the loop: a transition that the table does not have."""

    def __init__(self, old: LoopState, new: LoopState) -> None:
        self.old, self.new = old, new
        ways = ", ".join(sorted(TRANSITIONS[old])) or "nowhere"
        super().__init__(f"the loop can't go from {old.value!r} to {new.value!r} (valid: {ways})")


class StateMachine:
    """The state of a loop."""

    def __init__(self) -> None:
        self._state = LoopState.IDLE
        self.changed: Listeners[[]] = Listeners()
        """Called at each change."""

    @property
    def state(self) -> LoopState:
        """The present state."""
        return self._state

    def go(self, new: LoopState) -> None:
        """Enter a state; entering the present one changes nothing. Raises ``IllegalTransitionError``."""
        old = self._state
        if new is old:
            return
        if new not in TRANSITIONS[old]:
            raise IllegalTransitionError(old, new)
        self._state = new
        self.changed.notify()
