"""A scripted server that speaks OpenAI's chat completions, for tests of agents and models over real HTTP.

    async with ModelServer([Reply.calls(("move", {"distance_m": 1})), Reply.say("Moved.")]) as server:
        model = create_model("openai:any", base_url=server.url)
        ...
        assert server.requests[1].body["messages"][-1]["role"] == "tool"

Faults are replies: ``Reply.error(429, retry_after=2)``, ``Reply.say("Hello").but(cut_after=2)``,
``Reply.say("Hello").but(silent_after=0, silence_s=20)``, ``Reply.raw("{not JSON")``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dimos_streams.common.tasks import end_tasks_silently
from dimos_streams.testing.chat_rules import broken_rules
from dimos_streams.testing.model_reply import Reply

_LARGEST_BODY = 256 * 1024 * 1024


@dataclass(slots=True, eq=False)
class RecordedRequest:
    """A request as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    raw: bytes = b""
    """The body as it was sent."""
    abandoned: bool = False
    """True if the client left before its answer was over."""
    over: asyncio.Event = field(default_factory=asyncio.Event)
    """An event that is set when the answer was sent or cut, or the client has left."""


class ModelServer:
    """Serves scripted replies on 127.0.0.1, one per request of a chat completion; when there are none left, it
    answers 400.

    ``requests`` are all requests that came, without a bound, because this is for tests. Each is held against the
    rules of the format (``chat_rules``); one that breaks them is answered with 400, and fails the test at the end.
    Use it with ``async with``, or with ``with server.in_thread()`` where there is no event loop.
    """

    def __init__(
        self,
        replies: Iterable[Reply] | Callable[[RecordedRequest], Reply] = (),
        *,
        port: int = 0,
        checks: bool = True,
    ) -> None:
        """``replies`` may be a function of the request. Port 0 is any free one. Without ``checks`` anything goes."""
        self.requests: list[RecordedRequest] = []
        self.broken_rules: list[str] = []
        """The mistakes that were found in requests."""
        self._checks = checks
        self._choose = replies if callable(replies) else None
        self._replies = [] if callable(replies) else list(replies)
        self._port = port
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """The base URL for a client, with ``/v1``."""
        return f"http://127.0.0.1:{self._port}/v1"

    def add(self, *replies: Reply) -> None:
        """Script more replies."""
        self._replies += replies

    async def start(self) -> None:
        """Listen on the port."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Break all connections. Twice is fine."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        await end_tasks_silently(*self._connections)

    async def __aenter__(self) -> ModelServer:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *exc_info: object) -> None:
        await self.stop()
        if kind is None:
            self.check()

    def check(self) -> None:
        """Raise ``AssertionError`` if a request has broken the rules of the format."""
        if self.broken_rules:
            raise AssertionError("requests broke the rules of chat completions:\n" + "\n".join(self.broken_rules))

    @contextlib.contextmanager
    def in_thread(self) -> Iterator[ModelServer]:
        """Serve from a thread of its own."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="model server", daemon=True)
        thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self.start(), loop).result(10)
            yield self
            self.check()
        finally:
            asyncio.run_coroutine_threadsafe(self.stop(), loop).result(10)
            loop.call_soon_threadsafe(loop.stop)
            thread.join(10)
            loop.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while await self._serve(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has left, or the server stops
        finally:
            self._connections.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request, and return whether the connection goes on."""
        request = await _read(reader)
        if request is None:
            return False
        reply = self._reply(request)
        answering = asyncio.ensure_future(_answer(writer, reply))
        leaving = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
            request.abandoned = not answering.done()
            return answering.done() and answering.result()
        finally:
            await end_tasks_silently(answering, leaving)
            request.over.set()

    def _reply(self, request: RecordedRequest) -> Reply:
        if not request.path.endswith("/chat/completions"):
            return Reply.error(404, f"there is no {request.path}")
        self.requests.append(request)
        broken = broken_rules(request.raw) if self._checks else []
        if broken:
            self.broken_rules += [f"request {len(self.requests)}: {rule}" for rule in broken]
            return Reply.error(400, "; ".join(broken))
        if self._choose is not None:
            return self._choose(request)
        if not self._replies:
            return Reply.error(400, f"no reply is scripted for request {len(self.requests)}")
        return self._replies.pop(0)


async def _read(reader: asyncio.StreamReader) -> RecordedRequest | None:
    """Return the next request, or None if the client has none."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    length = min(int(headers.get("content-length", "0")), _LARGEST_BODY)
    text = await reader.readexactly(length)
    body = json.loads(text) if text else {}
    return RecordedRequest(first.split(" ")[1], headers, body, text)


async def _answer(writer: asyncio.StreamWriter, reply: Reply) -> bool:
    """Send a reply, and return whether the connection can go on."""
    await asyncio.sleep(reply.delay_s)
    streams = reply.body is None
    data = (reply.body or "").encode()
    kind = "text/event-stream" if streams else "application/json"
    length = {"transfer-encoding": "chunked"} if streams else {"content-length": str(len(data))}
    headers = {"content-type": kind, **length, **reply.headers}
    lines = [f"HTTP/1.1 {reply.status} Scripted", *(f"{name}: {value}" for name, value in headers.items())]
    writer.write("\r\n".join([*lines, "", ""]).encode() + data)
    if streams and not await _send_stream(writer, reply):
        return False
    await writer.drain()
    return True


async def _send_stream(writer: asyncio.StreamWriter, reply: Reply) -> bool:
    for number, chunk in enumerate((*reply.chunks, *(["[DONE]"] if reply.done else []))):
        if number == reply.silent_after:
            await writer.drain()
            await _silence(reply.silence_s)
        if number == reply.cut_after:
            return False
        text = chunk if isinstance(chunk, str) else json.dumps(chunk)
        event = f"data: {text}\n\n".encode()
        writer.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
        await writer.drain()
        if reply.pause_s:
            await asyncio.sleep(reply.pause_s)
    writer.write(b"0\r\n\r\n")
    return True


async def _silence(seconds: float) -> None:
    if math.isinf(seconds):
        await asyncio.get_running_loop().create_future()
    await asyncio.sleep(seconds)
