"""A stop: it ends all that the agent does, and the calls of others that move its robot or are of skills that it is
offered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from dimos_streams.agent.control.others_calls import EndedOthers
from dimos_streams.agent.control.reports import AbortReport
from dimos_streams.agent.control.stop_words import StopWords
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.agent.work import AgentWork
from dimos_streams.common.readable.plural import plural
from dimos_streams.errors import SkillError
from dimos_streams.operator.messages.hold import HoldView

_SHOWN = 200
_LISTED = 10
"""Number of calls that a text names."""


@dataclass(frozen=True, slots=True)
class StopOrder:
    """The order to stop, as an operator says it, and what it does."""

    words: StopWords
    names: Callable[[], Iterable[str]]
    """Returns the names by which the agent and its robots may be called."""
    work: AgentWork

    def is_said_by(self, text: str) -> bool:
        """Return whether an operator's input is this order."""
        return self.words.match(text, self.names())

    async def carry_out(self, id: str, input: str) -> str:
        """End all that the agent does, and the calls of others that move its robot or are of skills that it is
        offered; hold the robot meanwhile. Return a text about what was done. ``id`` is the call of ``say`` that asks
        for it.

        The model's stream is cut when this begins, before anything is waited for. Raises ``SkillError``, which names
        calls that may still run; the agent is paused then. It also raises ``SkillError`` unless each velocity gate
        has said that it held the robot, as for an abort.
        """
        reason = f"the operator said {input[:_SHOWN]!r}"
        loop, oversight = self.work.loop, self.work.loop.parts.oversight
        oversight.robot_stops.say_stopped()
        abort = loop.begin_abort(reason, others=partial(oversight.others.end, reason))
        ending: asyncio.Task[EndedOthers] = abort.others[-1]
        abort.on_end.append(lambda report: self._record(id, input, _text(report, ending.result())))
        with oversight.hold_reasons.stopping():
            report = await asyncio.shield(abort.done)
        others = ending.result()
        text = _text(report, others)
        running = [*report.unfinished, *others.may_run]
        if running:
            raise SkillError(f"{text}; may still run: {_listed(running)}; the agent stays paused")
        if not report.confirmed:
            raise SkillError(text)
        return text

    def _record(self, id: str, input: str, text: str) -> None:
        """Record the stop as a mission that is over, so that no successor takes it up again."""
        missions = self.work.missions
        if missions.was_begun_before(id):
            return
        mission = missions.begin(id, input, is_done=True)
        mission.retain()
        emit = self.work.loop.parts.transcript.emit
        emit(EventKind.INPUT, (id,), text=input)
        emit(EventKind.ANSWER, (id,), text=f"[{text}]", finish="stopped", tool_calls=[])
        mission.end_state.note_turn_end(text, "completed", "", heard=True)
        mission.release()


def _text(report: AbortReport, others: EndedOthers) -> str:
    """A text about what was done, for the operator and the model. How the robot was held stands behind a list that
    may be long, so only the list's beginning is shown."""
    calls = len(report.cancelled) + len(others.ended)
    missions = len(report.missions)
    none = "no call ended" if report.unfinished or others.may_run else "no call ran"
    done = [
        f"{plural(calls, 'call')} ended" if calls else none,
        *([f"{plural(missions, 'mission')} ended"] if missions else []),
    ]
    theirs = _listed([f"{view.skill} of {view.caller}" for view in others.ended])
    text = f"stopped: {', '.join(done)}{f' (also {theirs})' if theirs else ''}"
    paused = "; the agent stays paused" if report.stays_paused else ""
    return f"{text}; the robot was {HoldView.__str__(report)}{paused}"


def _listed(items: Sequence[str]) -> str:
    left = len(items) - _LISTED
    return ", ".join([*items[:_LISTED], *([f"and {left} more"] if left > 0 else [])])
