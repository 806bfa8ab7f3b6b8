"""Forks of a process that has imported what they need: real processes, without a start of Python each.

All of them have one seed for the order of sets.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.warm_process import NUMBER, STANDARD

_NOBODY = b"-" * 40
"""Stands where the name of a fork will be, in the environment with which the process that forks it begins."""


def begin_server(module: str, address: Path, owner: int, folder: Path, *arguments: str) -> None:
    """Have a module, in a folder that has these tests, import what its forks need, and serve as an orphan. Returns
    once it answers at the address."""
    with subprocess.Popen(
        [sys.executable, "-m", module, str(address), str(owner), *arguments],
        cwd=folder,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "WARM_COMMAND": _NOBODY.decode()},
        stdin=subprocess.PIPE,  # as those of commands are, which take over how Python uses them
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as begun:
        assert not begun.wait(), "it did not begin"


def client_command(address: str, name: str) -> list[str]:
    """A command that has a fork of this name do its work: with the arguments behind it, where it stands, and with its
    standard streams. It passes on signals, and ends as the fork does."""
    return [sys.executable, "-ISE", str(Path(__file__).with_name("fork_client.py")), address, name]


def serve(address: Path, owner: int) -> None:
    """Fork for each request, and tell how each fork has ended, as an orphan that ends with ``owner``. Returns only in
    a fork."""
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
    """A fork, and who has asked for it."""

    process: int
    connection: socket.socket

    def tell_its_end(self) -> None:
        status = os.waitpid(self.process, 0)[1]
        with self.connection, suppress(ConnectionError):
            self.connection.sendall(NUMBER.pack(status))


def _began(listener: socket.socket, running: dict[int, _Running]) -> bool:
    """Whether this is the process of a fork now: that which had listened has it among those that are running, by
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
    with suppress(ConnectionError):
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
