"""A stop: it ends all that the agent does, and the calls of others that move its robot or are of skills that it is
offered."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from dimos_streams import clock
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
    abort = core.loop.begin_abort(reason, others=True)
    abort.on_end.append(lambda report: _record(core, id, input, _text(report, [])))
    core.stops += 1
    core.robot_hold.changed()
    try:
        (ended, left), report = await asyncio.gather(end_others(core, reason), asyncio.shield(abort.done))
    finally:
        core.stops -= 1
        core.robot_hold.changed()
    text = _text(report, ended)
    running = [*report.unfinished, *(view.call_id for view in left)]
    if running:
        raise SkillError(f"{text}; may still run: {', '.join(running)}; the agent stays paused")
    if not report.confirmed:
        raise SkillError(text)
    return text


async def end_others(core: AgentCore, reason: str) -> tuple[list[CallView], list[CallView]]:
    """End what other callers have begun. Return the calls that ended, and those that had not within the bound, for
    which the agent is paused. If the bridge can't be asked, that is logged: the calls that were asked to end in
    earlier rounds then count as ended, and none as left."""
    ended, left = await _end_calls(core, reason)
    if left:
        core.control.pause("calls of others may still run")
    return ended, left


async def _end_calls(core: AgentCore, reason: str) -> tuple[list[CallView], list[CallView]]:
    deadline = clock.monotonic() + core.loop.parts.budget.settings.abort_bound_s
    ended: dict[str, CallView] = {}
    await core.offers.refresh(at_once=True)
    try:
        while True:
            views = await core.gateway.calls(open_only=True)
            theirs = (view for view in views if view.caller != core.name and core.offers.concerns(view.skill))
            left = {view.call_id: view for view in theirs}
            for call_id in left.keys() - ended.keys():
                await core.gateway.cancel(call_id, reason)
            ended.update(left)
            if not left or clock.monotonic() >= deadline:
                return [view for call_id, view in ended.items() if call_id not in left], list(left.values())
            await asyncio.sleep(_LOOK_EVERY_S)
    except SkillError as error:
        _logger.error("calls of others can't be ended: %s", error)
        return list(ended.values()), []


def _record(core: AgentCore, id: str, input: str, text: str) -> None:
    """Record the stop as a mission that is over, so that no successor takes it up again."""
    mission = core.begin(id, input, is_done=True)
    mission.hold()
    core.events.emit(EventKind.INPUT, (id,), text=input)
    core.events.emit(EventKind.ANSWER, (id,), text=f"[{text}]", finish="stopped", tool_calls=[])
    mission.text, mission.reason = text, "completed"
    mission.release()


def _text(report: AbortReport, others: list[CallView]) -> str:
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
