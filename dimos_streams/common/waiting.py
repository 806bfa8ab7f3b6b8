"""The tasks of a loop that wait and threads that go on, each with the line of code at which it stands."""

from __future__ import annotations

import asyncio
import linecache
import sys
import sysconfig
import threading
import traceback
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from dimos_streams.common.readable.shortening import beginning

_PYTHON, _INSTALLED = sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")
_PACKAGE = Path(__file__).parents[1]
_LOOPS = frozenset({"run", "run_until_complete", "run_forever", "_run_once", "_run"})
"""The functions of asyncio by which a loop runs what it has to run."""
_RUNNERS = tuple(f"{_PACKAGE}/{folder}/" for folder in ("module", "runtime", "tool_stream/hosting"))
"""Beginnings of the paths of our own code that runs the code of modules."""
_LONGEST_LINE = 100

Place = tuple[CodeType, int]
"""A function and a line of its file."""


def who_waits(loop: asyncio.AbstractEventLoop, *, without: asyncio.Task[Any] | None = None) -> list[str]:
    """A line for each unfinished task of the loop but one, by name: the innermost line of code that is not Python's
    own."""
    tasks = [task for task in asyncio.all_tasks(loop) if task is not without]
    return sorted(f"{task.get_name()}: {where_it_waits(task)}" for task in tasks)


def where_it_waits(task: asyncio.Task[Any]) -> str:
    """The innermost line of code that a task waits in and that is not Python's own."""
    return _whereabouts(list(_places(task.get_coro())))


def where_they_are(threads: Iterable[threading.Thread]) -> list[str]:
    """A line for each thread that runs, by name: the innermost line of code that is not Python's own."""
    frames = sys._current_frames()
    return sorted(
        f"thread {thread.name}: {_whereabouts(_places_of(frames[thread.ident]))}"
        for thread in threads
        if thread.ident in frames
    )


def what_the_loop_runs(frame: FrameType | None) -> list[str]:
    """The lines of code that a loop's thread is in, the innermost first: without Python's own, the loop, what runs
    the loop, and our own code that runs the code of modules."""
    places = _places_of(frame)
    loops = [at for at, (code, _) in enumerate(places) if _is_loop(code)]
    own = _without_pythons(places[loops[-1] + 1 if loops else 0 :] or places)
    first = next((at for at, (code, _) in enumerate(own) if not code.co_filename.startswith(_RUNNERS)), 0)
    return [_line_at(place) for place in reversed(own[first:])]


def _is_loop(code: CodeType) -> bool:
    return code.co_name in _LOOPS and code.co_filename.startswith(f"{_PYTHON}/asyncio/")


def _without_pythons(places: Sequence[Place]) -> Sequence[Place]:
    """The places that are not Python's own; all if there are no others."""
    return [place for place in places if not _is_pythons(place[0].co_filename)] or places


def _whereabouts(places: Sequence[Place]) -> str:
    """The last of places that is not Python's own."""
    return _line_at(_without_pythons(places)[-1]) if places else "not started"


def _line_at(place: Place) -> str:
    code, line = place
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


def _places_of(frame: FrameType | None) -> list[Place]:
    """The lines at which a thread stands, the outermost first."""
    places = [(each.f_code, line) for each, line in traceback.walk_stack(frame)] if frame is not None else []
    return places[::-1]


def _is_pythons(filename: str) -> bool:
    return filename.startswith(_PYTHON) and not filename.startswith(_INSTALLED)


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
