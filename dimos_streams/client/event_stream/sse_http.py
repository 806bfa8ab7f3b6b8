"""The HTTP around an event stream: what a client asks with, and whether the answer is a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dimos_streams.common.http.unread_answers import PLAIN, why_unread
from dimos_streams.errors import DimosStreamsError

if TYPE_CHECKING:
    import requests

_CONTENT_TYPE = "text/event-stream"
_MAX_BODY, _MAX_SAID = 4000, 300
MAX_WAIT_S = 30.0
"""The longest wait that a server may ask for."""


class SseError(DimosStreamsError):
    """Raised if the server's answer is no event stream and will not become one: wrong status, wrong content type."""

    def __init__(self, url: str, problem: str, status: int, body: bytes = b"") -> None:
        self.url = url
        self.status = status
        self.body = body
        """The beginning of the answer's body."""
        super().__init__(f"no events from {url}: {problem}")


class PassingError(Exception):
    """Raised for an answer after which it is worth trying again."""

    def __init__(self, problem: str, retry_after_s: float = 0.0) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(problem)


def request_headers(last_event_id: str) -> dict[str, str | bytes]:
    """The headers of a request for the events after one, or for those from now on.

    The id is sent in UTF-8, as WHATWG's standard has it, without white space around it, which no header keeps.
    """
    headers: dict[str, str | bytes] = {
        **PLAIN,
        "Accept": _CONTENT_TYPE,
        "Cache-Control": "no-cache",
    }
    if id := last_event_id.encode(errors="replace").strip():
        headers["Last-Event-ID"] = id
    return headers


def check_answer(url: str, response: requests.Response) -> None:
    """Raise ``SseError`` for an answer that is no event stream, ``PassingError`` if it may become one."""
    status = response.status_code
    why = why_unread(url, status, response.headers, setting="the URL")
    if status != 200:
        content = response.raw.read(_MAX_BODY) if why is None else b""
        body = " ".join(content[:_MAX_SAID].decode(errors="replace").split())
        answered = f"HTTP {status} {response.reason}" + (f": {body}" if body else "")
        problem = answered if why is None else f"it {why}"
        if status == 429 or status >= 500:
            raise PassingError(problem, _retry_after_s(response))
        raise SseError(url, problem, status, content)
    if why is not None:
        raise SseError(url, f"it {why}", status)
    kind = response.headers.get("Content-Type", "")
    if kind.partition(";")[0].strip().lower() != _CONTENT_TYPE:
        raise SseError(url, f"the content type is {kind!r}, not {_CONTENT_TYPE!r}", status)


def _retry_after_s(response: requests.Response) -> float:
    """The header in seconds, bounded; the form with a date counts as absent."""
    text = response.headers.get("Retry-After", "").strip()
    return min(float(text), MAX_WAIT_S) if text.isascii() and text.isdigit() else 0.0
