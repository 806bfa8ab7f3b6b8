"""Blocking requests to a chat completions server that another thread can end."""

from __future__ import annotations

import contextlib
import os
import socket
import weakref
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError

from dimos_streams import clock
from dimos_streams.common.http.bearer import bearer_headers
from dimos_streams.common.http.straight_session import StraightSession
from dimos_streams.common.http.unread_answers import PLAIN, why_unread
from dimos_streams.common.schemas.http_url import http_host, is_local
from dimos_streams.common.secrets import checked, know, know_url, redacted, without_user
from dimos_streams.perception.detector import DetectorError

MAX_REPLY_BYTES = 1_000_000
CONNECT_TIMEOUT_S = 3.0
_COMPLETIONS = "/chat/completions"


class ChatClient:
    """Posts to `{base_url}/chat/completions`, with the key from an environment variable if it has one. A proxy of the
    environment is used for servers outside of the private network only.

    Secrets that the server sends back are redacted in what comes out of it."""

    def __init__(self, base_url: str, api_key_env: str, timeout_s: float) -> None:
        """Make a client. Raises UserError for a key that no header can carry."""
        know_url(base_url)
        self._url = f"{without_user(base_url).rstrip('/')}{_COMPLETIONS}"
        self._api_key_env = api_key_env
        self._key()
        self._timeout_s = timeout_s
        self._session: requests.Session | None = None
        self._adapter = _Adapter()
        host = http_host(base_url)
        self._proxies = {"no_proxy": host} if is_local(host) else {}
        self._closed = False

    def complete(self, request: dict[str, Any]) -> str:
        """The body of the answer.

        Raises DetectorError for no answer in time, another status than 200, an answer that is packed, beyond
        `MAX_REPLY_BYTES` or leads elsewhere, and when the client is closed meanwhile."""
        timeouts = min(CONNECT_TIMEOUT_S, self._timeout_s), self._timeout_s
        deadline = clock.monotonic() + self._timeout_s
        try:
            with self._open_session().post(
                self._url,
                json=request,
                timeout=timeouts,
                stream=True,
                allow_redirects=False,
                proxies=self._proxies,
            ) as response:
                status, headers = response.status_code, response.headers
                why = why_unread(self._url, status, headers, setting="vlm.base_url", below=_COMPLETIONS)
                if why is not None:
                    raise DetectorError(f"{self._url!r} {why}")
                body = self._read(response, deadline)
        except (requests.RequestException, HTTPError, OSError) as error:
            raise DetectorError(f"no answer from {self._url!r}: {error}") from error
        text = redacted(body.decode(errors="replace"))
        if response.status_code != 200:
            raise DetectorError(f"{self._url!r} answered {response.status_code}: {text[:200]!r}")
        return text

    def close(self) -> None:
        """Ends what is under way, for good. Closing twice is fine."""
        self._closed = True
        self._adapter.hang_up()
        if self._session is not None:
            self._session.close()

    def _open_session(self) -> requests.Session:
        if self._closed:
            raise DetectorError(f"the connection to {self._url!r} was closed")
        if self._session is None:
            self._session = StraightSession()
            self._session.headers.update(PLAIN)
            self._session.auth = self._authorize  # also without a key: requests would ask ~/.netrc
            self._session.mount("http://", self._adapter)
            self._session.mount("https://", self._adapter)
        return self._session

    def _authorize(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers.update(bearer_headers(self._key()))
        return request

    def _key(self) -> str:
        """The key as it is at the moment, empty without one."""
        key = os.environ.get(self._api_key_env, "")
        if key:
            know(checked(key, self._api_key_env))
        return key

    def _read(self, response: requests.Response, deadline: float) -> bytes:
        """The body. Each wait has the timeout of its own; the deadline ends an answer that only drips."""
        body = b""
        while chunk := response.raw.read1(65536):
            body += chunk
            if len(body) > MAX_REPLY_BYTES or clock.monotonic() > deadline or self._closed:
                raise DetectorError(f"the answer of {self._url!r} was cut off after {len(body)} bytes")
        return body


class _Adapter(HTTPAdapter):
    """Remembers its connections: closing a session does not wake a thread that waits on one of them."""

    def __init__(self) -> None:
        super().__init__()
        self._connections: weakref.WeakSet[Any] = weakref.WeakSet()

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
        pool: Any = super().get_connection_with_tls_context(*args, **kwargs)
        kind = type(pool).ConnectionCls

        def connection(*args: Any, **kwargs: Any) -> Any:
            made = kind(*args, **kwargs)
            self._connections.add(made)
            return made

        pool.ConnectionCls = connection
        return pool

    def hang_up(self) -> None:
        for connection in list(self._connections):
            if connection.sock is not None:
                with contextlib.suppress(OSError):  # it is closed already
                    connection.sock.shutdown(socket.SHUT_RDWR)
