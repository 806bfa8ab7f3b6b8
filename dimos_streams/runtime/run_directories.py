"""The directories of this user's runs on this machine, and who may have made what is in them."""

from __future__ import annotations

import contextlib
import logging
import os
import pwd
import shutil
import tempfile
from pathlib import Path

from dimos_streams import clock
from dimos_streams.common.process.ownership import stranger_with
from dimos_streams.common.process.run_owner import is_ended_run, own
from dimos_streams.common.readable.surrogates import with_escaped_bytes
from dimos_streams.errors import UserError

_KEPT_RUNS = 20
"""The number of ended runs that are kept, of those that were ready once."""
_KEPT_STARTS = 5
"""The number of ended runs that are kept, of those that never were: they drive out none that was."""
_READY_FILE = "ready"
"""The name, in a run's directory, of the file that says that all of the run was ready once."""
_DIGITS = 13
"""The number of digits with which each run's directory begins: they are in the order of their names."""
_FOR_ALL = 0o1777
"""The mode of a directory in which each user may write, and remove only what is their own."""

_logger = logging.getLogger(__name__)


def keep_private() -> None:
    """Let what this process writes from now on be read by its user only: runs have pictures and tokens."""
    os.umask(0o077)


def state_dir() -> Path:
    """Return ``DIMOS_STREAMS_STATE_DIR``, else ``$XDG_STATE_HOME/dimos-streams`` if that is absolute, as XDG has it,
    else ``~/.local/state/dimos-streams``. Raises ``UserError`` for a home that nobody knows."""
    given = os.environ.get("DIMOS_STREAMS_STATE_DIR")
    if given:
        return _at_home(given)
    base = os.environ.get("XDG_STATE_HOME", "")
    return _at_home(base if base.startswith(("/", "~")) else "~/.local/state") / "dimos-streams"


def _at_home(path: str) -> Path:
    """Return a path with the user's own directory for ``~``; where ``HOME`` is empty, as where there is none, the
    system's list of users has it."""
    try:
        if path.startswith("~/") and not os.environ.get("HOME"):
            return Path(pwd.getpwuid(os.getuid()).pw_dir, path.removeprefix("~/"))
        return Path(path).expanduser()
    except (KeyError, RuntimeError) as error:
        raise UserError(
            f"runs can keep no files in {path!r}: nobody knows that home directory; set HOME to this user's, or name"
            " another state directory with DIMOS_STREAMS_STATE_DIR"
        ) from error


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
        taken = isinstance(error, FileExistsError)
        raise cannot_begin_in(Path(error.filename) if taken else runs_dir, error) from error
    return directory


def _check_utf8(directory: Path) -> None:
    """Raise ``UserError`` for a path that is no UTF-8: records of runs name their paths in JSON."""
    if shown := with_escaped_bytes(str(directory)):
        raise UserError(
            f"no run can be kept in {shown}: the path is not valid UTF-8, as it must be;"
            " DIMOS_STREAMS_STATE_DIR can name another"
        )


def _make_run(directory: Path) -> None:
    """Raises ``OSError``; then none was made. One that is there already may be another user's, who guessed its name
    where all users may write, and could replace what is in it."""
    directory.mkdir(mode=0o700)
    try:
        (directory / "logs").mkdir(mode=0o700)
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
    return [path for path in all_runs() if path.match("*-*-*") and is_own(path)]


def all_runs() -> list[Path]:
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


def is_own(path: Path) -> bool:
    """Return whether a directory is there, and is this user's."""
    try:
        return path.lstat().st_uid == os.geteuid()
    except FileNotFoundError:  # another run that begins may have just deleted it
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
    try:
        runs_dir = state_dir() / "runs"
        nearest = next((path for path in (runs_dir, *runs_dir.parents) if os.path.lexists(path)), Path())
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


def make_again(run_dir: Path) -> None:
    """Make a run's directory that is gone. Raises ``OSError``, also if another user could replace what is in it, or
    has taken its name."""
    try:
        _make_shared(run_dir.parent)
    except UserError as error:
        raise PermissionError(str(error)) from error
    _make_run(run_dir)


def note_ready(run_dir: Path) -> None:
    """Write down, for the time after its end, that all of a run is ready. Raises ``OSError``."""
    (run_dir / _READY_FILE).touch()


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
