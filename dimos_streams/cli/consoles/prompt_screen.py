"""The screen of a chat at a terminal: a prompt, with lines above it and progress below."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from dimos_streams.cli.terminal.screen import Screen, ScreenLine
from dimos_streams.common.readable.shortening import shortened

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.history import History


def _history() -> History:
    """Return the operator's earlier input, in a file; if that can't be written, or is another user's, it is forgotten
    at the end."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    from dimos_streams.common.process.ownership import stranger_with
    from dimos_streams.runtime.run_directories import keep_private, state_dir

    class TolerantHistory(FileHistory):
        def store_string(self, string: str) -> None:
            with contextlib.suppress(OSError):
                super().store_string(string)

    keep_private()  # it has the operator's input
    file = state_dir() / "chat_history"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        is_strangers = stranger_with(file) is not None
    except OSError:
        is_strangers = False
    return InMemoryHistory() if is_strangers else TolerantHistory(str(file))


class PromptScreen(Screen):
    """A screen with lines above the prompt, and progress in a bar below it."""

    def __init__(self) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.shortcuts import CompleteStyle

        self._progress: dict[str, ScreenLine] = {}
        self.session: PromptSession[str] = PromptSession(
            "you> ",
            history=_history(),
            bottom_toolbar=self._toolbar,
            erase_when_done=True,  # what was said is shown again with its time
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,  # a menu would take lines below the prompt
        )

    def show(self, line: ScreenLine) -> None:
        """See ``Screen``."""
        from prompt_toolkit import print_formatted_text
        from prompt_toolkit.formatted_text import FormattedText

        time, label, text = line.parts(self.session.app.output.get_size().columns)
        style = f"bold ansi{line.style}" if line.style else "bold"
        print_formatted_text(FormattedText([("ansibrightblack", time), (style, label), ("", text)]))

    def progress(self, key: str, line: ScreenLine) -> None:
        """See ``Screen``."""
        self._progress[key] = line
        self.session.app.invalidate()

    def forget(self, key: str, *, leave: bool = False) -> None:
        """See ``Screen``."""
        line = self._progress.pop(key, None)
        if leave and line is not None:
            self.show(line)
        self.session.app.invalidate()

    def close(self) -> None:
        """See ``Screen``."""

    def _toolbar(self) -> StyleAndTextTuples:
        lines = [f"{line.label}  {' '.join(line.text.split())}" for line in self._progress.values()]
        width = self.session.app.output.get_size().columns
        return [("", "\n".join(shortened(line, width) for line in lines) or "no progress to show; /help says more")]
