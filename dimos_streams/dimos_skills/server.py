"""A dimos ``McpServer`` as a client sees it: requests of JSON-RPC over HTTP, each bounded in time and size."""

from __future__ import annotations

import asyncio
import concurrent.futures
import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dimos_streams.common.http.unread_answers import PLAIN, why_unread
from dimos_streams.common.json.reading import parse_json
from dimos_streams.common.json.writing import json_text
from dimos_streams.common.printable import printable
from dimos_streams.common.process.threads import in_executor
from dimos_streams.common.readable.json_cut import cut_to
from dimos_streams.errors import SkillError, SkillUnavailableError

if TYPE_CHECKING:
    import requests

    from dimos_streams.client.http_session import CuttableSession

MAX_BODY = 8 * 2**20
"""Maximum size of an answer, in bytes; a picture of a large camera has some hundred thousand."""
CONNECT_S = 3.0
_MAX_SHOWN = 300
_PIECE = 65536
_HEADERS = {"Content-Type": "application/json", "Accept": "application/json", **PLAIN}


class ToolServer:
    """Makes requests in threads of its own: one that is never answered keeps no thread of others."""

    def __init__(self, url: str, *, threads: int) -> None:
        """``threads`` is how many requests may be under way; more wait."""
        self.url = url
        self._threads = concurrent.futures.ThreadPoolExecutor(threads, thread_name_prefix="dimos tools")
        self._sessions: set[CuttableSession] = set()
        self._ids = itertools.count(1)

    async def request(self, method: str, params: Mapping[str, Any], *, within_s: float) -> dict[str, Any]:
        """Return the result of a request. If this is cancelled, the connection is cut; the server may go on all the
        same.

        Raises ``SkillUnavailableError`` if the server can't be reached or leaves, and ``SkillError`` if it does not
        answer in time, refuses, or answers with something that is not a result.
        """
        from dimos_streams.client.http_session import CuttableSession

        number = next(self._ids)
        body = json_text({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()
        session = CuttableSession()
        self._sessions.add(session)
        try:
            async with asyncio.timeout(within_s) as limit:
                content = await in_executor(self._threads, self._exchange, session, body, within_s)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise SkillError(f"dimos at {self.url} has not answered within {within_s:g} s") from error
        except OSError as error:  # there is no thread: `_exchange` itself raises none
            raise SkillUnavailableError(f"dimos at {self.url} can't be asked: {error.strerror}") from error
        finally:
            session.cut()
            self._sessions.discard(session)
        return self._result(content, number)

    def close(self) -> None:
        """Cut what is under way. Twice is fine."""
        for session in list(self._sessions):
            session.cut()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _exchange(self, session: CuttableSession, body: bytes, within_s: float) -> Any:
        """The JSON of an answer; for a thread."""
        import requests
        import urllib3

        from dimos_streams.client.http_session import why

        try:
            with (
                session,
                session.post(
                    self.url,
                    data=body,
                    headers=_HEADERS,
                    stream=True,
                    timeout=(min(CONNECT_S, within_s), within_s),
                    allow_redirects=False,
                ) as response,
            ):
                answered = self._read(response)
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
            raise SkillUnavailableError(f"dimos at {self.url} can't be reached: {why(error)}") from error
        return self._parsed(response, answered)

    def _read(self, response: requests.Response) -> bytes:
        why = why_unread(self.url, response.status_code, response.headers, setting="url")
        if why is not None:
            raise SkillError(f"dimos at {self.url} {why}")
        pieces, size = [], 0
        while piece := response.raw.read1(_PIECE):
            size += len(piece)
            if size > MAX_BODY:
                raise SkillError(
                    f"dimos at {self.url} answers with more than {MAX_BODY} bytes; the rest was not read"
                )
            pieces.append(piece)
        return b"".join(pieces)

    def _parsed(self, response: requests.Response, body: bytes) -> Any:
        try:
            content = parse_json(body)
        except ValueError:
            content = None
        if isinstance(content, dict) and ("error" in content or response.status_code == 200):
            return content
        start = printable(body[:_MAX_SHOWN].decode(errors="replace"))
        raise SkillError(f"dimos at {self.url} answers with no JSON-RPC: HTTP {response.status_code}, {start!r}")

    def _result(self, content: Mapping[str, Any], number: int) -> dict[str, Any]:
        """The result of an answer. Raises ``SkillError``."""
        refusal = content.get("error")
        if refusal is not None:
            code, text = (refusal.get("code"), refusal.get("message")) if isinstance(refusal, dict) else ("", refusal)
            raise SkillError(f"dimos at {self.url} refuses: {cut_to(str(text), _MAX_SHOWN)} ({code})")
        result = content.get("result")
        if content.get("id") != number or not isinstance(result, dict):
            shown = json_text(content)[:_MAX_SHOWN]
            raise SkillError(f"dimos at {self.url} answers with no result of request {number}: {shown}")
        return result
