"""Writing to standard output and standard error."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from dimos_streams.cli import signals


def write(text: str) -> None:
    """Write a line to standard output at once. If nobody reads on, the command is ended as by a signal."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # What is written while the command ends goes nowhere.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        signals.deliver(signal.SIGPIPE)


def write_json(value: Any, *, indent: int | None = None) -> None:
    """Write a value as JSON: one line, or indented for people."""
    write(json.dumps(value, ensure_ascii=False, indent=indent, default=str))


def write_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write columns, aligned to the left; the last one is as wide as it likes."""
    for line in table_lines((headers, *rows)):
        write(line)


def table_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as aligned lines."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def note(text: str) -> None:
    """Tell the person something that is no output of the command."""
    print(text, file=sys.stderr, flush=True)


def plural(count: int, thing: str) -> str:
    """``"1 call"``, ``"2 calls"``."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def shortened(text: str, length: int) -> str:
    """At most ``length`` characters, the last ones dots if something is left out."""
    return text if len(text) <= length else f"{text[: length - 3]}..."
