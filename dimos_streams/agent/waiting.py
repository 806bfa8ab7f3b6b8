"""What an operator is told whose words have to wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dimos_streams.agent.states import LoopState

if TYPE_CHECKING:
    from dimos_streams.agent.core import AgentCore

_SHOWN = 60
_WORK = {LoopState.SETTLING: "an abort", LoopState.UNDOING: "an undo"}


def waits_behind(core: AgentCore) -> str:
    """What new words have to wait for, and how not to; empty if they are heard at once."""
    behind = [part for part in (_mode(core), _work(core), _messages(core)) if part]
    if not behind:
        return ""
    return f"waiting behind {' and '.join(behind)}; `abort` stops now, `say --now` goes before all that waits"


def _mode(core: AgentCore) -> str:
    if core.control.paused:
        return "the pause (`resume` ends it)"
    return "a dialogue" if core.foreground.busy else ""


def _work(core: AgentCore) -> str:
    turn = core.loop.turn
    if turn is None:
        return _WORK.get(core.loop.state, "")
    words = next((mission.words for mission in reversed(turn.missions) if mission.words), "")
    shown = f"{words[:_SHOWN]}…" if len(words) > _SHOWN else words
    return f"the turn on {shown!r}" if shown else "a turn on what calls have to say"


def _messages(core: AgentCore) -> str:
    waiting = len(core.queue)
    return f"{waiting} message{'s'[: waiting != 1]}" if waiting else ""
