"""How modules start, end and fail on one loop, who is there already, and who notices a loop that does not run."""

from __future__ import annotations

import asyncio
import contextlib
import linecache
import logging
import os
import re
import time
from collections.abc import AsyncIterator

import pytest

from dimos_streams import clock
from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.bus import Bus, create_bus
from dimos_streams.bus.memory import MemoryBus
from dimos_streams.errors import BusError, ModuleFailedError, UnendingError, UserError
from dimos_streams.messages.codec import decode
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.messages.std_msgs import String
from dimos_streams.module import Module, RunContext
from dimos_streams.runtime import liveness
from dimos_streams.runtime.events import RunEvent
from dimos_streams.runtime.in_process import InProcessRun
from dimos_streams.runtime.liveness import ModuleReporter, beat
from dimos_streams.runtime.module_host import ModuleHost
from dimos_streams.runtime.neighbours import Neighbours
from dimos_streams.runtime.options import RunOptions
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.protocol.channels import STATUS
from tests.helpers import no_threads, run_virtual, until
from tests.runtime.modules import DeafAtItsEnd, DeafAtWork, Listener, Talker

TALKER, LISTENER = "tests.runtime.modules:Talker", "tests.runtime.modules:Listener"


def pair(**talker: object) -> Blueprint:
    specs = [
        ModuleSpec(name="talker", type=TALKER, config=talker),
        ModuleSpec(name="listener", type=LISTENER),
    ]
    return Blueprint(name="pair", modules={spec.name: spec for spec in specs})


@contextlib.asynccontextmanager
async def opened(bus: Bus) -> AsyncIterator[Bus]:
    await bus.open()
    try:
        yield bus
    finally:
        await bus.close()


@pytest.mark.virtual_time
async def test_all_on_one_loop_start_in_order_and_end_in_reverse_with_what_is_attached_around_them() -> None:
    happened: list[str] = []

    @contextlib.asynccontextmanager
    async def recorder(bus: Bus) -> AsyncIterator[None]:
        happened.append("recorder on")
        bus.subscribe("/heard#std_msgs.String", lambda _, data: heard.append(decode(String, data).data))
        yield
        happened.append("recorder off")

    heard: list[str] = []

    def note(event: RunEvent) -> None:
        happened.append(f"{event.kind} {event.module}".strip())
        assert event.process == "main"

    run = InProcessRun(pair(), RunOptions(bus_url="memq://"), note, attach=[recorder])
    assert [(view.state, view.modules) for view in run.processes()] == [("stopped", ())]
    await run.stop()
    assert happened == [], "what has not begun has nothing to end"
    await run.start()
    (view,) = run.processes()
    assert (view.state, view.modules, view.pid) == ("ready", ("talker", "listener"), os.getpid())
    assert (run.module("talker").name, run.gateway) == ("talker", None)
    with pytest.raises(UserError, match=r"no module 'taker' runs; did you mean 'talker'\?"):
        run.module("taker")
    await until(lambda: len(heard) >= 2)
    assert heard[:2] == ["talker 1", "talker 2"]
    await run.stop()
    await run.stop()
    reported = len(heard)
    assert run.processes()[0].state == "stopped"
    begun = ["recorder on", "starting talker", "ready talker", "starting listener", "ready listener"]
    assert happened == [*begun, "stopping", "recorder off", "stopped"]
    await asyncio.sleep(1.0)  # it would have talked several times meanwhile
    assert len(heard) == reported


class Parting(Talker):
    """It says much at its end."""

    async def stop(self) -> None:
        for number in range(500):
            self.words.publish(String(data=f"goodbye {number}"))


@pytest.mark.virtual_time
async def test_what_is_attached_hears_what_modules_say_at_their_end() -> None:
    heard: list[str] = []

    @contextlib.asynccontextmanager
    async def recorder(bus: Bus) -> AsyncIterator[None]:
        subscription = bus.subscribe(
            "/words#std_msgs.String", lambda _, data: heard.append(decode(String, data).data)
        )
        yield
        subscription.close()

    parting = ModuleSpec(name="parting", type="tests.runtime.test_hosts:Parting")
    run = InProcessRun(
        Blueprint(name="one", modules={"parting": parting}), RunOptions(bus_url="memq://"), attach=[recorder]
    )
    await run.start()
    await run.stop()
    assert heard[-1:] == ["goodbye 499"]


@pytest.mark.virtual_time
async def test_a_failure_of_one_is_the_run_s_and_names_it() -> None:
    run = InProcessRun(pair(fail_after=5), RunOptions(bus_url="memq://"))
    await run.start()
    with pytest.raises(ModuleFailedError, match=r"^module 'talker' failed: RuntimeError: out of words$"):
        async with asyncio.timeout(5):
            await run.wait()
    await run.stop()
    events: list[RunEvent] = []
    run = InProcessRun(pair(fail_at_start="no camera"), RunOptions(bus_url="memq://"), events.append)
    with pytest.raises(ModuleFailedError, match=r"^module 'talker' could not start: RuntimeError: no camera$"):
        await run.start()
    assert [event.kind for event in events] == ["starting", "stopping", "stopped"]
    assert run.processes()[0].modules == ()
    with pytest.raises(UserError, match=r"^the port is taken; choose another$"):
        await InProcessRun(pair(fail_at_start="user"), RunOptions(bus_url="memq://")).start()


def test_a_module_that_does_not_stop_is_left_after_a_while_and_the_others_stop(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        stopped: list[str] = []

        class Slow(Talker):
            async def stop(self) -> None:
                await super().stop()
                stopped.append(self.name)

        class Broken(Slow):
            async def stop(self) -> None:
                stopped.append(self.name)
                raise RuntimeError("it does not end well")

        async with opened(MemoryBus()) as bus:
            host = ModuleHost(bus)
            for module in (Slow(name="a"), Broken(name="b"), Slow({"stop_takes_s": 60.0}, name="c"), Slow(name="d")):
                await host.start(module, {"words": f"/{module.name}"})
            assert [module.name for module in host.modules] == ["a", "b", "c", "d"]
            began = clock.monotonic()
            await host.stop()
            await host.stop()
            assert clock.monotonic() - began == pytest.approx(3.0, abs=0.1)
            assert stopped == ["d", "b", "a"]
            assert host.modules == []

    with caplog.at_level(logging.ERROR):
        run_virtual(scenario())
    assert "module c did not stop within 3 s" in caplog.text
    assert "module b failed while it stopped" in caplog.text
    assert "it does not end well" in caplog.text


@pytest.mark.virtual_time
async def test_what_start_took_is_released_although_the_tasks_take_their_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A device is closed, and motors are switched off, in ``stop``."""
    released: list[float] = []

    class Driver(Module):
        async def run(self) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(60)

        async def stop(self) -> None:
            await asyncio.sleep(0.5)
            released.append(clock.monotonic())

    async with opened(MemoryBus()) as bus:
        host = ModuleHost(bus)
        await host.start(Driver(name="driver"), {})
        await asyncio.sleep(1)
        began = clock.monotonic()
        await host.stop()
        assert released == [pytest.approx(began + 2.5, abs=0.01)]
    assert "module driver did not end its tasks within 2 s" in caplog.text


@pytest.mark.virtual_time
async def test_a_stream_without_a_topic_is_silent_or_refused() -> None:
    async with opened(MemoryBus()) as bus:
        host = ModuleHost(bus)
        with pytest.raises(UserError, match="stream 'words' of module 'listener' is required and has no topic"):
            await host.start(Listener(name="listener"), {})
        everything: list[str] = []
        bus.subscribe_all(lambda channel, data: everything.append(channel))
        await host.start(Talker(name="talker"), {})
        await asyncio.sleep(1.0)  # it would have talked several times meanwhile
        assert not any("words" in channel for channel in everything)
        assert STATUS in everything
        await host.stop()


@pytest.mark.usefixtures("lcm_library")
def test_a_robot_does_not_hear_another_one_until_it_wants_to(bus_url: str) -> None:
    async def scenario() -> None:
        async with opened(create_bus(bus_url)) as first, opened(create_bus(bus_url)) as second:
            hosts = ModuleHost(first, ["robot1/"]), ModuleHost(second, ["robot2/"])
            heard: list[str] = []
            contexts = [RunContext(namespace=f"robot{number}/") for number in (1, 2)]
            for number, (host, context) in enumerate(zip(hosts, contexts, strict=True), start=1):
                await host.start(Talker(name=f"robot{number}/talker", context=context), {})
                await host.start(Listener(name=f"robot{number}/listener", context=context), {"words": "/words"})
            await hosts[1].start(Talker(name="tower", context=contexts[1]), {})
            directory = contexts[0].services.get(ModuleDirectory)
            assert directory is not None
            second.subscribe(STATUS, lambda _, data: heard.append(decode(ModuleStatus, data).module))
            await until(lambda: heard.count("robot2/listener") > 1 and directory.module("tower"))
            assert [view.name for view in directory.modules()] == ["robot1/listener", "robot1/talker", "tower"]
            directory.hear_all()
            await until(lambda: directory.known("robot2_wait"))
            assert directory.count == 5
            for host in hosts:
                await host.stop()

    asyncio.run(scenario())


async def seconds_until_free(neighbours: Neighbours) -> float:
    began = clock.monotonic()
    await neighbours.refuse()
    return clock.monotonic() - began


@pytest.mark.virtual_time
async def test_what_runs_already_is_refused_unless_it_ends_in_time() -> None:
    async with opened(Shared()) as bus:

        async def asked(*names: str) -> Neighbours:
            neighbours = Neighbours(bus, names)
            await neighbours.open()
            return neighbours

        assert await seconds_until_free(await asked("talker", "listener")) == pytest.approx(0.4, abs=0.01)
        host = ModuleHost(bus)
        for module, topics in ((Talker(name="talker"), {}), (Listener(name="listener"), {"words": "/words"})):
            await host.start(module, topics)
        assert await seconds_until_free(await asked("another")) == pytest.approx(0.4, abs=0.01)
        neighbours, began = await asked("talker", "listener"), clock.monotonic()
        with pytest.raises(UserError) as refused:
            await neighbours.refuse()
        assert clock.monotonic() - began == pytest.approx(2.5, abs=0.1)
        text = str(refused.value)
        assert text.startswith("module 'listener' runs already on memq:// (and 1 more of this blueprint): ")
        assert text.endswith("end that run (`dimos-streams stop`), or give this one another --bus or namespace")
        with pytest.raises(UserError, match=r"^module 'talker' runs already on memq://: "):
            await (await asked("talker")).refuse()
        ending = asyncio.create_task(_stop_later(host, 1.0))
        waited = await seconds_until_free(await asked("talker", "listener"))
        assert 1.0 <= waited < 1.0 + 0.6 + 0.1, "it is waited for"
        await ending


class Shared(MemoryBus):
    """A bus that stays open when one of its users closes it."""

    async def close(self) -> None:
        """Nothing: others use it."""


async def _stop_later(host: ModuleHost, after_s: float) -> None:
    await asyncio.sleep(after_s)
    await host.stop()


def test_of_runs_that_begin_together_the_younger_ends() -> None:
    async def scenario(ours_is_elder: bool) -> tuple[str, float]:
        async with opened(Shared()) as bus:
            neighbours = Neighbours(bus, ["talker"])
            await neighbours.open()
            times = {"ours": 1_000_000, "theirs": 2_000_000 if ours_is_elder else 500_000}
            began = clock.monotonic()

            async def beat_both() -> None:
                while True:
                    for pid, whose in ((11, "ours"), (22, "theirs")):
                        status = ModuleStatus(
                            utime=clock.utime(),
                            module="talker",
                            instance=whose,
                            pid=pid,
                            host=os.uname().nodename,
                            health="ok",
                            started_utime=times[whose],
                        )
                        neighbours._directory._intake._take_heartbeat(status)
                    await asyncio.sleep(0.2)

            beating = asyncio.create_task(beat_both())
            reported = await neighbours.meet(lambda: [11, None])
            beating.cancel()
            return reported, clock.monotonic() - began

    stays, after_s = run_virtual(scenario(True))
    assert stays == ""
    assert after_s == pytest.approx(3.0, abs=0.15)
    ends, after_s = run_virtual(scenario(False))
    assert ends.startswith("module 'talker' runs already on memq://: pid 22 on ")
    assert after_s < 2.0


@pytest.mark.virtual_time
async def test_a_loop_that_runs_beats_four_times_a_second() -> None:
    beats: list[float] = []
    beating = asyncio.create_task(beat(lambda: beats.append(clock.monotonic())))
    await asyncio.sleep(2.1)  # the number of beats in this time is what counts
    assert beats == pytest.approx([0.25 * number for number in range(9)])
    beating.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await beating


def test_a_loop_that_does_not_run_is_reported_once_with_what_it_does(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "HUNG_AFTER_S", 0.1)
    monkeypatch.setattr(liveness, "BEAT_S", 0.02)

    def think_hard() -> None:
        time.sleep(0.5)

    async def scenario() -> None:
        beats: list[None] = []
        beating = asyncio.create_task(beat(lambda: beats.append(None)))
        while "think_hard()" not in caplog.text:  # on a busy machine who looks may come too late
            beats.clear()
            await until(lambda: beats)
            think_hard()
        await until(lambda: "did not run for" in caplog.text)
        beating.cancel()

    with caplog.at_level(logging.WARNING):
        asyncio.run(scenario())
    # A busy machine may hold the loop up elsewhere, too.
    (shown,) = [text for text in caplog.messages if "think_hard()" in text]
    place, *callers = shown.split("; called by ")
    assert place.startswith("the loop of this process does not run; its thread is at time.sleep(0.5)  (")
    assert ".think_hard): what blocks belongs in a thread, `await self.run_blocking(f, …)`" in place
    assert [caller.split("  (")[0] for caller in callers] == ["think_hard()"], "not what runs the loop"
    assert re.search(r"the loop of this process did not run for \d+\.\d s$", caplog.text, re.MULTILINE)
    assert __file__ not in linecache.cache, "the sources that it has read are not kept"


@pytest.mark.virtual_time
async def test_whoever_can_not_speak_is_spoken_for(monkeypatch: pytest.MonkeyPatch) -> None:
    bus = MemoryBus()
    await bus.open()
    heard: list[ModuleStatus] = []
    bus.subscribe(STATUS, lambda _, data: heard.append(decode(ModuleStatus, data)))
    opened_for: list[str] = []

    def create(url: str) -> Bus:
        opened_for.append(url)
        return bus

    monkeypatch.setattr(liveness, "create_bus", create)
    reporter = ModuleReporter("memq://")
    await reporter.close()
    for _ in range(2):
        await reporter.report(["a", "b"], 7, "hung: for 1.2 s")
    await until(lambda: len(heard) >= 4)
    reported = [(status.module, status.pid, status.health, status.instance) for status in heard]
    assert reported == [(name, 7, "hung: for 1.2 s", "") for name in "abab"]
    assert opened_for == ["memq://"]
    await reporter.close()
    await reporter.close()


@pytest.mark.virtual_time
async def test_that_nobody_can_be_spoken_for_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class NoRoute(MemoryBus):
        async def open(self) -> None:
            raise BusError("no route to the bus")

    monkeypatch.setattr(liveness, "create_bus", NoRoute)
    reporter = ModuleReporter("memq://")
    with caplog.at_level(logging.WARNING):
        await reporter.report(["a"], 7, "hung: for 1.2 s")
    assert "no route to the bus" in caplog.text
    await reporter.close()


@pytest.mark.parametrize(
    ("deaf", "said"),
    [
        (DeafAtWork, "module deaf did not end its tasks within 2 s"),
        (DeafAtItsEnd, "module deaf did not stop within 3 s"),
    ],
)
def test_a_module_that_swallows_its_cancellation_holds_up_nobodys_end(
    deaf: type[Module], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with opened(create_bus("memq://")) as bus:
            host = ModuleHost(bus)
            await host.start(deaf(name="deaf"), {})
            await asyncio.sleep(1)
            await host.stop()
            assert host.modules == []

    with pytest.raises(UnendingError, match=r"\n  deaf:(run|stop): await asyncio\.sleep\(0\.5\)  \("):
        clock.run_virtual(main())
    assert said in caplog.text


def test_reports_at_the_same_time_open_one_bus(zenoh_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Bus] = []

    def create(url: str) -> Bus:
        made.append(create_bus(url))
        return made[-1]

    async def main() -> None:
        reporter = ModuleReporter(zenoh_url)
        await asyncio.gather(*(reporter.report((name,), 1, "gone") for name in ("a", "b")))
        await reporter.close()

    monkeypatch.setattr(liveness, "create_bus", create)
    asyncio.run(main())
    assert len(made) == 1


@pytest.mark.virtual_time
async def test_a_loop_that_no_thread_can_watch_beats_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    beats: list[None] = []
    with no_threads():
        beating = asyncio.create_task(beat(lambda: beats.append(None)))
        await until(lambda: len(beats) == 3)
    assert "nobody will see where the loop of this process is" in caplog.text
    beating.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await beating
