"""Models behind any server that speaks OpenAI's chat completions."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from dimos_streams import clock
from dimos_streams.agent.models.chat.format import chat_deltas, stream_problem
from dimos_streams.agent.models.chat.refusals import Dialect, RequestAttempts, ServerQuirks
from dimos_streams.agent.models.chat.request import chat_messages, chat_tools
from dimos_streams.agent.models.chat.server_errors import SHOWN, ServerErrors, said_by
from dimos_streams.agent.models.model_options import ModelOptions
from dimos_streams.agent.models.protocol import (
    Finish,
    ModelDelta,
    ModelError,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
)
from dimos_streams.client.iterators import closing
from dimos_streams.common.process.threads import in_own_thread
from dimos_streams.common.schemas.http_url import http_host, is_local
from dimos_streams.common.secrets import (
    RedactedPieces,
    checked,
    know,
    know_url,
    redacted,
    redacted_data,
    unreadable_url,
    without_user,
)
from dimos_streams.errors import UserError

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream

_OPENAI_URL = "https://api.openai.com/v1"
_CONNECT_S = 10.0
_AFTER_FINISH_S = 1.0
"""The time in s for each thing that a server still has to say after the finish reason: mostly the usage."""
_AT_ONCE = 100
"""The number of deltas in one turn of the loop: a chunk may have any number of them."""
_CALLED = ("function", "function_call")
"""The fields that have a call's name and arguments."""


class OpenAIModel:
    """Asks a server over the openai SDK, reads its raw chunks, and copes with what servers do differently.

    Its key is ``OPENAI_API_KEY``; a server on this machine or in its network needs none. Nothing bounds the server's
    silence, and nothing is retried, except a request that the server refuses for a field that it can do without.
    Secrets that the server sends back are redacted here, in errors and answers, except those in the arguments of a
    call, which come in pieces: ``ToolCallAssembler`` puts them together.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        options: ModelOptions | None = None,
        quirks: ServerQuirks | None = None,
    ) -> None:
        """``base_url`` is ``OPENAI_BASE_URL`` by default, and OpenAI's own if that is not set. ``quirks`` are those
        that were learnt of this server, or None to begin without any. Raises ``UserError``."""
        self._model = model
        self._options = options or ModelOptions()
        url = base_url or os.environ.get("OPENAI_BASE_URL") or _OPENAI_URL
        self._name = f"model {model!r} at {without_user(url)}"
        self._errors = ServerErrors(self._name)
        self._client = _client(model, url, self._name)
        self._quirks = quirks or ServerQuirks(vision=self._options.vision)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta]:
        """See ``Model``."""
        if clock.is_virtual():
            raise ModelError(f"{self._name} can't be asked in virtual time, which doesn't wait for servers")
        finish: Finish | None = None
        answers, thoughts = RedactedPieces(), RedactedPieces()
        async with closing(self._deltas(request)) as deltas:
            async for delta in deltas:
                if isinstance(delta, Finish):
                    finish = delta if finish is None else finish.or_worse(delta)
                elif isinstance(delta, TextDelta):
                    if shown := answers.add(delta.text):
                        yield TextDelta(shown)
                elif isinstance(delta, ReasoningDelta):
                    if shown := thoughts.add(delta.text):
                        yield ReasoningDelta(shown)
                else:
                    yield delta
        if rest := thoughts.rest():
            yield ReasoningDelta(rest)
        if rest := answers.rest():
            yield TextDelta(rest)
        if finish is not None:
            yield finish

    async def close(self) -> None:
        """See ``Model``."""
        await self._client.close()

    async def _deltas(self, request: ModelRequest) -> AsyncGenerator[ModelDelta, None]:
        """Yield the deltas of the server's chunks. After a finish reason it has ``_AFTER_FINISH_S`` for each further
        one."""
        finished = False
        async with closing(self._chunks(request)) as chunks:
            while True:
                try:
                    async with asyncio.timeout(_AFTER_FINISH_S if finished else None) as bound:
                        chunk = await anext(chunks, None)
                except TimeoutError:
                    if not bound.expired():
                        raise
                    return
                if chunk is None:
                    return
                for number, delta in enumerate(chat_deltas(chunk), 1):
                    finished = finished or isinstance(delta, Finish)
                    yield delta
                    if number % _AT_ONCE == 0:
                        await asyncio.sleep(0)

    async def _chunks(self, request: ModelRequest) -> AsyncIterator[Mapping[str, Any]]:
        """Yield the JSON objects that the server sends. Raises ``ModelError``."""
        from httpx2 import TransportError
        from openai import APIError

        from dimos_streams.agent.models.answer_body import media_type, read_whole

        try:
            async with await self._open(request) as stream:
                if media_type(stream.response) == "text/html":
                    raise ModelError(f"{self._name} answers with a web page; base URLs mostly end in /v1")
                if (whole := await read_whole(stream.response)) is not None:
                    answer, _ = json.JSONDecoder().raw_decode(whole)  # behind an error there may be a stream's end
                    chunk = await self._checked(stream, answer)
                    if not chunk.get("choices"):
                        raise self._errors.of_empty(chunk)
                    yield chunk
                    return
                async for sent in stream:
                    chunk = await self._checked(stream, sent)
                    if said := stream_problem(chunk):
                        raise self._errors.of_answer(chunk.get("code"), said)
                    yield chunk
        except APIError as error:
            raise self._errors.of_sdk(error) from error
        except TransportError as error:
            raise self._errors.broken(error) from error
        except ValueError as error:
            raise ModelError(f"{self._name} sent what is not JSON: {error}", retryable=True) from error
        except RecursionError as error:
            raise ModelError(f"{self._name} sent JSON that is nested too deeply", retryable=True) from error

    async def _open(self, request: ModelRequest) -> AsyncStream[object]:
        """Send the request, and again as long as a refusal teaches how to ask, or there is something to try. What was
        learnt and is refused once more is sent all the same, by the options' ``extra``: that refusal is raised."""
        from openai import APIStatusError

        from dimos_streams.agent.models.answer_body import COMPLETIONS, ChunkStream

        attempts = RequestAttempts(self._quirks, self._name)
        while True:
            body = self._body(request, attempts.dialect)
            try:
                stream = await self._client.post(
                    COMPLETIONS, body=body, cast_to=object, stream=True, stream_cls=ChunkStream
                )
            except APIStatusError as error:
                final = attempts.refused(error, said_by(error), body)
                if final is not None:
                    raise final from None
            else:
                attempts.taken()
                return stream

    async def _checked(self, stream: AsyncStream[object], chunk: object) -> Mapping[str, Any]:
        """Return a chunk without secrets. They are looked for beside the loop if that may take a while."""
        from dimos_streams.agent.models.answer_body import AnswerBody

        body = stream.response.stream
        if isinstance(body, AnswerBody) and body.is_large:
            return await in_own_thread(_checked, self._name, chunk)
        return _checked(self._name, chunk)

    def _body(self, request: ModelRequest, dialect: Dialect) -> dict[str, Any]:
        options = self._options
        body: dict[str, Any] = {
            "model": self._model,
            "messages": chat_messages(request.messages, dialect.style),
            "stream": True,
        }
        if request.tools:
            body["tools"] = chat_tools(request.tools, plain=dialect.plain_schemas)
        if dialect.usage:
            body["stream_options"] = {"include_usage": True}
        if options.temperature is not None and dialect.temperature:
            body["temperature"] = options.temperature
        if options.max_tokens is not None:
            body[dialect.tokens_field] = options.max_tokens
        return {**body, **options.extra}


def _client(model: str, url: str, name: str) -> AsyncOpenAI:
    know_url(url)
    try:
        host = http_host(url)
    except ValueError as error:
        given = f"{unreadable_url(url)!r} as base_url, or else OPENAI_BASE_URL"
        raise UserError(f"model {model!r} has {given}: {error}") from error
    key = os.environ.get("OPENAI_API_KEY", "")
    know(key, where="OPENAI_API_KEY")
    if not key and not is_local(host):
        raise UserError(
            f"model {model!r} at {without_user(url)} needs a key: set OPENAI_API_KEY, or a local server's base URL"
        )
    key = checked(key or "none", "OPENAI_API_KEY")
    try:
        from openai import AsyncOpenAI, Timeout

        from dimos_streams.agent.models.answer_body import bounded_client
    except ImportError as error:
        raise UserError("models behind servers need the extra: pip install 'dimos-streams[openai]'") from error
    timeout = Timeout(None, connect=_CONNECT_S)
    try:
        http = bounded_client(name, timeout, proxies=not is_local(host))
    except (ImportError, ValueError) as error:
        raise UserError(f"{name} can't be asked by the proxy of the environment: {redacted(str(error))}") from error
    return AsyncOpenAI(base_url=url, api_key=key, max_retries=0, timeout=timeout, http_client=http)


def _checked(name: str, chunk: object) -> Mapping[str, Any]:
    if isinstance(chunk, Mapping):
        return {field: _without_secrets(value, field) for field, value in chunk.items()}
    raise ModelError(f"{name} sent {redacted(str(chunk))[:SHOWN]!r}, not an object", retryable=True)


def _without_secrets(value: Any, field: str) -> Any:
    """A field's value without secrets, but for a call's arguments. They are JSON in a text: in that the end of a line
    is written as ``\\n``, so that it does not end a URL, and what follows until an ``@`` would count as its user."""
    if isinstance(value, Mapping):
        kept = {"arguments": value["arguments"]} if field in _CALLED and "arguments" in value else {}
        return {redacted(str(name)): _without_secrets(item, name) for name, item in value.items()} | kept
    if isinstance(value, list):
        return [_without_secrets(item, field) for item in value]
    return redacted_data(value)
