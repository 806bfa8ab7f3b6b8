"""HTTP requests that nobody should send, as bytes."""

from __future__ import annotations

import random

from tests.hostile.texts import HOSTILE_JSON

_PATHS = (
    "/",
    "/healthz",
    "/skills",
    "/modules",
    "/metrics",
    "/calls",
    "/calls?wait=answer&timeout_s=0.05",
    "/calls?state=open",
    "/calls?state=shut",
    "/calls?wait=close&timeout_s=nan",
    "/calls?wait=close&timeout_s=1e999",
    "/calls/x/cancel",
    "/calls/%00%ff%2e%2e/cancel",
    "/calls/" + "a" * 5_000,
    "/tool_streams",
    "/tool_streams?from=0",
    "/tool_streams?from=-1",
    "/tool_streams?from=99999999999999999999",
    "/tool_streams?from=1e5&call=%ed%a0%80&caller=" + "b" * 3_000,
    "/tool_streams?" + "&".join(f"k{n}=v" for n in range(2_000)),
    "/monitor",
    "/mcp",
    "/docs",
    "/../../etc/passwd",
    "//evil/",
    "http://evil/healthz",
    "*",
    "/\u00e4\u2028",
    "/ calls",
    "/" + "c" * 70_000,
)
_METHODS = (
    "GET",
    "POST",
    "PUT",
    "DELETE",
    "HEAD",
    "OPTIONS",
    "PATCH",
    "TRACE",
    "CONNECT",
    "get",
    "G\0T",
    "X" * 3_000,
)
_VERSIONS = ("HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/9", "JUNK", "")
_HOSTS = (
    "evil.example",
    "",
    "127.0.0.1.evil.example",
    "[::1",
    "localhost:99999999",
    "a" * 5_000,
    "\xff\xfe",
    "@127.0.0.1",
)
_HEADERS = (
    "Origin: http://evil.example",
    "Origin: null",
    "Origin: http://[::1",
    "Content-Length: -1",
    "Content-Length: 99999999999999999999",
    "Content-Length: 5, 6",
    "Content-Length: five",
    "Content-Length: 0",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: nonsense",
    "Content-Encoding: gzip",
    "Content-Type: text/plain; charset=utf-37",
    "Content-Type: application/json",
    "Authorization: Bearer \xff",
    "Last-Event-ID: -5",
    "Last-Event-ID: 999999999999999999999",
    "Last-Event-ID: \xb2",
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==",
    "Upgrade: h2c\r\nConnection: Upgrade",
    "Expect: 100-continue",
    "Range: bytes=0-999999999999",
    "X-Long: " + "x" * 20_000,
    "X-Huge: " + "x" * 200_000,
    "No colon here",
    " folded: line",
    "Nul: a\0b",
    "\r\n".join(f"X-{n}: y" for n in range(500)),
)
_CHUNKS = (
    b"5\r\nhello\r\n0\r\n\r\n",
    b"zz\r\n",
    b"-1\r\n\r\n",
    b"ffffffffffffffffff\r\nx",
    b"5\r\nhel",
    b"0" * 3_000,
    b"3;" + b"x" * 9_000,
)
_BODIES = (
    *(json.encode() for json in HOSTILE_JSON),
    *(b'{"skill": "turn", "arguments": ' + json.encode() + b"}" for json in HOSTILE_JSON),
    b'{"skill": 5, "arguments": [], "caller": null, "on_duplicate": "explode", "lease_wait_s": 1e308}',
    b'{"skill": "' + b"s" * 10_000 + b'"}',
    b'{"skill": "turn", "extra": 1}',
    b'{"skill": "observe", "idempotency_key": ""}',
    b'{"reason": ' + b'"r' * 3_000 + b"}",
    b"\xff\xfe\x00",
    b"\xef\xbb\xbf{}",
    b"x" * 300_000,
    b"",
)


class RequestFuzzer:
    """Makes hostile requests to a server's port. The same seed gives the same ones."""

    def __init__(self, port: int, seed: int) -> None:
        self._port = port
        self._random = random.Random(seed)

    def request(self) -> bytes:
        """The next one; some are cut, some are two in one."""
        rng = self._random
        data = rng.choice((self._junk, self._odd, self._odd, self._bad_body, self._bad_body, self._chunked))()
        if rng.random() < 0.1:
            data = data[: rng.randrange(len(data) + 1)]
        return data + data if rng.random() < 0.05 else data

    def _junk(self) -> bytes:
        rng = self._random
        return rng.choice(
            (rng.randbytes(rng.randrange(2_000)), b"\r\n" * 500, b"\x16\x03\x01" + rng.randbytes(200), b"")
        )

    def _odd(self) -> bytes:
        rng = self._random
        line = f"{rng.choice(_METHODS)} {rng.choice(_PATHS)} {rng.choice(_VERSIONS)}"
        hosts = rng.choice(((self._own(),), (self._own(),), (rng.choice(_HOSTS),), (), (self._own(), "evil.example")))
        headers = [f"Host: {host}" for host in hosts] + rng.sample(_HEADERS, rng.randrange(4))
        return "\r\n".join([line, *headers, "", ""]).encode("utf-8" if "\u2028" in line else "latin-1")

    def _bad_body(self) -> bytes:
        rng = self._random
        body = rng.choice(_BODIES)
        length = rng.choice((len(body), len(body), len(body), len(body) + 10, max(0, len(body) - 3)))
        head = (
            f"{rng.choice(('POST', 'POST', 'PUT', 'GET'))} {rng.choice(_PATHS)} HTTP/1.1\r\nHost: {self._own()}\r\n"
        )
        kind = rng.choice(("Content-Type: application/json\r\n", "Content-Type: application/json\r\n", ""))
        return f"{head}{kind}Content-Length: {length}\r\n\r\n".encode() + body

    def _chunked(self) -> bytes:
        rng = self._random
        head = f"POST {rng.choice(('/calls', '/calls/x/cancel'))} HTTP/1.1\r\nHost: {self._own()}\r\n"
        chunks = b"".join(rng.choices(_CHUNKS, k=rng.randrange(1, 4)))
        return f"{head}Transfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n".encode() + chunks

    def _own(self) -> str:
        return f"127.0.0.1:{self._port}"
