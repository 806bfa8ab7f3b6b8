"""``/openapi.json`` against what is sent: every answer fits what is declared for it, and what is declared is sent."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from jsonschema import Draft202012Validator

from dimos_streams.bridge.mcp.messages import notification
from dimos_streams.common.names import KEY_RULE
from dimos_streams.errors import SkillUnavailableError
from dimos_streams.serving.problem_kinds import KINDS
from dimos_streams.serving.server.request_guard import MAX_BODY
from tests.bridge.serving import Served, served

JSON = {"Content-Type": "application/json"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "me", "version": "1"}},
}
HARD_TO_BRING_ABOUT = {"408", "500", "default"}
"""Declared for all, and tested elsewhere or here once."""
GIVEN_UP: list[dict[str, Any]] = [
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}},
    {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "follow"}},
]
"""A request of MCP that was cancelled before it came, so that it began no call."""
EVERYWHERE = {"400", "401", "403", "503"}
"""What is refused before there is a route: asked of one route for all."""


@dataclass
class Document:
    """What is declared, and which of it was met."""

    content: dict[str, Any]
    met: set[tuple[str, str, str]] = field(default_factory=set)

    def check(self, path: str, response: requests.Response) -> None:
        """The answer is one of those that are declared for the path: status, type, headers and body."""
        method = str(response.request.method).lower()
        declared = self.content["paths"][path][method]["responses"]
        status = str(response.status_code)
        about = f"{method} {path} {status}: {response.text[:300] if method != 'head' else ''}"
        assert status in declared, about
        self.met.add((method, path, status))
        contents = declared[status].get("content", {})
        media_type = response.headers.get("Content-Type", "").partition(";")[0]
        if method == "head" or not contents:
            assert not (response.content if media_type != "text/event-stream" else b""), about
        else:
            assert media_type in contents, about
            self._check_body(contents[media_type]["schema"], response, media_type)
        for name in ("Location", "Link", "WWW-Authenticate", "Retry-After", "Accept", "Mcp-Session-Id"):
            assert name not in response.headers or name in declared[status].get("headers", {}), f"{name} of {about}"

    def _check_body(self, schema: dict[str, Any], response: requests.Response, media_type: str) -> None:
        if media_type == "text/event-stream":
            return  # it has no end
        body = response.json() if media_type.endswith("json") else response.text
        Draft202012Validator({**schema, "components": self.content["components"]}).validate(body)


def document_of(bridge: Served) -> Document:
    return Document(bridge.get("/openapi.json").json())


@contextlib.contextmanager
def documented(**config: Any) -> Iterator[tuple[Served, Document]]:
    with served(**config) as bridge:
        yield bridge, document_of(bridge)


def ask(bridge: Served, method: str, path: str, **kwargs: Any) -> requests.Response:
    with requests.request(method, bridge.url + path, timeout=10, stream=True, **kwargs) as response:
        if not response.headers.get("Content-Type", "").startswith("text/event-stream"):
            response.content  # noqa: B018 - it is read now
        return response


def _requests(begun: str, session: dict[str, str]) -> list[tuple[str, str, str, dict[str, Any]]]:
    """Requests that bring about the answers of all routes: each with its method, path, URL and options.

    Args:
        begun: The id of a call.
        session: The header that names a session of MCP.
    """
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    large = {"data": b"x" * (MAX_BODY + 1), "headers": JSON}
    undeclared = {"data": b"{}"}
    return [
        *(("GET", path, path, {}) for path in ("/healthz", "/metrics", "/skills", "/modules", "/monitor/schema")),
        ("GET", "/robots", "/robots", {}),
        ("GET", "/live", "/live", {}),
        ("GET", "/calls", "/calls", {}),
        ("GET", "/calls", "/calls?limit=1&state=closed", {}),
        ("GET", "/calls", "/calls?before=U", {}),
        ("GET", "/calls/{call_id}", f"/calls/{begun}", {}),
        ("GET", "/calls/{call_id}", "/calls/nobody", {}),
        ("GET", "/tool_streams", "/tool_streams", {}),
        ("GET", "/tool_streams", "/tool_streams?from=-1", {}),
        ("GET", "/tool_streams", "/tool_streams?call=..", {}),
        ("GET", "/tool_streams", "/tool_streams", {"headers": {"Last-Event-ID": "x7"}}),
        ("GET", "/events", "/events", {}),
        ("GET", "/events", "/events?limit=2&progress=true", {}),
        ("GET", "/events", "/events?limit=0", {}),
        ("GET", "/events", "/events?call=..", {}),
        ("GET", "/pictures/{name}", "/pictures/one.jpg", {}),
        ("GET", "/pictures/{name}", "/pictures/two.jpg", {}),
        ("POST", "/calls", "/calls", {"json": {"skill": "patrol"}}),
        (
            "POST",
            "/calls",
            "/calls?wait=close",
            {"json": {"skill": "count", "arguments": {"label": "b", "to": 1}}},
        ),
        ("POST", "/calls", "/calls", {"json": {"skill": "nothing"}}),
        ("POST", "/calls", "/calls", {"json": {"skill": "follow", "agent": "nobody"}}),
        ("POST", "/calls", "/calls", {"json": {"skill": "follow"}}),
        ("POST", "/calls", "/calls", {"json": {"skil": "follow"}}),
        ("POST", "/calls", "/calls", {"json": {"skill": "at_once", "arguments": {"value": 1}}}),
        ("POST", "/calls", "/calls", {"data": b"{", "headers": JSON}),
        ("POST", "/calls", "/calls", large),
        ("POST", "/calls", "/calls", undeclared),
        ("POST", "/calls/{call_id}/cancel", "/calls/nobody/cancel", {}),
        ("POST", "/calls/{call_id}/cancel", f"/calls/{begun}/cancel", {"json": {"why": "x"}}),
        ("POST", "/calls/{call_id}/cancel", f"/calls/{begun}/cancel", {"data": b"[", "headers": JSON}),
        ("POST", "/calls/{call_id}/cancel", f"/calls/{begun}/cancel", large),
        ("POST", "/calls/{call_id}/cancel", f"/calls/{begun}/cancel", undeclared),
        ("POST", "/calls/{call_id}/cancel", f"/calls/{begun}/cancel", {}),
        ("POST", "/mcp", "/mcp", {"json": HELLO}),
        ("POST", "/mcp", "/mcp", {"json": ping, "headers": session}),
        ("POST", "/mcp", "/mcp", {"json": {**ping, "method": "dance"}, "headers": session}),
        ("POST", "/mcp", "/mcp", {"json": ping}),
        ("POST", "/mcp", "/mcp", {"json": ping, "headers": {"Mcp-Session-Id": "x"}}),
        ("POST", "/mcp", "/mcp", {"json": {"jsonrpc": "2.0", "method": "x"}, "headers": session}),
        ("POST", "/mcp", "/mcp", {"data": b"{", "headers": JSON}),
        ("POST", "/mcp", "/mcp", large),
        ("POST", "/mcp", "/mcp", undeclared),
        ("GET", "/mcp", "/mcp", {"headers": session}),
        ("GET", "/mcp", "/mcp", {"headers": {"Mcp-Session-Id": "x"}}),
        ("GET", "/mcp", "/mcp", {}),
        ("GET", "/mcp", "/mcp", {"headers": {**session, "Accept": "application/json"}}),
        *(("POST", "/mcp", "/mcp", {"json": each, "headers": session}) for each in GIVEN_UP),
        ("GET", "/mcp", "/mcp", {"headers": {**session, "Last-Event-ID": '["", 0, 9]'}}),
        ("DELETE", "/mcp", "/mcp", {"headers": {"Mcp-Session-Id": "x"}}),
        ("DELETE", "/mcp", "/mcp", {}),
        ("POST", "/settings", "/settings", {"json": {"assignments": ["worker.pace=2"]}}),
        ("POST", "/settings", "/settings", {"json": {"assignments": ["worker.pac=2"]}}),
        ("POST", "/settings", "/settings", {"json": {"assignments": ["worker.pace=1"], "caller": "bridge"}}),
        ("POST", "/settings", "/settings", {"json": {"assignments": []}}),
        ("POST", "/settings", "/settings", {"data": b"[", "headers": JSON}),
        ("POST", "/settings", "/settings", large),
        ("POST", "/settings", "/settings", undeclared),
        ("POST", "/robots/stop", "/robots/stop", {}),
        ("POST", "/robots/release", "/robots/release", {"json": {"seen": []}}),
        *(
            ("POST", path, path, body)
            for path in ("/calls/cancel", "/robots/stop", "/robots/release")
            for body in (
                {"json": {"robot": "nobody"}},
                {"json": {"why": "x"}},
                {"data": b"[", "headers": JSON},
                large,
                undeclared,
                {},
            )
        ),
    ]


@pytest.mark.slow
@pytest.mark.feature("E9")
def test_every_declared_answer_is_sent_as_it_is_declared(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "one.jpg").write_bytes(b"\xff\xd8")
    with documented(run_dir=tmp_path) as (bridge, document):
        begun = bridge.call("follow", wait="answer", description="ann")["call_id"]
        for _ in range(2):
            bridge.call("count", label="a", to=1)
        session = {"Mcp-Session-Id": bridge.post("/mcp", HELLO).headers["Mcp-Session-Id"]}
        for method, path, url, kwargs in _requests(begun, session):
            document.check(path, ask(bridge, method, url, **kwargs))
            if method == "GET":
                document.check(path, ask(bridge, "HEAD", url, **kwargs))
        document.check("/mcp", ask(bridge, "DELETE", "/mcp", headers=session))
        foreign = {"headers": {"Host": "evil.example"}}
        for path, operations in document.content["paths"].items():
            for method in operations:
                document.check(path, ask(bridge, method.upper(), path, **foreign))
    declared = {
        (method, path, status)
        for path, operations in document.content["paths"].items()
        for method, operation in operations.items()
        for status in operation["responses"]
    }
    unmet = {each for each in declared - document.met if each[2] not in HARD_TO_BRING_ABOUT | EVERYWHERE}
    assert unmet == set()


@pytest.mark.slow
def test_what_is_refused_before_there_is_a_route_is_declared_for_every_route(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(token="secret") as bridge:
        token = {"Authorization": "Bearer secret"}
        document = Document(bridge.get("/openapi.json", headers=token).json())
        for path, operations in document.content["paths"].items():
            for method, operation in operations.items():
                document.check(path, ask(bridge, method.upper(), path))
                assert {*EVERYWHERE, *HARD_TO_BRING_ABOUT} - {"408"} <= set(operation["responses"])
                assert ("408" in operation["responses"]) == ("requestBody" in operation)

        async def broken() -> None:
            raise RuntimeError("a secret")

        async def gone(*_: Any, **__: Any) -> None:
            raise SkillUnavailableError("its module is gone")

        monkeypatch.setattr(bridge.broker, "skills", broken)
        monkeypatch.setattr(bridge.broker, "call", gone)
        document.check("/skills", ask(bridge, "GET", "/skills", headers=token))
        document.check("/calls", ask(bridge, "POST", "/calls", headers=token, json={"skill": "follow"}))
        assert {("get", "/skills", "500"), ("post", "/calls", "503")} <= document.met


@pytest.mark.slow
def test_clients_can_be_made_of_the_document() -> None:
    with documented() as (_, document):
        content = document.content
        ids = [operation["operationId"] for path in content["paths"].values() for operation in path.values()]
        assert len(ids) == len(set(ids))
        assert "HTTPValidationError" not in json.dumps(content)
        for name in re.findall(r"#/components/schemas/(\w+)", json.dumps(content)):
            Draft202012Validator.check_schema(content["components"]["schemas"][name])
        numbers = re.findall(r'\{[^{}]*"type": "integer"[^{}]*\}', json.dumps(content))
        assert len(numbers) > 40
        assert all('"format": "int64"' in each for each in numbers), "those without one are taken for int32"
        schemas = content["components"]["schemas"]
        (seen, _) = schemas["ReleaseOrder"]["properties"]["seen"]["anyOf"]
        assert seen["items"]["maximum"] == 2**63 - 1
        assert schemas["CallView"]["properties"]["state"]["enum"] == ["requested", "open", "closed"]
        assert schemas["WaitedCall"]["properties"]["waited"]["enum"] == ["answer", "close", "timed_out"]
        calls = {each["name"]: each["schema"] for each in content["paths"]["/calls"]["get"]["parameters"]}
        before = Draft202012Validator(calls["before"])
        assert [before.is_valid(text) for text in ("U", "7-a", "-7-a:b", "7-", None)] == [
            False,
            True,
            True,
            False,
            False,
        ]
        post = content["paths"]["/mcp"]["post"]
        assert post["requestBody"]["content"]["application/json"]["schema"]
        for status in ("400", "404", "503"):
            assert post["responses"][status]["description"].endswith("Or an error of JSON-RPC.")
        assert list(content["paths"]["/tool_streams"]["get"]["responses"]["200"]["content"]) == ["text/event-stream"]
        assert list(content["paths"]["/metrics"]["get"]["responses"]["200"]["content"]) == ["text/plain"]
        begun = content["paths"]["/calls"]["post"]["responses"]["201"]
        assert set(begun["headers"]) == {"Location", "Link"}
        first, *_ = begun["content"]["application/json"]["schema"]["anyOf"]
        assert first["$ref"].endswith("/WaitedCall")  # the other fits it too, and clients take the first that fits
        key, _ = content["components"]["schemas"]["CallBody"]["properties"]["idempotency_key"]["anyOf"]
        assert key["description"] == KEY_RULE


@pytest.mark.slow
def test_the_events_of_a_stream_are_described() -> None:
    with documented() as (bridge, document):
        bridge.call("count", label="a", to=1)
        schema = Draft202012Validator(document.content["components"]["schemas"]["ToolStreamEvent"])
        stream = document.content["paths"]["/tool_streams"]["get"]["responses"]["200"]["content"]["text/event-stream"]
        assert stream["schema"]["$ref"].endswith("/ToolStreamEvent")
        for _, event in bridge.stream("?from=1").events(3):
            schema.validate(event)
        assert not schema.is_valid({**event, "seq": "3"})
        schema.validate({**event, "type": "update", "data": {"outcome": "found", "arguments": [1]}})
        page = document.content["paths"]["/events"]["get"]["responses"]["200"]["content"]["application/json"]
        assert page["schema"]["items"]["properties"]["event"]["$ref"].endswith("/ToolStreamEvent")


@pytest.mark.slow
def test_a_page_of_calls_says_where_the_next_one_is_in_a_form_that_is_declared() -> None:
    with documented() as (bridge, document):
        for label in "abc":
            bridge.call("count", label=label, to=1)
        link = bridge.get("/calls?limit=1").links["next"]["url"]
        older = ask(bridge, "GET", link)
        document.check("/calls", older)
        assert len(older.json()) == 1
        (before,) = parse_qs(urlsplit(link).query)["before"]
        parameters = document.content["paths"]["/calls"]["get"]["parameters"]
        schema = next(each["schema"] for each in parameters if each["name"] == "before")
        Draft202012Validator(schema).validate(before)


def test_a_kind_of_problem_has_one_status_and_one_title() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    with served() as bridge:
        seen: dict[str, set[str]] = {}
        for path in ("/nowhere", "/calls/", "/calls?before=U", "/calls?before=V", "/calls/x", "/calls/y"):
            answer = bridge.get(path, allow_redirects=False).json()
            seen.setdefault(answer["type"], set()).add(answer["title"])
            assert path.partition("=")[2] in answer["detail"]
        assert {kind: len(titles) for kind, titles in seen.items()} == dict.fromkeys(seen, 1)
        assert len(seen) == 3


def test_each_message_of_a_stream_of_mcp_is_as_it_is_described() -> None:
    count = {"name": "count", "arguments": {"label": "a", "to": 2}, "_meta": {"progressToken": "p"}}
    with documented() as (bridge, document):
        session = requests.post(f"{bridge.url}/mcp", json=HELLO, timeout=10).headers["Mcp-Session-Id"]
        headers = {"Mcp-Session-Id": session, "Accept": "application/json, text/event-stream"}
        asked = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": count}
        said = requests.post(f"{bridge.url}/mcp", json=asked, headers=headers, timeout=10).text
        *_, answer = (line.removeprefix("data: ") for line in said.splitlines() if line.startswith("data: {"))
        content = document.content["paths"]["/mcp"]["post"]["responses"]["200"]["content"]
        described = Draft202012Validator(content["text/event-stream"]["schema"])
        progress = notification("notifications/progress", progressToken="p", progress=1, message="so far")
        assert [described.is_valid(each) for each in (json.loads(answer), progress)] == [True, True]
        assert [described.is_valid(each) for each in ({"jsonrpc": "2.0"}, answer)] == [False, False]
