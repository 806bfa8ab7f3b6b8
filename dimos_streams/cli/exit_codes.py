"""The exit codes of commands. ``docs/command-line.md`` has the same table; a test compares them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dimos_streams.errors import DimosStreamsError, SkillArgumentError, UnknownSkillError, UserError

if TYPE_CHECKING:
    from dimos_streams.tool_stream.event import ToolEvent

DONE, FAILED, MISUSED = 0, 1, 2
INTERRUPTED = 128
"""The exit code of a command that a signal ended, to which the signal's number is added."""

MEANINGS = {
    "0": "done: the call or mission completed",
    "1": "not done: it did not complete, whatever the reason, or nobody could be asked",
    "2": "called wrongly: an argument, an id, a setting or a blueprint that can't be used",
    "128+N": "ended by signal N: 130 after Ctrl-C, 143 after `stop`",
}


def code_of(event: ToolEvent) -> int:
    """Return the code for an event that was waited for: an answer or a completed close is done, any other close is
    not, nor is an order that has not come true in full, and one for arguments that don't fit has been called
    wrongly."""
    from dimos_streams.operator.order_results import is_done
    from dimos_streams.tool_stream.protocol.close_data import BAD_ARGUMENTS

    if event.outcome == "rejected" and event.data.get("error") == BAD_ARGUMENTS:
        return MISUSED
    return DONE if event.outcome is None or is_done(event) else FAILED


def code_of_error(error: DimosStreamsError) -> int:
    """Return the code for the error of a command: whoever typed something wrong has to type something else."""
    return MISUSED if isinstance(error, UserError | UnknownSkillError | SkillArgumentError) else FAILED


def worst_of(closes: Iterable[ToolEvent]) -> int:
    """Return the code for several closes: one that is not done counts for all."""
    return max(map(code_of, closes), default=DONE)


def table() -> str:
    """Return the table of exit codes for ``--help``."""
    lines = "\n\n".join(f"{code}: {meaning}" for code, meaning in MEANINGS.items())
    return f"Exit codes:\n\n{lines}"
