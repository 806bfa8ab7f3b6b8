"""The agent and its gateway over HTTP, with the real bridge."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.agent.module import Agent
from dimos_streams.bus import create_bus
from dimos_streams.client import http_gateway
from dimos_streams.client.http_gateway import HttpGateway
from dimos_streams.client.sse_client import SseError
from dimos_streams.errors import (
    CallRejectedError,
    SkillArgumentError,
    SkillError,
    SkillUnavailableError,
    UnknownSkillError,
)
from dimos_streams.module import RunContext
from dimos_streams.runtime.module_host import ModuleHost
from dimos_streams.testing import ModuleHarness
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.gateway import JournalEntry, SkillGateway
from tests.agent.stage import ToySkills, stage
from tests.client.event_server import HEAD, Peer, event_server


def gateway_at(url: str, **options: Any) -> HttpGateway:
    return HttpGateway(url, rng=random.Random(1), **options)


async def until_close(gateway: SkillGateway, call_id: str, *, after: int = 0) -> list[JournalEntry]:
    """The events of a call."""
    seen = []
    async for journalled in gateway.events(after=after, call_id=call_id):
        seen.append(journalled)
        if journalled.event.type == "close":
            break
    return seen


@pytest.mark.slow
def test_a_mission_with_a_token() -> None:
    async def main() -> None:
        async with stage(http=True, token="secret") as s:
            said = await s.say("look out for a cat and follow it")
            await s.until("tool", "Looking out")
            s.skills.sight.set_result("cat")
            await s.until("event", "Following cat")
            s.skills.left.set()
            assert (await said.result())["reason"] == "completed"

    asyncio.run(main())


@pytest.mark.slow
def test_both_gateways_say_the_same() -> None:
    async def main() -> None:
        async with stage(http=True) as s:
            over_http = gateway_at(s.bridge.url)
            broker: SkillGateway = s.bridge.broker
            assert isinstance(over_http, SkillGateway)
            assert await over_http.skills() == await broker.skills()
            call_id = await over_http.call("chatter", {"count": 3}, caller="me")
            events = await until_close(over_http, call_id)
            assert events == await until_close(broker, call_id)
            assert [journalled.event.type for journalled in events] == ["open", "update", "update", "update", "close"]
            assert await until_close(over_http, call_id, after=events[2].offset) == events[3:]
            assert await over_http.calls() == await broker.calls()
            assert await over_http.calls(open_only=True) == []
            assert await over_http.offset() == await broker.offset() == events[-1].offset
            await over_http.cancel(call_id, "closed calls are fine")

    asyncio.run(main())


def test_one_request_asks_many_calls_to_end_and_no_other_ones() -> None:
    async def main() -> None:
        async with stage(http=True) as s:
            over_http, broker = gateway_at(s.bridge.url), s.bridge.broker
            ids = [await over_http.call("think", {"seconds": 90 + n}, caller="me") for n in range(5)]
            await over_http.cancel_calls([*ids[:4], "unknown"], "enough")
            for call_id in ids[:4]:
                assert await broker.wait(call_id, "close", 10.0)
            assert [call.call_id for call in await broker.calls(open_only=True)] == ids[4:]
            both = await over_http._requests.post("/calls/cancel", {"calls": ids, "robot": "robot1"})
            with pytest.raises(SkillError, match="calls or a robot, not both"):
                over_http._requests.content(both)

    asyncio.run(main())


def test_a_request_that_is_refused_keeps_no_other_call_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_gateway, "MAX_ENDED_AT_ONCE", 1)

    async def main() -> None:
        async with stage(http=True) as s:
            over_http, broker = gateway_at(s.bridge.url), s.bridge.broker
            call_id = await over_http.call("think", {"seconds": 90}, caller="me")
            with pytest.raises(SkillError, match="calls"):
                await over_http.cancel_calls(["", call_id], "enough")
            assert await broker.wait(call_id, "close", 10.0)

    asyncio.run(main())


def test_errors_come_through_with_kind_and_text() -> None:
    async def main() -> None:
        async with stage(http=True) as s:
            over_http = gateway_at(s.bridge.url)
            holder = await over_http.call("follow_person", {"description": "x"}, caller="me")
            wrong: list[tuple[type[SkillError], str, dict[str, Any]]] = [
                (UnknownSkillError, "folow_person", {}),
                (SkillArgumentError, "move", {"distance_m": "far"}),
                (CallRejectedError, "follow_person", {"description": "y"}),
            ]
            for kind, name, arguments in wrong:
                caught = []
                for gateway in (over_http, s.bridge.broker):
                    with pytest.raises(kind) as info:
                        await gateway.call(name, arguments, caller="me")
                    caught.append((type(info.value), str(info.value), vars(info.value).get("holder")))
                assert caught[0] == caught[1]
            assert caught[0][2] == holder
            with pytest.raises(SkillError, match="no call has the id 'nope'"):
                await over_http.cancel("nope", "")

    asyncio.run(main())


def test_the_same_key_gives_the_same_call() -> None:
    async def main() -> None:
        async with stage(http=True) as s:
            over_http = gateway_at(s.bridge.url)
            keyed = [
                await over_http.call("think", {"seconds": 9}, caller="me", idempotency_key="k") for _ in range(2)
            ]
            assert keyed[0] == keyed[1]

    asyncio.run(main())


def test_a_bridge_that_is_not_there(free_port: int) -> None:
    async def main() -> None:
        url = f"http://127.0.0.1:{free_port}"
        gateway = gateway_at(url)
        with pytest.raises(SkillUnavailableError, match=f"bridge at {url} can't be reached: Connection refused"):
            await gateway.call("move", {}, caller="me")
        gateway.close()
        with pytest.raises(SkillUnavailableError, match="the gateway is closed"):
            await gateway.skills()

    asyncio.run(main())


def test_closing_cuts_a_request_that_hangs() -> None:
    def play(peer: Peer) -> None:
        arrived.set()
        peer.hang_up_noticed()

    async def main(url: str) -> None:
        gateway = gateway_at(url)
        asking = asyncio.create_task(gateway.skills())
        await asyncio.to_thread(arrived.wait)
        gateway.close()
        async with asyncio.timeout(5):  # half of what it waits for an answer
            with pytest.raises(SkillUnavailableError):
                await asking

    arrived = threading.Event()
    with event_server(play) as server:
        asyncio.run(main(server.url))


def test_a_server_that_is_no_bridge() -> None:
    async def main(url: str) -> None:
        for attempt in (gateway_at(url).skills, gateway_at(url).offset):
            with pytest.raises(SkillError, match="not a bridge"):
                await attempt()

    answers = iter([b"<html>", b'{"status": "ok"}'])
    with event_server(lambda peer: peer.answer("200 OK", next(answers))) as server:
        asyncio.run(main(server.url))


def test_a_wrong_token_is_said() -> None:
    async def main() -> None:
        async with stage(http=True, token="secret") as s:
            with pytest.raises(SkillError, match="token"):
                await gateway_at(s.bridge.url, token="guess").skills()
            with pytest.raises(SseError, match=r"HTTP 401.*token"):
                await until_close(gateway_at(s.bridge.url), "x")

    asyncio.run(main())


def test_malformed_events_are_counted_and_skipped() -> None:
    rng = random.Random(7)
    event = ToolEvent(utime=1, call_id="c", seq=1, type="update", module="m", skill="s", caller="a", text="t")
    good = json.dumps(event.to_dict())
    bad = [b"data: " + bytes(rng.choices(b'{}[]":,0az \\\xff', k=rng.randrange(40))) for _ in range(2000)]
    bad += [b"data: " + (good[:cut] + good[cut + 1 :]).encode() for cut in range(len(good) - 10)]

    def play(peer: Peer) -> None:
        peer.send(HEAD)
        for number, data in enumerate(bad):
            peer.chunk(b"event: tool_stream\nid: %d\n%s\n\n" % (number, data))
        peer.chunk(b"event: tool_stream\nid: x\ndata: " + good.encode() + b"\n\n")
        peer.chunk(b"event: other\nid: 1\ndata: {}\n\n")
        peer.chunk(b"event: tool_stream\nid: 9999\ndata: " + good.encode() + b"\n\n")
        peer.hang_up_noticed()

    async def main(url: str) -> None:
        gateway = gateway_at(url)
        async for journalled in gateway.events(after=0):
            if journalled.offset == 9999:
                break
        assert gateway.malformed > 2000

    with event_server(play) as server:
        asyncio.run(main(server.url.removesuffix("/events")))
        assert len(server.requests) == 1


def test_the_agent_waits_for_its_bridge(free_port: int) -> None:
    async def main() -> None:
        context = RunContext(bridge_url=f"http://127.0.0.1:{free_port}")
        async with ModuleHarness(Agent(name="agent", context=context)) as harness:
            await poll(lambda: "Connection refused" in harness.module.health)
            assert harness.failed() is None

    asyncio.run(main())


@pytest.mark.feature("E10")
def test_stopping_cuts_the_request_that_is_under_way() -> None:
    """A thread that waits for a bridge that says nothing would outlive the agent, and hold up its process."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        with socket.create_server(("127.0.0.1", 0)) as silent:
            silent.setblocking(False)
            context = RunContext(bridge_url=f"http://127.0.0.1:{silent.getsockname()[1]}")
            async with asyncio.timeout(4), ModuleHarness(Agent(name="agent", context=context)):
                connection, _ = await loop.sock_accept(silent)
                assert (await loop.sock_recv(connection, 65536)).startswith(b"GET /")
            with connection:
                async with asyncio.timeout(4):
                    assert await loop.sock_recv(connection, 65536) == b""

    asyncio.run(main())


@contextlib.contextmanager
def bridge_process(bus_url: str, port: int, journal: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A bridge of its own process, killed at the end at the latest."""
    command = [sys.executable, "-m", "tests.agent.bridge_process", bus_url, str(port), str(journal)]
    with subprocess.Popen(command) as process:
        try:
            yield process
        finally:
            process.kill()


@contextlib.asynccontextmanager
async def agent_on_lcm(bus_url: str, port: int) -> AsyncIterator[Agent]:
    """An agent and skills on a real bus, with nothing on it that could help a bridge out."""
    bus = create_bus(bus_url)
    await bus.open()
    host = ModuleHost(bus)
    agent = Agent(name="agent", context=RunContext(bridge_url=f"http://127.0.0.1:{port}"))
    try:
        await host.start(ToySkills(name="skills"), {})
        await host.start(agent, {})
        yield agent
        assert not agent.failure().done()
    finally:
        await host.stop()
        await bus.close()


@pytest.mark.live
@pytest.mark.feature("A4")
def test_every_event_once_though_the_bridge_is_killed(bus_url: str, free_port: int, tmp_path: Path) -> None:
    count = 300

    async def main() -> None:
        async with agent_on_lcm(bus_url, free_port) as agent, asyncio.timeout(40):

            def events() -> list[ToolEvent]:
                return [entry.event for entry in agent.conversation.entries if entry.event is not None]

            async def delivered(number: int) -> None:
                while True:
                    changed = agent.conversation.changed
                    if any(event.seq >= number for event in events()):
                        return
                    await changed.wait()

            def bridge() -> contextlib.AbstractContextManager[object]:
                return bridge_process(bus_url, free_port, tmp_path / "journal.sqlite")

            with bridge():
                await poll(lambda: agent.health == "ok")
                gateway = gateway_at(f"http://127.0.0.1:{free_port}")
                while not await gateway.skills():  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
                await gateway.call(
                    "chatter", {"count": count, "pause_s": 0.01}, caller="agent", idempotency_key="agent/1"
                )
                await delivered(50)
            with bridge():
                await delivered(150)
            with bridge():
                await delivered(count + 2)
            assert [event.seq for event in events()] == list(range(2, count + 3))

    asyncio.run(main())


async def poll(condition: Callable[[], bool]) -> None:
    """Wait for what gives no sign, a process that starts for instance."""
    async with asyncio.timeout(40.0):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
