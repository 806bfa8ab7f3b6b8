"""Commands as forks of a process that has imported what they import: real processes, without a start of Python each.

All of them have one seed for the order of sets, and find imported what they might have forgotten to import: what that
could hide is left to the commands of the README, and to those that ``Machine.started`` starts, which begin with
nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import gc
import importlib.util
import json
import os
import pkgutil
import runpy
import select
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel

import dimos_streams.cli
from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.skill import skills_of
from tests.cli.warm_process import NUMBER, STANDARD, WarmProcess, receive_number

_NOBODY = b"-" * 40
"""Stands where the name of a command will be, in the environment with which the process that forks it begins."""
_IMPORTED = (
    *("agent.module", "bridge.module", "perception.module", "robot.simulator", "robot.velocity_gate.module"),
    *("skills.drive", "skills.follow_person", "skills.look_out_for", "skills.observe", "skills.patrol"),
    *("blueprint.check", "client.http_gateway", "recording.summary", "recording.writer"),
    *("runtime.processes.fork_server", "runtime.processes.preload", "runtime.unreadable_runs"),
)
_OTHERS = ("docstring_parser", "requests", "rich.markdown", "typer.rich_utils", "uvloop")


def run_warm(
    arguments: Sequence[str], stdin: str, environment: Mapping[str, str], folder: Path, name: str, timeout_s: float
) -> subprocess.CompletedProcess[str]:
    """``dimos-streams ARGUMENTS`` as ``subprocess.run`` runs it, in a folder that has these tests.

    Its processes have ``name`` in the environment with which the system shows them.
    Raises ``subprocess.TimeoutExpired``.
    """
    process = begin_warm(
        arguments, environment, folder, name, stdin=subprocess.PIPE, stderr=subprocess.PIPE, leads=False
    )
    with contextlib.closing(process):
        out, err = process.communicate(stdin, timeout_s)
        return subprocess.CompletedProcess(list(arguments), process.wait(timeout_s), out, err)


def begin_warm(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    name: str,
    *,
    stdin: int,
    stderr: int,
    leads: bool,
) -> WarmProcess:
    """The same while it runs. One that leads has a session of its own, as in a terminal."""
    in_read, in_write = os.pipe() if stdin == subprocess.PIPE else (os.open(os.devnull, os.O_RDONLY), None)
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe() if stderr == subprocess.PIPE else (None, os.dup(out_write))
    wanted = {"arguments": list(arguments), "environment": dict(environment), "name": name, "folder": str(folder)}
    request = json.dumps({**wanted, "leads": leads}).encode()
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(_address(folder))
    ends = [in_read, out_write, err_write]
    socket.send_fds(connection, [request[:1]], ends)
    for end in ends:
        os.close(end)
    connection.sendall(request[1:])
    connection.shutdown(socket.SHUT_WR)
    return WarmProcess(
        receive_number(connection),
        None if in_write is None else os.fdopen(in_write, "w", encoding="utf-8"),
        os.fdopen(out_read, encoding="utf-8"),
        None if err_read is None else os.fdopen(err_read, encoding="utf-8"),
        connection,
    )


def put_warm_command(directory: Path, folder: Path) -> None:
    """Write a ``dimos-streams`` for shells, which look for it on PATH: it has such a fork do its work.

    The process that forks is begun in ``folder``, which has these tests. Signals to the one that a shell knows reach
    the other one.
    """
    script = directory / "dimos-streams"
    begun = shlex.join([sys.executable, "-ISE", str(Path(__file__).with_name("warm_command.py")), _address(folder)])
    script.write_text(f'#!/bin/sh\nexec {begun} "$@"\n')
    script.chmod(0o755)


def _address(folder: Path) -> str:
    """Where the process answers that forks commands."""
    return _address_of(folder, os.getpriority(os.PRIO_PROCESS, 0))


@functools.cache
def _address_of(folder: Path, niceness: int) -> str:
    """One process serves all workers of a session that give way to others alike, as its forks do. It is started for
    the first command, and ends with the session."""
    session = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    owner, name = (os.getpid(), uuid.uuid4().hex) if session is None else (os.getppid(), session)
    place = Path(tempfile.gettempdir()) / f"warm-{name}-{niceness}"
    place.mkdir(mode=0o700, exist_ok=True)
    address = place / "socket"
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not address.exists():
            with subprocess.Popen(
                [sys.executable, "-m", __name__, str(address), str(owner)],
                cwd=folder,
                env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "WARM_COMMAND": _NOBODY.decode()},
                stdin=subprocess.PIPE,  # as those of commands are, which take over how Python uses them
                stdout=subprocess.PIPE,
                start_new_session=True,
            ) as begun:
                assert not begun.wait(), "it did not begin"
    return str(address)


def _serve(address: Path, owner: int) -> None:
    """Fork for each request, and tell how each fork has ended, as an orphan that ends with ``owner``. Returns only
    where a command is to be run."""
    session = os.pidfd_open(owner)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))
        listener.listen()
        if os.fork():
            os._exit(0)
        running: dict[int, _Running] = {}
        while True:
            awaited: list[socket.socket | int] = [listener, session, *running]
            readable, _, _ = select.select(awaited, (), ())
            if session in readable:
                shutil.rmtree(address.parent, ignore_errors=True)
                os._exit(0)
            for each in running.keys() & readable:
                running.pop(each).tell_its_end()
                os.close(each)
            if listener in readable and _began(listener, running):
                os.close(session)
                return


@dataclass(frozen=True)
class _Running:
    """A command, and who has asked for it."""

    process: int
    connection: socket.socket

    def tell_its_end(self) -> None:
        status = os.waitpid(self.process, 0)[1]
        with self.connection, contextlib.suppress(ConnectionError):
            self.connection.sendall(NUMBER.pack(status))


def _began(listener: socket.socket, running: dict[int, _Running]) -> bool:
    """Whether this is the process of a command now: that which had listened has it among those that are running, by
    what becomes readable with its end."""
    connection, _ = listener.accept()
    request, descriptors, _, _ = socket.recv_fds(connection, 1, STANDARD)
    with connection.makefile("rb") as rest:
        request += rest.read()
    process = os.fork()
    if not process:
        listener.close()
        connection.close()
        for end, other in running.items():
            os.close(end)
            other.connection.close()
        _become(json.loads(request), descriptors)
        return True
    for descriptor in descriptors:
        os.close(descriptor)
    running[os.pidfd_open(process)] = _Running(process, connection)
    with contextlib.suppress(ConnectionError):
        connection.sendall(NUMBER.pack(process))
    return False


def _become(wanted: Any, descriptors: Sequence[int]) -> None:
    for standard, descriptor in enumerate(descriptors):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    os.chdir(wanted["folder"])
    os.environ.clear()
    os.environ.update(wanted["environment"])
    sys.argv[1:] = wanted["arguments"]
    if wanted.get("leads"):
        os.setsid()
    _show(wanted["name"])


def _show(name: str) -> None:
    """Have the system show a name as that of this process, and in the environment that it began with, which is also
    that of all its forks, whatever they are called."""
    Path("/proc/self/comm").write_text(name)
    begin, end = map(int, Path("/proc/self/stat").read_text().rpartition(")")[2].split()[47:49])
    at = ctypes.string_at(begin, end - begin).find(_NOBODY)
    assert at >= 0, "the environment has no place for a name"
    ctypes.memmove(begin + at, name.encode(), min(len(name.encode()), len(_NOBODY)))


def _build_models(base: type[BaseModel]) -> None:
    """Build what each command would build when it first needs it."""
    for model in base.__subclasses__():
        model.model_rebuild()
        _build_models(model)


def _import_commands() -> None:
    gc.disable()  # it would take a fourth of the time, and what is imported stays
    for found in pkgutil.walk_packages(dimos_streams.cli.__path__, "dimos_streams.cli."):
        importlib.import_module(found.name)
    for name in _IMPORTED:
        module = importlib.import_module(f"dimos_streams.{name}")
        for found in vars(module).values():
            for late in getattr(found, "late_imports", ()):
                importlib.import_module(late)
    others = [*_OTHERS]
    if sys.version_info < (3, 14):
        others.append("pydantic.v1")  # FastAPI asks it about each type, where it works
    for name in filter(importlib.util.find_spec, others):
        importlib.import_module(name)
    _build_models(FrozenModel)
    from dimos_streams.agent.module import Agent
    from dimos_streams.bridge.module import Bridge
    from dimos_streams.cli.app import create_app

    for declaring in (Agent, Bridge):
        skills_of(declaring)

    # Typer and its Click import what they need with the first value that is to be checked.
    with contextlib.suppress(typer.BadParameter):
        create_app(["calls"])(["calls", "--port", "no number"], standalone_mode=False)
    gc.freeze()
    gc.enable()


if __name__ == "__main__":
    _import_commands()
    _serve(Path(sys.argv[1]), int(sys.argv[2]))
    runpy.run_module("dimos_streams", run_name="__main__", alter_sys=True)
