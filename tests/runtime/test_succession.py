"""A process takes the place of another one, in virtual time: broken code keeps the old one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.cli.bridge_client.run_status.text import restarting
from dimos_streams.errors import ModuleFailedError, UserError
from dimos_streams.runtime.live import supervisor as supervisor_module
from dimos_streams.runtime.processes.worker_task import WorkerTask
from tests.helpers import until
from tests.runtime.test_restarts import Process, Run, two

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("K4")]


class Worker(Process):
    """A process that prepares itself if it is to, as its code is."""

    broken = ""
    unstartable = False
    slow = False

    def __init__(self, plan: Any, task: WorkerTask, *reports: Any) -> None:
        super().__init__(plan, task, *reports)
        self.task, self.begin_asked, self.reasons = task, asyncio.Event(), list[str]()
        self.begun_with: dict[str, dict[str, str]] | None = None

    async def _beat(self) -> None:
        if self.task.waits:
            await asyncio.sleep(1000.0 if self.slow else 0.1)
            if self.broken:
                self.on_report({"kind": "failed", "text": self.broken, "user": True})
                asyncio.get_running_loop().call_soon(self.exit, 1)
                return
            self.on_report({"kind": "prepared", "outputs": []})
            await self.begin_asked.wait()
            if self.unstartable:
                self.on_report({"kind": "failed", "text": "no kettle", "user": False})
                asyncio.get_running_loop().call_soon(self.exit, 1)
                return
        await super()._beat()

    def begin(self, live: Any) -> None:
        self.begun_with = {module: dict(values) for module, values in live.items()}
        self.begin_asked.set()

    async def end(self, term_bound_s: float, reason: str = "") -> None:
        self.reasons.append(reason)
        await asyncio.sleep(0.2 if reason else 0.0)
        await super().end(term_bound_s)


@pytest.fixture(autouse=True)
def processes(monkeypatch: pytest.MonkeyPatch) -> None:
    Process.reset()
    Worker.broken, Worker.unstartable, Worker.slow = "", False, False
    monkeypatch.setattr(supervisor_module, "SupervisedProcess", Worker)
    monkeypatch.setattr(supervisor_module, "start_forkserver", lambda shared: None)


def made() -> list[Worker]:
    return [each for each in Process.made if isinstance(each, Worker)]


async def test_a_successor_prepares_itself_then_the_old_one_ends_for_a_reason_then_it_begins() -> None:
    run = Run(two())
    await run.supervisor.start()
    old, other = made()
    restarting = asyncio.create_task(run.supervisor.restart("talker", "its code changed"))
    await until(lambda: len(made()) == 3)
    new = made()[-1]
    await asyncio.sleep(0.05)
    assert (run.states(), old.pid, new.begin_asked.is_set()) == (["ready", "ready"], 1001, False), (
        "the old one goes on meanwhile"
    )
    await until(lambda: bool(old.reasons))
    assert (old.reasons, new.begin_asked.is_set(), run.states()[0]) == (["its code changed"], False, "starting")
    assert await restarting == ("talker",)
    assert (old.pid, new.pid, other.pid) == (None, 1003, 1002)
    view = run.supervisor.processes()[0]
    assert (view.pid, view.state, view.restarts) == (1003, "ready", 1)
    assert [event.text for event in run.reported("restarting")] == ["its code changed"]
    await run.supervisor.stop()
    assert other.reasons == new.reasons == [""]


async def test_what_made_the_old_code_wait_does_not_make_the_new_code_wait() -> None:
    run = Run(two())
    await run.supervisor.start()
    for number in (3, 4):
        run.supervisor._slots[0].process.kill()  # type: ignore[union-attr]
        await until(lambda: len(made()) == number and run.states()[0] == "ready")  # noqa: B023
    await run.supervisor.restart("talker", "its code changed")
    made()[-1].exit(1)
    pauses = [event.text.rpartition("; again in ")[2] for event in run.reported("restarting")]
    assert pauses == ["0.2 s", "0.4 s", "its code changed", "0.2 s"]
    await run.supervisor.stop()


async def test_broken_code_keeps_the_old_process() -> None:
    run = Run(two())
    await run.supervisor.start()
    Worker.broken = "kettle.py:12: no good"
    for _ in range(2):
        with pytest.raises(UserError, match=r"^kettle.py:12: no good$"):
            await run.supervisor.restart("talker", "its code changed")
    await asyncio.sleep(0.5)
    assert run.states() == ["ready", "ready"]
    assert [each.pid for each in made()] == [1001, 1002, None, None]
    assert run.reported("restarting") == run.reported("failed") == []
    Worker.broken = ""
    await run.supervisor.restart("talker", "mended")
    assert run.supervisor.processes()[0].pid == 1005
    await run.supervisor.stop()


async def test_code_that_is_never_imported_is_given_up() -> None:
    run = Run(two())
    await run.supervisor.start()
    Worker.slow = True
    with pytest.raises(UserError, match=r"^the code of process 'talker' was not imported within 30 s$"):
        await run.supervisor.restart("talker", "its code changed")
    assert (run.states(), [each.pid for each in made()]) == (["ready", "ready"], [1001, 1002, None])
    await run.supervisor.stop()


async def test_newer_code_is_imported_instead_of_what_takes_for_ever() -> None:
    run = Run(two())
    await run.supervisor.start()
    assert not run.supervisor.outdate("talker"), "nothing is being imported"
    Worker.slow, began = True, clock.monotonic()
    restarting = asyncio.create_task(run.supervisor.restart("talker", "its code changed"))
    await until(lambda: len(made()) == 3 and made()[-1].pid is not None)
    Worker.slow = False
    assert run.supervisor.outdate("talker")
    assert await restarting == ("talker",)
    assert clock.monotonic() - began < 1.0
    assert [(each.pid, each.begin_asked.is_set()) for each in made()] == [
        (None, False), (1002, False), (None, False), (1004, True),
    ]  # fmt: skip
    assert [event.text for event in run.reported("restarting")] == ["its code changed"]
    await run.supervisor.stop()


@pytest.mark.slow
async def test_what_new_code_waits_for_a_processor_does_not_count() -> None:
    run = Run(two())
    await run.supervisor.start()
    Worker.slow, Process.starved, began = True, 0.9, clock.monotonic()
    with pytest.raises(UserError, match=r"was not imported within 30 s$"):
        await run.supervisor.restart("talker", "its code changed")
    assert clock.monotonic() - began == pytest.approx(300.0, abs=1.0)
    await run.supervisor.stop()


@pytest.mark.parametrize(("policy", "becomes"), [("on-failure", "waiting"), ("never", "failed")])
async def test_a_successor_that_does_not_start_is_not_the_run_s_failure(policy: Any, becomes: str) -> None:
    run = Run(two(policy))
    await run.supervisor.start()
    waiting = asyncio.create_task(run.supervisor.wait())
    Worker.unstartable = True
    with pytest.raises(ModuleFailedError, match=r"^no kettle$"):
        await run.supervisor.restart("talker", "its code changed")
    assert run.states() == [becomes, "ready"]
    (view, _) = run.supervisor.processes()
    assert view.failing.startswith("no kettle"), "`run --duration` names it"
    (line,) = restarting([view])
    again = "; again in 0.2 s" if becomes == "waiting" else "; `dimos-streams restart talker` starts it again"
    assert line == f"{'RESTART' if becomes == 'waiting' else 'FAILED'} talker: no kettle{again}"
    Worker.unstartable = False
    await run.supervisor.restart("talker", "mended")
    assert run.supervisor.processes()[0].failing == ""
    await asyncio.sleep(5.0)
    assert run.states() == ["ready", "ready"]
    assert [each.pid for each in made() if each.plan.label == "talker"][-1] is not None
    assert sum(each.pid is not None for each in made()) == 2, "what waited to come back did not come besides"
    assert not waiting.done()
    waiting.cancel()
    await run.supervisor.stop()


async def test_what_operators_have_set_outlives_every_process() -> None:
    run = Run(two())
    await run.supervisor.start()
    made()[0].on_report({"kind": "settings", "module": "talker", "values": {"period_s": "0.5"}})
    made()[0].exit(1)
    await until(lambda: run.states()[0] == "ready")
    await run.supervisor.restart("talker", "again")
    lives = [each.task.live for each in made() if each.plan.label == "talker"]
    assert lives == [{}, {"talker": {"period_s": "0.5"}}, {"talker": {"period_s": "0.5"}}]
    assert [each.task.supplied is None for each in made()] == [True, True, False, False]
    await run.supervisor.stop()


async def test_a_successor_begins_with_what_its_predecessor_took_until_its_end() -> None:
    run = Run(two())
    await run.supervisor.start()
    old = made()[0]
    restarting = asyncio.create_task(run.supervisor.restart("talker", "its code changed"))
    for moment, period_s in ((lambda: len(made()) == 3, "0.5"), (lambda: bool(old.reasons), "0.7")):
        await until(moment)
        assert old.pid is not None
        old.on_report({"kind": "settings", "module": "talker", "values": {"period_s": period_s}})
    await restarting
    assert made()[-1].begun_with == {"talker": {"period_s": "0.7"}}
    await run.supervisor.stop()


async def test_a_process_of_two_modules_is_restarted_whole_and_who_is_not_there_is_named() -> None:
    modules = {
        name: ModuleSpec(name=name, type="tests.runtime.modules:Talker", process="p") for name in ("up", "down")
    }
    run = Run(Blueprint(name="both", modules=modules))
    await run.supervisor.start()
    assert await run.supervisor.restart("down", "again") == ("up", "down")
    assert await run.supervisor.restart("p", "again") == ("up", "down")
    with pytest.raises(
        UserError, match=r"^no module 'dawn' is in this run; did you mean 'down'\? \(modules: up, down\)$"
    ):
        await run.supervisor.restart("dawn", "again")
    await run.supervisor.stop()


async def test_restarts_of_one_module_come_one_after_another_and_end_with_the_run() -> None:
    run = Run(two())
    await run.supervisor.start()
    await asyncio.gather(*(run.supervisor.restart("talker", str(number)) for number in range(2)))
    assert [event.text for event in run.reported("restarting")] == ["0", "1"]
    Worker.slow = True
    late = asyncio.create_task(run.supervisor.restart("talker", "late"))
    await until(lambda: len(made()) == 5)
    await run.supervisor.stop()
    with pytest.raises(UserError, match=r"^the run is stopping$"):
        await late
    with pytest.raises(UserError, match=r"^the run is stopping$"):
        await run.supervisor.restart("talker", "later")
    assert [each.pid for each in made()] == [None] * 5


async def test_a_run_that_stops_while_a_successor_is_forked_leaves_none() -> None:
    run = Run(two())
    await run.supervisor.start()
    Process.forked_after_s = 1.0
    restarting = asyncio.create_task(run.supervisor.restart("talker", "its code changed"))
    await asyncio.sleep(0.5)
    assert len(made()) == 2, "it is being forked"
    await run.supervisor.stop()
    assert [(each.pid, each.begin_asked.is_set()) for each in made()] == [(None, False)] * 3
    with pytest.raises(UserError, match=r"^the run is stopping$"):
        await restarting


@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_run_that_stops_while_an_old_process_ends_waits_for_it_and_begins_no_other(cancelled: bool) -> None:
    run = Run(two())
    await run.supervisor.start()
    Process.takes_s = {"talker": 3.0}
    restarting = asyncio.create_task(run.supervisor.restart("talker", "its code changed"))
    await until(lambda: bool(made()[0].reasons))
    if cancelled:
        restarting.cancel()
        await asyncio.wait([restarting])
    assert made()[0].pid is not None, "it ends slowly"
    await run.supervisor.stop()
    assert [(each.pid, each.begin_asked.is_set()) for each in made()] == [(None, False)] * 3
    with pytest.raises(asyncio.CancelledError if cancelled else ModuleFailedError):
        await restarting


@pytest.mark.parametrize("stops", [False, True])
async def test_a_process_that_is_being_forked_again_leaves_its_place_to_a_successor_and_ends_with_the_run(
    stops: bool,
) -> None:
    run = Run(two())
    await run.supervisor.start()
    Process.forked_after_s = 1.0
    made()[0].exit(1)
    await until(lambda: run.states()[0] == "starting")
    await asyncio.sleep(0.5)
    assert len(made()) == 2, "it is being forked"
    if not stops:
        Process.forked_after_s = 0.0
        await run.supervisor.restart("talker", "its code changed")
        await asyncio.sleep(5.0)
        assert sum(each.pid is not None for each in made()) == 2, "there is one of each"
    await run.supervisor.stop()
    await asyncio.sleep(5.0)
    assert [each.pid for each in made()] == [None] * len(made())
