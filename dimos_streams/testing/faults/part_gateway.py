"""A bridge in a crashable part, as a client in another process has it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Collection, Coroutine, Mapping, MutableMapping
from typing import Any, TypeVar, Unpack

from pydantic_core import from_json

from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.bridge.module import Bridge
from dimos_streams.client.event_stream.sse_parser import SseParser
from dimos_streams.errors import NoAnswerError
from dimos_streams.testing.faults.part import CrashablePart, PartDownError
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.gateway import CallTerms, CallView, JournalEntry, OfferedSkill

T = TypeVar("T")

_CHUNKS = 4
_RECONNECT_S = (0.02, 0.3)


class PartGateway:
    """A ``SkillGateway`` without a network: requests fail with ``NoAnswerError`` where the bridge is down or
    crashes before it answers; events come as the bytes of a server-sent event stream, through the parser that
    live clients use, and resume at the newest id whenever the connection ends.
    """

    def __init__(self, part: CrashablePart, *, random: random.Random, bridge: str = "bridge") -> None:
        """``random`` decides how long to wait before connecting again, and where a cut stream ends."""
        self._part = part
        self._random = random
        self._bridge = bridge
        self._connections: dict[_Connection, None] = {}

    async def skills(self) -> list[OfferedSkill]:
        """See ``SkillGateway``."""
        return await self._ask(self._broker().skills())

    async def call(
        self,
        skill: str,
        arguments: Mapping[str, Any],
        *,
        caller: str,
        lease_wait_s: float = 0.0,
        **terms: Unpack[CallTerms],
    ) -> str:
        """See ``SkillGateway`` and ``Broker.call``."""
        request = self._broker().call(skill, arguments, caller=caller, lease_wait_s=lease_wait_s, **terms)
        return await self._ask(request)

    async def cancel(self, call_id: str, reason: str) -> None:
        """See ``SkillGateway``."""
        await self._ask(self._broker().cancel(call_id, reason))

    async def cancel_calls(self, call_ids: Collection[str], reason: str) -> None:
        """See ``SkillGateway``."""
        await self._ask(self._broker().cancel_calls(call_ids, reason))

    async def calls(self, *, open_only: bool = False) -> list[CallView]:
        """See ``SkillGateway``."""
        return await self._ask(self._broker().calls(open_only=open_only))

    async def offset(self) -> int:
        """See ``SkillGateway``."""
        return await self._ask(self._broker().offset())

    async def robot_orders(self) -> Mapping[str, int]:
        """See ``SkillGateway``."""
        return await self._ask(self._broker().robot_orders())

    async def events(
        self, *, after: int, caller: str | None = None, call_id: str | None = None
    ) -> AsyncGenerator[JournalEntry, None]:
        """See ``SkillGateway``."""
        while True:
            parser = SseParser(last_event_id=str(after))
            connection = _Connection()
            serving = self._serve(connection, after, caller, call_id)
            self._connections[connection] = None
            try:
                while chunk := await connection.chunk(serving):
                    for event in parser.feed(chunk):
                        after = int(event.id)
                        yield JournalEntry(after, ToolEvent.from_dict(from_json(event.data)))
                    after = int(parser.last_event_id)
            finally:
                del self._connections[connection]
                connection.end()
                serving.cancel()
            await asyncio.sleep(self._random.uniform(*_RECONNECT_S))

    def cut(self) -> None:
        """Break the connections of all event streams; what is under way arrives in part."""
        for connection in self._connections:
            connection.cut(self._random.random())

    def _serve(
        self, connection: _Connection, after: int, caller: str | None, call_id: str | None
    ) -> asyncio.Task[None]:
        from dimos_streams.serving.events.stream import EventStream
        from dimos_streams.serving.server.connection_ends import ConnectionEnds

        async def respond() -> None:
            try:
                bridge = self._running()
                stream = EventStream(
                    bridge.broadcast,
                    after=after,
                    caller=caller,
                    call_id=call_id,
                    ping_s=bridge.config.ping_s,
                    connection_ends=ConnectionEnds(bridge.config.send_timeout_s),
                )
                await self._part.ask(stream({"type": "http", "method": "GET"}, connection.receive, connection.send))
            except PartDownError:
                pass  # the client sees its connection end
            finally:
                connection.end()

        return asyncio.get_running_loop().create_task(respond())

    def _running(self) -> Bridge:
        bridge = self._part.module(self._bridge)
        assert isinstance(bridge, Bridge)
        return bridge

    def _broker(self) -> Broker:
        try:
            return self._running().broker
        except (PartDownError, KeyError, AttributeError) as error:
            raise NoAnswerError("the bridge can't be reached", may_have_arrived=False) from error

    async def _ask(self, request: Coroutine[Any, Any, T]) -> T:
        try:
            return await self._part.ask(request)
        except PartDownError as error:
            raise NoAnswerError("the bridge did not answer", may_have_arrived=True) from error


class _Connection:
    """A response on its way, in chunks of bytes, bounded."""

    def __init__(self) -> None:
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue(_CHUNKS)
        self._gone = asyncio.Event()
        self._kept = 1.0

    async def receive(self) -> MutableMapping[str, Any]:
        """ASGI's, for the server."""
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """ASGI's, for the server."""
        if message["type"] == "http.response.body" and message["body"] and not self._gone.is_set():
            await self._chunks.put(message["body"])

    async def chunk(self, serving: asyncio.Task[None]) -> bytes:
        """The next bytes; none at the end."""
        if self._chunks.empty() and not self._gone.is_set():
            arriving = asyncio.ensure_future(self._chunks.get())
            try:
                await asyncio.wait([arriving, serving], return_when=asyncio.FIRST_COMPLETED)
            finally:
                if not arriving.done():
                    arriving.cancel()
            if arriving.done() and not arriving.cancelled():
                return self._as_cut(arriving.result())
        return b"" if self._chunks.empty() else self._as_cut(self._chunks.get_nowait())

    def cut(self, kept: float) -> None:
        """Break it: of the chunk under way a part arrives."""
        self._kept = kept
        self._gone.set()

    def end(self) -> None:
        """Neither side sends any more. Twice is fine."""
        self._gone.set()

    def _as_cut(self, chunk: bytes) -> bytes:
        if self._kept == 1.0:
            return chunk
        while not self._chunks.empty():
            self._chunks.get_nowait()
        return chunk[: int(len(chunk) * self._kept)]
