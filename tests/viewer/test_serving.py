"""A recording as a page is served it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
from websockets.asyncio.client import ClientConnection, connect

from dimos_streams import clock
from dimos_streams.cli.entry import run_command
from dimos_streams.dashboard.serving import PATHS
from dimos_streams.recording.metadata import CHANNEL, Metadata, describe
from dimos_streams.recording.reader import LogReader
from dimos_streams.viewer.playback import Playback
from dimos_streams.viewer.recording import viewed
from tests.recording.logs import START, write_log
from tests.viewer.mission import Mission
from tests.viewer.open_recordings import indexed

WITHIN_S = 20.0


@asynccontextmanager
async def served(*paths: Path) -> AsyncIterator[tuple[Playback, str]]:
    with ExitStack() as stack:
        logs = [stack.enter_context(LogReader(path)) for path in paths]
        async with viewed(logs) as shown:
            yield shown.playback, shown.url


@asynccontextmanager
async def socket(url: str, path: str) -> AsyncIterator[ClientConnection]:
    async with connect(url.replace("http", "ws") + path) as made:
        yield made


async def heard(socket: ClientConnection, type: str) -> dict[str, Any]:
    """The next message of a type."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            message = json.loads(await socket.recv())
            if message["type"] == type:
                found: dict[str, Any] = message
                return found


async def calls_at(monitor: ClientConnection, moment: int) -> list[dict[str, Any]]:
    """The open calls in the state of a moment."""
    calls: list[dict[str, Any]] = []
    async with asyncio.timeout(WITHIN_S):
        while True:
            message = json.loads(await monitor.recv())
            calls = (message.get("snapshot") or message.get("change") or {}).get("calls", calls)
            if message.get("utime") == moment:
                return calls


async def got(url: str) -> Any:
    return (await asyncio.to_thread(requests.get, url, timeout=WITHIN_S)).json()


def test_whoever_has_a_large_recording_read_need_not_wait_for_all_of_it(tmp_path: Path) -> None:
    path = write_log(tmp_path / "large.lcmlog", ((START + n, "/odom#nav_msgs.Nothing", b"") for n in range(1_000)))
    read: list[int] = []

    async def look(log: LogReader) -> None:
        looking = asyncio.current_task()
        assert looking is not None

        def leave(offset: int) -> None:
            read.append(offset)
            looking.cancel()

        async with viewed([log], on_progress=leave):
            pytest.fail("all of it was read")

    with LogReader(path) as log, pytest.raises(asyncio.CancelledError):
        asyncio.run(look(log))
    assert len(read) == 1


@pytest.mark.slow
@pytest.mark.feature("I3")
def test_a_page_sees_a_recording_as_it_would_see_a_run(mission: Mission) -> None:
    async def scenario() -> None:
        async with served(mission.log) as (playback, url):
            begin = playback.index.begin
            async with socket(url, "/transport") as transport, socket(url, "/monitor") as monitor:
                about = await heard(transport, "recording")
                assert about["blueprint"] == "follow-person"
                assert about["notes"] == []
                assert await heard(transport, "transport") == {
                    "type": "transport", "utime": begin, "playing": False, "speed": 1.0,
                }  # fmt: skip
                assert (await heard(monitor, "snapshot"))["snapshot"]["calls"] == []
                moment = begin + 2_000_000
                await transport.send(json.dumps({"command": "seek", "utime": moment}))
                assert (await heard(monitor, "call"))["event"][
                    "type"
                ] == "open"  # it is near: what is between is played
                assert [call["skill"] for call in await calls_at(monitor, moment)] == ["say", "follow_person"]
                events = await got(f"{url}/events")
                assert {entry["event"]["type"] for entry in events} == {"open", "update"}
                assert max(entry["event"]["utime"] for entry in events) <= moment
                assert [call["skill"] for call in await got(f"{url}/calls")] == ["say", "follow_person"]
                await _sees_the_camera(url, transport, begin)
                await _plays(transport, monitor, playback)
                await _refuses(url, monitor)

    asyncio.run(scenario())


async def _sees_the_camera(url: str, transport: ClientConnection, begin: int) -> None:
    async with socket(url, "/live") as live:
        topics = {topic["topic"]: topic["kind"] for topic in (await heard(live, "topics"))["topics"]}
        assert topics["/color_image"] == "picture"
        await live.send(json.dumps({"watch": {"/color_image": {}}}))
        for moment in (begin + 2_000_000, begin + 1_000_000):  # it stands still, and goes back
            await transport.send(json.dumps({"command": "seek", "utime": moment}))
            header: dict[str, Any] = {"utime": 0}
            async with asyncio.timeout(WITHIN_S):
                while header["utime"] != moment:
                    frame = await live.recv()
                    if isinstance(frame, bytes):
                        header = json.loads(frame[4 : 4 + int.from_bytes(frame[:4], "little")])
                        await live.send(json.dumps({"seen": "/color_image"}))
            assert 0 <= moment - header["stamp"] <= 200_000


async def _plays(transport: ClientConnection, monitor: ClientConnection, playback: Playback) -> None:
    await transport.send(json.dumps({"command": "seek", "utime": playback.index.begin}))
    await transport.send(json.dumps({"command": "speed", "speed": 16}))
    await transport.send(json.dumps({"command": "play"}))
    seen: list[str] = []
    while "turn" not in seen:
        seen.append((await heard(monitor, "call"))["event"]["skill"])
    assert seen.index("follow_person") < seen.index("pause") < seen.index("resume")
    state = {"playing": True, "utime": 0}
    while state["playing"] or state["utime"] < playback.index.end:
        state = await heard(transport, "transport")
    assert playback.utime() == playback.index.end


async def _refuses(url: str, monitor: ClientConnection) -> None:
    await monitor.send(json.dumps({"id": 1, "command": "pause"}))
    assert "a recording takes no orders" in (await heard(monitor, "error"))["text"]
    for path in ("robots/stop", "calls", "calls/x/cancel", "settings"):
        answer = await asyncio.to_thread(requests.post, f"{url}/{path}", json={}, timeout=WITHIN_S)
        assert answer.status_code == 403
    foreign = {"Origin": "http://example.com"}
    answer = await asyncio.to_thread(requests.get, f"{url}/healthz", headers=foreign, timeout=WITHIN_S)
    assert answer.status_code == 403


@pytest.mark.slow
def test_the_page_is_the_operators_page_and_knows_that_it_shows_a_recording(mission: Mission) -> None:
    async def scenario() -> None:
        async with served(mission.log) as (_, url):
            page = await asyncio.to_thread(requests.get, url, timeout=WITHIN_S)
            assert 'data-mode="recording"' in page.text
            assert "'unsafe" not in page.headers["Content-Security-Policy"]
            for path in ("/dashboard/transport/transport.js", "/dashboard/styles/transport.css"):
                assert path in PATHS
                assert (await asyncio.to_thread(requests.get, url + path, timeout=WITHIN_S)).ok

    asyncio.run(scenario())


@pytest.mark.slow
def test_what_fails_is_told_and_ends_nothing(
    mission: Mission, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(utime: int) -> None:
        raise OSError("the disk is gone")

    async def scenario() -> None:
        async with served(mission.log) as (playback, url), socket(url, "/transport") as transport:
            seek = json.dumps({"command": "seek", "utime": playback.index.begin + 1_000_000})
            with monkeypatch.context() as broken:
                broken.setattr(playback, "show", failing)
                await transport.send(seek)
                assert "seek failed" in (await heard(transport, "error"))["text"]
                playback.transport.play(clock.monotonic())
                playback.watch().close()  # which has it look
                assert not (await heard(transport, "transport"))["playing"]
                assert "nothing is played" in caplog.text
            await transport.send(seek)
            while (await heard(transport, "transport"))["utime"] != playback.index.begin + 1_000_000:
                pass

    asyncio.run(scenario())


def test_a_stopped_view_leaves_nothing_behind(
    mission: Mission, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)

    async def scenario() -> None:
        async with served(mission.log) as (_, url), socket(url, "/monitor"), socket(url, "/transport"):
            assert os.listdir(tmp_path)
        assert len(asyncio.all_tasks()) == 1

    began = time.monotonic()
    asyncio.run(scenario())
    assert list(tmp_path.iterdir()) == []
    assert time.monotonic() - began < WITHIN_S


@pytest.mark.slow
def test_what_is_wrong_with_a_recording_is_told(mission: Mission, tmp_path: Path) -> None:
    def notes(*paths: Path) -> str:
        async def ask() -> str:
            async with served(*paths) as (_, url), socket(url, "/transport") as transport:
                return "\n".join((await heard(transport, "recording"))["notes"])

        return asyncio.run(ask())

    foreign = write_log(tmp_path / "foreign.lcmlog", [(START, "EXAMPLE", b"12345678"), (START + 10, "OTHER", b"")])
    assert "The log does not describe itself" in notes(foreign)
    assert "Not in the recording: calls of skills" in notes(foreign)
    assert "Not in the recording: pictures" in notes(foreign)
    times = [START, START + 100_000, START - 50_000_000, START - 49_900_000]
    set_back = write_log(tmp_path / "set_back.lcmlog", [(utime, "EXAMPLE", b"12345678") for utime in times])
    said = (
        "In the log the clock goes back by 50.1 s at event 2; its times go on from there, 0.1 s after the beginning"
    )
    assert said in notes(set_back)
    damaged = tmp_path / "damaged.lcmlog"
    shutil.copyfile(mission.log, damaged)
    with LogReader(damaged) as log:
        offset = [event.offset for event in log.events()][100]
    with damaged.open("r+b") as file:
        file.seek(offset)
        file.write(b"\xff" * 20)
    assert "damaged.lcmlog is damaged" in notes(damaged)
    older = Metadata.model_validate({**describe().model_dump(), "version": "0.0.7", "format": 9})
    old = write_log(tmp_path / "old.lcmlog", [(START, CHANNEL, older.encoded()), (START, "/x#std_msgs.Bool", b"?")])
    assert "recorded by version 0.0.7" in notes(old)


@pytest.mark.parametrize(
    ("content", "said"), [(b"no log at all, whatever it may be", "is no LCM log"), (b"", "there is no event")]
)
def test_what_is_no_recording_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, said: str
) -> None:
    path = tmp_path / "a.lcmlog"
    path.write_bytes(content)
    assert run_command(["recording", "view", str(path)]) == 2
    assert said in capsys.readouterr().err


def test_hostile_messages_show_what_they_are(tmp_path: Path) -> None:
    channels = ("/module_status#dimos_streams.ModuleStatus", "/tool_streams#dimos_streams.ToolStreamEvent")
    events = [(START + number, channel, b"\x80\x04nonsense") for number, channel in enumerate(channels * 3)]
    long = "/" + "x" * 200 + "#std_msgs.Bool"
    with indexed(write_log(tmp_path / "a.lcmlog", [*events, (START + 99, long, b"12345678")])) as index:
        assert index.unreadable == dict.fromkeys(channels, 3)
