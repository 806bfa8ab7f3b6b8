"""The recorder: everything in the order of publication, safe from crashes within a second."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import multiprocessing
import os
import random
import signal
import threading
import tracemalloc
from pathlib import Path
from typing import NoReturn

import pytest

from dimos_streams import clock
from dimos_streams.blueprint import blueprint
from dimos_streams.blueprint.load import resolve
from dimos_streams.blueprint.model import ModuleSpec
from dimos_streams.bus import create_bus
from dimos_streams.errors import DimosStreamsError
from dimos_streams.messages.codec import encode
from dimos_streams.messages.geometry_msgs import Twist, Vector3
from dimos_streams.recording.metadata import CHANNEL, Metadata
from dimos_streams.recording.module import RecorderModule
from dimos_streams.recording.reader import LogReader
from dimos_streams.recording.recorder import Recorder, RecordingOptions, recording
from dimos_streams.recording.selection import Selection
from dimos_streams.recording.summary import summarize
from dimos_streams.recording.writer import LogWriter, repair
from dimos_streams.runtime.in_process import InProcessRun
from dimos_streams.runtime.options import RunOptions
from dimos_streams.testing import ModuleHarness
from tests.helpers import run_virtual, until
from tests.recording.crash import record_for_ever
from tests.recording.logs import START, full_disk, raw, read_log, some_events, write_log
from tests.recording.recorded import record_mission

TWIST = "/cmd_vel#geometry_msgs.Twist"
KILLS = 20


def test_all_that_is_published_is_recorded_in_order(tmp_path: Path) -> None:
    path = tmp_path / "a.lcmlog"
    published = []

    async def scenario() -> None:
        bus = create_bus("memq://")
        await bus.open()
        async with recording(bus, RecordingOptions(path=path)):
            for number in range(500):
                channel, data = f"/topic_{number % 3}", number.to_bytes(2, "big")
                bus.publish(channel, data)
                published.append((clock.utime(), channel, data))
                if number % 7 == 0:
                    await asyncio.sleep(0.0123)
            await asyncio.sleep(0.001)
        await bus.close()

    run_virtual(scenario())
    assert raw(read_log(path)) == published


@pytest.mark.slow
def test_equal_seeds_give_equal_files(tmp_path: Path) -> None:
    one, two, other = (
        record_mission(tmp_path / f"{name}.lcmlog", seed=seed, follow_s=3.0).read_bytes()
        for name, seed in (("one", 7), ("two", 7), ("other", 8))
    )
    assert one == two
    assert one != other


def test_what_is_not_recorded_is_not_made(tmp_path: Path) -> None:
    """Pictures cost most of a run; a recording that leaves them out must not order them."""

    async def pictures(selection: Selection) -> bool:
        bus = create_bus("memq://")
        await bus.open()
        async with recording(bus, RecordingOptions(path=tmp_path / "a.lcmlog", selection=selection)):
            wanted = bus.has_subscribers("/color_image#sensor_msgs.Image")
            bus.publish("/color_image#sensor_msgs.Image", b"")
            bus.publish("/odom#nav_msgs.Odometry", b"")
            await asyncio.sleep(0.001)
        await bus.close()
        return wanted

    for exclude, made, count in ((("*#sensor_msgs.Image",), False, 1), (("/color*",), False, 1), ((), True, 2)):
        assert run_virtual(pictures(Selection(exclude=exclude))) is made
        assert len(read_log(tmp_path / "a.lcmlog")) == count
    assert not run_virtual(pictures(Selection(include=["/odom"])))


def test_patterns_that_fit_nothing_are_reported(tmp_path: Path, settled_log: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        bus = create_bus("memq://")
        await bus.open()
        chosen = Selection(include=["/odm", "/cmd_*"])
        async with recording(bus, RecordingOptions(path=tmp_path / "a.lcmlog", selection=chosen)):
            for topic in ("/odom", "/cmd_vel"):
                bus.publish(f"{topic}#geometry_msgs.Twist", b"")
            await asyncio.sleep(0.001)
        await bus.close()

    run_virtual(scenario())
    assert [record.getMessage() for record in settled_log.records] == [
        f"{tmp_path}/a.lcmlog: nothing came that fits /odm"
    ]


@pytest.mark.virtual_time
async def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    bus = create_bus("memq://")
    await bus.open()
    recorder = Recorder(bus, RecordingOptions(path=tmp_path / "a.lcmlog"))
    recorder.open()
    recorder.start()
    bus.publish(TWIST, b"x")
    with full_disk(), pytest.raises(DimosStreamsError, match=r"a.lcmlog can't be written: File too large"):
        await recorder.keep_flushed()
    recorder.stop()
    await bus.close()


def test_a_run_whose_recording_fails_says_so(tmp_path: Path) -> None:
    async def scenario() -> None:
        bus = create_bus("memq://")
        await bus.open()
        async with recording(bus, RecordingOptions(path=tmp_path / "a.lcmlog")):
            bus.publish(TWIST, b"x")
            await asyncio.sleep(0.001)

    with full_disk(), pytest.raises(DimosStreamsError, match="File too large"):
        run_virtual(scenario())


@pytest.mark.slow
def test_the_recorder_is_a_module(tmp_path: Path) -> None:
    path = tmp_path / "a.lcmlog"
    config = {"path": str(path), "channels": ["/odom", "/module_status"], "split_mb": 0.02}
    spec = ModuleSpec(name="recorder", type="dimos_streams.recording.module:RecorderModule", config=config)
    robot = resolve("base-robot").modules["robot"]
    both = blueprint("recorded", spec, robot)

    async def scenario() -> None:
        run = InProcessRun(both, RunOptions(bus_url="memq://", seed=5))
        await run.start()
        await asyncio.sleep(3.01)
        ending = clock.monotonic()
        await run.stop()
        assert clock.monotonic() - ending < 0.1, "it is not waited for"

    for _ in range(2):  # a second run goes on where the first ended
        run_virtual(scenario())
    files = sorted(tmp_path.iterdir())
    assert len(files) > 3
    with contextlib.ExitStack() as stack:
        logs = [stack.enter_context(LogReader(file)) for file in files]
        summary = summarize(logs)
        firsts = [next(log.events()) for log in logs]
    assert summary.channels["/odom#nav_msgs.Odometry"].count == 2 * 60
    assert set(summary.channels) == {"/odom#nav_msgs.Odometry", "/module_status#dimos_streams.ModuleStatus"}
    for first in firsts:
        assert first.channel == CHANNEL
        odometry = Metadata.decoded(first.data).messages["nav_msgs.Odometry"]
        assert odometry["fields"][0] == ["header", "std_msgs.Header", None]


def test_the_loop_runs_while_an_old_log_is_repaired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_log(tmp_path / "a.lcmlog", some_events(20))
    path.write_bytes(path.read_bytes()[:-1])
    loop_runs = threading.Event()
    waited = []

    def slow_repair(log: Path) -> tuple[int, int]:
        waited.append(loop_runs.wait(timeout=5.0))
        return repair(log)

    async def scenario() -> None:
        spec = ModuleSpec(
            name="recorder", type="dimos_streams.recording.module:RecorderModule", config={"path": str(path)}
        )
        run = InProcessRun(blueprint("recorded", spec), RunOptions(bus_url="memq://"))
        asyncio.get_running_loop().call_later(0.05, loop_runs.set)
        await run.start()
        await run.stop()

    monkeypatch.setattr("dimos_streams.recording.writer.repair", slow_repair)
    asyncio.run(scenario())
    assert waited == [True]
    with LogReader(path) as log:
        assert raw(log.events())[:19] == some_events(20)[:19]
        assert log.damages == []


@pytest.mark.virtual_time
async def test_a_recording_may_be_in_the_users_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    async with ModuleHarness(RecorderModule, {"path": "~/a.lcmlog"}):
        assert (tmp_path / "a.lcmlog").exists()


@pytest.mark.virtual_time
async def test_a_recorder_without_a_thread_to_look_for_room_looks_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asyncio.Event()

    async def refused(*args: object) -> NoReturn:
        asked.set()
        raise OSError(errno.EAGAIN, "can't start new thread")

    async with ModuleHarness(RecorderModule, {"path": tmp_path / "a.lcmlog"}) as harness:
        recorder = harness.module
        with monkeypatch.context() as system:
            system.setattr(recorder, "run_blocking", refused)
            recorder._recorder._fail(OSError(errno.ENOSPC, "no space is left"))
            await asked.wait()
            await asyncio.sleep(0)
        await until(lambda: "messages are missing: " in recorder.health)


@pytest.mark.virtual_time
async def test_what_a_full_disk_does_not_take_at_the_end_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    close = LogWriter.close

    def full(writer: LogWriter) -> NoReturn:
        close(writer)
        raise OSError(errno.ENOSPC, "no space is left")

    async with ModuleHarness(RecorderModule, {"path": tmp_path / "a.lcmlog"}):
        monkeypatch.setattr(LogWriter, "close", full)
    assert f"{tmp_path / 'a.lcmlog'} can't be written: no space is left" in caplog.text


@pytest.mark.live
@pytest.mark.feature("F3")
@pytest.mark.slow
def test_killed_twenty_times_at_random_moments(tmp_path: Path, bus_url: str) -> None:
    """Twenty recorders of one bus, each killed at a moment of its own; every log opens, loses at most a second, and
    goes on."""
    random_ = random.Random(5)
    processes = multiprocessing.get_context("forkserver")
    recorders = [
        processes.Process(target=record_for_ever, args=(bus_url, tmp_path / f"{number}.lcmlog"), daemon=True)
        for number in range(KILLS)
    ]
    killed: dict[int, int] = {}

    async def scenario() -> list[int]:
        bus = create_bus(bus_url)
        await bus.open()
        for recorder in recorders:
            recorder.start()
        sent: list[int] = []
        moments: list[float] = []
        heard = 0
        while len(killed) < KILLS:
            sent.append(clock.utime())
            bus.publish(TWIST, encode(Twist(linear=Vector3(x=float(len(sent))))))
            await asyncio.sleep(0.005)
            if not moments:
                heard = sum((tmp_path / f"{number}.lcmlog").exists() for number in range(KILLS))
                if heard == KILLS:
                    now = clock.monotonic()
                    moments = [now + random_.uniform(0.6, 2.2) for _ in range(KILLS)]
            for number, moment in enumerate(moments):
                if number not in killed and clock.monotonic() >= moment:
                    pid = recorders[number].pid
                    assert pid is not None
                    os.kill(pid, signal.SIGKILL)
                    killed[number] = clock.utime()
        await bus.close()
        return sent

    sent = asyncio.run(scenario())
    for number, recorder in enumerate(recorders):
        recorder.join(10)
        path = tmp_path / f"{number}.lcmlog"
        times = [event.utime for event in read_log(path)]
        due = [utime for utime in sent if times[0] <= utime <= killed[number] - 1_000_000]
        assert len(times) >= len(due)
        assert times[-1] >= max(due, default=0)
        with LogWriter(path, append=True) as writer:
            writer.write(killed[number], "/after", b"the crash")
        events = read_log(path)
        assert len(events) == len(times) + 1
        assert [event.number for event in events] == list(range(len(events)))
        with LogReader(path) as reader:
            assert sum(1 for _ in reader.events()) == len(events)
            assert reader.damages == []


@pytest.mark.slow
def test_memory_is_flat(tmp_path: Path) -> None:
    path = tmp_path / "a.lcmlog"
    with LogWriter(path) as writer:
        for number in range(2500):
            writer.write(START + number * 1000, f"/channel_{number % 50}", bytes(20_000))
    with LogReader(path) as reader:
        assert reader.size > 50_000_000
        tracemalloc.start()
        try:
            assert summarize([reader]).events == 2500
            assert tracemalloc.get_traced_memory()[1] < 6_000_000
        finally:
            tracemalloc.stop()
