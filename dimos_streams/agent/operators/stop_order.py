"""A stop: it ends all that the agent does, and the calls of others that move its robot or are of skills that it is
offered."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from dimos_streams.agent.control.commands import AbortReport
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.errors import SkillError
from dimos_streams.operator.messages.hold import HoldView
from dimos_streams.tool_stream.gateway import CallView

if TYPE_CHECKING:
    from dimos_streams.agent.core import AgentCore

_LOOK_EVERY_S = 0.05
_SHOWN = 200
_logger = logging.getLogger(__name__)


async def stop_all(core: AgentCore, id: str, input: str) -> str:
    """End all that the agent does, and the calls of others that move its robot or are of skills that it is offered;
    hold the robot meanwhile. Return a text about what was done. ``id`` is the call of ``say`` that asks for it.

    The model's stream is cut when this begins, before anything is waited for. Raises ``SkillError``, which names
    calls that may still run; the agent is paused then. It also raises ``SkillError`` unless each velocity gate has
    said that it held the robot, as for an abort.
    """
    reason = f"the operator said {input[:_SHOWN]!r}"
    abort = core.loop.begin_abort(reason, others=partial(end_others, core, reason))
    ending: asyncio.Task[EndedOthers] = abort.others[-1]
    abort.on_end.append(lambda report: _record(core, id, input, _text(report, ending.result().ended)))
    core.stops += 1
    core.robot_hold.changed()
    try:
        report = await asyncio.shield(abort.done)
    finally:
        core.stops -= 1
        core.robot_hold.changed()
    others = ending.result()
    text = _text(report, others.ended)
    running = [*report.unfinished, *others.may_run]
    if running:
        raise SkillError(f"{text}; may still run: {', '.join(running)}; the agent stays paused")
    if not report.confirmed:
        raise SkillError(text)
    return text


@dataclass(frozen=True, slots=True)
class EndedOthers:
    """The result for the calls of others that were to end."""

    ended: tuple[CallView, ...]
    """The calls that have ended, as the bridge has said."""
    may_run: tuple[str, ...]
    """The ids of those that had not, as far as the bridge could be asked; and, if it could not, that there may be
    more."""


async def end_others(core: AgentCore, reason: str) -> EndedOthers:
    """End what other callers have begun, and wait for that within the bound. The agent is paused if any of it may
    still run then, also because the bridge can't be asked."""
    ending = _OthersEnding(core, reason)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(core.loop.parts.budget.limits.abort_bound_s):
            await ending.run()
    if ending.may_run:
        core.control.pause("calls of others may still run")
        _logger.error("calls of others may still run: %s", ", ".join((*ending.may_run, *ending.refusals.values())))
    return EndedOthers(tuple(ending.ended), ending.may_run)


class _OthersEnding:
    """Ends what other callers have begun. A request that fails is made again; it keeps no other call running."""

    def __init__(self, core: AgentCore, reason: str) -> None:
        self._core = core
        self._reason = reason
        self._seen: dict[str, CallView] = {}
        self._left: dict[str, CallView] = {}
        self._unheard = "not asked in time"
        """The reason it is not known what runs now, empty if it is."""
        self._asked: set[str] = set()
        self.refusals: dict[str, str] = {}
        """The reasons why calls could not be asked to end, by their ids."""

    @property
    def ended(self) -> list[CallView]:
        """The calls that have ended, as the bridge has said."""
        return [view for call_id, view in self._seen.items() if call_id not in self._left]

    @property
    def may_run(self) -> tuple[str, ...]:
        """The ids of the calls that may still run, and a text if there may be more."""
        return (*self._left, *([f"calls of others ({self._unheard})"] if self._unheard else []))

    async def run(self) -> None:
        """Ask and look until all have ended."""
        await self._core.offers.refresh(at_once=True)
        while True:
            await self._look()
            await asyncio.gather(*map(self._ask, self._left.keys() - self._asked))
            if not self.may_run:
                return
            await asyncio.sleep(_LOOK_EVERY_S)

    async def _look(self) -> None:
        """Look which calls run. If that can't be known, those of the last look count."""
        name, concerns = self._core.name, self._core.offers.concerns
        try:
            views = await self._core.gateway.calls(open_only=True)
        except SkillError as error:
            self._unheard = str(error)
            return
        self._unheard = ""
        self._left = {view.call_id: view for view in views if view.caller != name and concerns(view.skill)}
        self._seen.update(self._left)

    async def _ask(self, call_id: str) -> None:
        try:
            await self._core.gateway.cancel(call_id, self._reason)
        except SkillError as error:
            self.refusals[call_id] = str(error)
            return
        self._asked.add(call_id)
        self.refusals.pop(call_id, None)


def _record(core: AgentCore, id: str, input: str, text: str) -> None:
    """Record the stop as a mission that is over, so that no successor takes it up again."""
    mission = core.begin(id, input, is_done=True)
    mission.hold()
    core.events.emit(EventKind.INPUT, (id,), text=input)
    core.events.emit(EventKind.ANSWER, (id,), text=f"[{text}]", finish="stopped", tool_calls=[])
    mission.end_state.settle(text, "completed", "", heard=True)
    mission.release()


def _text(report: AbortReport, others: Sequence[CallView]) -> str:
    """A text about what was done, for the operator and the model."""
    calls = len(report.cancelled) + len(others)
    missions = len(report.missions)
    done = [
        f"{calls} call{'s'[: calls != 1]} ended" if calls else "no call ran",
        *([f"{missions} mission{'s'[: missions != 1]} ended"] if missions else []),
    ]
    theirs = ", ".join(f"{view.skill} of {view.caller}" for view in others)
    text = f"stopped: {', '.join(done)}{f' (also {theirs})' if theirs else ''}"
    paused = "; the agent stays paused" if report.stays_paused else ""
    return f"{text}; the robot was {HoldView.__str__(report)}{paused}"
