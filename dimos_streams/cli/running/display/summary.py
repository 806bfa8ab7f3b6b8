"""The summary of a run that has ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dimos_streams.cli.terminal.call_counts import CallCounts
from dimos_streams.cli.terminal.output import write, write_json
from dimos_streams.operator.agents import reason_of
from dimos_streams.tool_stream.event import ToolEvent


def write_summary(ran_s: float, wall_s: float, calls: CallCounts, *, is_virtual: bool) -> None:
    """Write how long a run has lasted, in its own time and on the wall, and how its calls have ended."""
    text = f"ran {ran_s:.1f} s"
    if is_virtual:
        times = ran_s / max(wall_s, 1e-9)
        text += f" of virtual time in {wall_s:.1f} s"
        if times >= 0.1:  # less is a run that ended before it began
            text += f", {times:.1f} times as fast as real time"
    write(f"{text}; {calls}")


def write_json_summary(
    ran_s: float, wall_s: float, calls: CallCounts, said: Sequence[str], closes: Mapping[int, ToolEvent]
) -> None:
    """Write how long a run has lasted, how its calls have ended, and how the mission of each text that was ``said``
    has ended, as one JSON object. ``closes`` are the closes of ended missions, by the text's number."""
    times = {"ran_s": round(ran_s, 3), "wall_s": round(wall_s, 3)}
    missions = [_mission(text, closes.get(number)) for number, text in enumerate(said)]
    write_json({"kind": "summary", **times, "calls": calls.to_dict(), "missions": missions})


def _mission(text: str, close: ToolEvent | None) -> dict[str, Any]:
    """Return how a mission ended; the outcome is None if it was open to the last."""
    if close is None:
        return {"input": text, "outcome": None}
    return {"input": text, "outcome": close.outcome, "reason": reason_of(close), "text": close.text}
