"""Somebody between the two ends of HTTP, who keeps back what they say and delivers it late."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import requests

from tests.hub.serving import TIMEOUT_S

_OWN_HEADERS = {"connection", "content-length", "host", "transfer-encoding"}


class Middleman:
    """Passes all requests on to a server; everything may be used from the test's thread."""

    def __init__(self, server: str) -> None:
        self.server = server
        self.holds = ""
        """The end of the path of the requests that wait for ``let_go``, empty for none."""
        self.held = threading.Event()
        """Set once one waits."""
        self.let_go = threading.Event()
        self.keeps = False
        """True while commands of a hub are kept back instead of delivered."""
        self.kept: list[bytes] = []
        """The commands that were kept back. They are delivered at the beginning of the next stream."""
        self.delivered: list[bytes] = []
        """Those that were kept back, and delivered on another stream than theirs."""
        self._stream: requests.Response | None = None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                with outer.asked(self) as answer:
                    self.begin(answer)
                    if self.path.partition("?")[0].endswith("/commands"):
                        outer.pass_commands(answer, self)
                    else:
                        self.wfile.write(answer.content)

            def do_POST(self) -> None:
                with outer.asked(self) as answer:
                    self.begin(answer)
                    self.wfile.write(answer.content)

            def begin(self, answer: requests.Response) -> None:
                self.send_response(answer.status_code)
                self.send_header("Content-Type", answer.headers.get("Content-Type", "text/plain"))
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), name="middleman")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def asked(self, request: BaseHTTPRequestHandler) -> requests.Response:
        """The server's answer to a request."""
        body = request.rfile.read(int(request.headers.get("Content-Length", "0")))
        if self.holds and request.path.endswith(self.holds):
            self.held.set()
            self.let_go.wait(TIMEOUT_S)
        return requests.request(
            request.command,
            self.server + request.path,
            headers={name: value for name, value in request.headers.items() if name.lower() not in _OWN_HEADERS},
            data=body or None,
            stream=True,
            timeout=TIMEOUT_S,
        )

    def pass_commands(self, answer: requests.Response, robot: BaseHTTPRequestHandler) -> None:
        """Pass a stream of commands on until it is cut."""
        self._stream = answer
        with contextlib.suppress(OSError, requests.RequestException):
            for frame in _frames(answer):
                if self._stream is not answer:
                    return
                if self.keeps and frame.startswith(b"event: command"):
                    self.kept.append(frame)
                    continue
                robot.wfile.write(frame)
                while not self.keeps and frame.startswith(b"event: hello") and self.kept:
                    self.delivered.append(self.kept.pop(0))
                    robot.wfile.write(self.delivered[-1])

    def cut(self) -> None:
        """End the stream of commands when the hub says something on it again."""
        self._stream = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.cut()
        self.let_go.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _frames(answer: requests.Response) -> Iterator[bytes]:
    """The pieces of an event stream, each with its empty line."""
    lines: list[bytes] = []
    for line in answer.iter_lines(chunk_size=1):
        lines.append(line)
        if not line:
            yield b"\n".join(lines) + b"\n"
            lines = []


@contextlib.contextmanager
def middleman(server: str) -> Iterator[Middleman]:
    """A middleman on a free port."""
    made = Middleman(server)
    made.start()
    try:
        yield made
    finally:
        made.stop()
