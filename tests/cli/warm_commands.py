"""Commands as forks of a process that has imported what they import: real processes, without a start of Python each.

All of them have one seed for the order of sets, and find imported what they might have forgotten to import: what that
could hide is left to the commands of documents, and to those that ``Machine`` starts, which begin with nothing.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib.util
import json
import os
import pkgutil
import runpy
import select
import shlex
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel

import dimos_streams.cli
from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.skill import skills_of

_NUMBER = struct.Struct("!i")
_STANDARD = 3
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

    The system shows ``name`` as that of the process, and of those that it forks.
    Raises ``subprocess.TimeoutExpired``.
    """
    pipes = [os.pipe() for _ in range(_STANDARD)]
    (in_read, in_write), (out_read, out_write), (err_read, err_write) = pipes
    wanted = {"arguments": list(arguments), "environment": dict(environment), "name": name, "folder": str(folder)}
    request = json.dumps(wanted).encode()
    with socket.socket(socket.AF_UNIX) as connection, ThreadPoolExecutor(_STANDARD) as pool:
        connection.connect(_address(folder))
        ends = [in_read, out_write, err_write]
        socket.send_fds(connection, [request[:1]], ends)
        for end in ends:
            os.close(end)
        writing = pool.submit(_write, in_write, stdin)
        reading = [pool.submit(_read, end) for end in (out_read, err_read)]
        connection.sendall(request[1:])
        connection.shutdown(socket.SHUT_WR)
        process = _receive(connection)
        connection.settimeout(timeout_s)
        try:
            code = os.waitstatus_to_exitcode(_receive(connection))
        except BaseException as error:
            os.kill(process, signal.SIGKILL)  # else those who read what it writes would wait for it
            if isinstance(error, TimeoutError):
                raise subprocess.TimeoutExpired(list(arguments), timeout_s) from None
            raise
        writing.result()
        out, err = (each.result() for each in reading)
    return subprocess.CompletedProcess(list(arguments), code, out, err)


def put_warm_command(directory: Path, folder: Path) -> None:
    """Write a ``dimos-streams`` for shells, which look for it on PATH: it has such a fork do its work.

    The process that forks is begun in ``folder``, which has these tests. Signals to the one that a shell knows reach
    the other one.
    """
    script = directory / "dimos-streams"
    begun = shlex.join([sys.executable, "-ISE", str(Path(__file__).with_name("warm_command.py")), _address(folder)])
    script.write_text(f'#!/bin/sh\nexec {begun} "$@"\n')
    script.chmod(0o755)


@functools.cache
def _address(folder: Path) -> str:
    """Where the process answers that forks commands. It is started for the first one, and ends with this process."""
    place = tempfile.TemporaryDirectory()
    address = str(Path(place.name) / "socket")
    server = subprocess.Popen(
        [sys.executable, "-m", __name__, address],
        cwd=folder,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    assert server.stdout.readline(), "it did not begin"

    def end() -> None:
        server.communicate()
        place.cleanup()

    atexit.register(end)
    return address


def _write(end: int, text: str) -> None:
    with contextlib.suppress(BrokenPipeError), os.fdopen(end, "w", encoding="utf-8") as pipe:
        pipe.write(text)


def _read(end: int) -> str:
    with os.fdopen(end, encoding="utf-8") as pipe:
        return pipe.read()


def _receive(connection: socket.socket) -> int:
    data = connection.recv(_NUMBER.size, socket.MSG_WAITALL)
    number: int = _NUMBER.unpack(data)[0]
    return number


def _serve(address: str) -> None:
    """Fork for each request, and tell how each fork has ended. Returns only where a command is to be run."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        os.write(sys.stdout.fileno(), b"ready\n")
        running: dict[int, _Running] = {}
        while True:
            readable, _, _ = select.select([listener, sys.stdin.fileno(), *running], (), ())
            if sys.stdin.fileno() in readable:
                os._exit(0)
            for each in running.keys() & readable:
                running.pop(each).tell_its_end()
                os.close(each)
            if listener in readable and _began(listener, running):
                return


@dataclass(frozen=True)
class _Running:
    """A command, and who has asked for it."""

    process: int
    connection: socket.socket

    def tell_its_end(self) -> None:
        status = os.waitpid(self.process, 0)[1]
        with self.connection, contextlib.suppress(BrokenPipeError):
            self.connection.sendall(_NUMBER.pack(status))


def _began(listener: socket.socket, running: dict[int, _Running]) -> bool:
    """Whether this is the process of a command now: that which had listened has it among those that are running, by
    what becomes readable with its end."""
    connection, _ = listener.accept()
    request, descriptors, _, _ = socket.recv_fds(connection, 1, _STANDARD)
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
    with contextlib.suppress(BrokenPipeError):
        connection.sendall(_NUMBER.pack(process))
    return False


def _become(wanted: Any, descriptors: Sequence[int]) -> None:
    for standard, descriptor in enumerate(descriptors):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    os.chdir(wanted["folder"])
    os.environ.clear()
    os.environ.update(wanted["environment"])
    sys.argv[1:] = wanted["arguments"]
    Path("/proc/self/comm").write_text(wanted["name"])


def _build_models(base: type[BaseModel]) -> None:
    """Build what each command would build when it first needs it."""
    for model in base.__subclasses__():
        model.model_rebuild()
        _build_models(model)


def _import_commands() -> None:
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
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    _import_commands()
    _serve(sys.argv[1])
    runpy.run_module("dimos_streams", run_name="__main__", alter_sys=True)
