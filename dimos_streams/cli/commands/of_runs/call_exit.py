"""The exit of a command that has waited for an event of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from dimos_streams.cli.exit_codes import code_of
from dimos_streams.cli.terminal.output import note

if TYPE_CHECKING:
    from dimos_streams.tool_stream.event import ToolEvent


def exit_by(event: ToolEvent) -> None:
    """End a command as the event says that it waited for; what the event warns of is said before. Raises
    ``typer.Exit`` for any code but 0."""
    from dimos_streams.tool_stream.protocol.close_data import OF_AUTHORS

    for key in OF_AUTHORS:
        if key in event.data:
            note(f"warning: {event.data[key]}")
    if code := code_of(event):
        raise typer.Exit(code)
