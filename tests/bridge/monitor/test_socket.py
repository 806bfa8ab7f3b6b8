"""``WS /monitor`` over real sockets, with the client of the websockets package."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import random
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import requests
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from dimos_streams.messages.codec import channel_name, encode
from dimos_streams.messages.geometry_msgs import Point, Pose, PoseStamped, PoseWithCovariance, Quaternion
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.sensor_msgs import BatteryState
from dimos_streams.messages.time import header
from dimos_streams.operator.schema import schema, schema_text
from dimos_streams.serving.server.request_guard import MAX_BODY
from tests.bridge.monitor.toy_agent import agents
from tests.bridge.monitor.watching_client import Client
from tests.bridge.scene import Scene, answered
from tests.bridge.strangers import check_strangers_are_refused
from tests.helpers import until

_SCHEMA = schema()
_CHECK = jsonschema.Draft202012Validator({**_SCHEMA, "$ref": "#/$defs/ServerMessage"})


class Socket(Client):
    """A console on a real socket; every message is checked against the published schema."""

    def __init__(self, connection: ClientConnection) -> None:
        super().__init__()
        self.connection = connection
        self.task = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        with contextlib.suppress(ConnectionClosed):
            async for text in self.connection:
                _CHECK.validate(self.take(text))

    async def ask(self, **command: Any) -> dict[str, Any]:
        """Send a command; its reply or error."""
        id = f"c{len(self.messages)}"
        await self.connection.send(json.dumps({"id": id, **command}))
        return await self.answer(id)

    async def answer(self, id: str | None) -> dict[str, Any]:
        found: list[dict[str, Any]] = []
        while not found:
            assert not self.task.done(), "the connection was closed"
            await asyncio.sleep(0.002)
            found = [message for message in self.messages if message.get("id", 0) == id]
        return found[-1]

    async def close(self) -> None:
        await self.connection.close()
        await self.task


def at(scene: Scene, query: str = "") -> str:
    return f"{scene.bridge.url.replace('http', 'ws')}/monitor{query}"


@contextlib.asynccontextmanager
async def watching(scene: Scene, query: str = "", **options: Any) -> AsyncIterator[Socket]:
    async with connect(at(scene, query), **options) as connection:
        console = Socket(connection)
        try:
            yield console
        finally:
            await console.close()


@pytest.mark.feature("C1", "C4")
def test_the_snapshot_shows_everything_and_fits_the_schema() -> None:
    async def scenario() -> None:
        async with agents("robot1/agent", port=0) as (scene, made):
            agent = made["robot1/agent"]
            async with watching(scene) as console:
                await until(lambda: console.agent(agent.name))
                call_id = await scene.broker.call(
                    "follow", {"description": "ann"}, caller=agent.name, idempotency_key=f"{agent.name}/1"
                )
                await answered(scene.broker, call_id)
                agent.ask()
                turned = Quaternion(z=math.sin(0.5), w=math.cos(0.5))
                pose = PoseWithCovariance(pose=Pose(position=Point(x=1.23456, y=-2.0), orientation=turned))
                odometry = Odometry(header=header("odom", 1), child_frame_id="base_link", pose=pose)
                scene.inner.publish(channel_name("/robot1/odom", Odometry), encode(odometry))
                scene.inner.publish(
                    channel_name("/robot1/battery", BatteryState), encode(BatteryState(percentage=0.5))
                )
                scene.inner.publish(channel_name("/odom", Odometry), b"nonsense")
                only_pose = PoseStamped(
                    header=header("world", 1), pose=Pose(position=Point(x=3.0), orientation=Quaternion(w=1.0))
                )
                scene.inner.publish(channel_name("/odom", PoseStamped), encode(only_pose))
                agent.emit("text", text="hello")
                await until(
                    lambda: (
                        console.state["robots"].get("robot1", {}).get("battery") and len(console.state["robots"]) == 2
                    )
                )
                await until(lambda: console.agent(agent.name)["approvals"] and console.of("event"))
                await until(lambda: console.state["calls"][0]["progress"].get("step", 0) > 0)
                state = console.state
                assert console.messages[0]["type"] == "snapshot"
                assert list(state["calls"][0]["progress"]) == ["step"]
                robot = {"frame_id": "odom", "x": 1.235, "y": -2.0, "yaw": 1.0, "battery": 0.5}
                unnamed = {"frame_id": "world", "x": 3.0, "y": 0.0, "yaw": 0.0, "battery": None}
                assert state["robots"] == {"robot1": robot, "": unnamed}
                assert [(call["call_id"], call["skill"]) for call in state["calls"]] == [(call_id, "follow")]
                assert state["leases"] == {"base": call_id}
                assert {"follow", "robot1_say"} <= {skill["name"] for skill in state["skills"]}
                assert {module["name"]: module["health"] for module in state["modules"]}["worker"] == "ok"
                assert console.agent(agent.name)["approvals"][0]["arguments"] == {"description": "ann"}
                assert console.agent(agent.name)["usage"]["cost"] == 0.25
                await until(lambda: [call["event"]["type"] for call in console.of("call")] == ["open", "update"])

    asyncio.run(scenario())


@pytest.mark.slow
@pytest.mark.feature("C4")
def test_the_schema_is_published() -> None:
    assert Path("docs/monitor-schema.json").read_text(encoding="utf-8") == schema_text(), (
        "python -m dimos_streams.operator.schema > docs/monitor-schema.json"
    )
    jsonschema.Draft202012Validator.check_schema(_SCHEMA)


@pytest.mark.feature("C4")
def test_the_schema_is_made_once_however_many_ask_for_it() -> None:
    assert schema() is _SCHEMA


COMMANDS: list[tuple[dict[str, Any], tuple[str, dict[str, Any]]]] = [
    ({"command": "pause", "reason": "look"}, ("pause", {"reason": "look"})),
    ({"command": "resume", "reason": "seen"}, ("resume", {"reason": "seen"})),
    ({"command": "step"}, ("step", {"mode": "once"})),
    ({"command": "step", "mode": "on"}, ("step", {"mode": "on"})),
    ({"command": "abort", "rollback": True}, ("abort", {"rollback": True, "reason": ""})),
    ({"command": "undo", "count": 2}, ("undo", {"count": 2})),
    (
        {"command": "amend", "approval": "a1", "arguments": {"description": "bob"}},
        ("amend", {"approval": "a1", "arguments": {"description": "bob"}}),
    ),
    (
        {"command": "decide", "approval": "a1", "decision": "approve", "arguments": {"steps": 1}},
        ("decide", {"approval": "a1", "decision": "approve", "arguments": {"steps": 1}, "reason": ""}),
    ),
    (
        {"command": "set_skill", "skill": "follow", "enabled": False},
        ("set_skill", {"skill": "follow", "enabled": False}),
    ),
]


@pytest.mark.slow
@pytest.mark.feature("C6")
def test_each_command() -> None:
    async def scenario() -> None:
        async with agents("agent", port=0) as (scene, made), watching(scene) as console:
            made["agent"].ask()
            for command, done in COMMANDS:
                reply = await console.ask(**command)
                assert (reply["type"], reply["command"]) == ("reply", command["command"]), reply
                assert (reply["outcome"], reply["text"]) == ("completed", f"{done[0]} is done")
                assert made["agent"].commands[-1] == done
            said = await console.ask(command="say", text="follow ann", agent="agent")
            assert (said["outcome"], said["text"]) == (None, "heard follow ann")
            cancelled = await console.ask(command="cancel", call_id=said["call_id"], reason="enough")
            assert cancelled["call_id"] == said["call_id"]

            def closed() -> list[tuple[str, str]]:
                events = (message["event"] for message in console.of("call"))
                of_said = (event for event in events if event["call_id"] == said["call_id"])
                return [(event["text"], event["data"]["outcome"]) for event in of_said if event["type"] == "close"]

            await until(closed)
            assert closed() == [("enough", "cancelled")]
            await until(lambda: not console.state["calls"])
            assert made["agent"].snapshot().disabled_skills == ("follow",)

    asyncio.run(scenario())


GARBAGE: list[tuple[str | bytes, str, str]] = [
    ("", "bad-json", "not JSON"),
    ("{", "bad-json", "not JSON"),
    ("[" * 10_000, "bad-json", "not JSON"),
    ("\x00", "bad-json", "not JSON"),
    ('{"command": NaN}', "bad-json", "not JSON"),
    (b'{"command": "pause"}', "bad-json", "as text"),
    ("[]", "bad-command", "command"),
    ("null", "bad-command", "command"),
    ("{}", "bad-command", "command"),
    (
        '{"id": 1}',
        "bad-command",
        "it has no 'command', which says what it is (given: {'id': 1}) (commands: say, pause,",
    ),
    ('{"command": "dance"}', "bad-command", "'pause'"),
    ('{"command": ["pause"]}', "bad-command", "command"),
    ('{"command": "dance"}', "bad-command", "'command' is 'dance'; valid: 'say', 'pause'"),
    ('{"command": "pause", "speed": 1}', "bad-command", "speed: there is nothing of this name (given: 1)"),
    ('{"id": true, "command": "resume"}', "bad-command", "resume.id: it must be a text of at most"),
    ('{"id": 1.5, "command": "resume"}', "bad-command", "resume.id: it must be a text of at most"),
    (
        '{"command": "abort", "rollback": "yes"}',
        "bad-command",
        "it must be true or false (given: 'yes')",
    ),
    ('{"command": "abort", "rollback": 1}', "bad-command", "abort.rollback: it must be true or false (given: 1)"),
    ('{"command": "undo", "count": true}', "bad-command", "undo.count: it must be a whole number (given: True)"),
    ('{"command": "say", "text": ""}', "bad-command", "text"),
    ('{"command": "say", "text": 1}', "bad-command", "text"),
    ('{"command": "decide", "approval": "x", "decision": "perhaps"}', "bad-command", "decision"),
    ('{"command": "cancel", "call_id": "nobody"}', "unknown-call", "nobody"),
    ('{"command": "pause", "agent": "agnet"}', "unknown-agent", "did you mean 'agent'"),
    ('{"command": "resume"}', "refused", "not paused"),
    ('{"command": "decide", "approval": "x", "decision": "reject"}', "refused", "'x'"),
    ('{"command": "cancel", "call_id": "half \\ud800"}', "unknown-call", "half \ufffd"),
]


@pytest.mark.slow
@pytest.mark.feature("C6")
def test_garbage_gets_an_error_and_the_connection_stays() -> None:
    async def scenario() -> None:
        rng = random.Random(1)
        async with agents("agent", port=0) as (scene, made), watching(scene) as console:
            for text, problem, words in GARBAGE:
                count = len(console.of("error"))
                await console.connection.send(text)
                await until(lambda before=count: len(console.of("error")) > before)  # type: ignore[misc]
                error = console.of("error")[-1]
                assert (error["problem"], words in error["text"]) == (problem, True), error
                assert {"errors", "call_id"} <= error.keys(), error
            whole = json.dumps(COMMANDS[7][0]).encode()
            for _ in range(200):
                mutated = bytearray(whole)
                for _ in range(rng.randrange(1, 5)):
                    mutated[rng.randrange(len(mutated))] = rng.randrange(32, 127)
                await console.connection.send(mutated.decode("latin-1"))
            assert (await console.ask(command="pause"))["type"] == "reply"
            answers = len(console.of("error")) + len(console.of("reply"))
            assert answers == len(GARBAGE) + 200 + 1
            assert made["agent"].commands[-1][0] == "pause"

    asyncio.run(scenario())


def test_what_goes_wrong_inside_is_an_id_for_the_client(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with agents("agent", port=0) as (scene, _), watching(scene) as console:

            async def broken(wanted: str) -> None:
                raise RuntimeError("secret detail")

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(scene.broker, "agents", broken)
                error = await console.ask(command="pause")
            assert error["problem"] == "internal"
            assert "secret" not in error["text"]
            assert (await console.ask(command="pause"))["type"] == "reply"

    asyncio.run(scenario())
    assert "secret detail" in caplog.text


def test_where_there_are_several_agents_one_must_be_named() -> None:
    async def scenario() -> None:
        async with agents("robot1/agent", "robot2/agent", port=0) as (scene, made), watching(scene) as console:
            assert "robot1/agent, robot2/agent" in (await console.ask(command="pause"))["text"]
            assert (await console.ask(command="pause", agent="robot2"))["type"] == "reply"
            assert (made["robot1/agent"].commands, made["robot2/agent"].state) == ([], "paused")

    asyncio.run(scenario())


def test_whoever_asks_for_the_events_of_a_report_learns_where_they_are() -> None:
    """They are kept nowhere: a stream of them would be silent for ever."""

    async def scenario() -> None:
        async with agents("agent", port=0) as (scene, made), watching(scene):
            await until(lambda: made["agent"].reports)
            (report,) = [call for call in scene.broker.ledger.calls.open if call.skill == "report"]
            url = f"{scene.bridge.url}/tool_streams?call={report.call_id}"
            answer = await asyncio.to_thread(requests.get, url, stream=True, timeout=5)
            with answer:
                assert answer.status_code == 404
                assert f"the events of call '{report.call_id}' are not kept" in answer.json()["detail"]

    asyncio.run(scenario())


@pytest.mark.feature("C2")
@pytest.mark.slow
def test_a_client_that_stalls_gets_a_gap_and_then_the_state() -> None:
    async def scenario() -> None:
        async with agents("agent", port=0) as (scene, made):
            agent = made["agent"]
            reading, writing = await asyncio.open_connection(sock=_small_socket(scene))
            writing.write(_handshake(scene))
            await reading.readuntil(b"\r\n\r\n")
            reading._transport.pause_reading()  # type: ignore[attr-defined]
            await until(lambda: agent.reports)
            for _ in range(100):
                for _ in range(100):
                    agent.emit("text", text="x" * 1000)
                await asyncio.sleep(0)
            agent.show()
            await until(lambda: scene.bridge.monitor.statistics().gaps)
            numbers = [snapshot.number for snapshot in scene.bridge.monitor._reports.snapshots.values()]
            await until(lambda: agent.number == 10_000 and numbers is not None)
            reading._transport.resume_reading()  # type: ignore[attr-defined]
            client = Client()
            async with asyncio.timeout(20):
                while client.agent("agent").get("number") != 10_000:
                    client.take(await _frame(reading))
            assert len(client.of("gap")) >= 1
            lost = sum(message["lost"] for message in client.of("gap"))
            assert lost + len(client.of("event")) >= 10_000
            writing.close()

    asyncio.run(scenario())


def _small_socket(scene: Scene) -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    made.connect(("127.0.0.1", int(scene.bridge.url.rsplit(":", 1)[1])))
    made.setblocking(False)
    return made


def _handshake(scene: Scene) -> bytes:
    host = scene.bridge.url.removeprefix("http://")
    key = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
    return f"GET /monitor HTTP/1.1\r\nHost: {host}\r\n{key}dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()


async def _frame(reading: asyncio.StreamReader) -> bytes:
    """The payload of the next text frame; the server masks nothing and makes one frame of each message."""
    while True:
        first, length = await reading.readexactly(2)
        if length == 126:
            length = int.from_bytes(await reading.readexactly(2), "big")
        elif length == 127:
            length = int.from_bytes(await reading.readexactly(8), "big")
        payload = await reading.readexactly(length)
        if first & 0x0F == 1:
            return payload


def test_a_client_that_takes_nothing_is_cut_off(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with agents("agent", port=0, send_timeout_s=0.3) as (scene, made):
            reading, writing = await asyncio.open_connection(sock=_small_socket(scene))
            writing.write(_handshake(scene))
            await reading.readuntil(b"\r\n\r\n")
            reading._transport.pause_reading()  # type: ignore[attr-defined]
            await until(lambda: made["agent"].reports)
            for _ in range(40):
                made["agent"].emit("text", text="x" * 20_000)
            await until(lambda: scene.bridge.monitor.statistics().watchers == 0)
            writing.transport.abort()

    asyncio.run(scenario())
    assert "reads nothing; it was cut off" in caplog.text


@pytest.mark.feature("C7")
@pytest.mark.slow
def test_disconnects_at_any_moment_leave_nothing_behind() -> None:
    async def scenario() -> None:
        rng = random.Random(7)
        async with agents("agent", port=0) as (scene, made):
            agent, monitor = made["agent"], scene.bridge.monitor

            async def talk() -> None:
                while True:
                    agent.emit("text", text="x")
                    await asyncio.sleep(0.005)

            async def come_and_go(number: int) -> None:
                reading, writing = await asyncio.open_connection(sock=_small_socket(scene))
                handshake = _handshake(scene)
                cut = rng.randrange(len(handshake)) if rng.random() < 0.1 else len(handshake)
                writing.write(handshake[:cut])
                if cut == len(handshake) and rng.random() < 0.8:
                    await reading.readuntil(b"\r\n\r\n")
                    if rng.random() < 0.5:
                        await _frame(reading)
                    if rng.random() < 0.5:
                        writing.write(_masked(b'{"command": "say", "text": "hello"}')[: rng.randrange(1, 42)])
                if rng.random() < 0.5:
                    writing.transport.abort()
                else:
                    writing.close()

            talking = asyncio.create_task(talk())
            await come_and_go(0)
            for _ in range(50):
                await asyncio.gather(*(come_and_go(number) for number in range(10)))
            talking.cancel()
            await until(lambda: monitor.statistics().watchers == 0)
            await until(lambda: not [t for t in asyncio.all_tasks() if t.get_name() == "monitor client"])
            await until(lambda: not agent.reports)
            assert monitor._watchers._views.keys() <= {None}

    asyncio.run(scenario())


def _masked(payload: bytes) -> bytes:
    """A client's text frame, masked with zeros."""
    return bytes([0x81, 0x80 | len(payload), 0, 0, 0, 0]) + payload


@pytest.mark.parametrize(("is_replaced", "code"), [(False, 1001), (True, 1012)])
def test_the_bridge_stops_with_watchers(is_replaced: bool, code: int) -> None:
    async def scenario() -> None:
        async with agents("agent", port=0) as (scene, _):
            scene.is_replaced = is_replaced
            consoles = [Socket(await connect(at(scene))) for _ in range(5)]
            await until(lambda: all(console.messages for console in consoles))
            async with asyncio.timeout(2):
                await scene.processes[0].host.stop()
                await asyncio.gather(*(console.task for console in consoles))
            assert [console.connection.close_code for console in consoles] == [code] * 5
            for console in consoles:
                await console.close()

    asyncio.run(scenario())


@pytest.mark.slow
def test_strangers_are_refused_and_large_messages_end_the_connection() -> None:
    async def scenario() -> None:
        async with agents("agent", port=0, token="t0ken") as (scene, _):
            port = int(scene.bridge.url.rsplit(":", 1)[1])
            await check_strangers_are_refused(port, "/monitor")
            own = f"http://127.0.0.1:{port}"
            async with watching(scene, "?token=t0ken", origin=own) as console:
                await until(lambda: console.messages)
            bearer = {"Authorization": "Bearer t0ken"}
            async with watching(scene, additional_headers=bearer) as console:
                await until(lambda: console.messages)
                await console.connection.send("x" * (MAX_BODY + 1))
                await console.task
                assert console.connection.close_code == 1009

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("query", "status", "kind", "words"),
    [
        ("?agnet=robot1", 422, "bad-request", "valid: agent"),
        ("?agent=robot1&agent=robot2", 422, "bad-request", "once only"),
        ("?agent=robot3", 404, "unknown-agent", "no agent is called 'robot3' (there are: robot1/agent,"),
    ],
)
def test_a_watcher_that_asks_for_what_there_is_not_is_refused(query: str, status: int, kind: str, words: str) -> None:
    async def scenario() -> None:
        async with agents("robot1/agent", "robot1/second", port=0) as (scene, _):
            with pytest.raises(InvalidStatus) as refused:
                await connect(at(scene, query))
            problem = json.loads(refused.value.response.body)
            assert (problem["status"], problem["type"].rpartition(":")[2]) == (status, kind)
            assert words in problem["detail"]
            async with watching(scene, "?agent=robot1") as console:
                await until(lambda: console.messages and len(console.state["agents"]) == 2)

    asyncio.run(scenario())


def test_a_dead_peer_is_noticed_by_its_silence() -> None:
    async def scenario() -> None:
        async with agents("agent", port=0, ping_s=0.05) as (scene, _):
            reading, writing = await asyncio.open_connection(sock=_small_socket(scene))
            writing.write(_handshake(scene))
            await _frame_after_head(reading)
            await until(lambda: scene.bridge.monitor.statistics().watchers == 0)
            writing.close()

    asyncio.run(scenario())


async def _frame_after_head(reading: asyncio.StreamReader) -> bytes:
    await reading.readuntil(b"\r\n\r\n")
    return await _frame(reading)


@pytest.mark.feature("C6")
def test_a_command_that_has_come_is_carried_out_though_the_console_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with agents("agent", port=0) as (scene, _):
            may_begin, asked = asyncio.Event(), asyncio.Event()
            call = scene.broker.call

            async def held_up(*args: Any, **kwargs: Any) -> str:
                asked.set()
                await may_begin.wait()
                return await call(*args, **kwargs)

            async with watching(scene) as console:
                await until(lambda: console.of("snapshot"))
                monkeypatch.setattr(scene.broker, "call", held_up)
                await console.connection.send(json.dumps({"command": "pause"}))
                await asked.wait()
            await until(lambda: scene.bridge.monitor.statistics().watchers == 0)
            may_begin.set()
            await until(lambda: any(view.skill == "pause" for view in scene.broker.ledger.calls))
            (paused,) = [view for view in scene.broker.ledger.calls if view.skill == "pause"]
            await paused.closed.wait()
            assert paused.outcome == "completed"

    asyncio.run(scenario())


@pytest.mark.feature("C6")
def test_an_error_names_the_call_that_it_is_about() -> None:
    async def scenario() -> None:
        async with agents("agent", port=0) as (scene, _), watching(scene) as console:
            refused = await console.ask(command="resume")
            assert (refused["type"], refused["problem"]) == ("error", "refused")
            assert (await scene.broker.view(refused["call_id"])).outcome == "failed"
            assert (await console.ask(command="cancel", call_id="nobody"))["call_id"] == ""

    asyncio.run(scenario())
