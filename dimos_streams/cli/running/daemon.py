"""The way into the background."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from typing import TYPE_CHECKING

from dimos_streams.cli.system import signals
from dimos_streams.cli.terminal.output import note, write, write_json
from dimos_streams.runtime.processes.output import write_to

if TYPE_CHECKING:
    from collections.abc import Callable

    from dimos_streams.runtime.registry import RunRecord


class _Terminal(io.TextIOWrapper):
    """A stream that keeps its descriptor to itself, because multiprocessing hands that of ``sys.stderr`` to its
    helpers."""

    def fileno(self) -> int:
        raise io.UnsupportedOperation("fileno")


def detach(alone: contextlib.ExitStack, *, as_json: bool) -> Callable[[RunRecord], None]:
    """Fork. The parent waits for the child to become ready or to fail, says so and exits; only the child returns.

    The child, in a session of its own, calls the result when it is ready. Until then it shows what it does on the
    terminal, from then on in the log ``run.log``, for which whoever has standard output ``alone`` leaves it. To be
    called before there are threads, loops and bus objects.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        _wait_for(child, reader)
    os.close(reader)
    os.setsid()
    # Processes that the run starts inherit the descriptors 0 to 2: none of them must keep the terminal's.
    terminal = [os.dup(1), os.dup(2)]
    _let_go([0, 1, 2])
    sys.stdout, sys.stderr = (
        _Terminal(os.fdopen(fd, "wb"), encoding=stream.encoding, errors="backslashreplace", line_buffering=True)
        for fd, stream in zip(terminal, (sys.stdout, sys.stderr), strict=True)
    )

    def ready(record: RunRecord) -> None:
        if as_json:
            write_json({"kind": "background", "run_id": record.run_id, "pid": record.pid})
        else:
            write(f"{record.run_id} runs in the background (pid {record.pid})")
            write(f"  see it:   dimos-streams logs -f {record.run_id}")
            write(f"  stop it:  dimos-streams stop {record.run_id}")
        alone.close()
        terminals = sys.stdout, sys.stderr
        write_to(record.run_dir / "logs" / "run.log")
        for stream in terminals:
            stream.close()
        with contextlib.suppress(BrokenPipeError):  # whoever began the run has gone since
            os.write(writer, b"ready")
        os.close(writer)

    return ready


def _wait_for(child: int, reader: int) -> None:
    """Exit as the child does, or with 0 once it is ready. A signal ends the child first."""
    received: list[int] = []

    def pass_on(number: int) -> None:
        received.append(number)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGTERM)

    with signals.handle_with(pass_on):
        if os.read(reader, 16):
            os._exit(0)
        _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if received:
        os._exit(128 + received[0])
    if code < 0:
        from dimos_streams.runtime.processes.process import describe_exit

        note(f"error: the run was {describe_exit(code, log=None)} before it was ready")
    os._exit(code if code >= 0 else 1)


def _let_go(descriptors: list[int]) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    fd = os.open(os.devnull, os.O_RDWR)
    for descriptor in descriptors:
        os.dup2(fd, descriptor)
    os.close(fd)
