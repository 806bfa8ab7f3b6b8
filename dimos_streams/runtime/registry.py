"""The runs of this user on this machine: their directories, and the records of those that live."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import tempfile
from pathlib import Path

from pydantic import Field, ValidationError

from dimos_streams import clock
from dimos_streams.common.process.disk import read_small, replace_text
from dimos_streams.common.process.ownership import stranger_with
from dimos_streams.common.process.run_owner import is_ended_run, own, pid_space, process_start
from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.common.secrets import know
from dimos_streams.common.text import with_escaped_bytes
from dimos_streams.errors import UserError
from dimos_streams.tool_stream.liveness.part_state import ClockOffset

STOP_BOUND_S = 15.0
"""Maximum time, in seconds, that a run, or a part of one, may take to end after it was asked to."""
_KEPT_RUNS = 20
"""The number of ended runs that are kept, of those that were ready once."""
_KEPT_STARTS = 5
"""The number of ended runs that are kept, of those that never were: they drive out none that was."""
_READY_FILE = "ready"
"""The name, in a run's directory, of the file that says that all of the run was ready once."""
_DIGITS = 13
"""The number of digits with which each run's directory begins: they are in the order of their names."""
RECORD_FILE = "run.json"
"""The name, in a run's directory, of the record of a run that lives."""
_FOR_ALL = 0o1777
"""The mode of a directory in which each user may write, and remove only what is their own."""

_logger = logging.getLogger(__name__)


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
    port: int | None
    """The port at which its bridge serves HTTP, or None if none does."""
    token: str | None = None
    started_utime: int
    run_dir: Path
    processes: tuple[dict[str, object], ...] = ()

    @property
    def bridge_url(self) -> str | None:
        """The URL at which the run's bridge answers, or None if it has none that could be asked."""
        return self.bridge if self.port is None else f"http://127.0.0.1:{self.port}"


def keep_private() -> None:
    """Let what this process writes from now on be read by its user only: runs have pictures and tokens."""
    os.umask(0o077)


def state_dir() -> Path:
    """Return ``DIMOS_STREAMS_STATE_DIR``, else ``$XDG_STATE_HOME/dimos-streams``, else
    ``~/.local/state/dimos-streams``."""
    own = os.environ.get("DIMOS_STREAMS_STATE_DIR")
    if own:
        return Path(own)
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser() / "dimos-streams"


def new_run_dir(name: str) -> Path:
    """Create a directory for a new run; of ended runs only the newest are kept, and few of those that were never
    ready.

    Raises ``UserError`` if it can't be written, another user could replace its files, or its path is no UTF-8.
    """
    runs_dir = state_dir() / "runs"
    _check_utf8(runs_dir)
    try:
        _make_shared(runs_dir)
        _forget_old(runs_dir)
        directory = runs_dir / f"{_next_number():0{_DIGITS}d}-{name}-{os.getpid()}"
        _make_run(directory)
    except OSError as error:
        raise cannot_begin_in(runs_dir, error) from error
    return directory


def _check_utf8(directory: Path) -> None:
    """Raise ``UserError`` for a path that is no UTF-8: records of runs name their paths in JSON."""
    if shown := with_escaped_bytes(str(directory)):
        raise UserError(
            f"no run can be kept in {shown}: the path is not valid UTF-8, as it must be;"
            " DIMOS_STREAMS_STATE_DIR can name another"
        )


def _make_run(directory: Path) -> None:
    """Raises ``OSError``; then there is no such directory."""
    try:
        (directory / "logs").mkdir(parents=True, mode=0o700)
        own(directory)
    except OSError:
        shutil.rmtree(directory, ignore_errors=True)
        raise


def _next_number() -> int:
    """Return the milliseconds since the Unix epoch or, if they are not after a run that was made before, the number
    after its: runs are newer or older by their names, whatever became of the machine's clock meanwhile."""
    numbers = (path.name.partition("-")[0] for path in run_dirs())
    known = [int(number) for number in numbers if len(number) == _DIGITS and number.isdecimal()]
    return max([clock.utime() // 1000, *(number + 1 for number in known if number + 1 < 10**_DIGITS)])


def run_dirs() -> list[Path]:
    """Return the directories of this user's runs, living or ended, newest first. Raises ``UserError`` if this user
    may not look for them."""
    return [path for path in _all_runs() if path.match("*-*-*") and _is_own(path)]


def _all_runs() -> list[Path]:
    """Return what is in the directory of all runs, newest first. Raises ``UserError`` if this user may not look,
    or there is no such directory but a file."""
    directory = state_dir() / "runs"
    try:
        return sorted(directory.iterdir(), reverse=True)
    except FileNotFoundError:
        return []
    except OSError as error:
        why = error.strerror or str(error)
        mended = "" if isinstance(error, NotADirectoryError) else f"let user {os.geteuid()} read it, or "
        raise UserError(
            f"the runs in {directory} can't be looked for: {why}; {mended}name another state directory with"
            " DIMOS_STREAMS_STATE_DIR"
        ) from error


def _is_own(path: Path) -> bool:
    try:
        return path.lstat().st_uid == os.geteuid()
    except FileNotFoundError:  # another run that begins has just deleted it
        return False


def _make_shared(runs_dir: Path) -> None:
    """Make the directory of all runs; it is for all users if the one above it is, as in containers of any user.

    Raises ``OSError``, and ``UserError`` if another user could replace what is in it.
    """
    with contextlib.suppress(FileExistsError):
        runs_dir.mkdir(parents=True)
        if runs_dir.parent.stat().st_mode & _FOR_ALL == _FOR_ALL:
            runs_dir.chmod(_FOR_ALL)
    _refuse_strangers(runs_dir)


def _refuse_strangers(runs_dir: Path) -> None:
    for directory in (runs_dir.parent, runs_dir):
        if (user := stranger_with(directory)) is not None:
            raise UserError(
                f"no run can be kept in {directory}: it belongs to user {user}, who could replace the run's files;"
                " let it be yours or root's, or name another with DIMOS_STREAMS_STATE_DIR"
            )


def why_no_run() -> str:
    """Return why the directory of a new run can't be made, empty if it can. No more is made than a nameless file
    where its first directory would be."""
    runs_dir = state_dir() / "runs"
    nearest = next((path for path in (runs_dir, *runs_dir.parents) if os.path.lexists(path)), Path())
    try:
        _check_utf8(runs_dir)
        _refuse_strangers(runs_dir)
        with tempfile.TemporaryFile(dir=nearest, buffering=0) as probe:
            probe.write(bytes(4096))
    except OSError as error:
        return str(cannot_begin_in(runs_dir, error))
    except UserError as error:
        return str(error)
    return ""


def cannot_begin_in(directory: Path, error: OSError) -> UserError:
    """Return the error for a person whose run can't begin for want of room or rights."""
    why = error.strerror or str(error)
    return UserError(f"cannot write to {directory}: {why}; DIMOS_STREAMS_STATE_DIR can name another")


def write(record: RunRecord) -> None:
    """Make a run known, or renew what is known of it, atomically; its directory is made again if it is gone. Raises
    ``OSError``; what was known stays then."""
    if not os.path.lexists(record.run_dir):
        _make_again(record.run_dir)
    replace_text(record.run_dir / RECORD_FILE, record.model_dump_json(indent=1))


def _make_again(run_dir: Path) -> None:
    """Raises ``OSError``, also if another user could replace what is in it."""
    try:
        _make_shared(run_dir.parent)
    except UserError as error:
        raise PermissionError(str(error)) from error
    _make_run(run_dir)


def read_record(run_dir: Path) -> RunRecord:
    """Return what is known of the run in a directory. Raises ``OSError`` and pydantic's ``ValidationError``."""
    return RunRecord.model_validate_json(read_small(run_dir / RECORD_FILE))


def is_known(record: RunRecord) -> bool:
    """Return whether other commands can read of a run: its record was neither deleted nor damaged."""
    try:
        return read_record(record.run_dir).run_id == record.run_id
    except (OSError, ValidationError):
        return False


def note_ready(run_dir: Path) -> None:
    """Write down, for the time after its end, that all of a run is ready. Raises ``OSError``."""
    (run_dir / _READY_FILE).touch()


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
    for path in (run_dir / RECORD_FILE for run_dir in _all_runs()):
        if not os.path.lexists(path):  # nor where another user lets nobody look
            continue
        try:
            if foreign := _written_by_others(path):
                _logger.warning("skipped the run record %s: %s", path, foreign)
                continue
            record = read_record(path.parent)
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


def lives(pid: object, started: object) -> bool:
    """Return whether a process that a record names still runs, and its number is not another's by now."""
    return isinstance(pid, int) and isinstance(started, int) and process_start(pid) == started


def _forget_old(runs_dir: Path) -> None:
    """Delete the oldest ended runs. What is not provably a run stays, and what can't be deleted is reported."""
    ended = [path for path in sorted(runs_dir.iterdir()) if is_ended_run(path)]
    ran = [path for path in ended if (path / _READY_FILE).exists()]
    only_begun = [path for path in ended if path not in ran]
    for path in (*ran[:-_KEPT_RUNS], *only_begun[:-_KEPT_STARTS]):
        try:
            shutil.rmtree(path)
        except OSError as error:
            _logger.warning("the old run %s can't be deleted: %s", path, error)
