"""The server that forks workers, as a fork of the command: what they share, and what they import themselves."""

from __future__ import annotations

import errno
import fcntl
import json
import multiprocessing
import multiprocessing.forkserver
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from multiprocessing import resource_tracker, util
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dimos_streams.errors import UserError
from dimos_streams.runtime.processes import fork_server
from dimos_streams.runtime.processes.process import SupervisedProcess

pytestmark = [pytest.mark.live, pytest.mark.slow]

REPORT = """
import json, os, sys

def report(path, mine):
    __import__(mine)
    files = [os.path.realpath(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")]
    known = ["dimos_streams.agent.module", "dimos_streams.skills.drive", "html.parser", "never.imported"]
    with open(path, "w") as out:
        json.dump({
            "parent": os.getppid(),
            "imported": [name for name in known if name in sys.modules],
            "mine": sys.modules[mine].VALUE,
            "files": files,
        }, out)
"""
COMMAND = """
import multiprocessing, os, pathlib, sys
sys.path.insert(0, folder := sys.argv[1])
import dimos_streams.agent.module, dimos_streams.skills.drive
known = frozenset(sys.modules)
import mine, reporter
from dimos_streams.runtime.processes import fork_server
from dimos_streams.runtime.processes.process import SupervisedProcess

def ask(number):
    path = f"{folder}/{number}.json"
    worker = multiprocessing.get_context("forkserver").Process(target=reporter.report, args=(path, "mine"))
    worker.start()
    worker.join()
    assert worker.exitcode == 0

held = open(mine.__file__)
fork_server.fork_server_from_here(["html.parser", "never.imported"], ["reporter"], known)
with open(mine.__file__, "w") as source:
    source.write("VALUE = 'second, and longer'")
fork_server.start_forkserver()
fork_server.renew_stale_server()
ask(1)
fork_server._FOLDER = pathlib.Path(folder)  # as if it had the library, of which the server has imported a part
fork_server.renew_stale_server()
fork_server.start_forkserver()
ask(2)
when = os.stat(mine.__file__)
with open(mine.__file__, "w") as source:
    source.write("VALUE = 'third, and as long'")
os.utime(mine.__file__, ns=(when.st_atime_ns, when.st_mtime_ns))
assert os.stat(mine.__file__).st_size == when.st_size
fork_server.renew_stale_server()
fork_server.start_forkserver()
ask(3)
fork_server.renew_stale_server()
fork_server.start_forkserver()
ask(4)
print(os.getpid())
"""

SLOW = """
import pathlib, time

FOLDER = pathlib.Path(__file__).parent
(FOLDER / "begun").touch()
while not (FOLDER / "told").exists():
    time.sleep(0.01)

def task():
    return None
"""
TELL = """
import multiprocessing, os, pathlib, sys, time
sys.path.insert(0, folder := sys.argv[1])
from dimos_streams.runtime.processes import fork_server, worker

class Task:  # its worker imports what it is made of first
    def __reduce__(self):
        return eval, ("__import__('slow').task()",)

fork_server.fork_server_from_here([], [], frozenset(sys.modules))
process = multiprocessing.get_context("forkserver").Process(target=worker.main, args=(Task(), None))
process.start()
while not pathlib.Path(folder, "begun").exists():
    time.sleep(0.01)
process.terminate()
pathlib.Path(folder, "told").touch()
process.join()
print(process.exitcode)
"""
KILLED = """
import os, signal, sys
from dimos_streams.runtime.processes import fork_server
from dimos_streams.runtime.processes.process import SupervisedProcess

fork_server.fork_server_from_here([], [], frozenset(sys.modules))
print(os.listdir(os.environ["TMPDIR"]), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_is_killed_leaves_no_socket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as short:
        monkeypatch.setenv("TMPDIR", short)
        done = run(KILLED, tmp_path)  # it is over with the server, which has the same standard output
        assert (done.returncode, done.stderr) == (-signal.SIGKILL, "")
        assert "pymp-" in done.stdout
        assert os.listdir(short) == []


def test_a_worker_that_still_imports_is_told_to_end_no_less(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    assert run(TELL, tmp_path).stdout == f"{-signal.SIGTERM}\n"


def test_workers_share_the_library_import_the_rest_and_see_edits_of_both(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("VALUE = 'first'")
    (tmp_path / "reporter.py").write_text(REPORT)
    done = run(COMMAND, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    of_fork, of_fresh, of_same_time, of_none = (read(tmp_path / f"{number}.json") for number in (1, 2, 3, 4))
    assert of_fork["imported"] == ["dimos_streams.agent.module", "html.parser"]
    assert of_fresh["imported"] == []
    assert of_fork["parent"] != of_fresh["parent"]
    assert of_fork["mine"] == of_fresh["mine"] == "second, and longer"
    assert of_same_time["mine"] == of_none["mine"] == "third, and as long"
    assert of_fresh["parent"] != of_same_time["parent"] == of_none["parent"]
    assert str(tmp_path / "mine.py") not in of_fork["files"]


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.run(
        [sys.executable, "-c", command, str(folder)], env=environment, capture_output=True, text=True, check=False
    )


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def test_where_the_socket_is_does_not_explain_too_many_open_files() -> None:
    for number, hint in (
        (errno.EMFILE, "`ulimit -n` says how many files a process may have open"),
        (errno.ENOSPC, "TMPDIR names it"),
    ):
        with pytest.raises(UserError) as raised, fork_server.explain_start_failure():
            raise OSError(number, os.strerror(number))
        assert hint in str(raised.value)
        assert ("TMPDIR" in str(raised.value)) is (number == errno.ENOSPC)


def test_files_above_the_limit_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with open(os.devnull) as file:
        above = fcntl.fcntl(file.fileno(), fcntl.F_DUPFD_CLOEXEC, soft - 1)
    monkeypatch.setattr(os, "listdir", lambda path: [str(above)])
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))
    try:
        fork_server._let_go_of_files(set())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(above)


def test_what_it_starts_imports_nothing_from_the_working_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger's ``signal.py`` there would be imported by the process that tracks resources, as by the server."""
    begun: list[list[str]] = []

    def note() -> None:
        begun.append(util._args_from_interpreter_flags())  # type: ignore[attr-defined]

    def note_and_fail() -> None:
        note()
        raise UserError("not now")

    monkeypatch.setattr(multiprocessing, "set_forkserver_preload", list)
    monkeypatch.setattr(multiprocessing.forkserver, "ensure_running", note_and_fail)
    monkeypatch.setattr(resource_tracker, "ensure_running", note)
    with pytest.raises(UserError):
        fork_server.start_forkserver()
    monkeypatch.setattr(resource_tracker, "ensure_running", note_and_fail)
    monkeypatch.delattr(fork_server._server, "_forkserver_authkey", raising=False)
    with pytest.raises(UserError):
        fork_server.fork_server_from_here([], [], ())
    note()
    assert ["-P" in flags for flags in begun] == [True, True, True, False]


def test_a_server_in_the_place_of_one_that_has_ended_begins_as_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker's start would begin it by itself, where a Ctrl-C ends it while it imports, and as anybody likes."""
    begun: list[tuple[bool, bool]] = []

    def begin() -> None:
        if fork_server._server._forkserver_pid is None:
            blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
            flags = util._args_from_interpreter_flags()  # type: ignore[attr-defined]
            begun.append(("-P" in flags, signal.SIGINT in blocked))
            fork_server._server._forkserver_pid = 1

    monkeypatch.setattr(fork_server._server, "_forkserver_pid", None)
    monkeypatch.setattr(fork_server, "_begun", deque[Any](maxlen=1))
    monkeypatch.setattr(multiprocessing.forkserver, "ensure_running", begin)
    monkeypatch.setattr(resource_tracker, "ensure_running", lambda: None)
    plan: Any = SimpleNamespace(label="x")
    process = SupervisedProcess(plan, cast("Any", None), lambda report: None, lambda code: None)
    monkeypatch.setattr(process, "_process", SimpleNamespace(start=begin))
    process._fork()
    assert begun == [(True, True)]
    assert len(fork_server._begun) == 1, "what was edited before it began is no reason to begin another one"


def test_a_server_that_forks_is_not_let_go_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files would be closed between a worker's start and the moment in which they are sent to it."""
    looked = threading.Event()

    def edited() -> list[Path]:
        looked.set()
        return [Path(__file__)]

    class Starting:
        def start(self) -> None:
            renewing.start()
            looked.wait(0.05)  # by then one that did not wait has looked
            is_kept.append(not looked.is_set() and fork_server._server._forkserver_pid == 1)

    is_kept, renewing = list[bool](), threading.Thread(target=fork_server.renew_stale_server)
    for name, value in {"pid": 1, "alive_fd": os.open(os.devnull, os.O_RDONLY), "address": "a"}.items():
        monkeypatch.setattr(fork_server._server, f"_forkserver_{name}", value)
    monkeypatch.setattr(fork_server, "_begun", deque([SimpleNamespace(edited=edited)]))
    monkeypatch.setattr(fork_server, "forget_stale_bytecode", list)
    for module in (multiprocessing.forkserver, resource_tracker):
        monkeypatch.setattr(module, "ensure_running", lambda: None)
    fork_server.fork(cast("Any", Starting()))
    renewing.join()
    assert is_kept == [True]
    assert fork_server._server._forkserver_pid is None
