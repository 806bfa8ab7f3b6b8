"""Numbered updates through a ``dimos`` installation: run by that installation's interpreter, not by ours.

    python peer_dimos.py '{"port": 9990, "workloads": [{"name": "200 Hz", "count": 1000, "rate_hz": 200}]}'

A module streams through ``start_tool`` and ``tool_update``; dimos' server hands the updates out. They are read on
both paths that dimos has: from the server's event stream, as any client does, and from the bus, as its agent does.
On either path they end in a queue, which another thread empties. Prints the arrivals as JSON.
"""

import contextlib
import json
import os
import queue
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPException
from typing import Any

from dimos.agents.annotation import skill
from dimos.agents.mcp import tool_stream
from dimos.agents.mcp.mcp_adapter import McpAdapter
from dimos.agents.mcp.mcp_server import McpServer
from dimos.core.coordination.blueprints import autoconnect
from dimos.core.coordination.module_coordinator import ModuleCoordinator
from dimos.core.global_config import global_config
from dimos.core.module import Module

_WARM_UP = {"name": "warm up", "count": 200, "rate_hz": 200.0}
_QUIET_S = 5.0
"""After so long without an update the rest counts as lost: nobody reports it."""

Message = dict[str, Any]


class Source(Module):
    """Sends numbered updates that carry the time."""

    @skill
    def stream(self, count: int, rate_hz: float) -> str:
        """Send ``count`` updates at a rate; a rate of 0 means without pauses."""
        self.start_tool("stream")
        threading.Thread(target=self._send, args=(count, rate_hz), daemon=True).start()
        return "started"

    def _send(self, count: int, rate_hz: float) -> None:
        self._update(0)
        # The first update of a call waits for its transport, up to 50 ms; those behind it are not to suffer for that.
        begin = time.monotonic()
        for number in range(1, count):
            if rate_hz > 0:
                time.sleep(max(0.0, begin + number / rate_hz - time.monotonic()))
            self._update(number)
        self.stop_tool("stream")

    def _update(self, number: int) -> None:
        self.tool_update("stream", json.dumps({"number": number, "utime": _now_us()}))


@contextlib.contextmanager
def _event_stream(port: int, put: Callable[[Message], None]) -> Iterator[None]:
    """The messages of the server's event stream, as they come."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/mcp", headers={"Accept": "text/event-stream"})
    response = connection.getresponse()

    def read() -> None:
        rest = b""
        with contextlib.suppress(OSError, HTTPException):
            while piece := response.read1(65536):
                *events, rest = (rest + piece).split(b"\n\n")
                for event in events:
                    for line in event.split(b"\n"):
                        if line.startswith(b"data: "):
                            put(json.loads(line[6:]))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    yield
    connection.sock.shutdown(socket.SHUT_RDWR)
    reader.join()
    connection.close()


@contextlib.contextmanager
def _bus(port: int, put: Callable[[Message], None]) -> Iterator[None]:
    """The messages as dimos' own agent gets them: past the server."""
    cleanup = tool_stream.subscribe(put)
    yield
    cleanup()


def _measure(adapter: McpAdapter, messages: "queue.Queue[Message]", workload: dict[str, Any]) -> dict[str, Any]:
    """One call's updates, until its end is announced or it has been quiet for long."""
    numbers: list[int] = []
    latencies: list[int] = []
    first = last = 0
    arguments = {"count": workload["count"], "rate_hz": workload["rate_hz"]}
    call = {"name": "stream", "arguments": arguments, "_meta": {"progressToken": str(uuid.uuid4())}}
    threading.Thread(target=adapter.call, args=("tools/call", call), daemon=True).start()
    with contextlib.suppress(queue.Empty):
        while (message := messages.get(timeout=_QUIET_S))["method"] != tool_stream.TOOL_STREAM_STOPPED_METHOD:
            now, update = _now_us(), json.loads(message["params"]["message"])
            first, last = first or now, now
            latencies.append(now - update["utime"])
            numbers.append(update["number"])
    return {
        "name": workload["name"],
        "sent": workload["count"],
        "numbers": [numbers],
        "latencies_us": latencies,
        "first_us": first,
        "last_us": last,
    }


def _run(port: int, workloads: list[dict[str, Any]]) -> list[dict[str, Any]]:
    global_config.update(viewer="none")
    coordinator = ModuleCoordinator.build(autoconnect(Source.blueprint(), McpServer.blueprint(port=port)))
    try:
        adapter = McpAdapter(f"http://127.0.0.1:{port}/mcp")
        if not adapter.wait_for_ready(timeout=30, interval=0.1):
            raise SystemExit("the MCP server did not get ready within 30 s")
        found = []
        for path, reading in (("SSE", _event_stream), ("bus", _bus)):
            messages: queue.Queue[Message] = queue.Queue()
            with reading(port, messages.put):
                _measure(adapter, messages, _WARM_UP)
                found += [_measure(adapter, messages, workload) | {"path": path} for workload in workloads]
        return found
    finally:
        coordinator.stop()


def _now_us() -> int:
    return time.time_ns() // 1000


def main() -> None:
    request = json.loads(sys.argv[1])
    # What dimos and its processes print must not get between the numbers.
    with os.fdopen(os.dup(1), "w") as output:
        os.dup2(2, 1)
        json.dump(_run(request["port"], request["workloads"]), output)


if __name__ == "__main__":
    main()
