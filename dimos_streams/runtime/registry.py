"""The records of the runs of this user on this machine that live."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, ValidationError

from dimos_streams.common.process.disk import read_small, replace_text
from dimos_streams.common.process.loopback import BRIDGE_HOST, authority_here
from dimos_streams.common.process.run_owner import pid_space, process_start
from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.common.secrets import know
from dimos_streams.runtime.events import ProcessView
from dimos_streams.runtime.run_directories import all_runs, is_own, make_again
from dimos_streams.tool_stream.liveness.part_state import ClockOffset

STOP_BOUND_S = 15.0
"""Maximum time, in seconds, that a run, or a part of one, may take to end after it was asked to."""
RECORD_FILE = "run.json"
"""The name, in a run's directory, of the record of a run that lives."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ProcessRecord(ProcessView):
    """The state of a process of a run, and which process that is."""

    pid_started: int | None
    """Start of the process in clock ticks since boot, to distinguish it from a later one with its number."""


class RunRecord(FrozenModel):
    """The record of a run while it lives."""

    run_id: str
    pid: int
    """The id of the process that supervises."""
    pid_started: int
    """Start of that process in clock ticks since boot, to distinguish it from a later one with its number."""
    pid_space: str
    """Where the ids of its processes mean something (``pid_space``): in a container they are other processes'."""
    blueprint: str
    machine: str = ""
    """The machine whose part of the blueprint it is, if that has several machines."""
    others: dict[str, str] = Field(default_factory=dict)
    """The problems with the parts of the other machines, by machine; empty for a part that is ready."""
    clocks: dict[str, ClockOffset] = Field(default_factory=dict)
    """The offsets by which the other machines' clocks are ahead of this one's, as far as they were measured."""
    bridge_on: str = ""
    """The machine that runs the bridge, if the blueprint has several."""
    bridge: str | None = None
    """The URL at which the bridge of another machine answers, if this run was told it."""
    bus_url: str
    host: str = BRIDGE_HOST
    """The address on which its bridge serves HTTP."""
    port: int | None
    """The port at which its bridge serves HTTP, or None if none does."""
    token: str | None = None
    started_utime: int
    run_dir: Path
    processes: tuple[ProcessRecord, ...] = ()

    @property
    def modules(self) -> list[str]:
        """The names of the run's modules on this machine, process by process."""
        return [name for process in self.processes for name in process.modules]

    @property
    def bridge_url(self) -> str | None:
        """The URL at which the run's bridge answers, or None if it has none that could be asked."""
        return self.bridge if self.port is None else f"http://{authority_here(self.host, self.port)}"


def write(record: RunRecord) -> None:
    """Make a run known, or renew what is known of it, atomically; its directory is made again if it is gone. Raises
    ``OSError``; what was known stays then."""
    if not is_own(record.run_dir):
        make_again(record.run_dir)
    replace_text(record.run_dir / RECORD_FILE, record.model_dump_json(indent=1))


def read_record(run_dir: Path) -> RunRecord:
    """Return what is known of the run in a directory. Raises ``OSError`` and pydantic's ``ValidationError``."""
    return RunRecord.model_validate_json(read_small(run_dir / RECORD_FILE))


def is_known(record: RunRecord) -> bool:
    """Return whether other commands can read of a run: its record was neither deleted nor damaged."""
    try:
        return read_record(record.run_dir).run_id == record.run_id
    except (OSError, ValidationError):
        return False


def remove(record: RunRecord) -> None:
    """Make a run unknown; its other files stay. Calling it twice is fine."""
    try:
        (record.run_dir / RECORD_FILE).unlink(missing_ok=True)
    except OSError as error:  # its process ends now, so nobody takes it for a living one
        _logger.warning("the run %s can't be taken off the list: %s", record.run_id, error)


def runs() -> list[RunRecord]:
    """Return the living runs of this user, newest first. A record that somebody else could have written is skipped:
    commands would obey, and give a token to, whatever it names. So is one of another container, or of another boot:
    its processes' ids are others' here, and commands would end those. Raises ``UserError`` if this user may not
    look for them."""
    found: list[RunRecord] = []
    here = pid_space()
    for run_dir in all_runs():
        path = run_dir / RECORD_FILE
        if not os.path.lexists(path):  # nor where another user lets nobody look
            continue
        try:
            if foreign := _written_by_others(path):
                _logger.warning("skipped the run record %s: %s", path, foreign)
                continue
            record = read_record(run_dir)
        except (OSError, ValidationError):  # it ended while we looked, or another version wrote it
            continue
        if record.pid_space == here and lives(record.pid, record.pid_started):
            know(record.token)
            found.append(record)
    return found


def _written_by_others(path: Path) -> str:
    """Return why somebody else may have written a record; empty if nobody can have. Raises ``OSError``."""
    for each in (path.parent, path):
        found = each.lstat()
        if found.st_uid != os.geteuid():
            return f"{each} belongs to user {found.st_uid}, not to {os.geteuid()}"
        if found.st_mode & 0o022:
            return f"others may write to {each} (mode {found.st_mode & 0o777:o}; at most 755 is valid)"
    return ""


def lives(pid: int | None, started: int | None) -> bool:
    """Return whether a process that a record names still runs, and its number is not another's by now."""
    return pid is not None and started is not None and process_start(pid) == started
