"""The notice for an operator whose input has to wait."""

from __future__ import annotations

from dimos_streams.agent.control.control import Mode
from dimos_streams.agent.loop.loop import AgentLoop
from dimos_streams.agent.loop.states import LoopState
from dimos_streams.agent.policies.approval_texts import ways_to
from dimos_streams.agent.policies.approvals import ApprovalRegistry
from dimos_streams.common.readable.plural import plural
from dimos_streams.common.readable.shortening import beginning
from dimos_streams.operator.known_names import BEHIND_PAUSE, DECISION

_SHOWN = 60
_WITHOUT_WAITING = "`abort` stops now, `say --now` goes before all that waits"
_WORK = {LoopState.SETTLING: "an abort", LoopState.UNDOING: "an undo"}


def waits_behind(loop: AgentLoop, approvals: ApprovalRegistry, *, now: bool) -> str:
    """Return a text about what new input has to wait for, and how not to; empty if it is heard at once.

    ``now`` is for input that goes before all that waits, but not before the end of a pause, of an abort or of an
    undo.
    """
    queue, oversight = loop.parts.queue, loop.parts.oversight
    foreground = oversight.foreground
    if foreground.listening and not now:
        return ""
    paused = oversight.control.mode is Mode.PAUSED
    work = "" if now and loop.turn is not None else _work(loop, approvals)
    dialogue = "a dialogue" if foreground.busy else ""
    behind = [work] if now else [dialogue, work, _messages(len(queue))]
    found = [part for part in behind if part]
    if paused:
        return f"{' and '.join([BEHIND_PAUSE, *found])}: `resume` lets it be heard, `abort` drops it"
    if not found:
        return ""
    waits = f"waiting behind {' and '.join(found)}"
    return waits if now else f"{waits}; {_WITHOUT_WAITING}"


def _work(loop: AgentLoop, approvals: ApprovalRegistry) -> str:
    turn = loop.turn
    if turn is None:
        return _WORK.get(loop.state, "")
    input = next((mission.input for mission in reversed(turn.missions) if mission.input), "")
    shown = beginning(input, _SHOWN)
    what = f"the turn on {shown!r}" if shown else "a turn on what calls have to say"
    pending = approvals.pending()
    return f"{what}, while a call waits for {DECISION} ({ways_to(pending[0].reference)})" if pending else what


def _messages(waiting: int) -> str:
    return plural(waiting, "message") if waiting else ""
