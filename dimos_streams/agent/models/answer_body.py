"""The HTTP client for a model's server: it reads answers as they come, and no more than a model has to say."""

from __future__ import annotations

import asyncio
from codecs import getincrementaldecoder
from collections.abc import AsyncGenerator, AsyncIterator

import httpx2
from openai import AsyncStream, DefaultAsyncHttpxClient, Timeout
from openai._streaming import ServerSentEvent

from dimos_streams.agent.models.failures import may_pass
from dimos_streams.agent.models.protocol import ModelError
from dimos_streams.common.http.unread_answers import PLAIN, why_unread

COMPLETIONS = "/chat/completions"
MAX_EVENT = 2**20
"""Maximum size, in bytes, of what is parsed at once: an event of a stream, or an answer that comes whole. The 320,000
characters that answer, reasoning and arguments may have by default have room in it, at three bytes each."""
MAX_STREAM = 64 * 2**20
"""Maximum size of a stream, in bytes. Servers wrap each token, which has three characters or more, in some hundred
bytes; there is room for as many characters with six hundred each."""
MAX_ERROR = 2**16
"""The size, in bytes, at which an error's body is cut off. Some servers send back all that they refuse, behind the
reason; the reason's first few hundred characters are shown."""
LARGE = 2**14
"""The size, in bytes, from which on it takes a while to look for secrets in something."""
SLICE = 2**12
"""The number of bytes that are handed on in one turn of the loop. Tiny events cost most: some hundred fit in."""
_Decoder = getincrementaldecoder("utf-8-sig")
"""Decodes text without the mark at its beginning, which the SDK takes for the beginning of a field's name."""
_FIELDS = frozenset(":deir")
"""How a line of an event stream begins: with a comment, ``data``, ``event``, ``id`` or ``retry``. No JSON does."""
_BLANK_LINES = (b"\n\n", b"\n\r", b"\r\r")
"""The bytes by which a blank line is found: two line ends, whichever they are, have one of these in them."""


def bounded_client(name: str, timeout: Timeout, *, proxies: bool) -> httpx2.AsyncClient:
    """Return a client for one server, whose errors begin with ``name``. Its redirections are not followed,
    and its answers neither unpacked nor read beyond their bounds: it raises ``ModelError`` instead, which is not
    retryable unless the status is. With ``proxies`` those of the environment are used; raises ``ImportError`` or
    ``ValueError`` for one that can't be."""

    async def bound(response: httpx2.Response) -> None:
        status, url = response.status_code, str(response.url)
        why = why_unread(url, status, response.headers, setting="base_url", below=COMPLETIONS)
        if why is not None:
            raise ModelError(f"{name} {why}", status=status, retryable=may_pass(status))
        response.stream = AnswerBody(name, response)

    hooks = {"response": [bound]}
    return DefaultAsyncHttpxClient(
        headers=PLAIN,
        timeout=timeout,
        follow_redirects=False,
        event_hooks=hooks,
        trust_env=proxies,
        verify=httpx2.create_ssl_context(),  # by the environment's certificates in any case
    )


def media_type(response: httpx2.Response) -> str:
    """The type of a response's body, without parameters."""
    return response.headers.get("content-type", "").partition(";")[0].strip()


async def read_whole(response: httpx2.Response) -> str | None:
    """Return the text of an answer that comes at once, or None for a stream, which is still to be read."""
    assert isinstance(response.stream, AnswerBody)
    if not await response.stream.is_whole():
        return None
    return (await response.aread()).decode()


class ChunkStream(AsyncStream[object]):
    """The chunks of a streamed answer. A block without data is no event (a ping, ``retry:``, a further blank line):
    the SDK, which makes one of it where a block has or had another field, would read its data as JSON."""

    async def _iter_events(self) -> AsyncIterator[ServerSentEvent]:
        async for event in super()._iter_events():
            if event.data:
                yield event


class AnswerBody(httpx2.AsyncByteStream):
    """The bytes of an answer, counted, and well-formed: what is no UTF-8 becomes U+FFFD, as the standard of event
    streams has it. The SDK refuses an answer for it."""

    def __init__(self, name: str, response: httpx2.Response) -> None:
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        self._name = name
        self._body = response.stream
        self._is_error = not response.is_success
        self._is_whole = media_type(response) == "application/json"
        self._texts = self._decoded()
        self._begun: list[str] = []
        """What was read to see how it begins."""
        self._size = 0
        self._event = 0
        """The size of what has come since the newest blank line, or since the beginning of an answer that comes
        whole."""
        self._newest = b""
        """The newest byte: a blank line may come in two pieces."""
        self.is_large = False
        """True if anything that is parsed at once was large."""

    async def is_whole(self) -> bool:
        """Return whether the answer comes at once and is no stream, by how it begins: there are servers that call a
        stream JSON, and servers that answer with nothing but an error where a stream was asked for."""
        async for text in self._texts:
            if begun := text.lstrip():
                self._begun.append(begun)
                self._is_whole = begun[0] in "{[" or (self._is_whole and begun[0] not in _FIELDS)
                break
        return self._is_whole

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        for text in self._begun:
            yield text.encode()
        async for text in self._texts:
            yield text.encode()

    async def _decoded(self) -> AsyncGenerator[str, None]:
        decoder = _Decoder("replace")
        async for part in self._parts():
            yield decoder.decode(part)
            await asyncio.sleep(0)
        yield decoder.decode(b"", final=True)

    async def _parts(self) -> AsyncGenerator[bytes, None]:
        async for piece in self._body:
            for at in range(0, len(piece), SLICE):
                part = piece[at : at + SLICE]
                if self._is_error and self._size + len(part) >= MAX_ERROR:
                    yield part[: MAX_ERROR - self._size]
                    return
                self._count(part)
                yield part

    async def aclose(self) -> None:
        """See ``AsyncByteStream``."""
        await self._texts.aclose()
        await self._body.aclose()

    def _count(self, part: bytes) -> None:
        self._size += len(part)
        known = self._newest + part
        end = -1 if self._is_whole else max(map(known.rfind, _BLANK_LINES))
        self._event = self._event + len(part) if end < 0 else len(known) - end - 2
        self._newest = part[-1:]
        self.is_large = self.is_large or self._event > LARGE
        if self._event > MAX_EVENT:
            what = "bytes at once" if self._is_whole else "bytes without the end of an event"
            raise ModelError(f"{self._name} answers with more than {MAX_EVENT} {what}; the rest was not read")
        if self._size > MAX_STREAM:
            raise ModelError(f"{self._name} sent a stream of more than {MAX_STREAM} bytes; the rest was not read")
