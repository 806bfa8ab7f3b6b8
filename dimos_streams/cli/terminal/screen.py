"""Screens for lines: plain ones for pipes and files; on a terminal, progress on lines that change in place."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TextIO, cast

from dimos_streams import clock
from dimos_streams.cli.terminal.output import lose, write_lines
from dimos_streams.common.printable import CONTINUATION, printable
from dimos_streams.common.readable.wrapping import cells, padded, wrapped

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

_LABEL_WIDTH = 16
_NARROWEST = 20
_PROGRESS_EVERY_S = 1.0
_NEVER = (float("-inf"), float("-inf"))
_REDRAW_EVERY_S = 0.08


@dataclass(frozen=True, slots=True)
class ScreenLine:
    """One line for a person: when (seconds since the beginning), who, what."""

    time_s: float
    label: str
    text: str
    style: str = ""
    """Rich's name of a style for the label."""

    def parts(self, width: int = 0) -> tuple[str, str, str]:
        """Return time, label and text, padded so that they make a line together. Further lines stand below the text,
        so that none that came from outside passes for a line of the command's own.

        If a width is given, the text is wrapped between words. What has no spaces (a path, a URL) stays whole. Where
        there is no room beside the label, the text stands below it.
        """
        time, label = f"{self.time_s:8.2f}  ", f"{padded(printable(self.label), _LABEL_WIDTH)}  "
        indent = cells(time + label)
        lines = [printable(line) for line in self.text.replace("\r\n", "\n").removesuffix("\n").split("\n")]
        if width > indent + _NARROWEST:
            lines = [part for line in lines for part in wrapped(line, width - indent) or [""]]
        elif width > 0:
            room = max(1, width - len(CONTINUATION))
            parts = [part for line in lines for part in wrapped(line, room) or [""]]
            return time, label.rstrip(), "".join(f"\n{CONTINUATION}{part}" for part in parts)
        return time, label, f"\n{'':{indent}}".join(lines)

    def __str__(self) -> str:
        return "".join(self.parts()).rstrip()


class Screen(Protocol):
    """A screen, which shows lines that stay and, by key, the newest progress of whatever is under way."""

    def show(self, line: ScreenLine) -> None:
        """Show a line that stays."""

    def progress(self, key: str, line: ScreenLine) -> None:
        """Show the progress of something; the next progress of the same key replaces it."""

    def forget(self, key: str, *, leave: bool = False) -> None:
        """Forget this key: it is over. ``leave`` lets its newest progress be a line that stays."""

    def close(self) -> None:
        """Leave only the lines that stay. Closing twice is fine."""


class PlainScreen:
    """A screen that prints everything, but of each key's progress at most one line a second, and none that says what
    the one before it has said."""

    def __init__(self) -> None:
        self._shown: dict[str, tuple[float, float]] = {}
        self._texts: dict[str, str] = {}
        self._held: dict[str, ScreenLine] = {}
        """Progress that was too soon to be printed, as far as it is the newest."""

    def show(self, line: ScreenLine) -> None:
        """See ``Screen``."""
        write_lines(str(line))

    def progress(self, key: str, line: ScreenLine) -> None:
        """See ``Screen``."""
        # Lines have times of a wall clock, which may be set back; of calls that are over, all come at once.
        now = (line.time_s, clock.monotonic())
        is_due = any(
            at - last >= _PROGRESS_EVERY_S for at, last in zip(now, self._shown.get(key, _NEVER), strict=True)
        )
        self._held.pop(key, None)
        if line.text == self._texts.get(key):
            return
        if not is_due:
            self._held[key] = line
            return
        self._shown[key], self._texts[key] = now, line.text
        write_lines(str(line))

    def forget(self, key: str, *, leave: bool = False) -> None:
        """See ``Screen``."""
        held = self._held.pop(key, None)
        if leave and held is not None:
            self.show(held)
        self._shown.pop(key, None)
        self._texts.pop(key, None)

    def close(self) -> None:
        """See ``Screen``."""


class LogScreen:
    """A screen that logs the lines that stay; progress is too much for a log."""

    def __init__(self) -> None:
        self._logger = logging.getLogger("dimos_streams.run")

    def show(self, line: ScreenLine) -> None:
        """See ``Screen``."""
        self._logger.info("%s: %s", line.label, line.text)

    def progress(self, key: str, line: ScreenLine) -> None:
        """See ``Screen``."""

    def forget(self, key: str, *, leave: bool = False) -> None:
        """See ``Screen``."""

    def close(self) -> None:
        """See ``Screen``."""


class _Drawn:
    """Standard output as a library draws on it. Of a terminal that is gone it hears nothing, and what is drawn goes
    nowhere: raised within the library, the error would end a robot's run wherever it has something to show."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal

    def write(self, text: str) -> int:
        with self._losing():
            self._terminal.write(text)
        return len(text)

    def flush(self) -> None:
        with self._losing():
            self._terminal.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._terminal, name)

    @contextmanager
    def _losing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            nowhere = os.open(os.devnull, os.O_WRONLY)  # in its place, so that what is left in the buffer goes, too
            os.dup2(nowhere, self._terminal.fileno())
            os.close(nowhere)
            lose(error)


class TerminalScreen:
    """A screen that keeps the progress of each key on a line of its own below all others."""

    def __init__(self) -> None:
        self._lines: dict[str, ScreenLine] = {}
        self._live: Live | None = None
        self._drawn_s = float("-inf")

    def show(self, line: ScreenLine) -> None:
        """See ``Screen``."""
        console = self._start().console
        console.print(_styled(line, "bold", console.width), soft_wrap=True, highlight=False)

    def progress(self, key: str, line: ScreenLine) -> None:
        """See ``Screen``."""
        self._lines[key] = line
        if abs(line.time_s - self._drawn_s) >= _REDRAW_EVERY_S:
            self._drawn_s = line.time_s
            self._draw()

    def forget(self, key: str, *, leave: bool = False) -> None:
        """See ``Screen``."""
        if (line := self._lines.pop(key, None)) is not None:
            self._draw()
            if leave:
                self.show(line)

    def close(self) -> None:
        """See ``Screen``."""
        self._lines.clear()
        if self._live is not None:
            self._draw()
            self._live.stop()
            self._live = None

    def _draw(self) -> None:
        from rich.console import Group

        live = self._start()
        lines = [_styled(line, "dim") for line in self._lines.values()]
        for line in lines:
            # Room is left for the ^C that a terminal shows.
            line.truncate(max(1, live.console.width - 3), overflow="ellipsis")
        live.update(Group(*lines), refresh=True)

    def _start(self) -> Live:
        if self._live is None:
            from rich.console import Console, Group
            from rich.live import Live

            console = Console(file=cast("TextIO", _Drawn(sys.stdout)))
            # It redraws when we say so: no thread is needed. What is not on the terminal needs no room above it.
            on_it = sys.stderr.isatty()
            self._live = Live(Group(), console=console, auto_refresh=False, transient=True, redirect_stderr=on_it)
            self._live.start()
        return self._live


def create_screen(*, plain: bool = False) -> Screen:
    """Return the screen that fits standard output."""
    return PlainScreen() if plain or not sys.stdout.isatty() else TerminalScreen()


def _styled(line: ScreenLine, weight: str, width: int = 0) -> Text:
    """Return a line in colours, wrapped between words if a width is given."""
    from rich.text import Text

    time, label, text = line.parts(width)
    return Text.assemble((time, "dim"), (label, f"{weight} {line.style}".strip()), text)
