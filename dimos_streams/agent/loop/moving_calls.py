"""The calls that may move the robot, as an undo has to know them."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from dimos_streams.agent.calls.call_manager import CallManager
from dimos_streams.agent.calls.open_call import OpenCall
from dimos_streams.agent.calls.skill_catalog import SkillCatalog
from dimos_streams.agent.control.others_calls import OthersCalls
from dimos_streams.agent.control.undo_log import UndoEntry
from dimos_streams.errors import SkillError
from dimos_streams.tool_stream.family import head_of_family
from dimos_streams.tool_stream.gateway import CallView

_logger = logging.getLogger(__name__)


class MovingCalls:
    """Tells whether taking calls back moves the robot, and which other calls may move it meanwhile."""

    def __init__(self, calls: CallManager, catalog: SkillCatalog, others: OthersCalls) -> None:
        self._calls = calls
        self._catalog = catalog
        self._others = others

    def needed_by(self, entries: Iterable[UndoEntry]) -> bool:
        """Return whether one of the calls moved the robot, or the skill that takes it back does."""
        catalog = self._catalog
        undoable = [entry for entry in entries if entry.reversible and entry.undo in catalog.all]
        return any(catalog.may_move(name) for entry in undoable for name in (entry.skill, entry.undo))

    def own_besides(self, entries: Iterable[UndoEntry]) -> list[OpenCall]:
        """The agent's calls besides these that may run."""
        taken_back = {entry.call_id for entry in entries}
        given_up = self._calls.memory.given_up
        return [call for call in self._calls.known.may_run if call.call_id not in taken_back or call in given_up]

    async def foreign_besides(self, entries: Iterable[UndoEntry]) -> list[CallView]:
        """The open calls besides these, and besides those that the agent knows as its own, that may move the robot.
        Raises ``SkillError``."""
        known = {entry.call_id for entry in entries} | {call.call_id for call in self._calls.known.may_run}
        views = await self._others.moving()
        return [view for view in views if head_of_family(view.call_id) not in known]

    async def may_be_foreign_besides(self, entries: Iterable[UndoEntry]) -> bool:
        """Return whether there are any of ``foreign_besides``, for all that is known."""
        try:
            return bool(await self.foreign_besides(entries))
        except SkillError as error:
            _logger.warning("a pause is not interrupted, since the open calls are not known: %s", error)
            return True
