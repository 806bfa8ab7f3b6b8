"""The process that a run's directory belongs to, and whether that process lives.

A lock says it, not a number: processes of several containers, each of which counts by itself, and those of their host
may share a directory of runs, and after a boot all numbers are given again. The kernel has one table of locks for
all of them, and ends a lock with the last process that has it.
"""

from __future__ import annotations

import fcntl
import glob
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from dimos_streams.common.process.disk import open_small
from dimos_streams.common.schemas.frozen_model import FrozenModel

OWNER_FILE = "owner.json"
"""The name, in a run's directory, of the file that says whose it is."""
_MAX_OWNER = 4096
"""Maximum size of that file, in bytes."""


class RunOwner(FrozenModel):
    """The content of that file, which the process that made the directory keeps locked. A directory without it is not
    a run, and is never deleted."""

    directory: str
    """The directory's own name: a copy under another name is not a run."""


def own(directory: Path) -> int:
    """Make a directory a run of this process until it and all that it forks have ended, or have closed the descriptor
    that this returns. Raises ``OSError``."""
    unlocked = directory / f"{OWNER_FILE}.new"  # which nobody takes for the file of a run that has ended
    descriptor = os.open(unlocked, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        unlocked.write_text(RunOwner(directory=directory.name).model_dump_json(), encoding="utf-8")
        unlocked.replace(directory / OWNER_FILE)
    except OSError:
        os.close(descriptor)  # else it stays open for as long as the process lives
        raise
    return descriptor


@contextmanager
def owned_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """Yield a new folder that is deleted at the end of the block. Those of that prefix whose processes were killed
    are deleted first; where there are no locks, none are. Raises ``OSError``."""
    for left in parent.glob(f"{glob.escape(prefix)}*"):
        if is_ended_run(left):
            shutil.rmtree(left, ignore_errors=True)
    with ExitStack() as owned:
        # Another process may be about to delete it, too, once it is nobody's.
        made = owned.enter_context(tempfile.TemporaryDirectory(prefix=prefix, dir=parent, ignore_cleanup_errors=True))
        with suppress(OSError):
            owned.callback(os.close, own(Path(made)))
        yield Path(made)


def run_id_of(run_dir: Path) -> str:
    """Return the id of the run whose directory it is."""
    return run_dir.name.partition("-")[2]


def is_ended_run(path: Path) -> bool:
    """Return whether a directory of this user says that it is a run, and every process that owned it has ended."""
    try:
        found = path.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            return False
        with open_small(path / OWNER_FILE) as file:
            owner = RunOwner.model_validate_json(file.read(_MAX_OWNER))
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (OSError, ValidationError):
        return False
    return owner.directory == path.name


def owner_of(run_dir: Path) -> int | None:
    """Return the process by whose number a run's directory is named, if that process has it open as its own; None if
    it has ended, or is one of another container."""
    pid = run_dir.name.rpartition("-")[2]
    if not pid.isdecimal():
        return None
    try:
        owned = (run_dir / OWNER_FILE).stat()
        return int(pid) if any(_is_open(fd, owned) for fd in Path(f"/proc/{pid}/fd").iterdir()) else None
    except OSError:
        return None


def _is_open(descriptor: Path, owned: os.stat_result) -> bool:
    try:
        return os.path.samestat(descriptor.stat(), owned)
    except OSError:  # it was closed meanwhile
        return False


def boot_id() -> str:
    """Return the machine's boot, which no other boot, nor any other machine, shares; empty where the system does not
    say it."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def pid_space() -> str:
    """Return the boot and the PID namespace within which the ids of this process and those that it sees mean
    something; empty where the system does not say it."""
    boot = boot_id()
    try:
        return f"{boot} {os.readlink('/proc/self/ns/pid')}" if boot else ""
    except OSError:
        return ""


def process_start(pid: int) -> int | None:
    """Return the time at which a process began, in clock ticks since boot, or None if there is none of that number,
    or it has ended and its parent has not looked yet."""
    stat = _stat(pid)
    return None if stat is None or stat[0] in ("Z", "X") else int(stat[19])


def is_suspended(pid: int) -> bool:
    """Return whether a process is there and does nothing until somebody lets it go on (SIGCONT, a debugger)."""
    stat = _stat(pid)
    return stat is not None and stat[0] in ("T", "t")


def process_parent(pid: int) -> int | None:
    """Return the number of a process's parent, also if the process has ended and the parent has not looked yet; None
    if there is none of that number."""
    stat = _stat(pid)
    return None if stat is None else int(stat[1])


def children_of(pid: int) -> list[int]:
    """Return the numbers of the processes that a process is the parent of."""
    return [each for name in os.listdir("/proc") if name.isdecimal() and process_parent(each := int(name)) == pid]


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """The processor time and the memory that a process has taken until now."""

    cpu_s: float
    """Seconds of processors, of all its threads, since it began."""
    memory_bytes: int
    """Memory that is not swapped out, with what it shares with others, as `top` shows it (RES)."""


def usage_of(pid: int) -> ProcessUsage | None:
    """Return the usage of a process, or None if there is none of that number."""
    stat = _stat(pid)
    if stat is None:
        return None
    ticks = int(stat[11]) + int(stat[12])
    return ProcessUsage(ticks / os.sysconf("SC_CLK_TCK"), int(stat[21]) * os.sysconf("SC_PAGE_SIZE"))


@dataclass(frozen=True, slots=True)
class FirstThread:
    """The first thread of a process, as the system has scheduled it since its start."""

    ran_s: float = 0.0
    """Seconds for which it ran."""
    waited_s: float = 0.0
    """Seconds for which it was ready to run, but others ran instead, without a wait that goes on: on a busy machine
    that is not its own fault."""
    wants_to_run: bool = False
    """True if it runs or waits for a processor."""


def first_thread(pid: int) -> FirstThread:
    """Return the first thread of a process; one that never ran if the system does not say, and for a process that has
    gone."""
    scheduled = _scheduled(pid)
    if scheduled is None:
        return FirstThread()
    stat = _stat(pid)
    return FirstThread(*scheduled, stat is not None and stat[0] == "R")


def waited_s(pid: int) -> float:
    """Return the seconds for which a process's first thread has waited for a processor, as `FirstThread` has them: a
    third of the work, for those who ask at each beat."""
    scheduled = _scheduled(pid)
    return 0.0 if scheduled is None else scheduled[1]


def _scheduled(pid: int) -> tuple[float, float] | None:
    """The seconds for which a process's first thread ran and waited, see ``proc_pid_schedstat(5)``."""
    try:
        with open(f"/proc/{pid}/schedstat", "rb", buffering=0) as file:
            ran_ns, waited_ns, _ = map(int, file.read().split())
    except (OSError, ValueError):
        return None
    return ran_ns / 1e9, waited_ns / 1e9


def _stat(pid: int) -> list[str] | None:
    """The fields of a process's ``stat`` from its state on, see ``proc_pid_stat(5)``. Its name, which stands before
    them, may be any bytes."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].decode().split()
    except OSError:
        return None
