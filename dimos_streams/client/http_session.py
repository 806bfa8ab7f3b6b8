"""Requests that another thread can cut short, whatever their own thread is waiting for."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection

from dimos_streams.common.http.straight_session import StraightSession
from dimos_streams.common.http.unread_answers import PLAIN, why_packed
from dimos_streams.common.process.disk import open_small
from dimos_streams.common.process.threads import begin_thread
from dimos_streams.common.schemas.host_name import host_fault

MAX_ANSWER = 32 * 2**20
"""Maximum size, in bytes, of an answer that is no stream. The largest is the list of a thousand modules, each of
which describes its skills in a heartbeat."""
UNTRUSTED = "its certificate is not trusted"
_PIECE = 2**16
WHOLE_S = 20.0
"""Time, in seconds, that an answer that is no stream may take beyond the one in which its next part has to come."""
_LOST = frozenset({502, 504})
"""The answers of a proxy that has passed a request on and gets no answer."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Files (PEM) for connections over TLS."""

    ca: Path | None = None
    """Certificates, one of which must have signed the server's; by default those that are known everywhere."""
    cert: Path | None = None
    """The client's own certificate, where the server wants one."""
    key: Path | None = None
    """Its key, if it is in a file of its own."""

    def check(self) -> None:
        """Raise ``OSError`` for a file that can't be read. A pipe is refused, too: opening one waits for a writer,
        and nobody can cut that short."""
        for file in filter(None, (self.ca, self.cert, self.key)):
            try:
                with open_small(file):
                    pass
            except OSError as error:
                raise OSError(error.errno, f"{str(file)!r} can't be used: {error.strerror}") from None


Opener = Callable[[str, int, float | None], socket.socket]


class CuttableSession(StraightSession):
    """A session for one request or stream, or for several to one server, one after the other; none may be redirected.
    An answer that is no stream has ``MAX_ANSWER`` bytes at most, is not packed, and is whole ``WHOLE_S`` after the
    timeout for its parts: one that drips ends. ``cut`` may be called from any thread at any moment.

    Closing a response or a socket does not wake a thread that waits for it; shutting the socket down does, while it
    connects, shakes hands, or reads. So the session keeps a duplicate of its socket's descriptor, from before the
    connection is asked for until the next one is. Only the look-up of a host name can't be cut. The environment's
    proxies are not used.
    """

    def __init__(self, tls: Tls | None = None) -> None:
        super().__init__()
        self._tls = tls
        self.trust_env = False
        self.headers.update(PLAIN)
        if tls is not None and tls.ca is not None:
            self.verify = str(tls.ca)
        if tls is not None and tls.cert is not None:
            self.cert = str(tls.cert) if tls.key is None else (str(tls.cert), str(tls.key))
        self._guard = threading.Lock()
        self._socket: socket.socket | None = None
        self._duplicate: socket.socket | None = None
        self._is_cut = False
        self.has_connected = False
        """True once there was a connection, with TLS one that both sides have agreed to: from then on a request may
        have arrived."""
        for scheme in ("http://", "https://"):
            self.mount(scheme, _CuttableAdapter(self._open, self._on_connected))

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        """See ``requests.Session``; raises ``requests.RequestException`` also for an answer that is packed, too large
        or too late."""
        if options.get("stream"):
            return super().send(request, **options)
        with self._whole_within(options.get("timeout")):
            response = super().send(request, **{**options, "stream": True})
            try:
                response._content = _whole(response)
            except BaseException:
                response.close()
                raise
        return response

    @contextlib.contextmanager
    def _whole_within(self, timeout: Any) -> Iterator[None]:
        """Cut the session if what is done here takes too long for a timeout of requests. Without one nothing does.
        Raises ``OSError`` if there is no thread that could, before anything is done."""
        waits_s = timeout[-1] if isinstance(timeout, tuple) else timeout
        if waits_s is None:
            yield
            return
        late = threading.Event()

        def give_up() -> None:
            late.set()
            self.cut()

        timer = threading.Timer(waits_s + WHOLE_S, give_up)
        timer.daemon = True
        begin_thread(timer)
        try:
            yield
        except (requests.RequestException, OSError):
            if not late.is_set():
                raise
        finally:
            timer.cancel()
        if late.is_set():  # also where the end of the connection looks like the end of the answer
            raise requests.ReadTimeout(f"its answer was not whole within {waits_s + WHOLE_S:g} s")

    def cut(self) -> None:
        """End what the session does with an error in its thread; new connections are refused. Never waits."""
        with self._guard:
            self._is_cut = True
            if self._duplicate is not None:
                _shut_down(self._duplicate)

    def take_over(self, response: requests.Response) -> tuple[socket.socket, bytes] | None:
        """The socket of a response whose body nobody has begun to read, and what came with its head.

        The socket does not block, and is closed with the session. None where what the socket has is not the body: it
        is encrypted, or not in chunks.
        """
        body = getattr(getattr(response.raw, "_fp", None), "fp", None)
        coding = response.headers.get("Transfer-Encoding", "").strip().lower()
        plain = why_packed(response.status_code, response.headers) is None and response.url.startswith("http://")
        if self._socket is None or self._duplicate is None or not isinstance(body, io.BufferedReader):
            return None
        if coding != "chunked" or not plain:
            return None
        self._socket.setblocking(False)
        return self._duplicate, body.peek()

    def close(self) -> None:
        super().close()
        with self._guard:
            self._close_duplicate()

    def _close_duplicate(self) -> None:
        if self._duplicate is not None:
            self._duplicate.close()
            self._duplicate = None

    def _open(self, host: str, port: int, timeout_s: float | None) -> socket.socket:
        if fault := host_fault(host):
            raise OSError(fault)
        if self._tls is not None:
            self._tls.check()
        error: OSError = OSError(f"{host!r} has no address")
        for family, kind, protocol, _, address in socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM):
            try:
                sock = socket.socket(family, kind, protocol)
            except OSError as failure:  # a machine without IPv6 may know such addresses
                error = failure
                continue
            try:
                self._connect(sock, address, timeout_s)
            except OSError as failure:
                sock.close()
                error = failure
            else:
                return sock
        raise error

    def _on_connected(self) -> None:
        self.has_connected = True

    def _connect(self, sock: socket.socket, address: Any, timeout_s: float | None) -> None:
        sock.setblocking(False)
        with self._guard:  # either cut() finds the connection begun, or it is never begun
            if self._is_cut:
                raise ConnectionAbortedError("the session was cut")
            failed = sock.connect_ex(address)
            if failed not in (0, errno.EINPROGRESS):  # no socket keeps what is known at once, as without a network
                raise OSError(failed, os.strerror(failed))
            self._close_duplicate()  # not when its connection is closed: the answer may still be read from its socket
            self._socket, self._duplicate = sock, sock.dup()
        poll = select.poll()
        poll.register(sock, select.POLLOUT)
        if not poll.poll(None if timeout_s is None else timeout_s * 1000):
            raise TimeoutError(f"no connection within {timeout_s} s")
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))
        sock.settimeout(timeout_s)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def check_arrived(response: requests.Response) -> None:
    """Raise ``requests.RequestException`` if a proxy answers a POST in the place of its server, which may have
    carried it out. A server that itself answers with such a status says in a problem what became of it."""
    says_what = "problem+json" in response.headers.get("Content-Type", "")
    if response.request.method == "POST" and response.status_code in _LOST and not says_what:
        raise requests.RequestException(f"HTTP {response.status_code} {response.reason}")


def why(error: BaseException) -> str:
    """The innermost reason of an error of requests, in a few words."""
    inner: BaseException | None = error
    while inner is not None:
        error = inner
        inner = next((arg for arg in (*error.args, error.__cause__) if isinstance(arg, BaseException)), None)
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{UNTRUSTED}: {error.verify_message}"
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text or type(error).__name__


def _whole(response: requests.Response) -> bytes:
    if (why_not := why_packed(response.status_code, response.headers)) is not None:
        raise requests.RequestException(f"it {why_not}")
    body = bytearray()
    for piece in response.iter_content(_PIECE):
        body += piece
        if len(body) > MAX_ANSWER:
            raise requests.RequestException(f"it answers with more than {MAX_ANSWER} bytes")
    return bytes(body)


def _shut_down(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the other side was faster
        sock.shutdown(socket.SHUT_RDWR)


class _CuttableAdapter(HTTPAdapter):
    def __init__(self, opener: Opener, on_connected: Callable[[], None]) -> None:
        self._opener = opener
        self._on_connected = on_connected
        super().__init__()

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
        pool = super().get_connection_with_tls_context(*args, **kwargs)
        kind = _TlsConnection if pool.scheme == "https" else _PlainConnection
        pool.ConnectionCls = partial(kind, opener=self._opener, on_connected=self._on_connected)  # type: ignore[attr-defined]
        return pool


class _PlainConnection(HTTPConnection):
    def __init__(self, *args: Any, opener: Opener, on_connected: Callable[[], None], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._opener = opener
        self._on_connected = on_connected

    def connect(self) -> None:
        super().connect()
        self._on_connected()

    def _new_conn(self) -> socket.socket:
        return self._opener(self.host, self.port or self.default_port, _seconds(self.timeout))


class _TlsConnection(_PlainConnection, HTTPSConnection):
    """Is opened like a plain one."""


def _seconds(timeout: Any) -> float | None:
    return float(timeout) if isinstance(timeout, int | float) else None
