"""Many clients at once, some of which stall, and a bridge that is asked to end while they read."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import sqlite3
from pathlib import Path

import pytest

from dimos_streams import clock
from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.client.event_stream.sse_parser import SseParser
from dimos_streams.client.http_gateway import HttpGateway
from dimos_streams.runtime.live.supervisor import Supervisor
from dimos_streams.runtime.options import RunOptions
from tests.bridge.serving import served
from tests.helpers import until

CLIENTS, STALLED = 200, 20
UPDATES, SIZE = 60, 10_000


async def connect(port: int, receive_buffer: int | None = None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """An open event stream, from its beginning."""
    sock = socket.socket()
    if receive_buffer is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=sock, limit=receive_buffer or 1 << 20)
    writer.write(f"GET /tool_streams?from=1 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
    return reader, writer


async def read_offsets(reader: asyncio.StreamReader, found: list[int], last: int | None = None) -> None:
    """The ids of all events up to an offset, or to the end of the stream."""
    parser = SseParser()
    while last is None or not found or found[-1] < last:
        size = int(await reader.readuntil(b"\r\n"), 16)
        chunk = await reader.readexactly(size + 2)
        if size == 0:
            break
        found += [int(event.id) for event in parser.feed(chunk[:size])]


def memory_mb() -> float:
    """The resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@pytest.mark.feature("A3")
@pytest.mark.slow
def test_of_200_clients_20_stall_and_the_others_notice_nothing() -> None:
    with served(send_timeout_s=60.0) as bridge:
        broadcast = bridge.scene.bridge.broadcast

        async def clients() -> None:
            stalled = [await connect(bridge.port, receive_buffer=4096) for _ in range(STALLED)]
            reading = [await connect(bridge.port) for _ in range(CLIENTS - STALLED)]
            before = memory_mb()
            calling = asyncio.to_thread(bridge.call, "count", label="x" * SIZE, to=UPDATES)
            found: list[list[int]] = [[] for _ in reading]
            following = [
                read_offsets(reader, ids, UPDATES + 2) for (reader, _), ids in zip(reading, found, strict=True)
            ]
            view, *_ = await asyncio.gather(calling, *following)
            assert view["outcome"] == "completed"
            assert found == [list(range(1, UPDATES + 3))] * len(reading)
            # The bridge still waits for the stalled ones; each costs what its transport takes, not what it misses.
            assert broadcast.statistics().readers == CLIENTS
            assert broadcast.statistics().lag > 0
            assert memory_mb() - before < 60
            for _, writer in (*stalled, *reading):
                writer.close()

        asyncio.run(clients())


@pytest.mark.live
def test_sigterm_with_50_open_streams_ends_a_bridge_within_a_second(
    bus_url: str, free_port: int, tmp_path: Path
) -> None:
    blueprint = Blueprint(
        name="two",
        modules={
            "worker": ModuleSpec(name="worker", type="tests.bridge.scene:Worker"),
            "bridge": ModuleSpec(
                name="bridge", type="dimos_streams.bridge.module:Bridge", config={"port": free_port}, restart="never"
            ),
        },
    )

    async def main() -> None:
        options = RunOptions(bus_url=bus_url, port=free_port, run_dir=tmp_path)
        supervisor = Supervisor(blueprint, options)
        await supervisor.start()
        gateway = HttpGateway(options.bridge_url, rng=random.Random(0))
        try:
            while not await gateway.skills():  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            await gateway.call("count", {"label": "x" * 1000, "to": 100_000}, caller="test")
            streams = [await connect(free_port) for _ in range(50)]
            found: list[list[int]] = [[] for _ in streams]
            pairs = zip(streams, found, strict=True)
            reading = [asyncio.create_task(read_offsets(reader, ids)) for (reader, _), ids in pairs]
            await until(lambda: all(len(ids) > 20 for ids in found))
            pid = next(view.pid for view in supervisor.processes() if view.label == "bridge")
            assert pid is not None
            asked_at = clock.monotonic()
            os.kill(pid, signal.SIGTERM)
            await until(lambda: not Path(f"/proc/{pid}").exists())
            assert clock.monotonic() - asked_at <= 1.0
            await asyncio.gather(*reading)
            for _, writer in streams:
                writer.close()
        finally:
            gateway.close()
            await supervisor.stop()
        assert all(ids == list(range(1, len(ids) + 1)) for ids in found)
        check_journal(tmp_path / "journal.sqlite", at_least=max(map(len, found)))

    asyncio.run(main())
    log = (tmp_path / "logs" / "bridge.log").read_text()
    for words in ("Task was destroyed", "never retrieved", "never awaited", "Traceback", "ERROR"):
        assert words not in log, log


def check_journal(path: Path, at_least: int) -> None:
    """Each offset is there, and was written whole."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = db.execute("SELECT offset, seq, body FROM events ORDER BY offset").fetchall()
    assert len(rows) >= at_least
    assert [offset for offset, _, _ in rows] == list(range(1, len(rows) + 1))
    assert [json.loads(body)["seq"] for _, _, body in rows] == [seq for _, seq, _ in rows]
