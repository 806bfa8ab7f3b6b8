"""The restart of each process whose own sources were written, with its code as it is then."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Protocol

from dimos_streams.common.importing import how_to_get
from dimos_streams.common.process.disk import real_path
from dimos_streams.common.tasks import end_tasks, end_tasks_silently
from dimos_streams.errors import DimosStreamsError, UserError
from dimos_streams.runtime.events import OnRunEvent, RunEvent
from dimos_streams.runtime.processes.sources import Stamp, stamp

_LOOK_S = 0.25
"""The time between two looks at which files the processes have loaded, in seconds."""
_QUIET_S = 0.05
"""The time, in seconds, below which changes count as one: editors write a file in several steps, and several at a
time."""
_TOGETHER_S = 0.4
_SHOWN_FILES = 3

_logger = logging.getLogger(__name__)

Changes = Callable[[frozenset[Path], asyncio.Event], AsyncIterator[set[Path]]]
"""A function that yields the files that are written in directories, in groups, until an event is set."""


class Restarter(Protocol):
    """The part of a supervisor's protocol that is needed here."""

    def sources(self) -> dict[str, frozenset[Path]]:
        """See ``Supervisor``."""

    def process_of(self, module: str) -> str:
        """See ``Supervisor``."""

    async def restart(self, module: str, reason: str) -> tuple[str, ...]:
        """See ``Supervisor``."""

    def outdate(self, module: str) -> bool:
        """See ``Supervisor``."""


def check_watching() -> None:
    """Raise ``UserError``, which says how to install watchfiles, if it is missing."""
    import importlib.util

    if importlib.util.find_spec("watchfiles") is None:
        raise UserError(f"--reload can't watch the sources: {how_to_get('watchfiles')}")


async def watch_sources(directories: frozenset[Path], stop: asyncio.Event) -> AsyncIterator[set[Path]]:
    """Yield the Python files that are written in directories, as watchfiles notices them."""
    from watchfiles import Change, awatch

    watching = awatch(
        *directories,
        watch_filter=lambda change, path: path.endswith(".py") and change is not Change.deleted,
        debounce=int(_TOGETHER_S * 1000),
        step=int(_QUIET_S * 1000),
        stop_event=stop,
        recursive=False,
        raise_interrupt=False,
    )
    async for changes in watching:
        yield {_real(path) for _, path in changes}


def _real(path: str) -> Path:
    """Return the real path, as the processes name a file even if they reached it through a link."""
    return real_path(Path(path))


class Reloader:
    """A watcher of the sources that the processes of a run have loaded. If new code can't be used, the old process
    goes on."""

    def __init__(self, run: Restarter, on_event: OnRunEvent, changes: Changes = watch_sources) -> None:
        self._run = run
        self._on_event = on_event
        self._changes = changes
        self._stamps: dict[Path, Stamp | None] = {}
        """The stamp of each source when it was last looked at."""
        self._due: dict[str, set[Path]] = {}
        """The changed files for which processes are still to be restarted, by the first module of each process."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._broken: dict[str, str] = {}
        """The problem of each process whose code on disk is broken, by the first module of the process."""

    async def run(self) -> None:
        """Watch until cancelled."""
        try:
            while True:
                stop, watched = asyncio.Event(), self._directories()
                looking = asyncio.create_task(self._until_others(watched, stop), name="reload:look")
                try:
                    async for files in self._changes(watched, stop) if watched else _nothing(stop):
                        self._take(files)
                finally:
                    await end_tasks(looking)
                self._take(set(self._stamps))  # what was written while nobody watched
        finally:
            await end_tasks_silently(*self._tasks.values())

    def _directories(self) -> frozenset[Path]:
        files = frozenset[Path]().union(*self._run.sources().values())
        for file in sorted(files - self._stamps.keys()):
            self._stamps[file] = stamp(file)
        return frozenset(file.parent for file in files)

    async def _until_others(self, watched: frozenset[Path], stop: asyncio.Event) -> None:
        """End the watching when there are other directories to watch."""
        await asyncio.sleep(_LOOK_S)
        self._take(set(self._stamps))  # what was written while the watching began, which nobody notices
        while self._directories() <= watched:  # noqa: ASYNC110 - processes report when they like
            await asyncio.sleep(_LOOK_S)
        stop.set()

    def _take(self, files: set[Path]) -> None:
        stamps = {file: stamp(file) for file in files}
        written = {file for file, found in stamps.items() if found and found != self._stamps.get(file)}
        self._stamps |= {file: stamps[file] for file in written}
        for module, sources in self._run.sources().items():
            # What a broken process needs may be in a file that it could not load yet.
            changed = written if module in self._broken else written & sources
            if changed:
                self._plan(module, changed)

    def _plan(self, module: str, changed: set[Path]) -> None:
        """Have a process restarted for changed files, unless its restart under way takes them as well."""
        if self._run.outdate(module) and module in self._tasks:
            return
        self._due.setdefault(module, set()).update(changed)
        if module not in self._tasks:
            self._tasks[module] = asyncio.create_task(self._reload(module), name=f"reload:{module}")

    async def _reload(self, module: str) -> None:
        try:
            while files := self._due.pop(module, set()):
                await self._restart(module, sorted(files))
        finally:
            del self._tasks[module]

    async def _restart(self, module: str, files: list[Path]) -> None:
        try:
            await self._run.restart(module, f"{_listed(files)} changed")
        except UserError as error:
            if self._broken.get(module) != str(error):
                self._broken[module] = str(error)
                text = "; ".join(str(error).splitlines())
                label = self._run.process_of(module)
                self._on_event(RunEvent(kind="kept", process=label, text=f"the old code goes on: {text}"))
        except DimosStreamsError as error:
            self._broken[module] = str(error)
            _logger.info("module %r was reloaded and failed: %s", module, error)  # the supervisor has shown it
        else:
            self._broken.pop(module, None)


async def _nothing(stop: asyncio.Event) -> AsyncIterator[set[Path]]:
    """Yield no changes, while there is nothing to watch."""
    await stop.wait()
    return
    yield set()


def _listed(files: Iterable[Path]) -> str:
    names = [file.name for file in files]
    more = f" and {len(names) - _SHOWN_FILES} more" if len(names) > _SHOWN_FILES else ""
    return ", ".join(names[:_SHOWN_FILES]) + more
