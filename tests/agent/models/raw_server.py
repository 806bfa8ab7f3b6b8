"""A server on loopback that sends bytes as they stand, for ever if need be, and counts what it got rid of."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field

from dimos_streams.common.tasks import end_tasks_silently

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


@dataclass(slots=True, eq=False)
class RawServer:
    """Answers each request with the same head and body, and hangs up."""

    head: str
    """The status line and headers, without line ends at the end."""
    body: Iterable[bytes] = ()
    port: int = 0
    requests: list[bytes] = field(default_factory=list)
    """All requests, heads and bodies."""
    taken: int = 0
    """The bytes of bodies that clients took, with those that wait in sockets."""
    answering: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        """The base URL for a client."""
        return f"http://127.0.0.1:{self.port}/v1"

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        task = asyncio.current_task()
        assert task is not None
        self.answering.add(task)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = _LENGTH.search(head)
            self.requests.append(head + await reader.readexactly(int(length[1]) if length else 0))
            writer.write(f"HTTP/1.1 {self.head}\r\nConnection: close\r\n\r\n".encode())
            for piece in self.body:
                writer.write(piece)
                await writer.drain()
                self.taken += len(piece)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has left, or the server stops
        finally:
            writer.close()


@contextlib.asynccontextmanager
async def raw_server(head: str, body: Iterable[bytes] = ()) -> AsyncIterator[RawServer]:
    """Serve on a free port."""
    served = RawServer(head, body)
    server = await asyncio.start_server(served.answer, "127.0.0.1", 0)
    served.port = server.sockets[0].getsockname()[1]
    try:
        yield served
    finally:
        server.close()
        await end_tasks_silently(*served.answering)
