"""The completions of Tab in a chat: commands, and behind `/cancel` the ids of open calls."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from dimos_streams.operator.agents import is_look

if TYPE_CHECKING:
    from dimos_streams.tool_stream.event import ToolEvent

_WORDS = {"/step": ("off", "on", "once"), "/abort": ("rollback",)}
"""The words that a command takes."""


class ChatCompleter(Completer):
    """Completes the word before the cursor, unless it is said to the agent."""

    def __init__(self, commands: Collection[str], calls: Mapping[str, ToolEvent]) -> None:
        """``calls`` has the newest event of each open call, by its id."""
        self._commands = commands
        self._calls = calls

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """See ``Completer``."""
        command, behind, typed = document.text_before_cursor.partition(" ")
        if not command.startswith("/"):
            return
        if not behind:
            typed, words = command, sorted(self._commands)
        elif command == "/cancel":
            words = [call_id for call_id, event in self._calls.items() if not is_look(event)]
        else:
            words = list(_WORDS.get(command, ()))
        for word in words:
            if word.startswith(typed):
                yield Completion(word, -len(typed))
