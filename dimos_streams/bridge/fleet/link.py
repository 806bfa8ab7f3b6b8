"""The link of a bridge to a fleet hub: all its parts, and their state."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable
from typing import Any

from starlette.types import ASGIApp

from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.bridge.fleet.answers import AnswerBox
from dimos_streams.bridge.fleet.command_notes import CommandNotes
from dimos_streams.bridge.fleet.commands import CommandDesk
from dimos_streams.bridge.fleet.connection import HubConnection
from dimos_streams.bridge.fleet.door import Door
from dimos_streams.bridge.fleet.earlier_commands import earlier_commands
from dimos_streams.bridge.fleet.link_context import LinkContext
from dimos_streams.bridge.fleet.reporter import HubReporter
from dimos_streams.bridge.fleet.run_journals import ROBOT_NOTE
from dimos_streams.bridge.fleet.settings import HubLinkSettings
from dimos_streams.bridge.fleet.shipping.older_journal_shipper import OlderJournalShipper
from dimos_streams.bridge.fleet.shipping.outflow import CurrentJournal
from dimos_streams.bridge.fleet.shipping.shipper import Shipper
from dimos_streams.bridge.fleet.troubles import Troubles
from dimos_streams.common.process.threads import in_executor
from dimos_streams.common.tasks import OwnedTasks
from dimos_streams.journal.broadcast import JournalBroadcast

_FLUSH_S = 0.4
"""Time, in seconds, that a bridge which ends gives to events not shipped yet; the rest is for its next start."""

_logger = logging.getLogger(__name__)


class HubLink:
    """Ships, reports, and takes commands. Use from the loop only. Whatever the hub does, it disturbs no run."""

    def __init__(
        self,
        settings: HubLinkSettings,
        app: ASGIApp,
        broker: Broker,
        broadcast: JournalBroadcast,
        *,
        rng: random.Random,
        notes: Callable[[], list[str]],
    ) -> None:
        """``app`` is the bridge's, without its guard; ``rng`` is for jitter; ``notes`` returns what is not well."""
        self._settings = settings
        self._connection = HubConnection(settings, rng=rng)
        self._troubles = Troubles(_logger, settings.url)
        self._command_notes = CommandNotes(broadcast.journal)
        self._journal = broadcast.journal
        link = LinkContext(self._connection, self._troubles, rng)
        self._shipper = Shipper(
            link, CurrentJournal(broadcast), age_s=settings.age_s, stream=lambda: self._desk.turns
        )
        self._reporter = HubReporter(link, broker, self._journal, notes)
        self._answers = AnswerBox(link, self._command_notes)
        door = Door(app, broker, self._command_notes.last_order)
        self._desk = CommandDesk(link, door, self._command_notes, self._answers)
        self._older = OlderJournalShipper(
            link, self._shipper, self._journal.path, settings.robot, process=lambda: self._desk.hub
        )
        self._tasks = OwnedTasks()

    def start(self) -> None:
        """Begin, with what is left of an earlier start."""
        self._command_notes.restore()
        self._answers.restore()
        self._journal.note(ROBOT_NOTE, self._settings.robot)
        self._tasks.spawn(self._shipper.run(), name="hub events")
        self._tasks.spawn(self._older.run(), name="hub older journals")
        self._tasks.spawn(self._reporter.run(), name="hub reports")
        self._tasks.spawn(self._answers.run(), name="hub answers")
        self._tasks.spawn(self._take_commands(), name="hub commands")
        _logger.info("ships to the hub %s as %s", self._settings.url, self._settings.robot)

    async def _take_commands(self) -> None:
        """Take commands until cancelled, with what other runs of the robot have taken before."""
        if (path := self._journal.path) is not None:
            try:
                earlier = await in_executor(None, earlier_commands, path, self._settings.robot)
                self._command_notes.take_over(earlier.calls, earlier.orders)
            except OSError as error:
                _logger.warning("the commands of earlier runs can't be read: %s", error)
        await self._desk.run()

    async def stop(self) -> None:
        """Take no commands any more, and ship nothing for now. Twice is fine."""
        await self._tasks.end()

    async def finish(self) -> None:
        """Ship what has come until the end, as far as that goes within a moment. Twice is fine."""
        await self.stop()
        if not self._troubles.text:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FLUSH_S):
                    await self._shipper.flush()
        self._connection.close()

    def view(self) -> dict[str, Any]:
        """The state of the link, for ``/healthz``."""
        state = self._shipper.state()
        return {
            "url": self._settings.url,
            "robot": self._settings.robot,
            "behind": state.behind,
            "acknowledged": state.acknowledged,
            "acknowledged_age_s": None if state.age_s is None else round(state.age_s, 1),
            "commands": self._desk.connected,
            "trouble": self._troubles.text,
        }
