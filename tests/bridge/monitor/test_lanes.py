"""Commands of one console while an agent is slow: all that came are carried out, and what stops waits for none."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.websockets import WebSocketDisconnect

from dimos_streams.bridge.monitor.commands import Commands
from dimos_streams.bridge.monitor.lanes import AT_A_TIME, OF_ALL, Lanes, SharedLanes
from dimos_streams.bridge.monitor.places import FairPlaces
from dimos_streams.bridge.monitor.socket import MOST_COMMANDS, serve
from dimos_streams.errors import SkillError
from dimos_streams.operator.messages.commands import Abort, Command, Pause, Resume, Say
from dimos_streams.serving.server.connection_ends import ConnectionEnds
from tests.bridge.monitor.toy_agent import ToyAgent, agents
from tests.helpers import until


class FakeSocket:
    """A console's connection, as the server sees it."""

    client = ("console", 1)

    def __init__(self) -> None:
        self.query_params: dict[str, str] = {}
        self.answers: list[dict[str, Any]] = []
        self.left = False
        self.slow: list[str] = []
        """The commands that the agent has been asked for and takes its time over."""
        self.unread: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    def send(self, command: str, **fields: Any) -> None:
        text = json.dumps({"id": command, "command": command, **fields})
        self.unread.put_nowait({"type": "websocket.receive", "text": text})

    def leave(self) -> None:
        self.left = True
        self.unread.put_nowait({"type": "websocket.disconnect"})

    async def receive(self) -> dict[str, Any]:
        return await self.unread.get()

    async def send_text(self, text: str) -> None:
        if self.left:
            raise WebSocketDisconnect
        message = json.loads(text)
        if message["type"] in ("reply", "error"):
            self.answers.append(message)

    async def close(self, code: int) -> None:
        """The server has nothing more to say."""


@contextlib.asynccontextmanager
async def slow_agent(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[FakeSocket, ToyAgent, asyncio.Event]]:
    """A console, an agent, and the event before which it takes neither what it is told nor an undo."""
    async with agents("agent") as (scene, made):
        call, wakes, socket = scene.broker.call, asyncio.Event(), FakeSocket()

        async def slowly(skill: str, *args: Any, **kwargs: Any) -> str:
            if skill in ("say", "undo"):
                socket.slow.append(skill)
                await wakes.wait()
            return await call(skill, *args, **kwargs)

        monkeypatch.setattr(scene.broker, "call", slowly)
        commands = Commands(scene.broker)
        serving = asyncio.ensure_future(
            serve(socket, scene.bridge.monitor, commands, ConnectionEnds(send_timeout_s=5.0))  # type: ignore[arg-type]
        )
        yield socket, made["agent"], wakes
        wakes.set()
        socket.leave()
        await serving


def told(agent: ToyAgent) -> list[str]:
    return [entry.text for entry in agent.conversation]


@pytest.mark.feature("C6")
@pytest.mark.virtual_time
async def test_all_that_came_is_carried_out_in_its_order_though_the_console_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with slow_agent(monkeypatch) as (socket, agent, wakes):
        texts = [f"text {number}" for number in range(AT_A_TIME + 5)]
        for text in texts:
            socket.send("say", text=text)
        await until(socket.unread.empty)
        socket.leave()
        await asyncio.sleep(1.0)
        wakes.set()
        await until(lambda: len(agent.conversation) == len(texts))
        assert told(agent) == texts


@pytest.mark.feature("C6")
@pytest.mark.virtual_time
@pytest.mark.parametrize("command", ["pause", "abort"])
async def test_what_stops_does_not_wait_for_commands_that_are_slow(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with slow_agent(monkeypatch) as (socket, agent, _):
        for number in range(2 * AT_A_TIME):
            socket.send("say", text=f"text {number}")
        await until(lambda: len(socket.slow) == AT_A_TIME)
        socket.send(command)
        await until(lambda: socket.answers)
        assert [answer["command"] for answer in socket.answers] == [command]
        assert told(agent) == []


@pytest.mark.virtual_time
async def test_others_have_time_between_any_two_commands_but_for_those_that_stop() -> None:
    shared, lanes, happened = SharedLanes(), Lanes(), list[str]()

    async def carry_out(command: Command) -> None:
        async with lanes.place(command, shared):
            happened.append(command.command)

    async def others() -> None:
        while happened.count("say") < 3:
            await asyncio.sleep(0.002)
            happened.append("others")

    async with asyncio.TaskGroup() as tasks:
        for _ in range(3):
            tasks.create_task(carry_out(Say(command="say", text="go")))
        for _ in range(3):
            tasks.create_task(carry_out(Pause(command="pause")))
        tasks.create_task(others())
    assert happened[:4] == ["say", "pause", "pause", "pause"]
    first, second, third = (at for at, what in enumerate(happened) if what == "say")
    assert "others" in happened[first:second]
    assert "others" in happened[second:third]


@pytest.mark.feature("C6")
@pytest.mark.virtual_time
async def test_an_older_resume_does_not_come_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    async with slow_agent(monkeypatch) as (socket, agent, _):
        for number in range(AT_A_TIME):
            socket.send("say", text=f"text {number}")
        for command in ("pause", "resume", "pause"):
            socket.send(command)
        await until(lambda: len(socket.answers) == 3)
        assert [name for name, _ in agent.commands] == ["pause", "resume", "pause"]


@pytest.mark.feature("C6")
@pytest.mark.virtual_time
async def test_what_an_abort_has_overtaken_begins_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with slow_agent(monkeypatch) as (socket, agent, wakes):
        for number in range(AT_A_TIME):
            socket.send("say", text=f"text {number}")
        await until(lambda: len(socket.slow) == AT_A_TIME)
        socket.send("say", text="before")
        socket.send("undo")
        socket.send("set_skill", skill="follow", enabled=False)
        socket.send("abort")
        socket.send("say", text="after")
        await until(lambda: socket.answers)
        wakes.set()
        await until(lambda: len(socket.answers) == AT_A_TIME + 5)
        refused = [answer for answer in socket.answers if answer["type"] == "error"]
        assert [(answer["id"], answer["problem"]) for answer in refused] == [("say", "refused"), ("undo", "refused")]
        assert "an abort came while it waited" in refused[0]["text"]
        assert told(agent)[AT_A_TIME:] == ["after"]
        assert [name for name, _ in agent.commands] == ["abort", "set_skill"]


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("aborted", "overtaken"),
    [
        ("", ["", "a", "a/agent", "b/agent"]),
        ("a", ["", "a", "a/agent"]),
        ("a/agent", ["", "a", "a/agent"]),
        ("a_say", ["", "a", "a/agent", "b/agent"]),  # whose that is nobody can see here
        ("c", [""]),
    ],
)
async def test_an_abort_overtakes_what_is_for_its_agent_and_nothing_that_is_for_others(
    aborted: str, overtaken: list[str]
) -> None:
    shared, lanes, told = SharedLanes(), Lanes(), list[str]()
    over = asyncio.Event()

    async def carry_out(command: Say) -> None:
        async with lanes.place(command, shared):
            told.append(command.agent)
            await over.wait()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(AT_A_TIME):
            tasks.create_task(carry_out(Say(command="say", text="work", agent="worker")))
        await until(lambda: len(told) == AT_A_TIME)
        names = ["", "a", "a/agent", "b/agent"]
        waiting = [asyncio.ensure_future(carry_out(Say(command="say", text="go", agent=name))) for name in names]
        await asyncio.sleep(0)
        async with lanes.place(Abort(command="abort", agent=aborted), shared):
            over.set()
        ends = await asyncio.gather(*waiting, return_exceptions=True)
    assert [name for name, end in zip(names, ends, strict=True) if isinstance(end, SkillError)] == overtaken
    assert told[AT_A_TIME:] == [name for name in names if name not in overtaken]


@pytest.mark.virtual_time
async def test_no_more_is_read_than_is_answered_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    async with slow_agent(monkeypatch) as (socket, agent, wakes):
        for number in range(MOST_COMMANDS + 10):
            socket.send("say", text=f"text {number}")
        await asyncio.sleep(1.0)
        assert socket.unread.qsize() == 10
        wakes.set()
        await until(lambda: len(socket.answers) == MOST_COMMANDS + 10)
        assert len(told(agent)) == MOST_COMMANDS + 10


@pytest.mark.virtual_time
async def test_long_commands_count_for_several(monkeypatch: pytest.MonkeyPatch) -> None:
    """What they are parsed into takes room, and keeps others from their turns."""
    async with slow_agent(monkeypatch) as (socket, _, wakes):
        for _ in range(15):
            socket.send("say", text="é" * 4_000)  # 24,000 characters of JSON
        await asyncio.sleep(1.0)
        assert socket.unread.qsize() == 4
        wakes.set()
        await until(lambda: len(socket.answers) == 15)
        for number in range(MOST_COMMANDS):
            socket.send("say", text=f"text {number}")
        await until(lambda: len(socket.answers) == 15 + MOST_COMMANDS)


async def _hold(places: FairPlaces, client: str, began: list[str], over: asyncio.Event) -> None:
    async with places.place(client):
        began.append(client)
        await over.wait()


@pytest.mark.virtual_time
async def test_a_place_goes_to_whoever_holds_the_fewest_and_comes_back_from_who_left() -> None:
    places, began = FairPlaces(2), list[str]()
    overs = [asyncio.Event() for _ in range(6)]
    who = ["flood", "flood", "flood", "flood", "honest", "other"]
    tasks = [asyncio.ensure_future(_hold(places, *each)) for each in zip(who, [began] * 6, overs, strict=True)]
    await until(lambda: len(began) == 2)
    overs[0].set()
    await until(lambda: began == ["flood", "flood", "honest"])
    tasks[5].cancel()
    overs[4].set()
    await until(lambda: began == ["flood", "flood", "honest", "flood"])
    leaving = [asyncio.ensure_future(_hold(places, "late", began, overs[0])) for _ in range(2)]
    await asyncio.sleep(0)
    overs[1].set()
    leaving[0].cancel()  # before a place gets free, of which it learns after that
    await asyncio.sleep(0)
    leaving[1].cancel()  # when it has just been given that place
    overs[2].set()
    overs[3].set()
    ends = await asyncio.gather(*tasks, *leaving, return_exceptions=True)
    assert [type(end) for end in ends if end is not None] == [asyncio.CancelledError] * 3
    assert "late" not in began
    async with asyncio.timeout(1.0), places.place("a"), places.place("b"):
        pass


@pytest.mark.feature("C6")
@pytest.mark.virtual_time
async def test_orders_of_many_consoles_leave_room_for_those_of_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async with agents("agent") as (scene, made):
        call, wakes, under_way = scene.broker.call, asyncio.Semaphore(0), 0

        async def slowly(*args: Any, **kwargs: Any) -> str:
            nonlocal under_way
            under_way += 1
            await wakes.acquire()
            under_way -= 1
            return await call(*args, **kwargs)

        sockets, commands = [FakeSocket() for _ in range(5)], Commands(scene.broker)
        serving = [
            asyncio.ensure_future(
                serve(socket, scene.bridge.monitor, commands, ConnectionEnds(send_timeout_s=5.0))  # type: ignore[arg-type]
            )
            for socket in sockets
        ]
        *flood, honest = sockets
        await until(lambda: made["agent"].reports)
        monkeypatch.setattr(scene.broker, "call", slowly)
        for number, socket in enumerate(flood * AT_A_TIME):
            socket.send("pause", reason=str(number))
        await until(lambda: under_way == OF_ALL)
        honest.send("pause", reason="honest")
        await until(honest.unread.empty)
        for _ in range(len(flood) * AT_A_TIME + 1):
            assert under_way <= OF_ALL
            wakes.release()
        await until(lambda: sum(len(socket.answers) for socket in sockets) == len(flood) * AT_A_TIME + 1)
        reasons = [given["reason"] for _, given in made["agent"].commands]
        assert reasons.index("honest") <= OF_ALL + len(flood)
        for socket in sockets:
            socket.leave()
        await asyncio.wait(serving)


@pytest.mark.virtual_time
async def test_after_a_standstill_nothing_is_begun_for_a_console_that_has_left_but_what_ends_something() -> None:
    shared, begun = SharedLanes(lambda: 0.4), list[str]()

    async def carry_out(lanes: Lanes, command: Command) -> None:
        async with lanes.place(command, shared):
            begun.append(command.command)

    def sent(lanes: Lanes) -> list[asyncio.Task[None]]:
        commands = (Say(command="say", text="move 1"), Resume(command="resume"), Pause(command="pause"))
        return [asyncio.create_task(carry_out(lanes, command)) for command in commands]

    gone = Lanes()
    orders = sent(gone)
    await asyncio.sleep(0.1)
    assert begun == []
    gone.leave()
    said, resumed, paused = await asyncio.gather(*orders, return_exceptions=True)
    assert str(said) == "'say' is not carried out: its client left meanwhile"
    assert isinstance(resumed, SkillError)
    assert (paused, begun) == (None, ["pause"])
    await asyncio.gather(*sent(Lanes()))
    assert begun[1:] == ["say", "resume", "pause"], "who is there is served in the order in which it has sent"


@pytest.mark.virtual_time
async def test_after_a_standstill_commands_keep_their_order_though_the_later_one_has_nothing_to_wait_for() -> None:
    left_s = iter([0.4, 0.0])
    shared, lanes, begun = SharedLanes(lambda: next(left_s)), Lanes(), list[str]()

    async def carry_out(command: Command) -> None:
        async with lanes.place(command, shared):
            begun.append(command.command)

    await asyncio.gather(carry_out(Resume(command="resume")), carry_out(Pause(command="pause")))
    assert begun == ["resume", "pause"]
