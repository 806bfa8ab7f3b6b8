"""The operator's hand on the loop: pause, resume, one call at a time."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from dimos_streams import clock
from dimos_streams.agent.policies.canonical import shown
from dimos_streams.agent.record.agent_events import Emit, EventKind
from dimos_streams.agent.record.event_data.operators import StepGo, StepOn, StepWaits
from dimos_streams.common.listeners import Listeners
from dimos_streams.common.readable.reasons import joined_reasons
from dimos_streams.common.readable.shortening import beginning
from dimos_streams.errors import ConflictError
from dimos_streams.operator.messages.agent import WaitingCall
from dimos_streams.tool_stream.protocol.bounds import MAX_REASON

_SHOWN = 200
"""Maximum length of ids in an error, in characters."""


class Mode(enum.StrEnum):
    """The way in which calls may begin. An operator may go from each mode to each other, at any time."""

    RUNNING = "running"
    """Calls begin at once."""
    PAUSED = "paused"
    """No call begins; nor do turns and iterations. The robot is held still."""
    STEPPING = "stepping"
    """Calls begin one by one, each when the operator has seen it and lets it go."""


class Control:
    """Lets calls begin, or wait: in the order in which they came, none for ever once the mode allows it."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        # The moment is in the ids so that those of a restarted agent are new.
        self._prefix = f"{clock.utime():x}"
        self._numbers = itertools.count(1)
        self.changed: Listeners[[]] = Listeners()
        """Called at each change that may let something go on, or that operators see."""
        self._mode = Mode.RUNNING
        self._paused_for = ""
        self._interrupted = False
        self._changes = 0
        """The number of changes of the mode so far."""
        self._pauses = 0
        self._waiting: dict[asyncio.Future[None], CallPermit] = {}
        """The permits that are waited for, oldest first, by futures that are set when the call may go."""
        self._resumed: list[asyncio.Future[None]] = []
        self._typing: asyncio.TimerHandle | None = None
        """The end of the time in which an operator is in the middle of a sentence; None if none is."""

    @property
    def mode(self) -> Mode:
        """The mode as the operator has set it."""
        return self._mode

    @property
    def paused(self) -> bool:
        """True if nothing may begin and the robot has to be still; False while the pause is ``interrupted``."""
        return self._mode is Mode.PAUSED and not self._interrupted

    @property
    def paused_for(self) -> str:
        """Why the agent is paused and who has paused it, as far as they have said so; empty in any other mode."""
        return self._paused_for

    @property
    def pauses(self) -> int:
        """The number of pauses that were ordered so far, also while the agent was paused already."""
        return self._pauses

    @property
    def waiting(self) -> tuple[WaitingCall, ...]:
        """Calls that wait for the operator, oldest first."""
        return tuple(permit.call for permit in self._waiting.values())

    def pause(self, reason: str = "", *, ordered: bool = True) -> bool:
        """Begin nothing from now on. Return False if that was so already: the reasons then stand side by side.
        ``ordered`` is False if the agent pauses by itself, because something may still move the robot."""
        self._pauses += ordered
        before, self._paused_for = self._paused_for, joined_reasons(reason, self._paused_for, MAX_REASON)
        if self._enter(Mode.PAUSED, self._log_pause):
            return True
        if self._paused_for != before:
            self._log_pause(self._mode.value)  # for a successor, who reads only the newest pause
        self.changed.notify()
        return False

    def resume(self, reason: str = "") -> bool:
        """Let everything go on, and end step mode. Return False if nothing was held."""
        return self._enter(Mode.RUNNING, lambda was: self._emit(EventKind.RESUME, (), was=was, reason=reason))

    @contextlib.contextmanager
    def interrupted(self, why: str) -> Iterator[None]:
        """Let the robot go during a pause, for a command of the operator that moves it.

        The mode stays what it is, here and in the record: what waits goes on waiting, and the successor of a process
        that dies meanwhile is paused. Only calls that a call asks for begin: no call may be open then but those of
        the command. Each change of the mode ends it, and so does another ``pause``.
        """
        self._interrupted = True
        self._emit(EventKind.NOTE, (), text=f"The robot is not held in spite of the pause: {why}")
        self.changed.notify()
        try:
            yield
        finally:
            if self._interrupted:
                self.pause("as before calls were taken back", ordered=False)

    def end_interruption(self, reason: str) -> None:
        """Hold the robot again, if its hold is ``interrupted``: a pause of its own, which an operator has to end."""
        if self._interrupted:
            self.pause(reason)

    def step_mode(self) -> bool:
        """Let calls begin only by ``step``. Return False if that was so already."""
        return self._enter(Mode.STEPPING, lambda was: self._emit(EventKind.STEP, (), StepOn(was=was, phase="on")))

    def step(self, waiting: str = "") -> WaitingCall | None:
        """Let one waiting call go, and no other; enter step mode. Return that call, or None if there was none.

        ``waiting`` is the id of the call that the operator has seen; if it is empty, the oldest one is meant. A step
        is not kept for a call that comes later, nor for longer than the mode lasts. Raises ``ConflictError``, and
        changes nothing, if the one that was seen does not wait any more.
        """
        found = self._find_waiting(waiting)
        if waiting and found is None:
            seen = repr(beginning(waiting, _SHOWN))
            ids = beginning(", ".join(call.id for call in self.waiting) or "none", _SHOWN)
            raise ConflictError(f"no call {seen} waits any more, and no other one was let go (waiting: {ids})")
        self.step_mode()
        if found is None:
            return None
        future, permit = found
        permit.step(self._changes)
        future.set_result(None)
        call = permit.call
        go = StepGo(phase="go", skill=call.skill, tool_call_id=call.tool_call_id, waiting=call.id)
        self._emit(EventKind.STEP, (), go)
        return call

    def _find_waiting(self, id: str) -> tuple[asyncio.Future[None], CallPermit] | None:
        """Return the waiting call of an id, or the oldest one if that is empty; None if there is none."""
        waiting = ((future, permit) for future, permit in self._waiting.items() if not future.done())
        return next((each for each in waiting if id in ("", each[1].call.id)), None)

    def permit(
        self,
        skill: str,
        arguments: Mapping[str, Any],
        tool_call_id: str = "",
        missions: tuple[str, ...] = (),
        parent: str = "",
    ) -> CallPermit:
        """The permit of a call to begin, to be waited for. ``parent`` is the call that asks for it; empty if none
        does."""
        call = WaitingCall(
            id=f"{self._prefix}-{next(self._numbers)}",
            skill=skill,
            arguments=dict(arguments),
            tool_call_id=tool_call_id,
            parent=parent,
        )
        return CallPermit(self, call, missions)

    def may_begin(self, call: WaitingCall, stepped_at: int | None) -> bool:
        """Return whether a call may begin. ``stepped_at`` is the number of changes of the mode at which a step let it
        go, or None if none did."""
        stepped = self._mode is Mode.STEPPING and stepped_at == self._changes
        return self._mode is Mode.RUNNING or stepped or (self._interrupted and bool(call.parent))

    async def wait_for(self, permit: CallPermit) -> None:
        """Wait until the mode changes, or a step is for this call."""
        if self._mode is Mode.STEPPING:
            self._show(permit.call, permit.missions)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[future] = permit
        try:
            await future
        finally:
            del self._waiting[future]

    async def unpaused(self) -> None:
        """Wait while the agent is paused. When this returns, it is not, until the caller awaits something."""
        while self._mode is Mode.PAUSED:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._resumed.append(future)
            try:
                await future
            finally:
                self._resumed.remove(future)

    def typing(self, for_s: float) -> None:
        """Note that the operator is in the middle of a sentence: no turn begins for ``for_s`` seconds, or until it
        was said."""
        if self._typing is not None:
            self._typing.cancel()
        self._typing = asyncio.get_running_loop().call_later(for_s, self.typed)

    def typed(self) -> None:
        """Note that the sentence was said, or took too long."""
        if self._typing is not None:
            self._typing.cancel()
            self._typing = None
        self.changed.notify()

    def may_begin_turn(self) -> bool:
        """Return whether the loop, if it is idle, may take what waits."""
        return self._mode is not Mode.PAUSED and self._typing is None

    def _enter(self, mode: Mode, log: Callable[[str], object]) -> bool:
        """Change the mode; ``log`` logs that, with the one before. Return False if nothing has changed."""
        if mode is self._mode and not self._interrupted:
            return False
        was, self._mode, self._interrupted = self._mode, mode, False
        self._paused_for = self._paused_for if mode is Mode.PAUSED else ""
        self._changes += 1
        log(was.value)
        if mode is Mode.STEPPING:
            for permit in self._waiting.values():
                self._show(permit.call, ())
        if mode is Mode.RUNNING:
            _let_go(self._waiting)
        if mode is not Mode.PAUSED:
            _let_go(self._resumed)
        self.changed.notify()
        return True

    def _log_pause(self, was: str) -> None:
        self._emit(EventKind.PAUSE, (), was=was, reason=self._paused_for)

    def _show(self, call: WaitingCall, missions: tuple[str, ...]) -> None:
        waits = StepWaits(
            phase="waits",
            skill=call.skill,
            arguments=call.arguments,
            tool_call_id=call.tool_call_id,
            parent=call.parent,
            waiting=call.id,
        )
        self._emit(EventKind.STEP, missions, waits)
        what = shown(call.skill, call.arguments)
        self._emit(
            EventKind.NOTE,
            missions,
            text=f"{what} waits: `step {call.id}` lets it go, `step off` all calls, `abort` drops it",
        )


class CallPermit:
    """The operator's permit for one call to begin; see ``Permit``.

    It holds while the agent runs; in step mode it holds once a step was for this call, until the mode changes.
    """

    def __init__(self, control: Control, call: WaitingCall, missions: tuple[str, ...]) -> None:
        self.call = call
        self.missions = missions
        self._control = control
        self._stepped_at: int | None = None

    @property
    def holds(self) -> bool:
        """See ``Permit``."""
        return self._control.may_begin(self.call, self._stepped_at)

    def step(self, changes: int) -> None:
        """Note that the operator has let the call go, when the mode had changed ``changes`` times."""
        self._stepped_at = changes

    async def wait(self) -> None:
        """See ``Permit``."""
        while not self.holds:
            await self._control.wait_for(self)


def _let_go(futures: Iterable[asyncio.Future[None]]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)
