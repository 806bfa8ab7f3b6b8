"""A chat completions server on loopback that answers as its script says."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class ChatServer:
    """Answers each request with the next of `script`: (status, body), or None for silence until the end."""

    url: str = ""
    script: list[tuple[int, str] | None] = field(default_factory=list)
    requests: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    """Further headers of all answers."""
    asked: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)

    def says(self, content: str) -> None:
        """Next, a model answers with this text."""
        self.script.append((200, json.dumps({"choices": [{"message": {"role": "assistant", "content": content}}]})))

    def finds(self, *detections: dict[str, Any]) -> None:
        """Next, a model answers with these detections."""
        self.says(json.dumps({"detections": detections}))


@contextmanager
def chat_server() -> Iterator[ChatServer]:
    """A server on a free port of 127.0.0.1."""
    state = ChatServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.requests.append((self.path, dict(self.headers), body))
            answer = state.script.pop(0)
            state.asked.set()
            if answer is None:
                state.over.wait()
                return
            self.send_response(answer[0])
            self.send_header("Content-Length", str(len(answer[1].encode())))
            for header in state.headers.items():
                self.send_header(*header)
            self.end_headers()
            self.wfile.write(answer[1].encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing on the terminal."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        state.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield state
        finally:
            state.over.set()
            server.shutdown()
            thread.join()
