"""The monitor's watchers, in virtual time on a real bridge."""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import random
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.bridge.monitor.monitor import _MAX_REPORTED, LINGER_S, STATE_EVERY_S
from dimos_streams.bridge.monitor.robots import Robots
from dimos_streams.bridge.monitor.view import StateView, numbered
from dimos_streams.bridge.monitor.watcher import MAX_BYTES, MAX_MESSAGES
from dimos_streams.bridge.monitor.watchers import Watchers
from dimos_streams.bus import Subscription
from dimos_streams.errors import BusError, SkillError
from dimos_streams.operator.messages.agent import AgentEvent
from dimos_streams.operator.reporting import event_data
from dimos_streams.tool_stream.event import ToolEvent
from tests.bridge.monitor.toy_agent import ToyAgent, agents
from tests.bridge.monitor.watching_client import Client, Console
from tests.bridge.scene import Scene, Worker, closed, event, scene
from tests.helpers import run_virtual, until


@pytest.mark.feature("C5")
@pytest.mark.virtual_time
async def test_who_has_left_while_an_agent_was_asked_to_report_is_no_watcher(monkeypatch: pytest.MonkeyPatch) -> None:
    async with agents("agent") as (scene, _):
        begin, asked, go_on = scene.broker.call, asyncio.Event(), asyncio.Event()
        begun: list[str] = []

        async def late(*args: Any, **kwargs: Any) -> str:
            asked.set()
            await go_on.wait()
            begun.append(await begin(*args, **kwargs))
            return begun[0]

        monkeypatch.setattr(scene.broker, "call", late)
        console = Console(scene.bridge.monitor.watch(None))
        await asked.wait()
        await console.close()
        await asyncio.sleep(LINGER_S + 2 * STATE_EVERY_S)
        go_on.set()
        await until(lambda: begun)
        assert (await closed(scene.broker, begun[0])).outcome == "cancelled"


@pytest.mark.feature("C1")
@pytest.mark.virtual_time
async def test_two_agents_and_three_watchers() -> None:
    async with agents("robot1/agent", "robot2/agent") as (scene, made):
        monitor = scene.bridge.monitor
        all_, one, two = (Console(monitor.watch(agent)) for agent in (None, "robot1", "robot2/agent"))
        await until(lambda: all(agent.reports for agent in made.values()))
        for number in range(3):
            made["robot1/agent"].emit("text", text=f"one {number}")
            made["robot2/agent"].emit("text", text=f"two {number}")
        call_id = await scene.broker.call(
            "count", {"label": "x", "to": 2}, caller="robot1/agent", idempotency_key="robot1/agent/1"
        )
        for agent in made.values():
            agent.show()
        await closed(scene.broker, call_id)
        await until(lambda: all_.agent("robot2/agent").get("number") == 3 and not all_.state["calls"])
        for console in (all_, one, two):
            await console.close()

        def message(console: Console) -> list[str]:
            return [message["event"]["data"]["text"] for message in console.of("event")]

        assert sorted(message(all_)) == sorted(message(one) + message(two))
        assert message(one) == ["one 0", "one 1", "one 2"]
        assert message(two) == ["two 0", "two 1", "two 2"]
        assert list(one.state["agents"]) == ["robot1/agent"]
        assert set(all_.state["agents"]) == set(made)
        calls = [message["event"]["type"] for message in one.of("call")]
        assert calls == ["open", "update", "update", "close"]
        assert [message["event"]["call_id"] for message in all_.of("call")] == [call_id] * 4
        last = scene.bridge.broadcast.last_offset
        assert [message["offset"] for message in all_.of("call")] == list(range(last - 3, last + 1)), "in the journal"
        assert two.of("call") == []


@pytest.mark.slow
@pytest.mark.feature("C2")
@pytest.mark.virtual_time
async def test_a_stalled_watcher_costs_a_bounded_queue_and_gets_the_state() -> None:
    async with agents("agent") as (scene, made):
        agent = made["agent"]
        monitor = scene.bridge.monitor
        stalled, reading = monitor.watch(), Console(monitor.watch())
        client = Client()
        client.take(numbered(1, await stalled.next() or b""))
        await until(lambda: agent.reports)
        most = 0
        for _ in range(10):
            for _ in range(1000):
                agent.emit("text", text="x" * 200)
            agent.show()
            await until(lambda: reading.agent("agent").get("number") == agent.number)
            most = max(most, stalled.waiting)
        assert most < MAX_BYTES
        assert len(reading.of("event")) == 10_000, "the others miss nothing"
        assert monitor.statistics().gaps == 1
        gap = client.take(numbered(2, await stalled.next() or b""))
        state = client.take(numbered(3, await stalled.next() or b""))
        assert (gap["type"], state["type"]) == ("gap", "snapshot")
        assert gap["lost"] > 9000
        assert client.agent("agent")["number"] == agent.number == 10_000
        agent.emit("text", text="again")
        again = client.take(numbered(4, await stalled.next() or b""))
        assert again["event"]["data"]["text"] == "again"
        stalled.close()
        await reading.close()


class Checked(Console):
    """A console that reads at its own random pace and looks at each state that it gets."""

    def __init__(self, scene: Scene, made: dict[str, ToyAgent], rng: random.Random, agent: str | None) -> None:
        self.made = made
        self.rng = rng
        self.slowness = rng.choice([0.0, 0.0, 0.01, 0.3])
        self.began: dict[str, str] = {}
        self.reporting: set[str] = set()
        self.times: list[float] = []
        super().__init__(scene.bridge.monitor.watch(agent))

    async def _read(self) -> None:
        while (message := await self.watcher.next()) is not None:
            self.check(self.take(numbered(len(self.messages) + 1, message)))
            if self.slowness and self.rng.random() < 0.5:
                await asyncio.sleep(self.rng.uniform(0, self.slowness))

    def check(self, message: dict[str, Any]) -> None:
        if message["type"] in ("gap", "snapshot"):
            # Events that were lost, or were before, are not sent, though the agent may have shown no state since.
            self.numbers = {name: agent.number for name, agent in self.made.items()}
            self.began = {call["call_id"]: call["state"] for call in self.state.get("calls", ())}
            self.reporting = set(self.state.get("agents", ()))
            return
        if message["type"] == "call":
            self.began[message["event"]["call_id"]] = message["event"]["type"]
        if message["type"] != "change":
            return
        self.times.append(clock.monotonic())
        for name, agent in message["change"].get("agents", {}).items():
            if name not in self.reporting:  # what happened before it reported is in its first state
                self.numbers[name] = max(self.numbers[name], agent["number"])
            assert agent["number"] <= self.numbers[name], "an event that it contains comes later"
        self.reporting = set(self.state["agents"])
        for call in message["change"].get("calls", ()):
            if call["state"] == "open":
                assert self.began.get(call["call_id"]) in ("open", "update"), "its open was sent before"
        if "calls" in message["change"]:
            here = {call["call_id"] for call in message["change"]["calls"]}
            for call_id, type in self.began.items():
                assert type in ("close", "requested") or call_id in here, "a close is sent before its call is gone"


@pytest.mark.feature("C3")
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.virtual_time
@pytest.mark.slow
async def test_order_over_random_schedules(seed: int) -> None:
    rng, numbers = random.Random(seed), itertools.count()
    async with agents("robot1/agent", "robot2/agent") as (scene, made):
        consoles = [Checked(scene, made, rng, rng.choice([None, None, *made])) for _ in range(4)]
        deadline = clock.monotonic() + 4.0
        while clock.monotonic() < deadline:
            agent = made[rng.choice(list(made))]
            match rng.randrange(7):
                case 0 | 1:
                    for number in range(rng.choice([1, 1, 1, 1, 5, 5, 40, 600])):
                        agent.emit("text", text=str(number))
                        if rng.random() < 0.1:
                            agent.show()
                case 2 | 3:
                    agent.state = rng.choice(["idle", "streaming"])
                    agent.show()
                case 4:
                    name = rng.choice(["count", "chain"])
                    given = {"then": "count", "arguments": {"label": "c", "to": 3}}
                    own = {"label": "x", "to": rng.randrange(5)} if name == "count" else given
                    key = f"{agent.name}/{next(numbers)}"
                    await scene.broker.call(name, own, caller=agent.name, idempotency_key=key)
                case 5:
                    await consoles.pop(rng.randrange(len(consoles))).close()
                    consoles.append(Checked(scene, made, rng, rng.choice([None, *made])))
                case _:
                    await asyncio.sleep(rng.choice([0.0, 0.01, 0.2, 0.5]))
        for agent in made.values():
            agent.emit("last")
            agent.show()
        fast = [console for console in consoles if console.slowness < 0.1]
        for console in fast:
            known = [name for name in made if console.watcher.wants(name)]
            await until(
                lambda c=console, n=known: all(c.agent(name).get("number") == made[name].number for name in n)  # type: ignore[misc]
            )
        for console in consoles:
            await console.close()


@pytest.mark.feature("C3")
@pytest.mark.virtual_time
@pytest.mark.slow
async def test_steady_traffic_starves_no_state() -> None:
    async with agents("agent") as (scene, made):
        agent = made["agent"]
        console = Checked(scene, made, random.Random(1), None)
        console.slowness = 0.0
        await until(lambda: agent.reports)
        began = clock.monotonic()
        while clock.monotonic() - began < 5:
            agent.emit("text", text="x")
            agent.show()
            await asyncio.sleep(0.003)
        await console.close()
        times = [began, *(at for at in console.times if at > began)]
        pauses = [later - sooner for sooner, later in itertools.pairwise(times)]
        assert max(pauses) < 2 * STATE_EVERY_S
        assert len(times) >= 22
        changes = [message["change"] for message in console.of("change")]
        steady = [change["agents"] for change in changes if "agents" in change]
        texts = [json.dumps(state) for state in steady]
        assert len(set(texts)) == len(texts)


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_nothing_is_sent_while_nothing_changes() -> None:
    async with agents("agent") as (scene, _):
        console = Console(scene.bridge.monitor.watch())
        await until(lambda: console.agent("agent").get("watched") and console.state["watchers"] == 1)
        count = len(console.messages)
        await asyncio.sleep(30)
        assert len(console.messages) == count
        await console.close()


@pytest.mark.virtual_time
async def test_nobody_watches_a_monitor_that_has_stopped() -> None:
    async with agents("agent") as (scene, _):
        monitor = scene.bridge.monitor
        watching = monitor.watch()
        await monitor.stop()
        await monitor.stop()
        assert watching.closed
        late = monitor.watch()
        assert await asyncio.wait_for(late.next(), 1.0) is None
        assert [task.get_name() for task in asyncio.all_tasks() if "monitor" in task.get_name()] == []


@pytest.mark.feature("C7")
@pytest.mark.virtual_time
async def test_an_agent_knows_whether_somebody_watches() -> None:
    async with agents("robot1/agent", "robot2/agent") as (scene, made):
        one, two = made.values()
        monitor = scene.bridge.monitor
        assert not one.reports
        console = Console(monitor.watch("robot1"))
        await until(lambda: one.reports)
        await console.close()
        again = Console(monitor.watch("robot1"))
        await asyncio.sleep(3 * LINGER_S)
        assert len(one.reports) == 1, "who comes back at once was not away"
        assert not two.reports
        await again.close()
        await asyncio.sleep(LINGER_S / 2)
        assert one.reports
        await until(lambda: not one.reports)
        await asyncio.sleep(1)
        assert [task.get_name() for task in asyncio.all_tasks() if "monitor" in task.get_name()] == []


@pytest.mark.virtual_time
async def test_an_agent_that_refuses_to_report_is_asked_again_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    async with agents("agent") as (scene, _):
        asked: list[float] = []
        call = scene.broker.call

        async def refusing(skill: str, *arguments: Any, **more: Any) -> str:
            asked.append(clock.monotonic())
            if len(asked) < 4:
                raise SkillError("not now")
            return await call(skill, *arguments, **more)

        monkeypatch.setattr(scene.broker, "call", refusing)
        console = Console(scene.bridge.monitor.watch())
        await until(lambda: console.agent("agent"))
        pauses = [later - earlier for earlier, later in itertools.pairwise(asked)]
        assert pauses == pytest.approx([1.0] * 3, abs=STATE_EVERY_S + 0.01)
        await console.close()


@pytest.mark.feature("C3")
@pytest.mark.virtual_time
async def test_what_an_agent_reports_is_shown_behind_what_happened_before() -> None:
    async with agents("agent") as (scene, _):
        console = Console(scene.bridge.monitor.watch())
        await until(lambda: console.agent("agent"))
        ledger = scene.broker.ledger
        report = next(call for call in ledger.calls.open if call.skill == "report")
        heard = event_data(AgentEvent(number=1, utime=1, agent="agent", kind="text", data={"text": "it has begun"}))
        ledger.enter([event(1, "open"), event(report.last_seq + 1, "update", call_id=report.call_id, data=heard)])
        await until(lambda: console.of("event"))
        assert [each["type"] for each in console.messages if each["type"] in ("call", "event")] == ["call", "event"]
        await console.close()


@pytest.mark.virtual_time
async def test_an_agent_whose_end_of_a_report_was_lost_in_a_flood_is_asked_again() -> None:
    async with agents("agent") as (scene, made):
        monitor = scene.bridge.monitor
        console = Console(monitor.watch())
        await until(lambda: made["agent"].reports)
        (first,) = made["agent"].reports

        def flood(offset: int, event: ToolEvent) -> None:
            if event.call_id == first and event.type == "close":
                for _ in range(_MAX_REPORTED):
                    monitor._on_report(offset, replace(event, type="progress", data={}))

        scene.broker.ledger.listen_unjournalled(flood)
        await scene.broker.cancel(first, "for the test")
        await until(lambda: made["agent"].reports and first not in made["agent"].reports)
        made["agent"].state = "seen again"
        made["agent"].show()
        await until(lambda: console.agent("agent").get("state") == "seen again")
        await console.close()


@pytest.mark.virtual_time
async def test_an_agent_that_takes_its_time_to_report_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with agents("agent") as (scene, _):
        asked: list[float] = []
        call = scene.broker.call

        async def slow(skill: str, *arguments: Any, **more: Any) -> str:
            asked.append(clock.monotonic())
            await asyncio.sleep(3.0)
            return await call(skill, *arguments, **more)

        monkeypatch.setattr(scene.broker, "call", slow)
        console = Console(scene.bridge.monitor.watch())
        await until(lambda: console.agent("agent"))
        assert len(asked) == 1
        await console.close()


def test_reports_outlive_the_bridge_and_an_agent_that_comes_back_is_asked_again() -> None:
    async def scenario(journal: str) -> None:
        async with agents("agent", journal=journal) as (scene, made):
            console = Console(scene.bridge.monitor.watch())
            await until(lambda: console.agent("agent"))
            await scene.kill_bridge()
            await console.task
            await scene.start_bridge()
            await scene.offered("say")
            again = Console(scene.bridge.monitor.watch())
            await until(lambda: again.agent("agent") and len(made["agent"].reports) == 1, 30)
            made["agent"].emit("text", text="still here")
            await until(lambda: again.of("event"))

            await scene.processes[2].host.stop()
            await until(lambda: not again.agent("agent"), 30)
            other = type(made["agent"])(name="agent")
            await scene.add(other)
            await until(lambda: other.reports and again.agent("agent"), 30)
            await again.close()

    with tempfile.TemporaryDirectory() as folder:
        run_virtual(scenario(str(Path(folder, "journal.sqlite"))))


@pytest.mark.virtual_time
async def test_queues_hold_what_they_say() -> None:
    async with agents("agent") as (scene, _):
        watcher = scene.bridge.monitor.watch()
        assert await watcher.next()
        for _ in range(MAX_MESSAGES):
            watcher.offer(b'{"type":"event"}')
        assert watcher.gaps == 0
        watcher.offer(b'{"type":"event"}')
        assert (watcher.gaps, watcher.waiting) == (1, 0)
        watcher.close()
        watcher.close()
        assert await watcher.next() is None


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_what_agents_report_to_watchers_is_not_journalled() -> None:
    async with agents("agent") as (scene, made):
        agent, journal = made["agent"], scene.bridge.journal
        before = journal.last_offset
        console = Console(scene.bridge.monitor.watch())
        everybody = scene.broker.ledger.broadcast.reader(after=0)
        await until(lambda: console.agent("agent"))
        report = next(call for call in scene.broker.ledger.calls.open if call.skill == "report")
        rows = len(journal.calls(1000))
        for number in range(1, 101):
            agent.emit("text", text=str(number))
            agent.show()
            await until(lambda: console.agent("agent")["number"] == agent.number)
        assert len(console.of("event")) == agent.number == 100
        assert report.last_seq > 200, "they came in"
        assert journal.last_offset == before, "no row and no offset, so no hole either"
        assert len(journal.calls(1000)) == rows
        call_id = await scene.broker.call("count", {"label": "x", "to": 2}, caller="agent", idempotency_key="agent/1")
        await closed(scene.broker, call_id)
        await console.close()
        await closed(scene.broker, report.call_id)
        page = await everybody.page()
        assert [entry.offset for entry in page] == list(range(1, journal.last_offset + 1))
        assert {entry.call_id for entry in page} == {call_id}
        everybody.close()


def test_a_bridge_that_was_killed_knows_how_far_a_report_had_come() -> None:
    async def scenario(path: Path) -> None:
        async with agents("agent", journal=path) as (scene, made):
            agent = made["agent"]
            console = Console(scene.bridge.monitor.watch())
            for number in range(1, 51):
                agent.emit("text", text=str(number))
                agent.show()
            await until(lambda: console.agent("agent").get("number") == 50)
            await scene.kill_bridge()
            await console.close()
            agent.emit("text", text="while it is away")
            await scene.start_bridge()
            again = Console(scene.bridge.monitor.watch())
            await until(lambda: again.agent("agent") and len(agent.reports) == 1, 30)
            assert scene.broker.receiver.statistics().gaps == 0
            await again.close()

    with tempfile.TemporaryDirectory() as directory:
        run_virtual(scenario(Path(directory) / "journal.sqlite"))


@pytest.mark.virtual_time
async def test_a_state_that_can_not_be_shown_blinds_nobody_for_good(caplog: pytest.LogCaptureFixture) -> None:
    async with agents("agent") as (scene, made):
        console = Console(scene.bridge.monitor.watch())
        await until(lambda: made["agent"].reports)
        call_id = await scene.broker.call("follow", {"description": "x"}, caller="me")
        call = next(call for call in scene.broker.ledger.calls if call.call_id == call_id)
        call.arguments = None  # type: ignore[assignment]  # as if a fault of ours had let it through
        await until(lambda: "can't be shown to operators" in caplog.text)
        made["agent"].emit("text", text="still here")
        await until(lambda: "still here" in [each["event"]["data"].get("text") for each in console.of("event")])
        call.arguments = {}
        await until(lambda: call_id in [each["call_id"] for each in console.state["calls"]])
        await console.close()


@pytest.mark.virtual_time
async def test_a_defect_that_ends_the_monitor_is_logged_and_who_comes_next_begins_it_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a mistake of ours")

    async with agents("agent") as (scene, _):
        with monkeypatch.context() as patch:
            patch.setattr(Watchers, "show", fail)
            blind = scene.bridge.monitor.watch()
            await until(lambda: "the task 'monitor' has a defect" in caplog.text)
        console = Console(scene.bridge.monitor.watch())
        await until(lambda: console.state)
        await console.close()
        blind.close()


@pytest.mark.virtual_time
async def test_a_robot_to_which_the_bus_lets_nobody_listen_costs_no_subscriptions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with scene(worker=False) as world:
        bus = world.inner
        before, subscribe = set(bus.subscriptions()), bus.subscribe

        def refuse(channel: str, *args: Any, **options: Any) -> Subscription:
            if channel.startswith("/battery"):
                raise BusError("the packet filter can't be changed")
            return subscribe(channel, *args, **options)

        monkeypatch.setattr(bus, "subscribe", refuse)
        robots = Robots(bus)
        with pytest.raises(BusError):
            robots.follow(["worker"])
        assert set(bus.subscriptions()) == before
        monkeypatch.undo()
        robots.follow(["worker"])
        assert len(bus.subscriptions()) == len(before) + 3
        robots.stop()


@pytest.mark.virtual_time
async def test_nothing_is_kept_of_agents_that_nobody_watches_any_more() -> None:
    async with agents("one", "two") as (scene, _):
        monitor = scene.bridge.monitor
        consoles = [Console(monitor.watch(name)) for name in ("one", "two")]
        await until(lambda: set(monitor._reports.snapshots) == {"one", "two"})
        await consoles[0].close()
        await asyncio.sleep(LINGER_S + 2 * STATE_EVERY_S)
        assert list(monitor._watched_at) == ["two"]
        assert monitor._reports._retry_at == {}
        await consoles[1].close()


@pytest.mark.feature("C5")
@pytest.mark.virtual_time
async def test_a_namespace_that_is_too_long_for_a_channel_blinds_no_console() -> None:
    async with scene(worker=False) as world:
        before = len(world.inner.subscriptions())
        world.bridge.monitor._robots.follow(["warehouse-hall-three/forklift-17/worker"])
        assert len(world.inner.subscriptions()) == before + 1, "its odometry is within LCM's bound"
        await world.add(Worker(name=f"warehouse-hall-three/{'forklift-' * 5}/worker"))
        console = Console(world.bridge.monitor.watch(None))
        await until(lambda: console.state)
        await console.close()


@pytest.mark.feature("C1")
@pytest.mark.virtual_time
async def test_states_that_a_console_has_been_shown_are_not_kept() -> None:
    async with agents("agent") as (scene, made):
        console = Console(scene.bridge.monitor.watch(None))
        await until(lambda: made["agent"].reports)
        for number in range(20):
            made["agent"].state = f"step {number}"
            made["agent"].show()
            await until(lambda: console.agent("agent").get("state") == made["agent"].state)
        gc.collect()
        states = [each for each in gc.get_objects() if isinstance(each, StateView)]
        await console.close()
    assert len(states) <= 3, "the one that was shown last, the newest one, and one on its way"
