"""A dialogue with the operator that has the agent for itself: nothing else begins until it is over."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable

from dimos_streams.agent.missions.message_queue import OperatorInput
from dimos_streams.agent.policies.gates.base import Emit

_MAX_WORDS = 100


class Dialogue:
    """The operator's ear and mouth, for who holds it."""

    def __init__(self, emit: Emit, missions: tuple[str, ...]) -> None:
        self._emit = emit
        self._missions = missions
        self._words: deque[OperatorInput] = deque()
        self._arrived = asyncio.Event()
        self.heard: list[OperatorInput] = []

    def say(self, text: str) -> None:
        """Say something to the operator."""
        self._emit("note", self._missions, text=text, foreground=True)

    async def listen(self, timeout_s: float | None = None) -> str:
        """The operator's next words. Raises ``TimeoutError``."""
        async with asyncio.timeout(timeout_s):
            while True:
                while not self._words:
                    self._arrived.clear()
                    await self._arrived.wait()
                words = self._words.popleft()
                self.heard.append(words)
                if not words.withdrawn:
                    return words.text

    async def ask(self, question: str, timeout_s: float | None = None) -> str:
        """Ask the operator, and wait for the next words. What was said before the question does not answer it."""
        self.heard.extend(self._words)
        self._words.clear()
        self.say(question)
        return await self.listen(timeout_s)

    def take(self, words: OperatorInput) -> bool:
        """Hear words; for ``Foreground``. False if too many wait."""
        if len(self._words) >= _MAX_WORDS:
            return False
        for mission in words.missions:
            mission.hold()
        self._words.append(words)
        self._arrived.set()
        return True

    def unheard(self) -> list[OperatorInput]:
        """What nobody has listened to."""
        return list(self._words)


class Foreground:
    """Gives the operator to one dialogue after the other.

    While one is held, the operator's words go to it and not to the agent's queue, and the agent's loop begins no
    turn: updates and results of calls wait, and come together when it is over. Calls that run go on.
    """

    def __init__(
        self,
        emit: Emit,
        put_back: Callable[[OperatorInput], None],
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        """``put_back`` gets words that a dialogue left; ``on_change`` hears when one begins or ends."""
        self._emit = emit
        self._put_back = put_back
        self._on_change = on_change
        self._turn = asyncio.Lock()
        self._current: Dialogue | None = None

    @property
    def busy(self) -> bool:
        """Whether a dialogue is held."""
        return self._current is not None

    def take_input(self, words: OperatorInput) -> bool:
        """Give the operator's words to the dialogue that is held; False if there is none."""
        return self._current is not None and self._current.take(words)

    @contextlib.asynccontextmanager
    async def dialogue(self, missions: tuple[str, ...] = ()) -> AsyncIterator[Dialogue]:
        """Hold the foreground; waits while another dialogue has it. ``missions`` hear what it says."""
        async with self._turn:
            dialogue = self._current = Dialogue(self._emit, missions)
            self._emit("foreground", missions, held=True)
            self._on_change()
            try:
                yield dialogue
            finally:
                self._current = None
                self._emit("foreground", missions, held=False)
                self._close(dialogue)
                self._on_change()

    def _close(self, dialogue: Dialogue) -> None:
        for words in dialogue.unheard():
            self._put_back(words)
        for words in (*dialogue.unheard(), *dialogue.heard):
            for mission in words.missions:
                if words in dialogue.heard and not mission.reason:
                    mission.reason = "answered"
                mission.release()
