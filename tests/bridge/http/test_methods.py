"""Methods and media types, as HTTP has them (RFC 9110)."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import logging
import socket
from contextlib import closing
from http.client import HTTPConnection, HTTPResponse

import pytest
import requests
from starlette.applications import Starlette
from starlette.types import Message

from dimos_streams.serving.server.protocol import MAX_HEAD
from dimos_streams.serving.server.watch_only import WatchOnly
from tests.bridge.serving import served
from tests.problems import problem


def test_what_is_possible_is_said_where_a_method_is_not() -> None:
    with served() as bridge:
        for method, path, allowed in (
            ("DELETE", "/calls", "GET, HEAD, POST"),
            ("PUT", "/healthz", "GET, HEAD"),
            ("OPTIONS", "/tool_streams", "GET, HEAD"),
            ("GET", "/calls/x/cancel", "POST"),
            ("HEAD", "/calls/x/cancel", "POST"),
            ("PATCH", "/mcp", "DELETE, GET, HEAD, POST"),
            ("POST", "/", "GET, HEAD"),
            ("POST", "/openapi.json", "GET, HEAD"),
        ):
            response = requests.request(method, bridge.url + path, timeout=10)
            assert (response.status_code, response.headers["Allow"]) == (405, allowed), (method, path)
            if method != "HEAD":
                assert allowed in problem(response, 405, "method-not-allowed")["detail"]


def test_head_is_get_without_the_body() -> None:
    with served() as bridge, closing(HTTPConnection("127.0.0.1", bridge.port, timeout=10)) as connection:
        call = bridge.call("count", label="a", to=1)["call_id"]
        for path in (
            "/skills",
            "/calls",
            f"/calls/{call}",
            "/monitor/schema",
            "/",
            "/openapi.json",
            "/calls/nobody",
            "/nope",
            "/robots/stop",
        ):
            heads = []
            for method in ("HEAD", "GET"):  # on one connection: a body that was sent would spoil the next answer
                connection.request(method, path)
                response = connection.getresponse()
                body = response.read()
                heads.append((response.status, response.headers["Content-Type"], response.headers["Content-Length"]))
                assert bool(body) == (method == "GET"), path
            assert heads[0] == heads[1], path
        for path in ("/healthz", "/metrics", "/modules"):  # they differ from one moment to the next
            connection.request("HEAD", path)
            response = connection.getresponse()
            assert (response.status, response.read()) == (200, b"")
            assert int(response.headers["Content-Length"]) > 0


def test_head_of_a_stream_is_answered_at_once_and_begins_none() -> None:
    with served() as bridge, closing(HTTPConnection("127.0.0.1", bridge.port, timeout=10)) as connection:
        for path, status in (("/tool_streams", 200), ("/tool_streams?from=-1", 422), ("/tool_streams?from=1", 200)):
            connection.request("HEAD", path)
            response = connection.getresponse()
            assert (response.status, response.read()) == (status, b"")
            if status == 200:
                assert response.headers["Content-Type"].startswith("text/event-stream")
                assert "Content-Length" not in response.headers
        assert bridge.scene.bridge.broadcast.statistics().readers == 0


def test_head_needs_the_token_that_get_needs() -> None:
    with served(token="secret") as bridge:
        assert requests.head(f"{bridge.url}/healthz", timeout=10).status_code == 401
        assert requests.head(f"{bridge.url}/healthz?token=secret", timeout=10).status_code == 200
        assert requests.head(f"{bridge.url}/", timeout=10).status_code == 200, "the dashboard's page is for everybody"
        assert requests.delete(f"{bridge.url}/calls", timeout=10).status_code == 401, "before it is looked at"
        assert requests.post(f"{bridge.url}/calls", data=b"{}", timeout=10).status_code == 401


_NOT_JSON = (
    None,
    "application/x-www-form-urlencoded",
    "text/plain",
    "multipart/form-data; boundary=x",
    "text/json",
    "application/problem+json",
    "",
)
_JSON = ("application/json", "Application/JSON; charset=utf-8", "application/x.y+json")


def test_a_body_is_declared_as_json() -> None:
    with served() as bridge:
        body = b'{"skill": "at_once", "arguments": {"value": 1}}'
        for path, given in itertools.product(("/calls", "/calls/x/cancel", "/mcp"), _NOT_JSON):
            headers = {} if given is None else {"Content-Type": given}
            refused = requests.post(bridge.url + path, data=body, headers=headers, timeout=10)
            detail = problem(refused, 415, "not-declared-json")["detail"]
            assert (given or "Content-Type") in detail
            assert "valid: 'application/json'" in detail
            assert refused.headers["Accept"] == "application/json"
        for path in ("/calls", "/calls/x/cancel", "/mcp"):
            headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
            refused = requests.post(bridge.url + path, data=gzip.compress(body), headers=headers, timeout=10)
            assert "'gzip' is not taken" in problem(refused, 415, "not-declared-json")["detail"]
        assert not bridge.get("/calls").json()
        for given in _JSON:
            taken = requests.post(
                f"{bridge.url}/calls?wait=close", data=body, headers={"Content-Type": given}, timeout=10
            )
            assert taken.status_code == 201, given


def test_what_is_not_of_the_right_form_is_refused_in_one_way() -> None:
    with served() as bridge:
        for path, headers, where in (
            ("/tool_streams", {"Last-Event-ID": "x7"}, "header.last-event-id"),
            ("/tool_streams", {"Last-Event-ID": "9" * 17}, "header.last-event-id"),
            ("/tool_streams?from=x7", {}, "query.from"),
            ("/calls?before=x7", {}, "query.before"),
            ("/calls?limit=x7", {}, "query.limit"),
        ):
            refused = problem(bridge.get(path, headers=headers), 422, "bad-request")
            assert list(refused["errors"]) == [where]
            assert "x7" in refused["detail"] or "999" in refused["detail"]
        for body in (["x"], "x", 7):
            text = str(problem(bridge.post("/calls?wait=close", body), 422, "bad-request"))
            assert "it must be an object, names with their values" in text
            assert "CallBody" not in text


@pytest.mark.parametrize(
    "sent",
    [
        b"HELLO\r\n\r\n",
        b"POST /robots/stop HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"0\r\n\r\nX",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: %b" % (b"x" * 2 * MAX_HEAD),
    ],
    ids=["no line of a request", "a body that ends in two places", "a head that does not end"],
)
def test_what_is_no_http_is_refused_with_a_problem(sent: bytes) -> None:
    with served() as bridge, socket.create_connection(("127.0.0.1", bridge.port), timeout=10) as connection:
        connection.sendall(sent)
        response = HTTPResponse(connection)
        response.begin()
        body = json.loads(response.read())
        assert (response.status, response.headers["Content-Type"]) == (400, "application/problem+json")
        assert (body["type"], body["status"]) == ("urn:dimos-streams:problem:bad-http", 400)
        assert (f"more than {MAX_HEAD} bytes" in body["detail"]) is (len(sent) > MAX_HEAD)
        assert not connection.recv(1)


_TO_SOCKET = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "eA==",
}


@pytest.mark.parametrize(
    ("method", "path", "headers", "body", "status", "kind"),
    [
        ("GET", "/monitor", {"Content-Length": "2"}, b"{}", 426, "upgrade-needed"),
        ("GET", "/monitor", {"Transfer-Encoding": "chunked"}, b"2\r\n{}\r\n0\r\n\r\n", 426, "upgrade-needed"),
        (
            "POST",
            "/calls",
            {"Content-Length": "2", "Content-Type": "application/json"},
            b"{}",
            422,
            "bad-request",
        ),
        ("POST", "/calls", {}, b"", 422, "bad-request"),
        ("GET", "/monitor", {"X-Long": "a" * 9000}, b"", 400, "bad-http"),
        ("GET", f"/monitor?{'a' * 9000}", {}, b"", 400, "bad-http"),
        ("GET", "/monitor", {f"X-{number}": "1" for number in range(150)}, b"", 400, "bad-http"),
    ],
    ids=["body", "chunks", "order", "order without body", "long header", "long path", "many headers"],
)
def test_what_asks_for_a_websocket_in_a_form_that_opens_none_is_answered(
    method: str, path: str, headers: dict[str, str], body: bytes, status: int, kind: str
) -> None:
    with served() as bridge, closing(socket.create_connection(("127.0.0.1", bridge.port), timeout=10)) as connection:
        lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{bridge.port}"]
        lines += [f"{name}: {value}" for name, value in (_TO_SOCKET | headers).items()]
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        response = HTTPResponse(connection, method=method)
        response.begin()
        assert response.status == status
        assert json.loads(response.read())["type"] == f"urn:dimos-streams:problem:{kind}"


def test_an_offer_of_http_2_is_answered_in_this_version_and_the_log_does_not_complain(
    caplog: pytest.LogCaptureFixture,
) -> None:
    offer = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAEAAEAAAAIAAAAA"}
    with served() as bridge:
        assert bridge.get("/healthz", headers=offer).json()["status"] == "ok"
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]


def test_a_websocket_that_does_more_than_show_is_refused_with_the_reason() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    app = WatchOnly(Starlette(), "nobody commands it", ["/live"])
    asyncio.run(app({"type": "websocket", "path": "/monitor"}, receive, send))
    start, body = sent
    assert (start["type"], start["status"]) == ("websocket.http.response.start", 403)
    assert json.loads(body["body"])["detail"] == "nobody commands it"
