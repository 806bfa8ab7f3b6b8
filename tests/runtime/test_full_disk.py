"""Each part of a run goes on where a file system is full, and when it has room again."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.agent.record.mission_record import MissionRecord
from dimos_streams.agent.record.read_record import read_missions
from dimos_streams.bus import Bus, create_bus
from dimos_streams.cli.bridge_client.answers import ModuleAnswer
from dimos_streams.cli.bridge_client.run_status.states import process_state
from dimos_streams.common.process.disk import trouble_with
from dimos_streams.common.process.run_owner import process_start
from dimos_streams.journal.catch_up import JournalPages
from dimos_streams.journal.journal import Journal
from dimos_streams.journal.query import Query
from dimos_streams.journal.tables import CallRow
from dimos_streams.messages.image import image_from_array
from dimos_streams.messages.time import header
from dimos_streams.module import RunContext, Services
from dimos_streams.operator.messages.agent import AgentEvent
from dimos_streams.recording.module import RecorderModule
from dimos_streams.recording.reader import LogReader
from dimos_streams.runtime import registry
from dimos_streams.runtime.processes.output import LossyFile, lines_to, write_to
from dimos_streams.skills.observe import Observe
from dimos_streams.testing import ModuleHarness
from dimos_streams.tool_stream.event import ToolEvent
from tests.helpers import fill, run_virtual
from tests.runtime.run_records import process_record
from tests.skills.detections import Camera, Seen

FULL = "No space left on device"


def event(seq: int) -> ToolEvent:
    return ToolEvent(
        utime=seq, call_id="c", seq=seq, type="update", module="m", skill="s", caller="x", text="x" * 1000, data={}
    )


def test_a_log_loses_lines_and_says_so_where_they_are_missing(small_disk: Path) -> None:
    path = small_disk / "a.log"
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    log = lines_to(LossyFile(fd))
    print("first", file=log)
    ballast = fill(small_disk)
    for _ in range(10):
        print("x" * 999, file=log)
    ballast.unlink()
    print("last", file=log)
    os.close(fd)
    lines = path.read_text().split("\n")
    assert lines[0] == "first"
    assert lines[-3:-1][0].endswith(f"bytes are missing here: {FULL}")
    assert lines[-2] == "last"


@pytest.mark.slow
def test_a_log_that_cannot_be_opened_is_opened_later(small_disk: Path) -> None:
    ballast, path = fill(small_disk), small_disk / "logs" / "a.log"
    child = os.fork()
    if not child:  # its output goes there for good
        try:
            write_to(path)
            sys.stdout.write("lost\n")
            ballast.unlink()
            path.parent.mkdir()
            deadline = clock.monotonic() + 10.0
            while not path.exists() and clock.monotonic() < deadline:
                sys.stderr.write("more\n")
                os.sched_yield()
            os.write(1, b"of C\n")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    text = path.read_text()
    assert "bytes are missing here: " in text
    assert text.endswith("more\nof C\n")


def test_a_journal_that_went_on_in_memory_is_not_taken_for_the_whole_later(small_disk: Path) -> None:
    path = small_disk / "journal.sqlite"

    def opened() -> Journal:
        journal = Journal(path)
        journal.open()
        return journal

    journal = opened()
    journal.append([event(seq) for seq in range(1, 11)])
    journal.note("command/1", "taken")
    ballast = fill(small_disk)
    seq = 10
    while journal.state == "ok":
        seq += 1
        journal.append([event(seq)])
    journal.append([event(seq + 1)])
    reported = journal.last_offset
    assert (reported, journal.state) == (seq + 1, "memory: database or disk is full")

    while_full = opened()  # after a kill -9
    assert while_full.state.startswith("memory: ")
    assert while_full.append([event(seq + 2)])[0].offset > reported
    newest = while_full.last_offset
    while_full.close()
    journal.close()

    ballast.unlink()
    clock_went_on = opened()
    assert clock_went_on.state == "ok"
    assert clock_went_on.notes("command/") == {"command/1": "taken"}
    assert clock_went_on.append([event(seq + 3)])[0].offset > newest
    clock_went_on.close()
    (left,) = small_disk.glob("journal.sqlite.left-*[0-9]")
    old = Journal(left)
    old.open()
    assert [entry.offset for entry in old.read(Query(0), 10, 10**6).entries] == list(range(1, 11))
    old.close()


def test_a_journal_returns_to_its_disk_with_all_that_memory_has(small_disk: Path) -> None:
    path = small_disk / "journal.sqlite"
    journal = Journal(path)
    journal.open()
    journal.append([event(seq) for seq in range(1, 11)])
    history = JournalPages(journal)
    before = asyncio.run(history.page(Query(0))).upto
    ballast = fill(small_disk)
    assert not journal.come_back(), "it is there already"
    seq = before
    while journal.state == "ok":
        seq += 1
        journal.append([event(seq)])
    first = journal.first_offset
    assert not journal.come_back(), "the disk is still full"
    call = CallRow("c", seq, False, "{}")
    journal.append([event(seq + 1)], [call])
    reported = journal.last_offset

    ballast.unlink()
    assert journal.come_back()
    assert (journal.state, journal.path, journal.first_offset, journal.last_offset) == ("ok", path, first, reported)
    assert journal.append([event(seq + 2)])[0].offset == reported + 1
    asyncio.run(journal.checkpoint(asyncio.to_thread))
    found = asyncio.run(history.page(Query(first - 1)))
    assert [entry.offset for entry in found.entries] == list(range(first, reported + 2)), "of the new file"
    history.close()
    journal.close()

    later = Journal(path)
    later.open()
    assert (later.state, later.first_offset, later.last_offset) == ("ok", first, reported + 1)
    assert later.call("c") == call
    later.close()
    assert not path.with_name("journal.sqlite.new").exists()


def test_a_journal_that_could_not_be_opened_returns_to_its_disk_and_leaves_the_older_one(small_disk: Path) -> None:
    path = small_disk / "journal.sqlite"
    killed = Journal(path)
    killed.open()
    killed.append([event(seq) for seq in range(1, 11)])
    ballast = fill(small_disk)
    journal = Journal(path)
    journal.open()
    assert journal.state.startswith("memory: ")
    (entry,) = journal.append([event(11)])
    ballast.unlink()
    assert journal.come_back()
    assert (journal.state, journal.first_offset, journal.last_offset) == ("ok", entry.offset, entry.offset)
    journal.close()
    killed.close()
    (left,) = small_disk.glob("journal.sqlite.left-*[0-9]")
    old = Journal(left)
    old.open()
    assert old.last_offset == 10
    old.close()


def test_nobody_goes_on_with_a_mission_whose_end_could_not_be_written(small_disk: Path) -> None:
    def reported(number: int, kind: str, **data: Any) -> AgentEvent:
        return AgentEvent(number=number, utime=number, agent="agent", kind=kind, missions=("m1",), data=data)

    folder = small_disk / "missions"
    record = MissionRecord(folder, "agent")
    record.open()
    record.write(reported(1, "mission_start", id="m1", text="go"))
    ballast = fill(small_disk)
    number = 1
    while not record._broken:
        number += 1
        record.write(reported(number, "note", text="x" * 1000))
    record.write(reported(number + 1, "done", reason="aborted", text=""))
    assert read_missions(folder, "agent") == []
    ballast.unlink()
    record.write(reported(number + 2, "note", text="there is room again"))
    record.close()
    (mission,) = read_missions(folder, "agent")
    assert mission.done is not None


def test_a_record_without_room_for_its_folder_begins_later(small_disk: Path) -> None:
    ballast, folder = fill(small_disk), small_disk / "run" / "missions"
    record = MissionRecord(folder, "agent")
    record.open()
    ballast.unlink()
    begun = {"id": "m1", "text": "hi"}
    start = AgentEvent(number=1, utime=1, agent="agent", kind="mission_start", missions=("m1",), data=begun)
    record.write(start)
    record.close()
    assert [mission.id for mission in read_missions(folder, "agent")] == ["m1"]


def test_a_recorder_goes_on_when_there_is_room(small_disk: Path) -> None:
    path = small_disk / "a.lcmlog"

    async def scenario() -> None:
        bus = create_bus("memq://")
        await bus.open()
        services = Services()
        services.offer(Bus, bus)  # type: ignore[type-abstract]
        recorder = RecorderModule({"path": str(path)}, context=RunContext(services=services))
        await recorder.start()
        running = asyncio.create_task(recorder.run())

        async def publish_until(condition: Callable[[], object]) -> None:
            while not condition():
                bus.publish("/topic", b"x" * 10_000)
                await asyncio.sleep(0.01)

        bus.publish("/first", b"x")
        await asyncio.sleep(1.0)
        ballast = fill(small_disk)
        await publish_until(lambda: recorder.health.startswith("not recording: "))
        assert FULL in recorder.health
        await publish_until(lambda: recorder._recorder.unwritten > 100)
        ballast.unlink()
        await publish_until(lambda: "messages are missing" in recorder.health)
        bus.publish("/last", b"x")
        await asyncio.sleep(0.1)
        running.cancel()
        await recorder.stop()
        await bus.close()

    run_virtual(scenario())
    with LogReader(path) as log:
        channels = [message.channel for message in log.events()]
    assert (channels[1], channels[-1]) == ("/first", "/last")


@pytest.mark.virtual_time
async def test_observe_describes_what_it_sees_without_a_picture(small_disk: Path) -> None:
    import numpy as np

    fill(small_disk)
    async with ModuleHarness(Observe, context=RunContext(run_dir=small_disk)) as harness:
        task = asyncio.create_task(Camera(harness, [Seen()]).run())
        call = await harness.call("observe")
        pixels = np.zeros((24, 32, 3), dtype=np.uint8)
        harness.feed("color_image", image_from_array(pixels, "rgb8", header("camera_optical", 1)))
        assert "person in a red shirt" in await call.answer()
        assert (await call.result())["picture"] is None
        task.cancel()


def test_what_is_known_of_a_run_stays_known(small_disk: Path) -> None:
    record = registry.RunRecord(
        run_id="a",
        pid=os.getpid(),
        pid_started=0,
        pid_space="",
        blueprint="b",
        bus_url="memq://",
        port=1,
        started_utime=1,
        run_dir=small_disk,
        processes=(process_record("x" * 10_000),) * 10,
    )
    registry.write(record)
    fill(small_disk)
    with pytest.raises(OSError, match=FULL):
        registry.write(record)
    assert json.loads((small_disk / "run.json").read_text())["run_id"] == "a"
    assert not (small_disk / "run.new").exists()
    assert trouble_with(small_disk) == FULL


def test_processes_are_shown_by_what_the_system_knows_of_them() -> None:
    pid = os.getpid()

    def said(*, alive: bool) -> ModuleAnswer:
        return ModuleAnswer(name="a", pid=pid, health="ok", alive=alive, introduced=True, state={})

    started = process_start(pid)
    noted = process_record("a", pid=pid, pid_started=started)
    assert process_state(noted, {}) == noted
    gone = replace(noted, pid_started=1)
    assert process_state(gone, {}) == replace(noted, pid=None, pid_started=None, state="dead")
    assert process_state(replace(gone, pid=1), {"a": said(alive=True)}) == noted
    assert process_state(replace(gone, pid=1), {"a": said(alive=False)}).state == "dead"
