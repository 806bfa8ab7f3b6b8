"""A dialogue with the operator that has the agent for itself: nothing else begins until it is over."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable

from dimos_streams.agent.missions.message_queue import OperatorInput
from dimos_streams.agent.missions.mission import retain_all
from dimos_streams.agent.record.agent_events import Emit, EventKind
from dimos_streams.common.listeners import Listeners
from dimos_streams.common.readable.shortening import beginning
from dimos_streams.operator.known_names import ANSWER

_MAX_INPUTS = 100
_SHOWN = 3500
"""Maximum length of a question in its note, in characters: what says how it is answered has room behind it."""


class Dialogue:
    """The operator's ear and mouth, for the code that holds the dialogue."""

    def __init__(self, emit: Emit, missions: tuple[str, ...], changed: Callable[[], None]) -> None:
        """``changed`` is called when it asks something, and when that is no longer asked."""
        self._emit = emit
        self._missions = missions
        self._changed = changed
        self._inputs: deque[OperatorInput] = deque()
        self._arrived = asyncio.Event()
        self.listening = False
        """True while it waits for the operator's next input."""
        self.question = ""
        """The question that waits for the operator's answer; empty if none does."""
        self.heard: list[OperatorInput] = []

    def say(self, text: str) -> None:
        """Say something to the operator."""
        self._emit(EventKind.NOTE, self._missions, text=text, foreground=True)

    async def listen(self, timeout_s: float | None = None) -> str:
        """Return the operator's next input. Raises ``TimeoutError`` if none comes in time."""
        async with asyncio.timeout(timeout_s):
            while True:
                while not self._inputs:
                    await self._next_arrival()
                input = self._inputs.popleft()
                self.heard.append(input)
                if not input.withdrawn:
                    return input.text

    async def _next_arrival(self) -> None:
        self._arrived.clear()
        self.listening = True
        try:
            await self._arrived.wait()
        finally:
            self.listening = False

    async def ask(self, question: str, timeout_s: float | None = None) -> str:
        """Ask the operator, and return the next input. What was said before the question does not answer it. The
        note that has the question says how it is answered."""
        self.heard.extend(self._inputs)
        self._inputs.clear()
        self.say(f"{beginning(question, _SHOWN)}\n{ANSWER}")
        self._show(question)
        try:
            return await self.listen(timeout_s)
        finally:
            self._show("")

    def _show(self, question: str) -> None:
        self.question = question
        self._changed()

    def hear(self, input: OperatorInput) -> bool:
        """Take in input; for ``Foreground``. Return False if too much waits."""
        if len(self._inputs) >= _MAX_INPUTS:
            return False
        retain_all(input.missions)
        self._inputs.append(input)
        self.listening = False
        self._arrived.set()
        return True

    def unheard(self) -> list[OperatorInput]:
        """The inputs that nobody has listened to."""
        return list(self._inputs)


class Foreground:
    """Gives the operator to one dialogue after the other.

    While one is held, the operator's input goes to it and not to the agent's queue, and the agent's loop begins no
    turn: updates and results of calls wait, and come together when it is over. Calls that run go on.
    """

    def __init__(self, emit: Emit, put_back: Callable[[OperatorInput], None]) -> None:
        """``put_back`` gets input that a dialogue left."""
        self._emit = emit
        self._put_back = put_back
        self.changed: Listeners[[]] = Listeners()
        """Called when a dialogue begins or ends, and when its question comes or goes."""
        self._turn = asyncio.Lock()
        self._current: Dialogue | None = None

    @property
    def busy(self) -> bool:
        """True if a dialogue is held."""
        return self._current is not None

    @property
    def listening(self) -> bool:
        """True if the dialogue that is held takes the operator's next input at once."""
        return self._current is not None and self._current.listening

    @property
    def question(self) -> str:
        """The question of the dialogue that is held, which waits for the operator's answer; empty if none does."""
        return "" if self._current is None else self._current.question

    def take_input(self, input: OperatorInput) -> bool:
        """Give the operator's input to the dialogue that is held. Return False if there is none, or if too much waits
        there."""
        return self._current is not None and self._current.hear(input)

    @contextlib.asynccontextmanager
    async def dialogue(self, missions: tuple[str, ...] = ()) -> AsyncIterator[Dialogue]:
        """Hold the foreground; wait while another dialogue has it. What it says belongs to ``missions``."""
        async with self._turn:
            dialogue = self._current = Dialogue(self._emit, missions, self.changed.notify)
            self._emit(EventKind.FOREGROUND, missions, held=True)
            self.changed.notify()
            try:
                yield dialogue
            finally:
                self._current = None
                self._emit(EventKind.FOREGROUND, missions, held=False)
                self._close(dialogue)
                self.changed.notify()

    def _close(self, dialogue: Dialogue) -> None:
        for input in dialogue.unheard():
            self._put_back(input)
        for input in (*dialogue.unheard(), *dialogue.heard):
            for mission in input.missions:
                if input in dialogue.heard:
                    mission.end_state.note_answered()
                mission.release()
