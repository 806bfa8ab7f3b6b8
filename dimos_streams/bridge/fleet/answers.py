"""The answers to a hub's commands, on their way until the hub has them."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict

from dimos_streams.bridge.fleet.attempts import FAILURES, Attempts
from dimos_streams.bridge.fleet.command_notes import CommandNotes
from dimos_streams.bridge.fleet.hub_requests import HubRefusalError
from dimos_streams.bridge.fleet.link_context import LinkContext
from dimos_streams.fleet.commands import Answer
from dimos_streams.fleet.protocol import FLEET_VERSION, FOREIGN_ROBOT

_MAX_OWED = 1000
"""Maximum number of answers that wait. When more wait, the hub has forgotten the commands of the oldest."""
_PASSING = (FOREIGN_ROBOT, FLEET_VERSION, "token-needed", "")
"""Kinds of refusals that are about the robot or the hub, not about one answer; empty if no hub answers."""

_logger = logging.getLogger(__name__)


class AnswerBox:
    """Answers by the ids of their commands. Those to commands that are noted outlive a restart."""

    def __init__(self, link: LinkContext, notes: CommandNotes) -> None:
        self._hub = link.hub
        self._notes = notes
        self._attempts = Attempts(link, "answers", initial_s=0.2, longest_s=10.0)
        self._owed: OrderedDict[int, tuple[Answer, str | None]] = OrderedDict()
        self._arrived = asyncio.Event()

    def restore(self) -> None:
        """Send what is owed since before a restart."""
        for key, answer in self._notes.owed():
            self.put(answer, key)

    def put(self, answer: Answer, key: str | None = None) -> None:
        """Send an answer. ``key`` is that of its command, if it is noted."""
        self._owed[answer.id] = answer, key
        while len(self._owed) > _MAX_OWED:
            forgotten, (_, its_key) = self._owed.popitem(last=False)
            self._note_delivered(forgotten, its_key)
        self._arrived.set()

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            if not self._owed:
                self._arrived.clear()
                await self._arrived.wait()
            command_id, (answer, key) = next(iter(self._owed.items()))
            try:
                await self._hub.answer(answer)
            except FAILURES as error:
                if not isinstance(error, HubRefusalError) or error.kind in _PASSING:
                    if command_id in self._owed:  # one that makes the hub fail holds no other up
                        self._owed.move_to_end(command_id)
                    await self._attempts.pause_after(error)
                    continue
                _logger.warning("the hub does not take the answer to command %d: %s", command_id, error)
            self._attempts.reset()
            self._owed.pop(command_id, None)
            self._note_delivered(command_id, key)

    def _note_delivered(self, command_id: int, key: str | None) -> None:
        if key is not None:
            self._notes.note_delivered(key, command_id)
