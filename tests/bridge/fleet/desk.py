"""A desk that carries out the commands of a hub in a test."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator
from typing import Any

from dimos_streams.bridge.app import create_app
from dimos_streams.bridge.fleet.answers import AnswerBox
from dimos_streams.bridge.fleet.command_notes import CommandNotes
from dimos_streams.bridge.fleet.commands import CommandDesk
from dimos_streams.bridge.fleet.door import Door
from dimos_streams.bridge.fleet.earlier_commands import EarlierCommands
from dimos_streams.bridge.fleet.link_context import LinkContext
from dimos_streams.bridge.fleet.troubles import Troubles
from dimos_streams.fleet.commands import Answer
from tests.bridge.fleet.fake_hub import FakeHub
from tests.bridge.scene import Scene
from tests.helpers import until


@contextlib.asynccontextmanager
async def desk(made: Scene, hub: FakeHub, earlier: EarlierCommands | None = None) -> AsyncIterator[CommandDesk]:
    """A desk for the commands of a hub to a bridge, after what other runs of the robot have taken."""
    bridge = made.bridge
    troubles, notes = Troubles(logging.getLogger("hub"), "http://hub"), CommandNotes(bridge.journal)
    link = LinkContext(hub, troubles, random.Random(1))
    answers = AnswerBox(link, notes)
    door = Door(create_app(bridge.broker, bridge.broadcast), bridge.broker, notes.last_order)
    made_desk = CommandDesk(link, door, notes, answers)
    notes.restore()
    if earlier is not None:
        notes.take_over(earlier.calls, earlier.orders)
    answers.restore()
    tasks = [asyncio.get_running_loop().create_task(work) for work in (made_desk.run(), answers.run())]
    try:
        await until(lambda: made_desk.connected)
        yield made_desk
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def answer_to(hub: FakeHub, id: int) -> Answer:
    await until(lambda: any(answer.id == id for answer in hub.answers), timeout_s=600.0)
    return next(answer for answer in hub.answers if answer.id == id)


def call(skill: str, caller: str = "me", **arguments: Any) -> dict[str, Any]:
    return {"skill": skill, "arguments": arguments, "caller": caller}
