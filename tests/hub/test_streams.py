"""The streams of commands that robots hold at a hub: who is connected, and who was heard of."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from dimos_streams import clock
from dimos_streams.hub import command_streams
from tests.helpers import until, wait_for
from tests.hub.serving import Robot, added, opened_storage, served_hub
from tests.problems import problem


@pytest.mark.feature("H2")
def test_a_robot_whose_stream_ends_is_not_connected(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])

    def is_connected() -> bool:
        (view,) = hub.get("/robots").json()
        return bool(view["connected"])

    with served_hub(database) as hub:
        robot.report(hub, "move")
        with robot.commands(hub):
            assert is_connected()
        wait_for(lambda: not is_connected(), 8.0, lambda: "it counts as connected until that is forgotten")


@pytest.mark.feature("H2")
def test_whoever_has_a_token_that_was_replaced_is_shut_out(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    lost = Robot("r1", added(database, "r1")["r1"])
    with served_hub(database) as hub, opened_storage(database) as storage:
        lost.report(hub, "move")  # the hub knows its token for a while
        with lost.commands(hub) as commands:
            storage.robots.add("r1", again=True)
            hub.post("/calls?wait=answer&timeout_s=0", {"skill": "move", "robot": "r1"})
            assert list(commands) == [], "the stream ends, and nothing was sent on it"
        params = {"stream": "a-random-stream-id", "process": "a-random-process-id"}
        again = requests.get(lost.path(hub, "commands"), params=params, headers=lost.headers, timeout=20)
        problem(again, 403, "foreign-robot")


@pytest.mark.feature("H2")
def test_the_end_of_a_stream_is_noted_also_if_whoever_notes_it_is_cancelled(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    added(database, "r1")

    async def leave(known: command_streams.CommandStreams, pool: ThreadPoolExecutor) -> None:
        stream = await known.open("r1", "a-random-stream-id", "a-random-process-id")
        busy = threading.Event()
        pool.submit(busy.wait)  # all threads are, so that the note waits for one
        closing = asyncio.create_task(known.close(stream))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait([closing])
        busy.set()
        while known._ending:
            await asyncio.wait(known._ending)

    with opened_storage(database) as storage, ThreadPoolExecutor(1) as pool:
        asyncio.run(leave(command_streams.CommandStreams(storage, pool, "hub"), pool))
        assert [row.connected for row in storage.robots.all()] == [False]


@pytest.mark.feature("H2")
def test_a_stream_whose_client_goes_while_it_is_opened_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    added(database, "r1")
    held, busy, ended = threading.Event(), threading.Event(), threading.Event()

    def hold() -> None:
        held.set()
        busy.wait(30)

    async def leave(known: command_streams.CommandStreams, pool: ThreadPoolExecutor) -> None:
        pool.submit(hold)
        await until(held.is_set)
        opening = asyncio.create_task(known.open("r1", "a-random-stream-id", "a-random-process-id"))
        await until(pool._work_queue.qsize)
        opening.cancel()
        await asyncio.wait([opening])
        busy.set()
        await until(ended.is_set)
        assert opening.cancelled()
        assert len(known) == 0

    with opened_storage(database) as storage, ThreadPoolExecutor(1) as pool:
        disconnect, connected = storage.robots.disconnect, []

        def end(name: str, stream: str) -> None:
            connected.append(storage.robots.all()[0].connected)
            disconnect(name, stream)
            connected.append(storage.robots.all()[0].connected)
            ended.set()

        monkeypatch.setattr(storage.robots, "disconnect", end)
        asyncio.run(leave(command_streams.CommandStreams(storage, pool, "hub"), pool))
        assert connected == [True, False]


@pytest.mark.feature("H2")
def test_robots_are_told_that_the_database_has_lost_something_as_by_another_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_streams, "_KEEP_S", 0.0)
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    added(database, "r1")

    async def lose(known: command_streams.CommandStreams) -> None:
        stream, before = await known.open("r1", "a-random-stream-id", "a-random-process-id"), known.hub
        storage.sequence.losses += 1
        keeping = asyncio.create_task(known.keep())
        async with asyncio.timeout(20):
            assert len([frame async for frame in stream.frames(before)]) == 1, "the stream ends behind its greeting"
        keeping.cancel()
        await asyncio.wait([keeping])
        assert known.hub != before

    with opened_storage(database) as storage, ThreadPoolExecutor(1) as pool:
        asyncio.run(lose(command_streams.CommandStreams(storage, pool, "hub")))


@pytest.mark.feature("H2")
def test_a_robot_is_connected_at_once_though_somebody_has_just_looked(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    with served_hub(database) as hub:
        robot.report(hub, "move")
        assert not hub.get("/robots").json()[0]["connected"]
        with robot.commands(hub):
            assert hub.get("/robots").json()[0]["connected"]


@pytest.mark.feature("H2")
def test_robots_that_are_known_are_heard_where_there_is_room_for_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_streams, "_MAX_CLOCKS", 1)
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    with opened_storage(database) as storage, ThreadPoolExecutor(1) as pool:
        known = command_streams.CommandStreams(storage, pool, "hub")
        now = clock.utime()
        known.hear("r1", now)
        known.hear("r2", now)
        known.hear("r1", now + 60_000_000)
        assert list(known._clocks) == ["r1"]
        assert known._clocks["r1"] > 30_000_000


@pytest.mark.feature("H2")
def test_a_robot_that_says_nothing_more_is_heard_of_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_streams, "_KEEP_S", 0.001)
    heard: list[list[str]] = []

    async def keep(known: command_streams.CommandStreams) -> None:
        known.hear("r1", clock.utime())
        keeping = asyncio.create_task(known.keep())
        await until(lambda: len(heard) >= 3)
        keeping.cancel()
        await asyncio.wait([keeping])

    with opened_storage(f"sqlite:///{tmp_path}/hub.sqlite") as storage, ThreadPoolExecutor(1) as pool:
        monkeypatch.setattr(storage.robots, "hear", lambda clocks: heard.append(list(clocks)))
        asyncio.run(keep(command_streams.CommandStreams(storage, pool, "hub")))
    assert heard[:3] == [["r1"], [], []]


@pytest.mark.feature("H2")
def test_a_stream_that_a_robot_has_just_begun_anew_is_not_ended_in_the_place_of_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_streams, "_KEEP_S", 0.001)
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    added(database, "r1")
    begun: list[command_streams.CommandStream] = []

    async def keep(known: command_streams.CommandStreams) -> None:
        loop = asyncio.get_running_loop()

        def followed(names: dict[str, str], valid_s: float) -> list[str]:
            """The robot begins anew while the hub asks who is followed by another stream elsewhere."""
            if begun:
                return []
            opening = known.open("r1", "a-later-stream-id", "a-random-process-id")
            begun.append(asyncio.run_coroutine_threadsafe(opening, loop).result(10.0))
            return list(names)

        await known.open("r1", "a-random-stream-id", "a-random-process-id")
        monkeypatch.setattr(storage.robots, "keep", followed)
        keeping = asyncio.create_task(known.keep())
        await until(lambda: begun)
        frames = begun[0].frames("hub")
        assert b"event: hello" in await anext(frames)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(frames), 0.05)
        keeping.cancel()
        await asyncio.wait([keeping])

    with opened_storage(database) as storage, ThreadPoolExecutor(2) as pool:
        asyncio.run(keep(command_streams.CommandStreams(storage, pool, "hub")))


@pytest.mark.feature("H2")
def test_a_database_that_takes_notes_is_not_said_to_be_silent(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    added(database, "r1")
    with opened_storage(database) as storage:
        storage.noted_at = float("-inf")
        storage.others("hub", "http://hub", 10.0)
        assert clock.monotonic() - storage.noted_at < 60.0
