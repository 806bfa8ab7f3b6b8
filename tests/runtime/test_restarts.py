"""A supervisor, in virtual time: processes come up, end and stay away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.blueprint.model import Blueprint, ModuleSpec, Restart
from dimos_streams.cli.bridge_client.run_status.text import restarting
from dimos_streams.errors import ModuleFailedError, UserError
from dimos_streams.runtime.events import RunEvent
from dimos_streams.runtime.live import restarts, slots
from dimos_streams.runtime.live import supervisor as supervisor_module
from dimos_streams.runtime.live.supervisor import Supervisor
from dimos_streams.runtime.liveness import ModuleReporter
from dimos_streams.runtime.neighbours import Neighbours
from dimos_streams.runtime.options import RunOptions
from dimos_streams.runtime.plan import ProcessPlan
from dimos_streams.runtime.processes.reports import Report
from tests.helpers import until


class Process:
    """A process that does what the test says, as far as a supervisor can see."""

    made: list[Process]
    """All of a test's, in the order of their start."""
    unready: set[str]
    """Modules that never become ready."""
    takes_s: dict[str, float]
    """Modules that take a time to become ready, and at their end."""
    refused = 0
    """So many starts fail."""
    refusal: Exception
    """What they fail with."""
    forked_after_s = 0.01
    starved = 0.0
    """The part of its time for which a process waits for a processor."""

    @classmethod
    def reset(cls) -> None:
        """Forget what the test before has set."""
        cls.made, cls.unready, cls.takes_s, cls.refused = [], set(), {}, 0
        cls.forked_after_s, cls.starved = 0.01, 0.0
        cls.refusal = BlockingIOError("no process can be had")

    def __init__(
        self, plan: ProcessPlan, task: object, on_report: Callable[[Report], None], on_exit: Callable[[int], None]
    ) -> None:
        self.plan, self.on_report, self._on_exit = plan, on_report, on_exit
        self.pid: int | None = None
        self.last_pid: int | None = None
        self.started_at = clock.monotonic()
        self.bounds: list[float] = []

    @property
    def waited_s(self) -> float:
        return self.starved * (clock.monotonic() - self.started_at)

    async def start(self) -> None:
        """Whoever is cancelled meanwhile waits all the same, as for a real fork."""
        forking = asyncio.ensure_future(self._fork())
        try:
            await asyncio.shield(forking)
        finally:
            await asyncio.wait([forking])

    async def _fork(self) -> None:
        await asyncio.sleep(self.forked_after_s)
        if Process.refused:
            Process.refused -= 1
            raise self.refusal
        self.made.append(self)
        self.pid = self.last_pid = 1000 + len(self.made)
        self._beating = asyncio.create_task(self._beat())

    async def _beat(self) -> None:
        for plan in self.plan.modules:
            await asyncio.sleep(self.takes_s.get(plan.spec.name, 0.1))
            if plan.spec.name not in self.unready:
                self.on_report({"kind": "ready", "module": plan.spec.name})
        while not any(plan.spec.name in self.unready for plan in self.plan.modules):
            await asyncio.sleep(0.25)
            self.on_report({"kind": "beat"})

    def exit(self, code: int) -> None:
        self.pid = None
        self._beating.cancel()
        self._on_exit(code)

    def hang(self) -> None:
        self._beating.cancel()

    def kill(self) -> None:
        if self.pid is not None:
            self.exit(-9)

    async def end(self, term_bound_s: float) -> None:
        self.bounds.append(term_bound_s)
        await asyncio.sleep(
            min(term_bound_s, max(self.takes_s.get(plan.spec.name, 0.0) for plan in self.plan.modules))
        )
        if self.pid is not None:
            self.exit(0)


@pytest.fixture(autouse=True)
def processes(monkeypatch: pytest.MonkeyPatch) -> type[Process]:
    Process.reset()
    monkeypatch.setattr(supervisor_module, "SupervisedProcess", Process)
    monkeypatch.setattr(supervisor_module, "start_forkserver", lambda shared: None)
    return Process


def two(restart: Restart = "on-failure", **talker: Any) -> Blueprint:
    specs = [
        ModuleSpec(name="talker", type="tests.runtime.modules:Talker", restart=restart, **talker),
        ModuleSpec(name="listener", type="tests.runtime.modules:Listener"),
    ]
    return Blueprint(name="two", modules={spec.name: spec for spec in specs})


class Run:
    """A supervisor and the events that it reports."""

    def __init__(self, blueprint: Blueprint, run_dir: Path | None = None, **options: Any) -> None:
        self.events: list[tuple[float, RunEvent]] = []
        run_options = RunOptions(bus_url="memq://", run_dir=run_dir, **options)
        self.supervisor = Supervisor(
            blueprint, run_options, lambda event: self.events.append((clock.monotonic(), event))
        )

    def reported(self, kind: str) -> list[RunEvent]:
        return [event for _, event in self.events if event.kind == kind]

    def states(self) -> list[str]:
        return [view.state for view in self.supervisor.processes()]


@pytest.mark.virtual_time
async def test_a_run_is_up_when_every_module_is_ready_and_ends_in_reverse() -> None:
    run = Run(two())
    assert run.states() == ["new", "new"]
    await run.supervisor.start()
    assert run.states() == ["ready", "ready"]
    assert [view.pid for view in run.supervisor.processes()] == [1001, 1002]
    assert [(event.kind, event.process, event.module) for _, event in run.events] == [
        ("starting", "talker", ""),
        ("starting", "listener", ""),
        ("ready", "talker", "talker"),
        ("ready", "listener", "listener"),
    ]
    await run.supervisor.stop()
    await run.supervisor.stop()
    assert [event.process for event in run.reported("stopping")] == ["listener", "talker"]
    assert [event.process for event in run.reported("stopped")] == ["listener", "talker"]
    assert run.states() == ["stopped", "stopped"]
    assert [view.pid for view in run.supervisor.processes()] == [None, None]
    assert run.reported("restarting") == []
    assert [process.bounds for process in Process.made] == [[5.0], [5.0]]


@pytest.mark.virtual_time
async def test_events_that_can_not_be_shown_keep_nothing_from_being_restarted_or_ended() -> None:
    run = Run(two())
    await run.supervisor.start()

    def fail(event: RunEvent) -> None:
        raise OSError("the terminal is gone")

    run.supervisor._on_event = fail
    Process.made[0].exit(-9)
    await until(lambda: len(Process.made) == 3 and run.states() == ["ready", "ready"])
    await run.supervisor.stop()
    assert run.states() == ["stopped", "stopped"]


@pytest.mark.virtual_time
async def test_a_process_of_two_modules_is_ready_with_both() -> None:
    modules = {name: ModuleSpec(name=name, type="tests.runtime.modules:Talker", process="p") for name in "ab"}
    run = Run(Blueprint(name="both", modules=modules))
    starting = asyncio.create_task(run.supervisor.start())
    await until(lambda: len(run.reported("ready")) == 1)
    assert run.states() == ["starting"]
    await starting
    assert run.states() == ["ready"]
    await run.supervisor.stop()


@pytest.mark.virtual_time
async def test_what_is_not_ready_in_time_is_named_and_everything_stops() -> None:
    Process.unready = {"listener"}
    run = Run(two())
    with pytest.raises(ModuleFailedError, match=r"^not ready within 30 s: listener$"):
        await run.supervisor.start()
    assert clock.monotonic() == pytest.approx(30.4, abs=0.3)
    assert run.states() == ["stopped", "stopped"]


@pytest.mark.virtual_time
async def test_what_is_restarted_while_the_run_starts_has_no_more_time_than_all_others() -> None:
    Process.takes_s = {"listener": 29.0}
    run = Run(two())
    starting = asyncio.create_task(run.supervisor.start())
    await until(lambda: run.states() == ["ready", "starting"])
    await asyncio.sleep(20.0)
    Process.unready, Process.takes_s = {"talker"}, {}
    Process.made[0].exit(1)
    with pytest.raises(ModuleFailedError, match=r"^not ready within 30 s: talker$"):
        await starting
    assert clock.monotonic() == pytest.approx(30.4, abs=0.3)


@pytest.mark.virtual_time
async def test_a_process_whose_time_can_not_be_read_any_more_is_not_silent_for_longer() -> None:
    Process.starved = 0.5
    run = Run(two())
    await run.supervisor.start()
    await asyncio.sleep(100.0)
    Process.starved = 0.0
    assert run.supervisor._slots[0].stalled_s(clock.monotonic()) <= 0.25
    await run.supervisor.stop()


def fleet(robots: int) -> Blueprint:
    names = ["recorder", *(f"robot{n}/{part}" for n in range(1, robots + 1) for part in ("base", "drive")), "bridge"]
    modules = {name: ModuleSpec(name=name, type="tests.runtime.modules:Talker") for name in names}
    return Blueprint(name="fleet", modules=modules)


@pytest.mark.virtual_time
async def test_few_processes_begin_at_once_and_who_waits_for_something_holds_nobody_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slots, "_AT_ONCE", 3)
    run = Run(fleet(10))
    Process.takes_s = {"robot2/base": 15.0, "robot2/drive": 25.0, "robot3/base": 28.0}
    at_once = [0]

    def count(event: RunEvent) -> None:
        at_once.append(run.states().count("starting"))

    run.supervisor._on_event = count
    await run.supervisor.start()
    assert max(at_once) <= 3 + len(Process.takes_s)
    assert max(at_once[:6]) == 3
    assert [process.plan.label for process in Process.made] == list(fleet(10).modules)
    last = next(process for process in Process.made if process.plan.label == "bridge")
    assert last.started_at < 9.0
    assert clock.monotonic() == pytest.approx(29, abs=1)
    await run.supervisor.stop()


@pytest.mark.virtual_time
async def test_robots_end_side_by_side_each_in_reverse() -> None:
    run = Run(fleet(30))
    await run.supervisor.start()
    Process.takes_s = dict.fromkeys(fleet(30).modules, 0.5)
    began = clock.monotonic()
    await run.supervisor.stop()
    assert clock.monotonic() - began == pytest.approx(4 * 0.5, abs=0.1), "bridge, drives, bases, recorder"
    stopped = [event.process for event in run.reported("stopped")]
    assert (stopped[0], stopped[-1]) == ("bridge", "recorder")
    assert all(stopped.index(f"robot{n}/drive") < stopped.index(f"robot{n}/base") for n in range(1, 31))
    assert len(stopped) == len(set(stopped)) == 62


@pytest.mark.virtual_time
async def test_processes_that_take_long_to_end_hold_the_others_up_within_one_bound() -> None:
    run = Run(fleet(3))
    await run.supervisor.start()
    Process.takes_s = dict.fromkeys(fleet(3).modules, 1000.0)
    began = clock.monotonic()
    await run.supervisor.stop()
    assert clock.monotonic() - began == pytest.approx(10.0, abs=0.1)
    assert run.states() == ["stopped"] * 8


@pytest.mark.virtual_time
async def test_pauses_double_up_to_five_seconds_until_it_runs_steadily() -> None:
    run = Run(two())
    await run.supervisor.start()
    ended = []
    for _ in range(7):
        ended.append(clock.monotonic())
        Process.made[-1 if len(ended) > 1 else 0].exit(1)
        assert run.states() == ["waiting", "ready"]
        assert run.supervisor.processes()[0].pid is None
        await until(lambda: run.states()[0] == "ready")
    pauses = [made.started_at - end for made, end in zip(Process.made[2:], ended, strict=True)]
    assert pauses == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0])
    assert run.supervisor.processes()[0].restarts == 7
    texts = [event.text for event in run.reported("restarting")]
    assert texts[:2] == [f"process 'talker' ended with exit code 1; again in {pause} s" for pause in ("0.2", "0.4")]
    await asyncio.sleep(10.0)
    Process.made[-1].exit(-11)
    assert run.reported("restarting")[-1].text == "process 'talker' ended by SIGSEGV; again in 0.2 s"
    await run.supervisor.stop()
    await asyncio.sleep(10.0)
    assert len(Process.made) == 9, "what waits when the run stops does not come back"
    assert [event.process for event in run.reported("failed")] == []


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("policy", "code", "becomes"),
    [
        ("on-failure", 0, "waiting"),
        ("always", 0, "waiting"),
        ("never", 0, "failed"),
        ("on-failure", 1, "waiting"),
        ("always", 1, "waiting"),
        ("never", 1, "failed"),
    ],
)
async def test_what_becomes_of_a_process_that_ends_is_its_policy_s(policy: Restart, code: int, becomes: str) -> None:
    run = Run(two(policy))
    await run.supervisor.start()
    waiting = asyncio.create_task(run.supervisor.wait())
    Process.made[0].exit(code)
    await asyncio.sleep(0.15)  # an end with code 0 may be that of the whole run
    assert run.states() == [becomes, "ready"]
    await asyncio.sleep(0.1)
    assert waiting.done() == (becomes == "failed")
    if becomes == "failed":
        with pytest.raises(ModuleFailedError, match=rf"process 'talker' ended with exit code {code}$"):
            await waiting
    assert f"process 'talker' ended with exit code {code}" in run.supervisor.processes()[0].failing
    waiting.cancel()
    await run.supervisor.stop()
    assert next(event.process for event in run.reported("stopping")) == "listener"


@pytest.mark.virtual_time
async def test_processes_that_end_with_the_run_are_not_started_again() -> None:
    run = Run(two())
    await run.supervisor.start()
    Process.made[0].exit(0)  # it was quicker than whoever tells the supervisor
    await asyncio.sleep(0.05)
    run.supervisor.expect_stop()
    Process.made[1].exit(1)
    await asyncio.sleep(1)
    assert not run.reported("restarting")
    await run.supervisor.stop()


@pytest.mark.virtual_time
@pytest.mark.parametrize("user", [True, False])
async def test_a_failure_is_shown_as_it_was_reported_with_the_log_for_who_looks_into_it(
    user: bool, tmp_path: Path
) -> None:
    Process.unready = {"talker"}
    run = Run(two(), tmp_path)
    starting = asyncio.create_task(run.supervisor.start())
    await until(lambda: len(Process.made) == 2)
    Process.made[0].on_report({"kind": "failed", "text": "the port is taken", "user": user})
    Process.made[0].exit(1)
    log = tmp_path / "logs" / "talker.log"
    with pytest.raises(UserError if user else ModuleFailedError) as failed:
        await starting
    assert str(failed.value) == ("the port is taken" if user else f"the port is taken (log: {log})")
    (reported,) = run.reported("failed")
    assert (reported.text, reported.log) == ("the port is taken", log)
    assert clock.monotonic() < 5.0, "nobody waits for the others"


@pytest.mark.virtual_time
async def test_a_process_that_fails_while_it_comes_back_is_tried_again() -> None:
    run = Run(two())
    await run.supervisor.start()
    Process.refused = 2
    Process.made[0].exit(1)
    await until(lambda: run.supervisor.processes()[0].restarts == 3)
    assert "it could not be started: BlockingIOError('no process can be had')" in run.reported("restarting")[-1].text
    await until(lambda: run.states()[0] == "ready")
    Process.unready = {"talker"}
    Process.made[-1].exit(1)
    before = len(Process.made)
    await until(lambda: len(Process.made) > before)
    Process.made[-1].exit(1)
    assert run.states()[0] == "waiting"
    Process.unready = set()
    await until(lambda: run.states()[0] == "ready")
    await run.supervisor.stop()


@pytest.mark.virtual_time
async def test_a_process_that_a_defect_keeps_from_starting_is_tried_again_and_the_log_says_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = Run(two())
    await run.supervisor.start()
    Process.refused, Process.refusal = 2, KeyError("a defect")
    Process.made[0].exit(1)
    await until(lambda: run.supervisor.processes()[0].restarts == 3)
    assert "it could not be started: KeyError('a defect')" in run.reported("restarting")[-1].text
    await until(lambda: run.states()[0] == "ready")
    assert "process 'talker' was not started because of a defect" in caplog.text
    await run.supervisor.stop()


@pytest.mark.virtual_time
async def test_the_end_of_a_process_is_reported_for_its_modules_but_not_that_of_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reported: list[tuple[tuple[str, ...], int, str]] = []

    async def report(_: ModuleReporter, modules: tuple[str, ...], pid: int, health: str) -> None:
        reported.append((modules, pid, health))

    monkeypatch.setattr(ModuleReporter, "report", report)
    run = Run(two(), run_dir=tmp_path)
    await run.supervisor.start()
    (tmp_path / "logs" / "talker.log").write_text("what is for the log only\n")
    for code in (-9, 3):
        Process.made[-1 if code == 3 else 0].exit(code)
        await until(lambda: run.states() == ["ready", "ready"])
    Process.made[-1].on_report({"kind": "failed", "text": "module 'talker' failed: no tongue", "user": False})
    Process.made[-1].exit(1)
    await until(lambda: run.states() == ["ready", "ready"])
    await run.supervisor.stop()
    assert reported == [
        (("talker",), 1001, "gone: its process ended by SIGKILL"),
        (("talker",), 1003, "gone: its process ended with exit code 3"),
        (("talker",), 1004, "gone: its process ended with exit code 1 (module 'talker' failed: no tongue)"),
    ]


@pytest.mark.virtual_time
async def test_a_defect_in_a_report_does_not_end_the_watch_over_hung_processes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def report(*_: object) -> None:
        raise KeyError("a defect")

    monkeypatch.setattr(ModuleReporter, "report", report)
    run = Run(two(), hang_bound_s=4.0)
    await run.supervisor.start()
    for process in Process.made[:2]:
        process.hang()
    await until(lambda: [view.restarts for view in run.supervisor.processes()] == [1, 1], 6.0)
    await until(lambda: run.states() == ["ready", "ready"])
    assert "whether process 'talker' hangs could not be judged" in caplog.text
    await run.supervisor.stop()


@pytest.mark.virtual_time
async def test_a_defect_in_the_watch_for_an_older_run_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def meet(*_: object) -> str:
        raise KeyError("a defect")

    monkeypatch.setattr(Neighbours, "meet", meet)
    run = Run(two())
    await run.supervisor.start()
    await until(lambda: "the task 'watch for an older run' has a defect and ends; the run goes on" in caplog.text)
    await run.supervisor.stop()


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_what_comes_back_and_is_never_ready_is_killed_and_tried_again() -> None:
    run = Run(two())
    await run.supervisor.start()
    Process.unready = {"talker"}
    Process.made[0].exit(1)
    await until(lambda: run.states()[0] == "starting")
    began = clock.monotonic()
    await until(lambda: run.states()[0] == "waiting", 60.0)
    assert clock.monotonic() - began == pytest.approx(30.0, abs=0.6)
    assert run.reported("restarting")[-1].text.startswith("process 'talker' was not ready within 30 s; again in")
    await run.supervisor.stop()


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_what_a_process_waits_for_a_processor_does_not_count_while_it_starts() -> None:
    run = Run(two())
    Process.starved, Process.unready = 0.9, {"talker"}
    starting = asyncio.create_task(run.supervisor.start())
    await asyncio.sleep(250.0)
    assert not starting.done(), "to begin anew would take longer still"
    Process.made[0].on_report({"kind": "ready", "module": "talker"})
    await starting
    Process.made[0].exit(1)
    await until(lambda: len(Process.made) == 3)
    await asyncio.sleep(250.0)
    assert (run.states(), run.supervisor.processes()[0].restarts) == (["starting", "ready"], 1)
    await until(lambda: run.states()[0] == "waiting", 60.0)
    assert run.reported("restarting")[-1].text.startswith("process 'talker' was not ready within 30 s; again in")
    await run.supervisor.stop()


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_a_process_has_its_whole_time_however_late_it_was_forked() -> None:
    run = Run(two())
    await run.supervisor.start()
    Process.forked_after_s, Process.unready = 40.0, {"talker"}
    Process.made[0].exit(1)
    await until(lambda: len(Process.made) == 3, 60.0)
    await asyncio.sleep(25.0)
    assert (run.states(), run.supervisor.processes()[0].restarts) == (["starting", "ready"], 1)
    await run.supervisor.stop()


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_what_keeps_failing_is_restarted_for_ever_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restarts, "_LONGEST_PAUSE_S", 0.2)
    run = Run(two())
    await run.supervisor.start()
    Process.made[0].exit(1)
    for count in range(1, 1100):
        view = run.supervisor.processes()[0]
        assert (view.restarts, view.why) == (count, "process 'talker' ended with exit code 1; again in 0.2 s")
        await asyncio.sleep(0.25)
        Process.made[-1].exit(1)
    (line,) = restarting(run.supervisor.processes())
    assert line == "RESTART talker: process 'talker' ended with exit code 1; again in 0.2 s", "`status` says it"
    await until(lambda: run.states()[0] == "ready")
    (line,) = restarting(run.supervisor.processes())
    ended = "process 'talker' ended with exit code 1"
    assert line == f"FAILING talker: 1100 restarts, the last one just now: {ended}", "it is up between two ends only"
    await asyncio.sleep(restarts.STEADY_AFTER_S)
    assert list(restarting(run.supervisor.processes())) == []
    await run.supervisor.stop()


@pytest.mark.virtual_time
async def test_a_process_without_a_processor_is_reported_as_hung_and_not_killed() -> None:
    run = Run(two(), hang_bound_s=4.0)
    await run.supervisor.start()
    Process.made[0].starved = 0.9
    Process.made[0].hang()
    await until(lambda: run.states()[0] == "hung")
    await asyncio.sleep(30.0)
    assert run.states()[0] == "hung"
    await until(lambda: run.states()[0] == "waiting", 20.0)
    await run.supervisor.stop()


@pytest.mark.virtual_time
async def test_what_hangs_is_reported_killed_and_comes_back_or_ends_quickly() -> None:
    run = Run(two(), hang_bound_s=4.0)
    await run.supervisor.start()
    began = clock.monotonic()
    Process.made[0].hang()
    await until(lambda: run.states()[0] == "hung")
    assert clock.monotonic() - began == pytest.approx(1.0, abs=0.3)
    assert run.supervisor.processes()[0].pid == 1001
    await until(lambda: run.states()[0] == "waiting")
    assert clock.monotonic() - began == pytest.approx(4.0, abs=0.3)
    assert len(run.reported("hung")) == 1
    assert run.reported("restarting")[-1].text.startswith("process 'talker' hung for 4.")
    await until(lambda: run.states()[0] == "ready")
    Process.made[-1].hang()
    await until(lambda: run.states()[0] == "hung")
    await run.supervisor.stop()
    assert Process.made[-1].bounds == [0.5], "it would not hear"
