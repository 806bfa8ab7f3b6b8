"""Coroutines that a skill makes and does not await, so that nothing of what they were to do happens.

Python warns of one when it is dropped, which for a line such as ``call.update("Hello")`` is at once and in that line.
Here the warning is put to the call whose skill it was.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import linecache
import logging
import re
import sys
import warnings
from contextvars import ContextVar
from functools import partial
from typing import TextIO

from dimos_streams.common.readable.shortening import shortened
from dimos_streams.common.secrets import redacted
from dimos_streams.skill import SkillSpec

_NEVER_AWAITED = re.compile(r"coroutine '(?:.*\.)?(\w+)' was never awaited")
_MAX_LINE = 100
_MAX_TEXTS = 8


class Unawaited:
    """The awaitables that one call's skill did not await. Tasks that outlive the call may have it: it holds nothing
    large."""

    def __init__(self, spec: SkillSpec, log: logging.Logger) -> None:
        self._spec, self._log = spec, log
        self.texts: list[str] = []
        """A sentence for each line of code, of those that are known so far."""

    def note(self, coroutine: str, file: str, line: int) -> None:
        """Log that a coroutine function's coroutine was dropped at a line, once for each such line."""
        code = linecache.getline(file, line).strip()
        if re.search(rf"\b{coroutine}\s*\(", code):
            text = f"skill {self._spec.name!r} does not await `{shortened(code, _MAX_LINE)}` ({file}:{line})"
        else:  # it was kept for a while, and dropped elsewhere
            text = f"skill {self._spec.name!r}{_place_of(self._spec)} does not await what {coroutine}() gives"
        text = redacted(f"{text}, so it does nothing: put `await` before it")
        if text not in self.texts and len(self.texts) < _MAX_TEXTS:
            self.texts.append(text)
            self._log.warning("%s", text)


_OF_CALL: ContextVar[Unawaited | None] = ContextVar("unawaited", default=None)


def note_unawaited(spec: SkillSpec, log: logging.Logger) -> Unawaited:
    """Return where it is noted what the skill that runs in this task, and in those that it begins, does not await."""
    noted = Unawaited(spec, log)
    _OF_CALL.set(noted)
    if not (isinstance(warnings.showwarning, partial) and warnings.showwarning.func is _show):
        warnings.showwarning = partial(_show, warnings.showwarning)
    if _collector.note not in gc.callbacks:
        gc.callbacks.append(_collector.note)
    return noted


class _Collector:
    """Knows whether Python's collector runs: what it drops may be of any call, whichever runs at that moment."""

    runs = False

    def note(self, phase: str, info: object) -> None:
        """Take the collector's word that it begins or has ended."""
        self.runs = phase == "start"


_collector = _Collector()


def _is_cancelled() -> bool:
    """Return whether the task that runs is being cancelled: what it would have awaited it does not any more."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # there is no loop here
        return False
    return task is not None and task.cancelling() > 0


def warn_each_time() -> None:
    """Have Python warn each time that a line drops a coroutine, and not only the first time, unless the user of this
    process has asked for something else."""
    if not sys.warnoptions:
        warnings.filterwarnings("always", message=_NEVER_AWAITED.pattern, category=RuntimeWarning)


def _show(
    otherwise: object,
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    noted, found = _OF_CALL.get(), _NEVER_AWAITED.match(str(message))
    if noted is not None and found is not None and not (_collector.runs or _is_cancelled()):
        noted.note(found[1], filename, lineno)
    elif callable(otherwise):
        otherwise(message, category, filename, lineno, file, line)


def _place_of(spec: SkillSpec) -> str:
    """``" (file:line)"`` of a skill's function, or nothing if it has no code of its own."""
    code = getattr(inspect.unwrap(spec.function), "__code__", None)
    return "" if code is None else f" ({code.co_filename}:{code.co_firstlineno})"
