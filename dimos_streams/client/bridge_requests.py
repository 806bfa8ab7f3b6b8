"""Requests to one bridge and what their answers have, without what the requests are about."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from dimos_streams.client.problems import problem_error
from dimos_streams.common.http.bearer import bearer_headers
from dimos_streams.common.invalid import first_problem
from dimos_streams.common.json.reading import parse_json
from dimos_streams.common.process.threads import in_own_thread
from dimos_streams.errors import NoAnswerError, SkillError

if TYPE_CHECKING:
    import requests

    from dimos_streams.client.http_session import CuttableSession, Tls

T = TypeVar("T")


class BridgeRequests:
    """Requests to the bridge at a URL, each in a thread of its own. All raise ``NoAnswerError`` where none comes, and
    ``SkillError`` for an answer that is a problem, or no bridge's."""

    def __init__(self, url: str, *, token: str | None, timeout_s: float, tls: Tls | None) -> None:
        """``timeout_s`` bounds each wait for the bridge, unless a request has a bound of its own."""
        self.url = url
        self.timeout_s = timeout_s
        self.headers = bearer_headers(token)
        self._tls = tls
        self._guard = threading.Lock()
        self._sessions: set[CuttableSession] = set()
        self._closed = False

    def close(self) -> None:
        """Cut what is under way and refuse new requests. Twice is fine."""
        with self._guard:
            self._closed = True
            for session in self._sessions:
                session.cut()

    async def get(self, path: str) -> Any:
        """The content of what is at a path."""
        return self.content(await self.in_thread(self.send, "GET", path))

    async def post(self, path: str, body: Mapping[str, Any], timeout_s: float | None = None) -> requests.Response:
        """The response to a body."""
        return await self.in_thread(self.send, "POST", path, body, timeout_s)

    async def in_thread(self, ask: Callable[..., T], *args: Any) -> T:
        """Run a function that waits for the bridge in a thread of its own."""
        try:
            return await in_own_thread(ask, *args)
        except OSError as error:  # there is no thread: what asks raises none itself
            text = f"the bridge at {self.url} can't be asked: {error.strerror}"
            raise NoAnswerError(text, may_have_arrived=False) from error

    def send(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, timeout_s: float | None = None
    ) -> requests.Response:
        """The response to a request, for which this thread waits."""
        import requests

        from dimos_streams.client.http_session import check_arrived, why

        session: CuttableSession | None = None
        try:
            with self._session() as session:
                response = session.request(
                    method,
                    self.url + path,
                    json=body,
                    headers=self.headers,
                    timeout=self.timeout_s if timeout_s is None else timeout_s,
                    allow_redirects=False,
                )
                check_arrived(response)
        except (requests.RequestException, OSError) as error:
            if session is None or not session.has_connected:
                text = f"the bridge at {self.url} can't be reached: {why(error)}"
                raise NoAnswerError(text, may_have_arrived=False) from error
            text = f"no answer came from the bridge at {self.url} ({why(error)})"
            raise NoAnswerError(text, may_have_arrived=True) from error
        return response

    def content(self, response: requests.Response) -> Any:
        """The JSON of a response that is no refusal."""
        try:
            content = parse_json(response.content)
        except ValueError:
            content = None
        if 200 <= response.status_code < 300 and content is not None:
            return content
        if isinstance(content, dict) and isinstance(content.get("detail"), str):
            raise problem_error(content)
        raise SkillError(f"{self.url} is not a bridge: HTTP {response.status_code} {response.reason}")

    def field(self, content: Any, name: str, kind: type[T]) -> T:
        """A field of an answer."""
        value = content.get(name) if isinstance(content, dict) else None
        if not isinstance(value, kind):
            raise SkillError(f"{self.url} is not a bridge that I know: its answer has no {name!r}")
        return value

    def validated(self, adapter: TypeAdapter[T], content: Any) -> T:
        """An answer as the type that it is to be of."""
        try:
            return adapter.validate_python(content)
        except ValidationError as error:
            problem = first_problem(error, "its answer")
            raise SkillError(f"{self.url} is not a bridge that I know: {problem}") from error

    @contextlib.contextmanager
    def _session(self) -> Iterator[CuttableSession]:
        from dimos_streams.client.http_session import CuttableSession

        # One for each request: nothing is shared between threads, and no connection is found dead when it is used.
        with CuttableSession(self._tls) as session:
            with self._guard:
                if self._closed:
                    raise ConnectionAbortedError("the gateway is closed")
                self._sessions.add(session)
            try:
                yield session
            finally:
                with self._guard:
                    self._sessions.discard(session)
