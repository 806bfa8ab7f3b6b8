"""Blueprints as real processes on LCM multicast: start, restart, stop, death of the parent."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing.forkserver
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.blueprint.model import Blueprint, ModuleSpec, Restart
from dimos_streams.bus import create_bus
from dimos_streams.common.process.run_owner import process_start
from dimos_streams.errors import ModuleFailedError, UserError
from dimos_streams.messages.codec import decode
from dimos_streams.messages.std_msgs import String
from dimos_streams.runtime.events import RunEvent
from dimos_streams.runtime.live import restarts, slots
from dimos_streams.runtime.live.supervisor import Supervisor
from dimos_streams.runtime.options import RunOptions
from dimos_streams.runtime.processes import process as process_module
from dimos_streams.runtime.processes.process import SupervisedProcess
from tests.helpers import few_files, until

pytestmark = pytest.mark.live

TALKER = "tests.runtime.modules:Talker"
LISTENER = "tests.runtime.modules:Listener"


def pair(restart: Restart = "on-failure", **talker: object) -> Blueprint:
    specs = [
        ModuleSpec(name="talker", type=TALKER, config=talker, restart=restart),
        ModuleSpec(name="listener", type=LISTENER),
    ]
    return Blueprint(name="pair", modules={spec.name: spec for spec in specs})


Scenario = Callable[[Supervisor, list[RunEvent]], Awaitable[None]]


def run_pair(blueprint: Blueprint, bus_url: str, run_dir: Path, scenario: Scenario) -> list[RunEvent]:
    events: list[RunEvent] = []

    async def main() -> None:
        supervisor = Supervisor(blueprint, RunOptions(bus_url=bus_url, run_dir=run_dir), events.append)
        try:
            await scenario(supervisor, events)
        finally:
            pids = [view.pid for view in supervisor.processes() if view.pid]
            await supervisor.stop()
            await supervisor.stop()
            assert [pid for pid in pids if process_start(pid) is not None] == []

    asyncio.run(main())
    return events


def test_messages_flow_between_processes_and_stop_is_in_reverse(bus_url: str, tmp_path: Path) -> None:
    async def scenario(supervisor: Supervisor, events: list[RunEvent]) -> None:
        bus = create_bus(bus_url)
        await bus.open()
        heard: list[str] = []
        bus.subscribe("/heard#std_msgs.String", lambda _, data: heard.append(decode(String, data).data))
        await supervisor.start()
        pids = {view.label: view.pid for view in supervisor.processes()}
        assert len({*pids.values(), os.getpid()}) == 3
        await until(lambda: len(heard) >= 5)
        await bus.close()

    events = run_pair(pair(), bus_url, tmp_path, scenario)
    assert [event.process for event in events if event.kind == "stopped"] == ["listener", "talker"]


def test_one_label_is_one_process(bus_url: str, tmp_path: Path) -> None:
    specs = [
        ModuleSpec(name="talker", type=TALKER, process="both"),
        ModuleSpec(name="listener", type=LISTENER, process="both"),
    ]
    blueprint = Blueprint(name="grouped", modules={spec.name: spec for spec in specs})

    async def scenario(supervisor: Supervisor, events: list[RunEvent]) -> None:
        await supervisor.start()
        assert [view.modules for view in supervisor.processes()] == [("talker", "listener")]

    run_pair(blueprint, bus_url, tmp_path, scenario)


@pytest.mark.parametrize(
    ("how", "error", "text"),
    [
        ("no camera", ModuleFailedError, "'talker' could not start: RuntimeError: no camera"),
        ("bad frame " * 100_000, ModuleFailedError, r"could not start: RuntimeError: bad frame bad .*\.\.\. \(log: "),
        ("user", UserError, "the port is taken; choose another"),
    ],
    ids=["a word", "a frame", "the user's"],
)
def test_a_failure_at_start_is_the_runs(
    how: str, error: type[Exception], text: str, bus_url: str, tmp_path: Path
) -> None:
    async def scenario(supervisor: Supervisor, events: list[RunEvent]) -> None:
        with pytest.raises(error, match=text):
            await supervisor.start()

    events = run_pair(pair(fail_at_start=how), bus_url, tmp_path, scenario)
    assert any(event.kind == "failed" and event.process == "talker" for event in events)
    log = (tmp_path / "logs" / "talker.log").read_text()
    assert ("Traceback" in log) == (error is ModuleFailedError), "where it broke, unless the user can mend it"


def test_too_many_open_files_are_said_at_the_start_and_cost_no_other_process(
    bus_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(supervisor: Supervisor, events: list[RunEvent]) -> None:
        start = SupervisedProcess.start

        async def start_without_room(process: SupervisedProcess) -> None:
            with few_files(3):
                await start(process)

        monkeypatch.setattr(SupervisedProcess, "start", start_without_room)
        with pytest.raises(UserError, match="`ulimit -n`"):
            await supervisor.start()
        server: Any = multiprocessing.forkserver._forkserver
        assert process_start(server._forkserver_pid) is not None, "it would end with half a request"

    run_pair(pair(), bus_url, tmp_path, scenario)


@pytest.mark.parametrize("stops", [True, False], ids=["at the end", "in between"])
def test_a_forkserver_that_stands_still_hides_no_end(
    stops: bool, bus_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ended(supervisor: Supervisor) -> None:
        if stops:
            await asyncio.wait_for(supervisor.stop(), 30)
            return
        process = supervisor._slots[0].process
        assert process is not None
        process.kill()
        await until(lambda: process.last_pid is not None and process_start(process.last_pid) is None)
        process.kill()
        await until(lambda: all(view.restarts and view.state == "ready" for view in supervisor.processes()))

    async def scenario(supervisor: Supervisor, events: list[RunEvent]) -> None:
        await supervisor.start()
        server: Any = multiprocessing.forkserver._forkserver
        number = server._forkserver_pid
        os.kill(number, signal.SIGSTOP)
        try:
            with monkeypatch.context() as bounds:  # the end of the run waits for its processes as ever
                bounds.setattr(slots, "_TERM_BOUND_S", 0.5)
                bounds.setattr(process_module, "_KILL_BOUND_S", 0.0 if not stops else 60.0)
                await ended(supervisor)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGCONT)

    run_pair(pair(), bus_url, tmp_path, scenario)


def test_a_process_that_others_end_comes_back(bus_url: str, tmp_path: Path) -> None:
    async def scenario(supervisor: Supervisor, events: list[RunEvent]) -> None:
        await supervisor.start()
        for count, number in enumerate((signal.SIGKILL, signal.SIGTERM), 1):
            talker = supervisor.processes()[0]
            assert talker.pid is not None
            os.kill(talker.pid, number)

            def back(count: int = count) -> bool:
                view = supervisor.processes()[0]
                return (view.state, view.restarts) == ("ready", count)

            await until(back)
            assert supervisor.processes()[0].pid != talker.pid
        killed, ended = (event.text for event in events if event.kind == "restarting")
        assert "ended by SIGKILL" in killed
        assert "ended with exit code 0" in ended, "it was asked to by somebody else than its supervisor"

    run_pair(pair(), bus_url, tmp_path, scenario)


@pytest.mark.feature("K4")
def test_a_run_that_stops_during_a_restart_leaves_no_process(bus_url: str, tmp_path: Path) -> None:
    def children() -> str:
        forkserver = multiprocessing.forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
        return Path(f"/proc/{forkserver}/task/{forkserver}/children").read_text()

    async def scenario(supervisor: Supervisor, events: list[RunEvent]) -> None:
        await supervisor.start()
        restarting = asyncio.create_task(supervisor.restart("talker", "its code changed"))
        await until(lambda: supervisor._slots[0].succession.successor)
        await supervisor.stop()
        with pytest.raises(UserError, match=r"^the run is stopping$"):
            await restarting
        await until(lambda: not children().strip())

    run_pair(pair(), bus_url, tmp_path, scenario)


def open_in(pid: int) -> Counter[str]:
    """The kinds of descriptors that a process has open."""
    found = Counter[str]()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it was closed meanwhile
            found[os.readlink(entry).partition(":")[0]] += 1
    return found


def test_restarts_leave_nothing_open(bus_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restarts, "_LONGEST_PAUSE_S", 0.01)

    async def scenario(supervisor: Supervisor, events: list[RunEvent]) -> None:
        await supervisor.start()
        forkserver = multiprocessing.forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
        await supervisor._reporter._open_bus()  # on a busy machine it may have something to say

        listener = supervisor.processes()[1].pid
        assert listener is not None

        def held() -> list[Counter[str]]:
            return [open_in(pid) for pid in (os.getpid(), forkserver, listener)]

        for count in range(1, 5):
            talker = supervisor.processes()[0].pid
            assert talker is not None
            os.kill(talker, signal.SIGKILL)

            def back(count: int = count) -> bool:
                view = supervisor.processes()[0]
                return (view.restarts, view.state) == (count, "ready")

            await until(back, 60.0)
            if count == 2:
                before = held()
        # What has something open for a moment need not have it again.
        await until(lambda: all(now <= then for now, then in zip(held(), before, strict=True)))

    run_pair(pair(), bus_url, tmp_path, scenario)


def test_never_means_that_the_run_fails(bus_url: str, tmp_path: Path) -> None:
    async def scenario(supervisor: Supervisor, events: list[RunEvent]) -> None:
        await supervisor.start()
        with pytest.raises(ModuleFailedError, match="out of words"):
            async with asyncio.timeout(40):
                await supervisor.wait()

    run_pair(pair(fail_after=10, restart="never"), bus_url, tmp_path, scenario)


def test_a_module_that_hangs_at_its_end_is_killed_in_time(bus_url: str, tmp_path: Path) -> None:
    async def scenario(supervisor: Supervisor, events: list[RunEvent]) -> None:
        await supervisor.start()
        loop = asyncio.get_running_loop()
        begin = loop.time()
        await supervisor.stop()
        assert loop.time() - begin < 8

    events = run_pair(pair("always", stop_takes_s=1000.0), bus_url, tmp_path, scenario)
    assert {event.kind for event in events} == {"starting", "ready", "stopping", "stopped"}, "none comes back"


def test_robots_that_hang_at_their_end_end_side_by_side(bus_url: str, tmp_path: Path) -> None:
    async def main() -> None:
        talker = ModuleSpec(name="talker", type="tests.runtime.modules:Talker", config={"stop_takes_s": 1.5})
        robots = [talker.namespaced(f"robot{number}") for number in range(4)]
        blueprint = Blueprint(name="robots", modules={spec.name: spec for spec in robots})
        supervisor = Supervisor(blueprint, RunOptions(bus_url=bus_url, run_dir=tmp_path))
        await supervisor.start()
        began = clock.monotonic()
        await supervisor.stop()
        assert 1.5 <= clock.monotonic() - began < 4.5, "one after the other takes 6 s"

    asyncio.run(main())


_PARENT = """
import asyncio, signal, sys
from pathlib import Path
from dimos_streams.runtime.options import RunOptions
from dimos_streams.runtime.live.supervisor import Supervisor
from tests.runtime.test_supervisor import pair

async def main():
    supervisor = Supervisor(pair(), RunOptions(bus_url=sys.argv[1], run_dir=Path(sys.argv[2])))
    await supervisor.start()
    print(*(view.pid for view in supervisor.processes()), flush=True)
    await supervisor.wait()

if __name__ == "__main__":
    # Whatever runs the tests in the background may have it ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_no_orphan_when_the_parent_dies(number: signal.Signals, bus_url: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", _PARENT, bus_url, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert len(pids) == 2
        parent.send_signal(number)
        parent.wait(40)
    asyncio.run(until(lambda: all(process_start(pid) is None for pid in pids)))


@pytest.mark.feature("F5")
def test_a_second_run_of_the_same_modules_is_refused(bus_url: str, tmp_path: Path) -> None:
    """It names who is there, and starts nothing; once the first has ended it may run."""
    directories = [tmp_path / name for name in ("first", "second")]
    for directory in directories:
        directory.mkdir()
    begun: list[RunEvent] = []

    async def main() -> None:
        first = Supervisor(pair(), RunOptions(bus_url=bus_url, run_dir=directories[0]))
        second = Supervisor(pair(), RunOptions(bus_url=bus_url, run_dir=directories[1]), begun.append)
        other = Supervisor(pair().namespaced("other"), RunOptions(bus_url=bus_url, run_dir=directories[1]))
        await first.start()
        try:
            pids = {view.label: view.pid for view in first.processes()}
            with pytest.raises(UserError) as refused:
                await second.start()
            assert begun == []
            text = str(refused.value)
            assert text.startswith(f"module 'listener' runs already on {bus_url} (and 1 more of this blueprint)")
            assert f"pid {pids['listener']} on {os.uname().nodename} since 20" in text
            await other.start()
            await other.stop()
        finally:
            await first.stop()
        again = Supervisor(pair(), RunOptions(bus_url=bus_url, run_dir=directories[1]))
        await again.start()
        await again.stop()

    asyncio.run(main())


def test_of_two_runs_that_start_together_the_elder_stays(bus_url: str, tmp_path: Path) -> None:
    async def run(name: str) -> None:
        (tmp_path / name).mkdir()
        supervisor = Supervisor(pair(), RunOptions(bus_url=bus_url, run_dir=tmp_path / name))
        try:
            await supervisor.start()
            await supervisor.wait()
        finally:
            await supervisor.stop()

    async def main() -> None:
        runs = [asyncio.create_task(run(name)) for name in ("one", "two")]
        (younger,), (elder,) = await asyncio.wait(runs, timeout=40.0, return_when=asyncio.FIRST_COMPLETED)
        with pytest.raises(UserError, match="runs already on"):
            await younger
        await asyncio.wait([elder], timeout=2.0)  # it has heard the other one by then
        assert not elder.done()
        elder.cancel()
        await asyncio.wait([elder])

    asyncio.run(main())


def test_a_process_whose_working_directory_was_deleted_is_started_again(
    bus_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "deleted"
    folder.mkdir()
    monkeypatch.chdir(folder)

    async def scenario(supervisor: Supervisor, events: list[RunEvent]) -> None:
        await supervisor.start()
        folder.rmdir()
        await supervisor.restart("talker", "its folder is gone")
        await until(lambda: supervisor.processes()[0].state == "ready")

    run_pair(pair(), bus_url, tmp_path, scenario)
    monkeypatch.chdir(tmp_path)
