"""A command that is a fork of a warm process, as its test sees it: with the ends of its pipes."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TextIO

NUMBER = struct.Struct("!i")
"""As both sides send a process's id, and how it has ended."""
STANDARD = 3
"""The number of standard streams."""


def receive_number(connection: socket.socket) -> int:
    data = connection.recv(NUMBER.size, socket.MSG_WAITALL)
    number: int = NUMBER.unpack(data)[0]
    return number


@dataclass
class WarmProcess:
    """A command that runs, with our ends of its pipes: as much of ``subprocess.Popen`` as tests use."""

    pid: int
    stdin: TextIO | None
    stdout: TextIO
    stderr: TextIO | None
    connection: socket.socket
    returncode: int | None = None

    def wait(self, timeout: float) -> int:
        """Raises ``subprocess.TimeoutExpired``."""
        if self.returncode is None:
            self.connection.settimeout(timeout)
            try:
                self.returncode = os.waitstatus_to_exitcode(receive_number(self.connection))
            except TimeoutError:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout) from None
        return self.returncode

    def communicate(self, given: str | None = None, timeout: float = 60.0) -> tuple[str, str]:
        """All that it writes, to either end. It is killed if it has not ended in time: else whoever reads would wait
        for it."""
        with ThreadPoolExecutor(STANDARD) as pool:
            reading = [pool.submit(end.read) if end else None for end in (self.stdout, self.stderr)]
            writing = pool.submit(self._write, given)
            try:
                self.wait(timeout)
            except BaseException:
                self.kill()
                raise
            writing.result()
            out, err = (each.result() if each else "" for each in reading)
        return out, err

    def _write(self, given: str | None) -> None:
        if self.stdin is not None:
            with contextlib.suppress(BrokenPipeError), self.stdin:
                self.stdin.write(given or "")

    def send_signal(self, number: int) -> None:
        """Nothing if it has ended, which is told at once: its number may be another one's by now."""
        told, _, _ = select.select([self.connection], (), (), 0.0)
        if self.returncode is None and not told:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """Kill it if it has not ended, and close our ends of its pipes."""
        with contextlib.suppress(ProcessLookupError):
            self.kill()
        for end in (self.stdin, self.stdout, self.stderr):
            if end is not None:
                with contextlib.suppress(BrokenPipeError):
                    end.close()
        self.connection.close()
