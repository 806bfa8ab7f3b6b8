"""A server that speaks as the ``McpServer`` of dimos 0.0.15 does, byte for byte, with tools that a test leads."""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CAPTURED: list[dict[str, Any]] = [
    json.loads(line) for line in (HERE / "captured_answers.jsonl").read_text().splitlines()
]
"""Requests, and what a real server has answered them; it had the module of ``docs/dimos.md``."""
CAPTURED_STREAM = (HERE / "captured_stream.txt").read_text()
"""What it has sent unasked meanwhile, to a client of its event stream."""
CAPTURED_CLIENT: list[tuple[dict[str, str], str]] = [
    json.loads(line) for line in (HERE / "captured_client.jsonl").read_text().splitlines()
]
"""Headers and bodies of requests that the ``McpClient`` of dimos 0.0.15 has sent to a bridge."""
TOOLS: list[dict[str, Any]] = json.loads(CAPTURED[1]["body"])["result"]["tools"]

Answer = Callable[[dict[str, Any], str], Any]
"""What a tool does: from its arguments and the caller's token to its text, its content, or the bytes of a body."""


class StandIn:
    """The server. Use with ``with``; ``stop`` and ``start`` again are a server that vanishes and comes back."""

    def __init__(self) -> None:
        self.tools = list(TOOLS)
        self.answers: dict[str, Answer] = {"wave": _wave, "patrol": self._patrol, "stop_patrol": self._stop_patrol}
        self.asked: list[tuple[str, dict[str, Any], str]] = []
        """The tools that were called, with arguments and token."""
        self.list_body: bytes | None = None
        """What the list is answered with instead."""
        self.headers: dict[str, str] = {}
        """Further headers of all answers to requests."""
        self.tokens: list[str] = []
        """Of the patrols that were begun."""
        self.released = threading.Event()
        """Ends what waits."""
        self._listeners: list[queue.Queue[bytes | None]] = []
        self._connections: set[socket.socket] = set()
        self._server: ThreadingHTTPServer | None = None
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/mcp"

    @property
    def heard_by(self) -> int:
        """How many clients listen."""
        return len(self._listeners)

    def start(self) -> None:
        stand_in = self

        class Handler(_Handler):
            owner = stand_in

        self._server = _Server(("127.0.0.1", self._port), Handler)
        self._port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        """End at once, with all connections."""
        server, self._server = self._server, None
        if server is None:
            return
        server.shutdown()
        server.server_close()
        for listener in list(self._listeners):
            listener.put(None)
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.released.set()

    def __enter__(self) -> StandIn:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def send(self, frame: dict[str, Any] | bytes) -> None:
        """Tell all that listen."""
        data = frame if isinstance(frame, bytes) else json.dumps(frame).encode()
        for listener in list(self._listeners):
            listener.put(b"event: message\ndata: " + data + b"\n\n")

    def progress(self, token: str, number: int, text: str, tool: str = "patrol") -> None:
        params = {"progressToken": token, "progress": number, "message": text, "_meta": {"tool_name": tool}}
        self.send({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})

    def message(self, text: str, tool: str = "patrol") -> None:
        params = {"level": "info", "logger": tool, "data": text}
        self.send({"jsonrpc": "2.0", "method": "notifications/message", "params": params})

    def stopped(self, tool: str = "patrol") -> None:
        params = {"tool_name": tool, "token": "93a83123dabd4e84bca461318c50a0e8"}
        self.send({"jsonrpc": "2.0", "method": "dimos/tool_stopped", "params": params})

    def answer(self, body: bytes) -> tuple[int, bytes]:
        """Status and body of the answer to a request."""
        try:
            request = json.loads(body)
        except ValueError:
            return 400, _error(None, -32700, "Parse error")
        if "id" not in request:
            return 204, b""
        id, method, params = request["id"], request.get("method", ""), request.get("params") or {}
        if method == "initialize":
            server = {"name": "dimensional", "version": "1.0.0"}
            capabilities: dict[str, Any] = {"tools": {}, "logging": {}}
            return 200, _result(
                id, {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": server}
            )
        if method == "tools/list":
            return 200, self.list_body or _result(id, {"tools": self.tools})
        if method == "tools/call":
            return 200, self._called(id, params)
        return 200, _error(id, -32601, f"Unknown: {method}")

    def _called(self, id: Any, params: dict[str, Any]) -> bytes:
        name, token = params["name"], (params.get("_meta") or {}).get("progressToken", "")
        arguments = params.get("arguments") or {}
        self.asked.append((name, arguments, token))
        tool = self.answers.get(name)
        if tool is None:
            return _result(id, {"content": [{"type": "text", "text": f"Tool not found: {name}"}]})
        try:
            found = tool(arguments, token)
        except Exception as error:
            text = f"Error running tool '{name}': {type(error).__name__}: {error}"
            return _result(id, {"content": [{"type": "text", "text": text}], "isError": True})
        if isinstance(found, bytes):
            return found.replace(b"%d", str(id).encode())
        return _result(id, {"content": [{"type": "text", "text": found}] if isinstance(found, str) else found})

    def _patrol(self, arguments: dict[str, Any], token: str) -> str:
        self.tokens.append(token)
        return "Patrolling"

    def _stop_patrol(self, arguments: dict[str, Any], token: str) -> str:
        self.stopped()
        return "Patrol is stopping"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients leave when they like."""


class _Handler(BaseHTTPRequestHandler):
    owner: StandIn
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self.owner._connections.add(self.connection)

    def finish(self) -> None:
        self.owner._connections.discard(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    def do_POST(self) -> None:
        assert "Mcp-Session-Id" not in self.headers, "dimos has no sessions"
        status, body = self.owner.answer(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for header in self.owner.headers.items():
            self.send_header(*header)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        listener: queue.Queue[bytes | None] = queue.Queue()
        self.owner._listeners.append(listener)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            piece: bytes | None = b": connected\n\n"
            while piece is not None:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                piece = listener.get()
        finally:
            self.owner._listeners.remove(listener)
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def _wave(arguments: dict[str, Any], token: str) -> str:
    if set(arguments) - {"times", "hand"}:
        unknown = next(iter(arguments))
        raise TypeError(f"Waver.wave() got an unexpected keyword argument '{unknown}'")
    times, hand = arguments.get("times", 2), arguments.get("hand", "left")
    if times > 5:
        raise ValueError("the arm is tired")
    said = {
        "message": f"Waved {times} times with the {hand} hand",
        "duration_ms": 100.2,
        "metadata": {"times": times},
    }
    return json.dumps(said)


def _result(id: Any, value: dict[str, Any]) -> bytes:
    return _compact({"jsonrpc": "2.0", "id": id, "result": value})


def _error(id: Any, code: int, text: str) -> bytes:
    return _compact({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}})


def _compact(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


@contextlib.contextmanager
def stand_in() -> Iterator[StandIn]:
    """A running one."""
    with StandIn() as made:
        yield made
