"""The control socket of a live run, by which other processes of its user give orders to its supervisor.

It is a Unix socket in the run's directory, to which only the run's user has access. So it works while the bridge
hangs or is itself to be restarted, and nobody reaches it from elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import struct
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from dimos_streams.common.hang_up import has_hung_up
from dimos_streams.common.invalid import first_problem
from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.common.tasks import OwnedTasks
from dimos_streams.errors import DimosStreamsError, UserError

_NAME = "control.sock"
_MAX_LINE = 64 * 1024
_KEPT: dict[str, Any] = {"cleanup_socket": False} if sys.version_info >= (3, 13) else {}
"""asyncio is not to delete the socket: the path by which it knows it leads to another file, or nowhere, by then."""
_ASKED_WITHIN_S = 2.0
_ANSWERED_WITHIN_S = 75.0
"""Maximum wait, in seconds: longer than preparing and starting a process may take if it has a processor."""

_logger = logging.getLogger(__name__)


class Order(FrozenModel):
    """An order to the supervisor of a run."""

    command: Literal["restart"]
    module: str = Field(max_length=1000)


class ControlReply(FrozenModel):
    """The answer to an order: what became of it."""

    text: str
    modules: tuple[str, ...] = ()
    """The names of the modules that were restarted."""
    problem: Literal["", "misused", "failed"] = ""


Restart = Callable[[str, str], Awaitable[tuple[str, ...]]]
"""A function that restarts a module, for a reason, and returns the names of all that were restarted."""


@asynccontextmanager
async def take_orders(run_dir: Path, restart: Restart) -> AsyncIterator[None]:
    """Take orders while the context lasts; then nobody waits for an answer any more. If the socket can't be made, on
    a full disk, the run goes on without."""
    serving = OwnedTasks()

    def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.spawn(_serve(reader, writer, restart), name="order")

    try:
        server = await asyncio.start_unix_server(serve, sock=_listening(run_dir), limit=_MAX_LINE, **_KEPT)
    except OSError as error:
        _logger.warning("`restart` can't reach this run: %s: %s", run_dir / _NAME, error)
        yield
        return
    try:
        yield
    finally:
        server.close()
        await serving.end()
        with contextlib.suppress(OSError):  # nobody can be misled by what is left of a run that has ended
            (run_dir / _NAME).unlink(missing_ok=True)


async def ask(run_dir: Path, order: Order) -> ControlReply:
    """Have a run carry out an order. Raises ``UserError`` for an order that is not possible, and
    ``DimosStreamsError`` if it was not carried out or nobody answers."""
    try:
        async with asyncio.timeout(_ANSWERED_WITHIN_S):
            line = await _answer_to(order, run_dir)
        answer = ControlReply.model_validate_json(line)
    except TimeoutError as error:
        raise DimosStreamsError(f"the run in {run_dir} has not answered within {_ANSWERED_WITHIN_S:g} s") from error
    except (OSError, ValueError) as error:
        raise DimosStreamsError(f"the run in {run_dir} does not answer: {_why_not(error)}") from error
    if answer.problem:
        raise (UserError if answer.problem == "misused" else DimosStreamsError)(answer.text)
    return answer


async def _answer_to(order: Order, run_dir: Path) -> bytes:
    """Return the line that a run answers. Raises ``OSError`` if it can't be reached or ends meanwhile, and
    ``ValueError`` if its line is longer than an answer may be."""
    reader, writer = await asyncio.open_unix_connection(sock=_connect(run_dir), limit=_MAX_LINE)
    with contextlib.closing(writer):
        writer.write(order.model_dump_json().encode() + b"\n")
        if line := await reader.readline():
            return line
    raise ConnectionResetError(0, "it has ended")


def _why_not(error: OSError | ValueError) -> str:
    if isinstance(error, ValidationError):
        return first_problem(error, "its answer")
    return (error.strerror or str(error)) if isinstance(error, OSError) else f"its answer is too long: {error}"


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, restart: Restart) -> None:
    """Answer one order."""
    with contextlib.closing(writer):
        try:
            async with asyncio.timeout(_ASKED_WITHIN_S):
                line = await reader.readline()
        except (OSError, ValueError):  # whoever does not ask in time, or for too long, gets no answer
            return
        # It may have lain here while this process was suspended, and would come when nobody expects it.
        if has_hung_up(writer):
            _logger.warning(
                "an order is not carried out: who gave it has not waited until this process could read it"
            )
            return
        reply = await _carry_out(line, restart)
        with contextlib.suppress(OSError):  # whoever has gone gets none either
            writer.write(reply.model_dump_json().encode() + b"\n")
            await writer.drain()


async def _carry_out(line: bytes, restart: Restart) -> ControlReply:
    try:
        order = Order.model_validate_json(line)
        modules = await restart(order.module, f"an operator restarts module {order.module!r}")
    except ValidationError as error:
        return ControlReply(text=f"this is no order: {first_problem(error, 'it')}", problem="misused")
    except UserError as error:
        return ControlReply(text=str(error), problem="misused")
    except DimosStreamsError as error:
        return ControlReply(text=str(error), problem="failed")
    except Exception as error:  # whoever asked would wait for an answer that never comes
        _logger.exception("module %r could not be restarted", order.module)
        text = f"internal error ({type(error).__name__}); the run's log says more"
        return ControlReply(text=text, problem="failed")
    return ControlReply(text=f"restarted: {', '.join(modules)}", modules=modules)


def _listening(run_dir: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    try:
        with _short(run_dir) as path:
            made.bind(path)
        made.listen()
        made.setblocking(False)
    except OSError:
        made.close()
        raise
    return made


def _connect(run_dir: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    try:
        with _short(run_dir) as path:
            made.connect(path)
        made.setblocking(False)
        _, user, _ = struct.unpack(
            "3i", made.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        )
        if user != os.geteuid():
            raise PermissionError(0, f"it belongs to user {user}, not to {os.geteuid()}")
    except OSError:
        made.close()
        raise
    return made


@contextmanager
def _short(run_dir: Path) -> Iterator[str]:
    """Yield a path of the socket that is short enough for one: 107 bytes."""
    directory = os.open(run_dir, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{directory}/{_NAME}"
    finally:
        os.close(directory)
