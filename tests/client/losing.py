"""A proxy that loses answers, as a bridge does that is killed when it has taken a request."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator

TIMED_OUT = b"HTTP/1.1 504 Gateway Time-out\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\nlate"


@contextlib.asynccontextmanager
async def losing(port: int, answers: int, instead: bytes = b"") -> AsyncIterator[str]:
    """The URL of a proxy that passes every request on to a port of this machine, and keeps the first so many answers
    for itself. What it says ``instead`` is a whole answer; by default it hangs up."""
    lost = 0

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal lost
        head = await reader.readuntil(b"\r\n\r\n")
        size = re.search(rb"(?i)content-length: (\d+)", head)
        request = head + await reader.readexactly(int(size[1]) if size else 0)
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        inner_writer.write(request)
        answer = await inner_reader.read(65536)
        if lost < answers:
            lost += 1
            answer = instead
        writer.write(answer)
        await writer.drain()
        for each in (inner_writer, writer):
            each.close()
            with contextlib.suppress(OSError):
                await each.wait_closed()

    server = await asyncio.start_server(pass_on, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
