"""Output on standard output and standard error."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import stat
import sys
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO, TypeVar

from dimos_streams.cli.system import signals
from dimos_streams.common.printable import printable, printable_lines
from dimos_streams.common.readable.unseen import written_out
from dimos_streams.common.readable.wrapping import cells, padded, wrapped
from dimos_streams.common.secrets import redacted
from dimos_streams.errors import OutputError, cannot_write, is_of_the_disk

T = TypeVar("T")

UNBOUNDED = 1000
"""The width of the output, in characters, where there is no terminal."""
_LEAST_LAST = 24
"""The fewest characters in which the last column of a table is still read beside the others."""
_INDENT = "    "


class LostOutput:
    """The standard output of a command that goes on where it can't be written."""

    def __init__(self) -> None:
        self.why = ""
        """Why some of it is lost; empty if all could be written."""

    def add(self, why: str) -> None:
        """Note a loss; the first one is said on standard error."""
        if not self.why:
            self.why = why
            note(f"error: {_cannot_write(why)}")


_outlived: list[LostOutput] = []
_sole: list[TextIO] = []
"""Standard output, while nothing but what this module writes reaches it."""


def write(line: str) -> None:
    """Write a line to standard output at once. If nobody reads on, the command is ended as by a signal."""
    _print(printable(line))


def write_row(row: str) -> None:
    """Write a row of a table as ``write`` does: a program that reads it gets the line ends in its texts, too."""
    _print(printable(row) if _output().isatty() else printable(row, kept="\t\r\n"))


def write_about(target: Path, line: str) -> None:
    """Write a line about a file that was made; on standard error where the file is standard output itself."""
    try:
        is_output = os.path.samestat(target.stat(), os.fstat(_output().fileno()))
    except (OSError, ValueError):  # one of the two is closed, or not there
        is_output = False
    (note if is_output else write)(f"{target}: {line}")


def write_lines(text: str) -> None:
    """Write text of our own, which may have several lines, as ``write`` does."""
    _print(printable_lines(text))


@contextmanager
def sole_output() -> Iterator[None]:
    """Have nothing but what is written here reach standard output in the block. What modules and libraries print goes
    to standard error: a program that reads JSON could read nothing of it."""
    _sole.append(sys.stdout)
    sys.stdout = sys.stderr
    try:
        yield
    finally:
        sys.stdout = _sole.pop()


def _output() -> TextIO:
    return _sole[-1] if _sole else sys.stdout


async def while_read(main: Coroutine[Any, Any, T]) -> T:
    """Run what does nothing but show what others do until it ends, or the reader of a pipe goes: the next line, which
    would meet that, may be hours away."""
    if (pipe := _pipe_to_reader()) is None:
        return await main
    from asyncio import get_running_loop

    loop, pipe = get_running_loop(), os.dup(pipe)  # output that can't be written is closed meanwhile

    def end() -> None:
        loop.remove_reader(pipe)
        signals.deliver(signal.SIGPIPE)

    loop.add_reader(pipe, end)  # nothing is ever read at this end of it: what comes is that the other one is closed
    try:
        return await main
    finally:
        loop.remove_reader(pipe)
        os.close(pipe)


def _pipe_to_reader() -> int | None:
    try:
        pipe = _output().fileno()
        if stat.S_ISFIFO(os.fstat(pipe).st_mode) and fcntl.fcntl(pipe, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY:
            return pipe
    except (OSError, ValueError):  # it is closed
        pass
    return None


def _give_up_output() -> None:
    if _sole:
        _sole[-1] = _given_up(_sole[-1])
    else:
        sys.stdout = _given_up(sys.stdout)


def _print(text: str) -> None:
    try:
        print(text, file=_output(), flush=True)
    except OSError as error:
        _give_up_output()
        lose(error)


def lose(error: OSError) -> None:
    """Do what is to be done where standard output can't be written. Raises ``OutputError`` in commands that don't go
    on without it."""
    if isinstance(error, BrokenPipeError):
        signals.deliver(signal.SIGPIPE)
    elif _outlived:
        _outlived[-1].add(str(error.strerror))
    else:
        raise OutputError(_cannot_write(str(error.strerror))) from error


@contextmanager
def flush_output() -> Iterator[None]:
    """Have the block, in which libraries print too, as for ``--help``, end as ``write`` does where its output can't
    be written."""
    try:
        yield
        sys.stdout.flush()
    except SystemExit as error:
        if not isinstance(error.__context__, BrokenPipeError):  # for which libraries have another code
            raise
        signals.deliver(signal.SIGPIPE)
    except OSError as error:
        if not is_of_the_disk(error) or error.filename is not None:
            raise
        sys.stdout = _given_up(sys.stdout)
        if isinstance(error, BrokenPipeError):
            signals.deliver(signal.SIGPIPE)
        raise cannot_write("output", error) from error


def _cannot_write(why: str) -> str:
    return f"standard output can't be written: {why}"


@contextmanager
def outliving_output() -> Iterator[LostOutput]:
    """Have the block go on where standard output can't be written, as on a full disk: a robot stops for no log. A
    reader that has gone ends it nevertheless."""
    lost = LostOutput()
    _outlived.append(lost)
    try:
        yield lost
    finally:
        _outlived.remove(lost)


def _given_up(stream: TextIO) -> TextIO:
    """Close a stream that could not be written, and return one for what is written while the command ends: what is
    left in the buffer fails once more, which Python tells of on standard error where it collects an open stream."""
    with suppress(OSError):
        stream.close()
    return _nowhere()


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")


def write_json(value: Any, *, indent: int | None = None) -> None:
    """Write a value as JSON: one line, or indented for people. Raises ``ValueError`` for infinity, which JSON has
    not."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=str, allow_nan=False)
    _print(_escaped(redacted(text)))


def _escaped(text: str) -> str:
    """Return JSON with escapes for what a terminal might obey; such characters are only inside of its strings."""
    return written_out(text, "\n", lambda char: json.dumps(char)[1:-1])


def terminal_width() -> int:
    """Return the width of the output, in characters: that of the terminal, or ``UNBOUNDED`` for a program that reads
    it, whatever the environment says of a terminal."""
    return shutil.get_terminal_size((UNBOUNDED, 0)).columns if _output().isatty() else UNBOUNDED


def notes_width() -> int:
    """Return the width of the terminal on which ``note`` writes, in characters; ``UNBOUNDED`` if it is none."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or UNBOUNDED
    except (OSError, ValueError):  # it is no terminal, or closed
        return UNBOUNDED


def write_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write columns, aligned to the left, as ``table_lines`` has them for the terminal."""
    for line in table_lines((headers, *rows), terminal_width()):
        write(line)


def table_lines(rows: Sequence[Sequence[str]], width: int = UNBOUNDED) -> list[str]:
    """Return rows of cells as aligned lines. A last cell for which lines of that width have no room is wrapped in its
    column, or below its row where that column is too narrow."""
    rows = [[printable(cell).replace("\t", " ") for cell in row] for row in rows]  # a tab has no width of its own
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    before = sum(each + 2 for each in widths[:-1])
    lines: list[str] = []
    for row in rows:
        head = "".join(f"{padded(cell, each)}  " for cell, each in zip(row[:-1], widths, strict=False))
        line = (head + row[-1]).rstrip()
        if cells(line) <= width or not row[-1]:
            lines.append(line)
        elif before + _LEAST_LAST <= width:
            lines += wrapped(row[-1], width, head, " " * before)
        else:
            lines += [head.rstrip(), *wrapped(row[-1], width, _INDENT, _INDENT)]
    return lines


def hanging_indent(text: str, width: int = UNBOUNDED) -> str:
    """Return text from outside with its further lines below the first, where none passes for one of the command's
    own. If a width is given, what is wrapped stands further in: it is no step of a plan, and no line of its own."""
    first, *further = text.split("\n")
    lines = [first, *(line if line.startswith(_INDENT) else _INDENT + line for line in further)]
    if width < UNBOUNDED:
        lines = [part for line in lines for part in wrapped(printable(line), width, later=2 * _INDENT) or [""]]
    return "\n".join(lines)


def note(line: str) -> None:
    """Show the person a line that is no output of the command. Where nobody can see it, the command does and returns
    the same."""
    note_lines(printable(line))


def note_lines(text: str) -> None:
    """Show text of our own, which may have several lines, as ``note`` does."""
    try:
        print(printable_lines(text), file=sys.stderr, flush=True)
    except OSError:
        sys.stderr = _given_up(sys.stderr)


def duration(seconds: float, digits: int = 2) -> str:
    """Return a time as people say it: ``"2.50 s"`` (``digits`` behind the point), ``"7 min"``,
    ``"5 h"`` or ``"3 days"``."""
    if seconds < 120.0:
        return f"{seconds:.{digits}f} s"
    if seconds < 7200.0:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 172_800.0 else f"{seconds / 86_400:.0f} days"


def local_time(utime: int | None) -> str:
    """Return ``"2026-11-22 20:12:19"``, by this machine's clock and zone, for µs since the Unix epoch; ``"-"`` for
    None, and the number itself if it is not a date."""
    if utime is None:
        return "-"
    try:
        return f"{datetime.fromtimestamp(utime / 1e6).astimezone():%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):  # of a damaged file
        return f"{utime} µs"
