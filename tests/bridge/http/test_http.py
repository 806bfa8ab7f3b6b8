from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import http.client
import json
import logging
import random
import re
import time
from pathlib import Path
from typing import Any

import pytest
import requests

from dimos_streams.bridge.calls import broker
from dimos_streams.bridge.module import Bridge
from dimos_streams.bus import Bus, create_bus
from dimos_streams.client.http_gateway import HttpGateway
from dimos_streams.common.names import NAME_RULE
from dimos_streams.common.process.loopback import is_loopback
from dimos_streams.errors import CallRejectedError, KeyUsedError, UserError
from dimos_streams.module import RunContext, Services
from dimos_streams.serving.server.request_guard import MAX_BODY
from dimos_streams.tool_stream.gateway import CallView, OfferedSkill
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from tests.bridge.serving import Served, served
from tests.helpers import wait_for
from tests.problems import problem


def test_skills_modules_and_health() -> None:
    with served() as bridge:
        skills = [OfferedSkill.model_validate(skill) for skill in bridge.get("/skills").json()]
        follow = next(skill for skill in skills if skill.name == "follow")
        assert (follow.module, follow.available, follow.resources) == ("worker", True, ("base",))
        assert follow.parameters["required"] == ["description"]
        modules = {module["name"]: module for module in bridge.get("/modules").json()}
        assert modules["worker"]["alive"]
        instance = next(view.instance for view in bridge.scene.broker.directory.modules() if view.name == "worker")
        assert instance
        assert not any(instance in bridge.get(path).text for path in ("/modules", "/healthz", "/skills", "/metrics"))
        health = bridge.get("/healthz").json()
        assert (health["status"], health["offset"], health["journal"]["state"]) == ("ok", 0, "ok")
        assert (health["disk"], health["lost"], health["unwell"]) == ("ok", [], {})


@pytest.mark.parametrize("token", ["", "a b", "no\u00e4", "end\n"])
def test_a_token_that_no_header_can_carry_is_refused(token: str) -> None:
    with pytest.raises(ValueError, match="valid: visible ASCII characters without spaces"):
        Bridge({"token": token}, name="bridge")


@pytest.mark.slow
def test_a_call_answers_closes_and_is_cancelled() -> None:
    with served() as bridge:
        view = bridge.call("count", label="a", to=3)
        assert (view.pop("waited"), view["answer"], view["result"]) == ("close", "a 1", "a")
        assert CallView.model_validate(view).outcome == "completed"
        response = bridge.post("/calls", {"skill": "follow", "arguments": {"description": "ann"}})
        assert response.status_code == 201
        call_id = response.json()["call_id"]
        assert response.json() == {"call_id": call_id}
        assert response.headers["location"] == f"/calls/{call_id}"
        assert [view["call_id"] for view in bridge.get("/calls?state=open").json()] == [call_id]
        assert len(bridge.get("/calls").json()) == 2
        cancelled = bridge.post(f"/calls/{call_id}/cancel", {"reason": "enough"})
        assert cancelled.status_code == 202
        until_closed(bridge, call_id)
        view = bridge.get(f"/calls/{call_id}").json()
        assert (view["outcome"], view["text"]) == ("cancelled", "enough")
        assert bridge.post(f"/calls/{call_id}/cancel").status_code == 202, "a second time is fine, without a body"


def until_closed(bridge: Served, call_id: str) -> None:
    assert bridge.run(bridge.broker.wait(call_id, "close", 10))


def test_waiting_is_bounded() -> None:
    with served() as bridge:
        response = bridge.post("/calls?wait=answer&timeout_s=0.2", {"skill": "patrol"})
        assert response.status_code == 201
        assert (response.json()["waited"], response.json()["answer"]) == ("timed_out", None)
        problem(bridge.post("/calls?wait=answer&timeout_s=301", {"skill": "patrol"}), 422, "bad-request")
        problem(bridge.post("/calls?wait=forever", {"skill": "patrol"}), 422, "bad-request")


def test_a_client_begins_a_call_once_for_a_key_and_has_it_wait_for_what_is_held() -> None:
    async def main(url: str) -> None:
        gateway = HttpGateway(url, rng=random.Random(1), timeout_s=0.25)
        first, again = [
            await gateway.begin("follow", {"description": "ann"}, caller="me", idempotency_key="k") for _ in range(2)
        ]
        assert first == again
        with pytest.raises(KeyUsedError, match=f"'k' is that of call '{first.call_id}' of 'follow' ") as used:
            await gateway.begin("follow", {"description": "bob"}, caller="me", idempotency_key="k")
        assert (used.value.call_id, used.value.skill) == (first.call_id, "follow")
        assert used.value.state in ("requested", "open")
        begun = time.monotonic()
        with pytest.raises(CallRejectedError, match="needs 'base'"):
            await gateway.begin("at_once", {"value": 1}, caller="me", lease_wait_s=0.4)
        assert time.monotonic() - begun >= 0.4
        with pytest.raises(CallRejectedError, match="runs already"):
            await gateway.begin("follow", {"description": "bob"}, caller="me", on_duplicate="reject")

    with served() as bridge:
        asyncio.run(main(bridge.url))


@pytest.mark.slow
@pytest.mark.feature("E9")
def test_errors_say_what_was_wrong(caplog: pytest.LogCaptureFixture) -> None:
    with served() as bridge:
        unknown = problem(bridge.post("/calls", {"skill": "folow"}), 404, "unknown-skill")
        assert "did you mean 'follow'" in unknown["detail"]
        bad = problem(bridge.post("/calls", {"skill": "follow", "arguments": {"steps": "x"}}), 422, "bad-arguments")
        assert sorted(bad["errors"]) == ["description", "steps"]
        form = problem(bridge.post("/calls", {"skil": "follow"}), 422, "bad-request")
        assert sorted(form["errors"]) == ["body.skil", "body.skill"]
        near = "there is nothing of this name; did you mean 'skill'? (valid: skill, agent, arguments, caller,"
        assert near in form["errors"]["body.skil"]
        for waits in (True, "1"):
            problem(bridge.post("/calls", {"skill": "at_once", "lease_wait_s": waits}), 422, "bad-request")
        nul = problem(bridge.post("/calls", {"skill": "follow\0"}), 422, "bad-request")
        assert nul["errors"] == {"body.skill": f"{NAME_RULE} (given: 'follow\\x00')"}
        for caller in ("me ", "\uff41gent", "m\u0435", "a\nb", ""):
            strange = problem(bridge.post("/calls", {"skill": "at_once", "caller": caller}), 422, "bad-request")
            assert list(strange["errors"]) == ["body.caller"], caller
        for key in ("\ud800", "\udc01", "\ufffd", "a\0", "\x1b[1m", "a\nb", ""):
            keyed = {"skill": "at_once", "idempotency_key": key}
            assert list(problem(bridge.post("/calls", keyed), 422, "bad-request")["errors"]) == [
                "body.idempotency_key"
            ]
        alike = problem(bridge.post("/calls", {"skill": "follow", "caller": "Operator"}), 409, "call-rejected")
        assert alike["detail"] == "'Operator' looks like 'operator', which is not you: call by a name of your own"
        problem(bridge.get("/calls/nobody"), 404, "unknown-call")
        problem(bridge.post("/calls/nobody/cancel"), 404, "unknown-call")
        problem(bridge.get("/nowhere"), 404, "not-found")
        problem(requests.delete(f"{bridge.url}/calls", timeout=10), 405, "method-not-allowed")
        problem(bridge.get("/tool_streams?from=-1"), 422, "bad-request")
        problem(bridge.get("/tool_streams", headers={"Last-Event-ID": "x7"}), 422, "bad-request")
        not_json = requests.post(f"{bridge.url}/calls", "{", headers={"Content-Type": "application/json"}, timeout=10)
        problem(not_json, 400, "bad-json")

        failed = bridge.call("fail")
        assert (failed["outcome"], failed["answer"]) == ("failed", "the floor is wet")
        holder = bridge.call("follow", wait="answer", description="ann")["call_id"]
        busy = problem(bridge.post("/calls", {"skill": "at_once", "arguments": {"value": 1}}), 409, "call-rejected")
        assert (busy["holder"], busy["resource"]) == (holder, "base")
        bridge.scene.processes[1].bus.partitioned = True
        until_closed(bridge, holder)
        body = {"skill": "at_once", "arguments": {"value": 1}}
        gone = problem(bridge.post("/calls", body), 503, "skill-unavailable")
        assert "'worker'" in gone["detail"]

        async def broken() -> None:
            raise RuntimeError("secret detail")

        with caplog.at_level(logging.CRITICAL), pytest.MonkeyPatch.context() as patch:
            patch.setattr(bridge.broker, "skills", broken)
            internal = problem(bridge.get("/skills"), 500, "internal-error")
        assert "secret" not in json.dumps(internal)
        expected = f"internal error {internal['error_id']} (RuntimeError): its traceback is on standard error"
        assert internal["detail"] == expected


_TWICE = b'{"skill": "at_once", "arguments": {"value": 1, "value": 2}}'


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [b"{", b"", b"[]", b"nonsense", b"\xff", b"[" * 100_000, b'{"skill": NaN}', b"1" * 5000, _TWICE],
)
def test_bodies_that_are_no_json_are_refused(body: bytes) -> None:
    with served() as bridge:
        response = requests.post(
            f"{bridge.url}/calls", data=body, headers={"Content-Type": "application/json"}, timeout=10
        )
        assert response.status_code in (400, 422)
        assert response.headers["content-type"] == "application/problem+json"
        assert bridge.get("/healthz").json()["status"] == "ok"


@pytest.mark.slow
def test_a_bridge_that_does_not_hear_itself_is_deaf_until_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker, "DEAF_S", 0.6)
    with served() as bridge:

        def lost() -> list[str]:
            health = bridge.get("/healthz").json()
            assert (health["status"] == "ok") == (health["lost"] == [])
            return list(health["lost"])

        wait_for(lambda: bridge.broker.directory.module("bridge") is not None)
        wait_for(lambda: lost() == [])
        bridge.scene.bridge_bus.partitioned = True
        wait_for(lambda: lost() == ["what is said on the bus: the bridge does not even hear itself"])
        wait_for(lambda: bridge.scene.bridge.health == "it does not even hear itself on the bus")
        bridge.scene.bridge_bus.partitioned = False
        wait_for(lambda: lost() == [])


@pytest.mark.feature("A5")
@pytest.mark.parametrize("caller", ["mcp/claude", "mcp/without-session", "mcp/"])
def test_the_name_of_an_mcp_client_is_nobody_elses(caller: str) -> None:
    """Its model reads the calls of its name as its own."""
    with served() as bridge:
        asked = bridge.post("/calls", {"skill": "count", "arguments": {"label": "a"}, "caller": caller})
        assert "calls in its name come by /mcp" in problem(asked, 409, "call-rejected")["detail"]
        assert bridge.get("/calls").json() == []


def test_half_a_character_in_a_body_is_repaired() -> None:
    with served() as bridge:
        body = b'{"skill": "count", "arguments": {"label": "a \\ud83d and \\ud83d\\ude00", "to": 1}, "caller": "me"}'
        headers = {"Content-Type": "application/json"}
        response = requests.post(f"{bridge.url}/calls?wait=close", data=body, headers=headers, timeout=10)
        assert response.status_code == 201, response.text
        call = bridge.get(f"/calls/{response.json()['call_id']}").json()
        assert call["arguments"]["label"] == "a \ufffd and 😀"
        assert call["outcome"] == "completed"


@pytest.mark.slow
def test_large_bodies_are_refused_unread() -> None:
    with served() as bridge:
        large = {"skill": "count", "arguments": {"label": "x" * MAX_BODY, "to": 1}}
        refused = problem(bridge.post("/calls", large), 413, "too-large")
        assert re.fullmatch(rf"the body has 262\d\d\d bytes, {MAX_BODY} are possible", refused["detail"])
        chunked = (b"x" * 65536 for _ in range(100))
        with contextlib.suppress(requests.ConnectionError):  # it may be answered while it is still sending
            problem(requests.post(f"{bridge.url}/calls", data=chunked, timeout=10), 413, "too-large")
        assert bridge.call("count", label="a", to=1)["outcome"] == "completed"


@pytest.mark.slow
def test_the_stream_on_the_wire() -> None:
    with served(ping_s=0.2) as bridge:
        bridge.call("count", label="grün\n", to=1)
        stream = bridge.stream("?from=1")
        assert stream.head.startswith(b"HTTP/1.1 200 OK")
        assert b"content-type: text/event-stream; charset=utf-8" in stream.head
        assert b"cache-control: no-store, no-transform\r" in stream.head
        assert b"x-accel-buffering: no\r" in stream.head
        assert b"content-encoding: identity\r" in stream.head
        assert stream.block() == b"retry: 500\nid: 0"
        first = stream.block().split(b"\n")
        assert first[:2] == [b"event: tool_stream", b"id: 1"]
        fields = json.loads(first[2].removeprefix(b"data: "))
        assert list(fields) == ["utime", "call_id", "seq", "type", "module", "skill", "caller", "text", "data"]
        assert fields["data"]["arguments"] == {"label": "grün\n", "to": 1}
        assert [offset for offset, _ in stream.events(2)] == [2, 3]
        assert stream.block() == b": ping"
        assert stream.block() == b": ping"
        stream.close()
        wait_for(lambda: bridge.scene.bridge.broadcast.statistics().readers == 0)


@pytest.mark.slow
def test_streams_begin_where_they_are_asked_to_and_are_filtered() -> None:
    with served() as bridge:
        one, two = (bridge.call("count", label=label, to=2)["call_id"] for label in "ab")
        assert [offset for offset, _ in bridge.stream("?from=3").events(6)] == [3, 4, 5, 6, 7, 8]
        of_two = bridge.stream(f"?from=0&call={two}").events(4)
        assert {event["call_id"] for _, event in of_two} == {two}
        both = bridge.stream(f"?from=1&call={one}", "Last-Event-ID: 2\r\n")
        assert [offset for offset, _ in both.events(2)] == [3, 4], "what was read counts more than from"
        now, mine = bridge.stream(), bridge.stream("?caller=nobody&from=1")
        bridge.post("/calls", {"skill": "count", "arguments": {"label": "c", "to": 1}, "caller": "nobody"})
        assert [offset for offset, _ in now.events(3)] == [9, 10, 11]
        assert [offset for offset, _ in mine.events(3)] == [9, 10, 11]


@pytest.mark.slow
def test_a_stream_goes_on_after_the_bridge_was_restarted(tmp_path: Path) -> None:
    with served(journal=tmp_path / "journal.sqlite") as bridge:
        call = bridge.call("follow", wait="answer", description="ann", steps=40)
        before = bridge.stream("?from=1")
        seen = before.events(10)
        bridge.run(bridge.scene.kill_bridge())
        seen += before.rest()
        bridge.run(bridge.scene.start_bridge())
        after = bridge.stream(headers=f"Last-Event-ID: {seen[-1][0]}\r\n")
        while seen[-1][1]["type"] != "close":
            seen.append(after.event())
        assert [offset for offset, _ in seen] == list(range(1, len(seen) + 1))
        assert [event["seq"] for _, event in seen] == list(range(1, len(seen) + 1))
        assert {event["call_id"] for _, event in seen} == {call["call_id"]}
        assert seen[-1][1]["data"]["outcome"] == "completed"


@pytest.mark.feature("A3")
@pytest.mark.slow
def test_fifty_clients_get_all_and_stalled_ones_delay_nobody_and_are_cut() -> None:
    updates = 300
    with served(send_timeout_s=1.0) as bridge:
        stalled = [bridge.stream("?from=1", receive_buffer=4096) for _ in range(5)]
        clients = [bridge.stream("?from=1") for _ in range(50)]
        with concurrent.futures.ThreadPoolExecutor(50) as threads:
            readers = [threads.submit(client.events, 2 + updates) for client in clients]
            view = bridge.call("count", label="x" * 10_000, to=updates)
            assert view["outcome"] == "completed"
            for reader in readers:
                events = reader.result(30)
                assert [offset for offset, _ in events] == list(range(1, updates + 3))
        wait_for(lambda: bridge.scene.bridge.broadcast.statistics().cut == len(stalled))
        statistics = bridge.get("/healthz").json()["counts"]["broadcast"]
        assert statistics["readers"] == len(clients)
        for client in (*clients, *stalled):
            client.close()


@pytest.mark.slow
def test_stopping_ends_open_streams_and_whoever_waits_within_a_second(caplog: pytest.LogCaptureFixture) -> None:
    with served() as bridge, concurrent.futures.ThreadPoolExecutor() as pool:
        streams = [bridge.stream("?from=1") for _ in range(50)]
        stalled = [bridge.stream("?from=1", receive_buffer=4096) for _ in range(5)]
        bridge.call("count", label="x" * 10_000, to=200)
        waiting = pool.submit(bridge.call, "patrol")
        wait_for(lambda: bridge.run(bridge.broker.calls(open_only=True)))

        async def stop() -> tuple[float, set[str]]:
            loop = asyncio.get_running_loop()
            begun = loop.time()
            await bridge.scene.bridge.stop()
            taken = loop.time() - begun
            await bridge.scene.bridge.stop()
            return taken, {task.get_name() for task in asyncio.all_tasks()}

        taken, tasks = bridge.run(stop())
        assert taken <= 1.0
        assert not tasks & {"http", "watchdog"}
        for stream in streams:
            offsets = [offset for offset, _ in stream.rest()]
            assert offsets == list(range(1, len(offsets) + 1))
        for stream in stalled:
            stream.close()
        with pytest.raises(requests.ConnectionError):
            waiting.result(10)
    assert "Exception in ASGI" not in caplog.text
    assert "ASGI callable returned" not in caplog.text


def test_a_token_guards_everything_when_set() -> None:
    with served(token="secret") as bridge:
        for path in ("/healthz", "/skills", "/tool_streams", "/openapi.json"):
            refused = bridge.get(path)
            problem(refused, 401, "token-needed")
            assert refused.headers["www-authenticate"] == "Bearer"
        problem(bridge.get("/skills", headers={"Authorization": "Bearer wrong"}), 401, "token-needed")
        problem(bridge.post("/calls?token=secret", {"skill": "patrol"}), 401, "token-needed")
        assert bridge.get("/skills", headers={"Authorization": "Bearer secret"}).status_code == 200
        assert bridge.get("/skills?token=secret").status_code == 200
        assert bridge.stream("?token=secret").head.startswith(b"HTTP/1.1 200")


@pytest.mark.slow
def test_foreign_hosts_and_origins_are_refused() -> None:
    with served(allowed_hosts=("robot.local",)) as bridge:
        here = f"127.0.0.1:{bridge.port}"
        for host, status in (
            (here, 200),
            (f"localhost:{bridge.port}", 200),
            (f"[::1]:{bridge.port}", 200),
            ("robot.local", 200),
            ("evil.example", 403),
            ("127.0.0.1.evil.example", 403),
            ("[::1", 403),
            (f"{here}.evil.example", 403),
            ("[::1].evil.example", 403),
            ("127.0.0.1:", 200),
            (f"evil.example@{here}", 403),
            (f"{here}/evil", 403),
            ("192.168.1.5", 403),
        ):
            assert raw_get(bridge.port, {"Host": host}) == status, host
        named = problem(bridge.get("/skills", headers={"Host": "evil.example"}), 403, "foreign-host")["detail"]
        assert "this server is not 'evil.example'; valid: localhost, " in named
        for origin, status in (
            (f"http://{here}", 200),
            ("http://evil.example", 403),
            (f"http://evil.example#{here}", 403),
            ("http://127.0.0.1:1", 403),
            ("null", 403),
        ):
            assert raw_get(bridge.port, {"Host": here, "Origin": origin}) == status, origin
        for site, mode, dest, status in (
            ("same-origin", "cors", "empty", 200),
            ("none", "navigate", "document", 200),
            ("cross-site", "navigate", "document", 200),
            ("cross-site", "navigate", "iframe", 403),
            ("cross-site", "no-cors", "image", 403),
            ("same-site", "no-cors", "script", 403),
        ):
            asks = {"Host": here, "Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
            assert raw_get(bridge.port, asks) == status, asks
        form = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
        problem(bridge.post("/robots/release", headers=form), 403, "foreign-origin")


@pytest.mark.slow
def test_a_request_for_a_whole_address_is_one_for_its_path_at_its_host() -> None:
    with served() as bridge:
        here = f"http://127.0.0.1:{bridge.port}"
        for target, host, status in (
            (f"{here}/skills", "127.0.0.1", 200),
            (f"{here}/skills?token=x", "evil.example", 200),
            (f"HTTP://localhost:{bridge.port}/calls/no%62ody", "localhost", 404),
            (here, "127.0.0.1", 200),
            ("http://evil.example/skills", "127.0.0.1", 403),
            (f"http://evil.example@127.0.0.1:{bridge.port}/skills", "127.0.0.1", 403),
            ("http:///skills", "127.0.0.1", 403),
            ("http://[/skills", "127.0.0.1", 403),
        ):
            connection = http.client.HTTPConnection("127.0.0.1", bridge.port, timeout=10)
            connection.putrequest("GET", target, skip_host=True)
            connection.putheader("Host", host)
            connection.endheaders()
            response = connection.getresponse()
            body = response.read()
            connection.close()
            assert (response.status, target) == (status, target)
            assert status != 404 or b"'nobody'" in body


def raw_get(port: int, headers: dict[str, str]) -> int:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request("GET", "/healthz", headers=headers)
        with connection.getresponse() as response:
            return response.status


def test_a_taken_port_and_a_missing_token_are_said(free_port: int) -> None:
    async def started(**config: Any) -> None:
        bus = create_bus("memq://")
        await bus.open()
        services = Services()
        services.offer(Bus, bus)  # type: ignore[type-abstract]
        services.offer(ModuleDirectory, ModuleDirectory(bus))
        bridge = Bridge(config, name="bridge", context=RunContext(services=services))
        try:
            await bridge.start()
        finally:
            await bridge.stop()
            await bus.close()

    asyncio.run(started(port=free_port))
    with served() as bridge, pytest.raises(UserError, match=f"port {bridge.port} is taken .* with --port"):
        asyncio.run(started(port=bridge.port))
    with pytest.raises(UserError, match="needs a token"):
        asyncio.run(started(host="0.0.0.0", port=free_port))
    asyncio.run(started(host="0.0.0.0", port=free_port, token="t"))
    with pytest.raises(UserError, match=r"can't listen on '192\.0\.2\.1'"):
        asyncio.run(started(host="192.0.2.1", port=free_port, token="t"))


def test_loopback_names() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.1.2.3", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.1.1", "localhost.evil.example", "")))
