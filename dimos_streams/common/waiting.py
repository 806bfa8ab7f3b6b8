"""The tasks of a loop that wait, each with the line of code at which it stands."""

from __future__ import annotations

import asyncio
import linecache
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

from dimos_streams.common.readable.shortening import beginning

_ASYNCIO = str(Path(asyncio.__file__).parent)
_PACKAGE = Path(__file__).parents[1]
_LONGEST_LINE = 100

Place = tuple[CodeType, int]
"""A function and a line of its file."""


def who_waits(loop: asyncio.AbstractEventLoop) -> list[str]:
    """A line for each unfinished task of the loop, by name: the innermost line of code that is not asyncio's own."""
    return sorted(f"{task.get_name()}: {_whereabouts(task)}" for task in asyncio.all_tasks(loop))


def _whereabouts(task: asyncio.Task[Any]) -> str:
    places = list(_places(task.get_coro()))
    if not places:
        return "not started"
    own = [place for place in places if not place[0].co_filename.startswith(_ASYNCIO)] or places
    code, line = own[-1]
    source = linecache.getline(code.co_filename, line).strip()
    text = beginning(source, _LONGEST_LINE)
    return f"{text or '?'}  ({_short(code.co_filename)}:{line} in {code.co_qualname})"


def _places(awaited: Any) -> Iterator[Place]:
    """The lines at which the nested coroutines stand, the outermost first."""
    while awaited is not None:
        frame, inner = _look_into(awaited)
        if frame is not None:
            yield frame.f_code, frame.f_lineno
        awaited = inner


def _look_into(awaited: Any) -> tuple[Any, Any]:
    """The frame of a coroutine or generator, and what it awaits; futures and the like have neither."""
    for kind, inner in (("cr", "cr_await"), ("gi", "gi_yieldfrom"), ("ag", "ag_await")):
        if hasattr(awaited, f"{kind}_frame"):
            return getattr(awaited, f"{kind}_frame"), getattr(awaited, inner)
    return None, None


def _short(filename: str) -> str:
    """The path within this package, or the path as it is."""
    path = Path(filename)
    return str(path.relative_to(_PACKAGE.parent)) if path.is_relative_to(_PACKAGE) else filename
