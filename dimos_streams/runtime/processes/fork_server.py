"""The process that forks the workers, which inherit what it has imported, and share that memory with it.

It is multiprocessing's fork server. A command makes it a fork of itself, which has already imported most of what
modules need. A supervisor that is run otherwise gets a server that begins with nothing, because a fork of a process
with threads is not safe.
"""

from __future__ import annotations

import errno
import gc
import importlib
import logging
import multiprocessing.forkserver
import os
import signal
import socket
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import connection, resource_tracker, util
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, NoReturn

import dimos_streams
from dimos_streams import clock
from dimos_streams.common.importing import LIBRARY, SKILLS, is_within
from dimos_streams.common.process.run_owner import process_parent
from dimos_streams.common.process.threads import one_thread_for_matrices
from dimos_streams.errors import ModuleFailedError, UserError
from dimos_streams.messages import registry
from dimos_streams.runtime.processes.sources import Stamp, forget_stale_bytecode, is_installed, stamp

_PRELOAD, _FREEZE = (f"dimos_streams.runtime.processes.{name}" for name in ("preload", "freeze"))
_FOLDER = Path(dimos_streams.__file__).parent
_STANDARD = 3
_server: Any = multiprocessing.forkserver._forkserver
_util: Any = util
_using = threading.Lock()
"""Held by whoever starts a server, has it fork or lets it go: each is seen through before the next begins."""
_logger = logging.getLogger(__name__)
IsOwn = Callable[[str, object], bool]


@dataclass(frozen=True, slots=True)
class _Beginning:
    """The beginning of a server: its time, in µs since the Unix epoch, and the sources imported here by then."""

    utime: int
    sources: dict[str, Stamp | None]

    @classmethod
    def now(cls) -> _Beginning:
        return cls(clock.utime(), {file: stamp(file) for file in _library_sources()})

    def edited(self) -> list[Path]:
        """Return the sources of the library that are not as they were then: the server may have imported any."""
        files = {*_library_sources(), *map(str, _FOLDER.rglob("*.py"))}
        return sorted(Path(file) for file in files if self._differs(file, stamp(file)))

    def _differs(self, file: str, found: Stamp | None) -> bool:
        if found is None:  # it was removed, or is no file
            return False
        if file in self.sources:
            return found != self.sources[file]
        return max(found.written_ns, found.changed_ns) >= self.utime * 1000


_begun: deque[_Beginning] = deque(maxlen=1)
"""The beginning of the newest server, if any was started."""


def start_forkserver(shared: Sequence[str] = ()) -> None:
    """Start a server that begins with nothing, if none runs yet. Blocks until it has begun.

    ``shared`` are Python modules that it imports besides those that all workers need. Raises ``UserError`` if there
    is no room for its socket.
    """
    one_thread_for_matrices()
    multiprocessing.set_forkserver_preload([_PRELOAD, *shared, _FREEZE])
    with explain_start_failure(), _using:
        _keep_forkserver()


def fork(process: ForkServerProcess) -> None:
    """Start a worker, and the server before it if none runs: the first, or another one in the place of one that has
    ended or was let go. For a thread: it blocks until the server has begun, and has forked."""
    with _using:
        _keep_forkserver()
        process.start()


def _keep_forkserver() -> None:
    """Start the server if none runs; multiprocessing starts one, too, but not in the way that it has to be."""
    with _away_from_here():
        before = _server._forkserver_pid
        resource_tracker.ensure_running()  # the forkserver would start it, and it unblocks signals
        with _without_interrupts():
            multiprocessing.forkserver.ensure_running()
        if _server._forkserver_pid != before:
            _begun.append(_Beginning.now())


def fork_server_from_here(shared: Sequence[str], own: Iterable[str], known: Collection[str]) -> None:
    """Make the server a fork of this process; to be called before there are threads, loops and bus objects.

    ``shared`` are Python modules that it imports besides. It forgets the stock skills, the top-level packages ``own``
    and whatever is not installed and not among the modules ``known``: each worker imports that by itself, as it is on
    disk then. Raises ``UserError`` if there is no room for its socket. Does nothing on a Python whose own servers
    want more than an address: workers are then forks of one that begins with nothing.
    """
    if hasattr(_server, "_forkserver_authkey"):  # since Python 3.14
        return
    one_thread_for_matrices()
    with _away_from_here():
        resource_tracker.ensure_running()
    with _without_interrupts(), explain_start_failure(), socket.socket(socket.AF_UNIX) as listener:
        address = connection.arbitrary_address("AF_UNIX")  # type: ignore[attr-defined]
        listener.bind(address)
        listener.listen()
        orphaned, alive = os.pipe()
        _begun.append(_Beginning.now())
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        gc.freeze()  # neither collector is to write into what both share from now on
        parent, child = os.getpid(), os.fork()
        if not child:
            _serve(
                listener.fileno(),
                orphaned,
                shared,
                partial(_is_own, frozenset(own), frozenset(known)),
                Path(address),
                parent,
            )
        os.close(orphaned)
    _server._forkserver_address, _server._forkserver_alive_fd, _server._forkserver_pid = address, alive, child


def renew_stale_server() -> None:
    """Let another server fork from now on if the library, which this one has imported, was edited since it began.

    The old one ends with the last of its workers. For a thread: it blocks while the server forks.
    """
    with _using:
        edited = _begun[0].edited() if _begun and _server._forkserver_pid is not None else []
        if not edited:
            return
        forget_stale_bytecode(edited)
        os.close(_server._forkserver_alive_fd)
        _server._forkserver_address = _server._forkserver_alive_fd = _server._forkserver_pid = None


def end_stalled_server(worker: int) -> None:
    """Kill the server that does not say that a worker of it has ended. Its other workers end with it."""
    parent = process_parent(worker)
    if parent is not None and parent == _server._forkserver_pid:
        _logger.error("the forkserver does not say that process %d has ended: all processes are killed", worker)
        with suppress(ProcessLookupError):
            os.kill(parent, signal.SIGKILL)


def _library_sources() -> Iterator[str]:
    """Yield the sources of the library's modules that are imported here."""
    for name, module in list(sys.modules.items()):
        if name.startswith(f"{LIBRARY}.") and not is_within(name, SKILLS) and (file := module.__file__):
            yield file


def _serve(
    listener: int, orphaned: int, shared: Sequence[str], is_own: IsOwn, address: Path, parent: int
) -> NoReturn:
    """Run as a server that is a fork, until all who could ask it have ended."""
    code = 1
    try:
        # A whole process group may get these: how the workers end is to be known. SIGTERM is blocked rather than
        # ignored: a worker is told to end by it, also in the moment in which it is but a fork of this process.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        _let_go_of_files({listener, orphaned})
        _forget(is_own)
        for name in (_PRELOAD, *shared, _FREEZE):
            with suppress(ImportError):  # whatever needs it will say that it is missing
                importlib.import_module(name)
        multiprocessing.forkserver.main(listener, orphaned, [])
        code = 0
    except SystemExit:
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    if os.getppid() != parent:  # which removes it itself, unless it was killed
        _remove_socket(address)
    os._exit(code)


def _remove_socket(address: Path) -> None:
    """Remove the server's socket, and the directory that was made for it unless there is anything else in it."""
    with suppress(OSError):
        address.unlink(missing_ok=True)
        address.parent.rmdir()


def _let_go_of_files(needed: set[int]) -> None:
    """Close inherited files. Their numbers stay taken: there are objects that would close them some day."""
    nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    descriptors = {int(name) for name in os.listdir("/dev/fd")} - needed - {nowhere}
    for descriptor in descriptors:
        if descriptor >= _STANDARD:
            try:
                os.fstat(descriptor)  # that of the listing itself is closed
                os.dup2(nowhere, descriptor, inheritable=False)
            except OSError:  # one that is above `ulimit -n` has a number that nobody gets again
                with suppress(OSError):
                    os.close(descriptor)
    os.close(nowhere)


def _forget(is_own: IsOwn) -> None:
    forgotten = [name for name, module in sys.modules.items() if is_own(name, module)]
    for name in forgotten:
        del sys.modules[name]
        package, _, child = name.rpartition(".")
        if package in sys.modules:
            vars(sys.modules[package]).pop(child, None)
    importlib.invalidate_caches()
    registry.forget()


def _is_own(own: frozenset[str], known: frozenset[str], name: str, module: object) -> bool:
    package = name.partition(".")[0]
    if package == LIBRARY:
        return is_within(name, SKILLS)
    file = getattr(module, "__file__", None)
    return package in own or (name not in known and isinstance(file, str) and not is_installed(file))


@contextmanager
def _away_from_here() -> Iterator[None]:
    """Have what multiprocessing starts look for no module in the working directory, as ``python -c`` does before it
    looks into Python's own library: what lies there may be anybody's."""
    flags = _util._args_from_interpreter_flags
    _util._args_from_interpreter_flags = lambda: ["-P", *flags()]
    try:
        yield
    finally:
        _util._args_from_interpreter_flags = flags


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Block Ctrl-C, which the server inherits; else one from the terminal would end it while it still imports.

    A Ctrl-C that comes meanwhile reaches this process when it is unblocked.
    """
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


@contextmanager
def explain_start_failure() -> Iterator[None]:
    """Raise ``UserError`` for what keeps the server, or a process, from being started, and ``ModuleFailedError`` if
    the server has ended."""
    try:
        yield
    except ChildProcessError as error:
        raise ModuleFailedError(f"processes can't be started: {error}") from error
    except OSError as error:
        hints: dict[int | None, str] = {
            errno.EMFILE: "; `ulimit -n` says how many files a process may have open",
            errno.ENFILE: "",
            errno.EAGAIN: "",
        }
        where = hints.get(error.errno, f" (their socket is in {tempfile.gettempdir()}; TMPDIR names it)")
        raise UserError(f"processes can't be started: {error}{where}") from error
