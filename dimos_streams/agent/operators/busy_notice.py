"""The notice for an operator whose input has to wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dimos_streams.agent.control.control import Mode
from dimos_streams.agent.loop.states import LoopState
from dimos_streams.agent.policies.approval_texts import ways_to
from dimos_streams.common.readable.shortening import beginning
from dimos_streams.operator.reporting import DECISION

if TYPE_CHECKING:
    from dimos_streams.agent.core import AgentCore

_SHOWN = 60
_WITHOUT_WAITING = "`abort` stops now, `say --now` goes before all that waits"
_WORK = {LoopState.SETTLING: "an abort", LoopState.UNDOING: "an undo"}


def waits_behind(core: AgentCore, *, now: bool = False) -> str:
    """Return a text about what new input has to wait for, and how not to; empty if it is heard at once.

    ``now`` is for input that goes before all that waits, but not before the end of a pause, of an abort or of an
    undo.
    """
    turn = core.loop.turn is not None
    work = "" if now and turn else _work(core)
    behind = [_pause(core), *([work] if now else [_dialogue(core), work, _messages(core)])]
    found = " and ".join(part for part in behind if part)
    if not found:
        return ""
    if core.control.mode is Mode.PAUSED:
        return f"waiting behind {found}: `resume` lets it be heard, `abort` drops it"
    return f"waiting behind {found}" if now else f"waiting behind {found}; {_WITHOUT_WAITING}"


def _pause(core: AgentCore) -> str:
    return "the pause" if core.control.mode is Mode.PAUSED else ""


def _dialogue(core: AgentCore) -> str:
    return "a dialogue" if core.foreground.busy else ""


def _work(core: AgentCore) -> str:
    turn = core.loop.turn
    if turn is None:
        return _WORK.get(core.loop.state, "")
    input = next((mission.input for mission in reversed(turn.missions) if mission.input), "")
    shown = beginning(input, _SHOWN)
    what = f"the turn on {shown!r}" if shown else "a turn on what calls have to say"
    pending = core.books.approvals.pending()
    return f"{what}, while a call waits for {DECISION} ({ways_to(pending[0].reference)})" if pending else what


def _messages(core: AgentCore) -> str:
    waiting = len(core.queue)
    return f"{waiting} message{'s'[: waiting != 1]}" if waiting else ""
