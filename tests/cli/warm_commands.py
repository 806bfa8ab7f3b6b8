"""Commands as forks of a process that has imported what they import: real processes, without a start of Python each.

All of them have one seed for the order of sets, and find imported what they might have forgotten to import: what that
could hide is left to the commands of the README, and to those of ``Machine.cold`` and ``Machine.started``, which
begin with nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import gc
import importlib.util
import json
import os
import pkgutil
import runpy
import shlex
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

import typer
from pydantic import BaseModel

import dimos_streams.cli
from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.skill import skills_of
from tests.fork_server import begin_server, client_command, serve
from tests.warm_process import WarmProcess, receive_number

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
    command = shlex.quote(str(Path(sys.executable).with_name("dimos-streams")))
    script = directory / "dimos-streams"
    script.write_text(
        f"""#!/bin/sh
if [ -n "${{PYTHONPATH+set}}" ]; then exec {command} "$@"; fi  # Python looks at it only at its start
exec {shlex.join(client_command(_address(folder), "dimos-streams"))} "$@"
"""
    )
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
            begin_server(__name__, address, owner, folder)
    return str(address)


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
    serve(Path(sys.argv[1]), int(sys.argv[2]))
    runpy.run_module("dimos_streams", run_name="__main__", alter_sys=True)
