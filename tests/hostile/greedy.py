"""Greedy HTTP clients, in a process of their own: ``python -m tests.hostile.greedy PORT``."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable


@contextlib.asynccontextmanager
async def connected(port: int, request: bytes) -> AsyncIterator[asyncio.StreamReader]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=4096)
    try:
        writer.write(request)
        yield reader
    finally:
        writer.close()


def asked(line: str, *headers: str) -> bytes:
    return "\r\n".join([f"{line} HTTP/1.1", "Host: 127.0.0.1", *headers, "", ""]).encode()


async def tiny_chunks(port: int) -> None:
    body = asked("POST /calls", "Transfer-Encoding: chunked") + b"1\r\nx\r\n" * 40_000
    async with connected(port, body) as reader:
        await reader.read()


async def slow(port: int) -> None:
    async with connected(port, asked("POST /calls", "Content-Length: 200000") + b"x" * 1000):
        await asyncio.sleep(1.0)


async def unread(port: int) -> None:
    async with connected(port, asked("GET /tool_streams?from=1")):
        await asyncio.sleep(1.0)


async def history(port: int) -> None:
    async with connected(port, asked("GET /tool_streams?from=1")) as reader:
        for _ in range(500):
            await reader.read(65536)


async def all_calls(port: int) -> None:
    async with connected(port, asked("GET /calls?limit=1000", "Connection: close")) as reader:
        await reader.read()


CLIENTS: tuple[tuple[Callable[[int], Awaitable[None]], int], ...] = (
    (tiny_chunks, 10),
    (slow, 20),
    (unread, 60),
    (history, 5),
    (all_calls, 5),
)


async def again_and_again(client: Callable[[int], Awaitable[None]], port: int) -> None:
    while True:
        with contextlib.suppress(OSError):
            await client(port)


async def main(port: int) -> None:
    async with asyncio.TaskGroup() as group:
        for client, count in CLIENTS:
            for _ in range(count):
                group.create_task(again_and_again(client, port))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
