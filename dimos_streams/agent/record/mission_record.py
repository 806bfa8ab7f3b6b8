"""The mission record: what happened, a file of JSON lines per mission, from which an agent goes on after its death.

A line is an ``AgentEvent`` with the offset of the journal up to which everything is recorded. An event of several
missions is in the file of each, and one of a sub-mission in that of the mission that it is a part of; the file
``general`` has those of none. Lines are written before what they say has consequences, and handed to the operating
system one by one: what a killed process has done is there, except the tail of its last line. The general file is
begun anew when it is long; it then begins with the events that still hold.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

from dimos_streams.agent.missions.mission import roots
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.agent.record.record_files import (
    GENERAL,
    HIDDEN,
    NEXT,
    OLD,
    OUTDATED,
    file_name,
    files_with,
    mission_files,
)
from dimos_streams.operator.messages.agent import AgentEvent

_GENERAL_BYTES = 4_000_000
_OPEN_FILES = 32
_BINDING = frozenset({EventKind.APPROVAL_CREATED, EventKind.APPROVAL_DECIDED, EventKind.UNDO, EventKind.DONE})
"""Kinds of events that a successor has to know of, or it would ask again, do again or go on."""
_OWED_LINES = 1000
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK
"""The flags with which files are opened; a pipe, which would wait for a reader, is an error then."""
_logger = logging.getLogger(__name__)


class MissionRecord:
    """Writes the files of one agent. With no directory it keeps nothing.

    A disk that refuses is logged once per trouble and does not hinder the agent. What could not be written is written
    as soon as something can be if a successor must know of it: the end of a mission, because nobody must go on with
    it later, decisions on approvals, what was taken back, and the events that still hold.
    """

    def __init__(
        self,
        directory: Path | None,
        agent: str,
        *,
        kept: int = 1000,
        unfinished: Iterable[str] = (),
        standing: Callable[[], Iterable[AgentEvent]] = tuple,
    ) -> None:
        """``kept`` is the number of missions that stay on disk, besides the ``unfinished`` ones of the process before
        this one.

        ``standing`` returns the events that hold however old they are: each general file begins with them.
        """
        self._directory = directory
        self._agent = agent
        self.offset: Callable[[], int] = lambda: 0
        """Returns the offset of the journal up to which all is recorded."""
        self._kept = kept
        self._unfinished = frozenset(unfinished)
        self._standing = standing
        self._files: OrderedDict[str, IO[bytes]] = OrderedDict()
        self._owed: OrderedDict[str, deque[bytes]] = OrderedDict()
        """The newest binding lines that could not be written, by mission."""
        self._unended: set[str] = set()
        """The missions whose end is among these."""
        self._lost = False
        """True if general events could not be written: those that still hold are to be written once more."""
        self._outdated = False  # as is the general file, by its name
        self._broken = False
        self._unmade = False
        """True if the directory is still to be made, because there was no room for it."""
        self._closed = False

    def open(self) -> None:
        """Make the directory, and delete the oldest missions, also those whose end could never be written."""
        if self._directory is None:
            return
        self._outdated = self._path(GENERAL).with_suffix(OUTDATED).exists()
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self._unmade = True
            self._say_broken(error)
            return
        try:
            self._delete_oldest(self._directory)
        except OSError as error:
            self._say_broken(error)

    def _delete_oldest(self, directory: Path) -> None:
        missions = []
        staying = set(map(self._path, self._unfinished))
        for path in (*mission_files(directory, self._agent), *files_with(directory, self._agent, HIDDEN)):
            if path not in staying:
                with contextlib.suppress(FileNotFoundError):  # somebody else has deleted it
                    missions.append((path.stat().st_mtime, path))
        for _, path in sorted(missions)[: -self._kept]:
            path.unlink(missing_ok=True)

    def write(self, event: AgentEvent) -> None:
        """Append an event to the files that it belongs to."""
        if self._directory is None:
            return
        line = self._line(event)
        for mission in _files(event.missions):
            written = self._append(mission, line)
            self._lost = self._lost or (mission == GENERAL and not written)
            if event.kind in _BINDING and not written:
                self._owed.setdefault(mission, deque(maxlen=_OWED_LINES)).append(line)
            if event.kind == EventKind.DONE:
                self._close(mission)
                if not written:
                    self._unended.add(mission)
                    self._hide(mission)
        if not self._broken:
            self.catch_up()
        if self._closed:
            self.close()

    def set_outdated(self, outdated: bool) -> None:
        """Say by the name of the general file, which needs no room, whether it lacks what an operator has set."""
        if self._directory is None or outdated is self._outdated:
            return
        path, self._outdated = self._path(GENERAL), outdated
        try:
            if path.is_file():
                path.rename(self._path(GENERAL))
            else:
                self._path(GENERAL).touch()
        except OSError as error:
            self._say_broken(error)

    @property
    def lacks_general(self) -> bool:
        """True if general events could not be written that may still hold."""
        return self._lost

    @property
    def trouble(self) -> str:
        """The reason why what is not written is not kept."""
        return f"the record in {self._directory} can't be written, and an agent that starts again goes by it"

    def lacks(self, missions: Iterable[str]) -> bool:
        """Return whether binding events of these missions could not be written. Missions of which nobody will read
        anything lack nothing."""
        return not (self._owed.keys() - self._unended).isdisjoint(_files(missions))

    def close(self) -> None:
        """Close the files; what is written later opens and closes them again. Twice is fine."""
        self._closed = True
        self.catch_up()
        for mission in tuple(self._files):
            self._close(mission)

    def _line(self, event: AgentEvent) -> bytes:
        return b'{"offset":%d,"event":%s}\n' % (self.offset(), event.model_dump_json().encode())

    def _append(self, mission: str, line: bytes) -> bool:
        """Append a line to a mission's file; return whether it could be written."""
        try:
            file = self._file(mission, line)
            file.write(line)
            file.flush()
            if mission == GENERAL and file.tell() > _GENERAL_BYTES:
                self._turn_over()
        except OSError as error:
            self._say_broken(error)
            if mission in self._unended:
                self._hide(mission)
            self._close(mission)  # whether its last line is torn is seen when it is opened again
            return False
        self._broken = False
        return True

    def _say_broken(self, error: OSError) -> None:
        if not self._broken:
            _logger.error("the mission record in %s can't be written: %s", self._directory, error)
        self._broken = True

    def catch_up(self) -> None:
        """Try again to write what could not be written and is still wanted."""
        if self._lost:
            self._lost = not self._append(GENERAL, self._head())
        while len(self._owed) > self._kept:
            self._unended.discard(self._owed.popitem(last=False)[0])
        for mission, lines in tuple(self._owed.items()):
            if not self._append(mission, b"".join(lines)):
                return
            self._close(mission)
            del self._owed[mission]
            self._unended.discard(mission)

    def _file(self, mission: str, line: bytes) -> IO[bytes]:
        """The file of a mission, to which ``line`` is to be appended."""
        file = self._files.get(mission)
        if file is None:
            path = self._path(mission)
            if self._unmade:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._unmade = False
            if mission in self._unended and (hidden := path.with_suffix(HIDDEN)).exists():
                hidden.rename(path)
            if mission == GENERAL and not path.exists():
                self._begin_general(self._head(besides=line))
            file = os.fdopen(os.open(path, _APPEND, 0o666), "ab")
            if file.tell() and not _ends_whole(self._path(mission)):
                file.write(b"\n")
            self._files[mission] = file
        self._files.move_to_end(mission)
        while len(self._files) > _OPEN_FILES:
            self._close(next(iter(self._files)))
        return file

    def _hide(self, mission: str) -> None:
        """Hide a mission whose end can't be written, so that nobody who starts anew goes on with it: a name needs no
        room."""
        path = self._path(mission)
        try:
            path.rename(path.with_suffix(HIDDEN))
        except FileNotFoundError:  # nothing of it could be written
            return
        except OSError as error:
            self._say_broken(error)

    def _path(self, mission: str) -> Path:
        assert self._directory is not None
        path = self._directory / file_name(self._agent, mission)
        return path.with_suffix(OUTDATED) if mission == GENERAL and self._outdated else path

    def _turn_over(self) -> None:
        """Begin the general file anew; one old one is kept.

        The events that still hold are on the disk before the file that has them gives way, and a process that dies in
        between leaves them in the old one.
        """
        self._close(GENERAL)
        self._begin_general(self._head(), turn_over=True)

    def _head(self, besides: bytes = b"") -> bytes:
        """The lines of the events that hold, except those that are in ``besides``."""
        return b"".join(line for line in map(self._line, self._standing()) if line not in besides)

    def _begin_general(self, head: bytes, *, turn_over: bool = False) -> None:
        path = self._path(GENERAL)
        path.with_suffix(NEXT).unlink(missing_ok=True)  # a pipe of that name would wait for a reader
        path.with_suffix(NEXT).write_bytes(head)
        if turn_over:
            path.replace(path.with_suffix(OLD))
        path.with_suffix(NEXT).replace(path)

    def _close(self, mission: str) -> None:
        file = self._files.pop(mission, None)
        if file is not None:
            with contextlib.suppress(OSError):  # what it could not write was reported when it was to be written
                file.close()


def _files(missions: Iterable[str]) -> tuple[str, ...]:
    """The names of the files for what concerns these missions. A sub-mission has none of its own: it is a part of a
    mission, with which a successor goes on."""
    return roots(missions) or (GENERAL,)


def _ends_whole(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1) == b"\n"
