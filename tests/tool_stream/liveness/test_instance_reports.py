"""What instances say of themselves is theirs: others that take the name of one for a while change nothing of it."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dimos_streams import clock
from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.bridge.module import Bridge
from dimos_streams.bus import Bus, create_bus
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import ModuleStatus, ToolStreamRequest
from dimos_streams.testing import CrashablePart, Faults
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.liveness.heartbeat import ENDED
from dimos_streams.tool_stream.liveness.instances import ESTABLISHED_S, FORGOTTEN_S, SUPERSEDED_S, UNHEARD_S
from dimos_streams.tool_stream.liveness.module_table import MAX_MODULES, MAX_NEW
from dimos_streams.tool_stream.protocol.channels import DESCRIBE, REQUESTS, STATUS
from tests.helpers import until
from tests.tool_stream.liveness.test_instances import Walker

pytestmark = pytest.mark.feature("F6")


def described(*names: str) -> str:
    return json.dumps([{"name": name, "description": "", "parameters": {}} for name in names])


def beat(instance: str, *skills: str, module: str = "m", **more: object) -> bytes:
    """A heartbeat, of a version by the instance; one that describes skills if there are any."""
    more = {"skills_version": f"of {instance}", "skills_json": described(*skills) if skills else "", **more}
    return encode(ModuleStatus(module=module, instance=instance, health="ok", **more))  # type: ignore[arg-type]


def fragment(part: int, skill: str) -> str:
    return f'{{"part":{part},"parts":2,"skills":{described(skill)}}}'


@asynccontextmanager
async def established_module() -> AsyncIterator[tuple[Bus, ModuleDirectory]]:
    """A directory that knows module ``m`` for long: its instance has introduced itself once, with ``drive``."""
    bus = create_bus("memq://")
    await bus.open()
    directory = ModuleDirectory(bus)
    directory.start()
    bus.publish(STATUS, beat("real", "drive"))
    for _ in range(int(ESTABLISHED_S / 0.25) + 1):
        await asyncio.sleep(0.25)
        bus.publish(STATUS, beat("real", state_json='{"at": 1}'))
    await asyncio.sleep(0.01)
    yield bus, directory
    directory.stop()
    await bus.close()


def offered(directory: ModuleDirectory) -> list[str]:
    return [info.name for _, info in directory.skills()]


Steps = list[tuple[float, str]]


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.01, 0.2, 0.5, SUPERSEDED_S + 0.01, 1.2]),
            st.sampled_from(["real", "forged1", "forged2", "forged3", "silent1", "silent2"]),
        ),
        max_size=40,
    )
)
@example([(SUPERSEDED_S + 0.01, "forged1"), (0.01, "real")])
@example([(0.5, "silent1")] * 5 + [(0.5, "forged1")] * 9 + [(0.01, "real")])
@settings(max_examples=60, deadline=None)
def test_whoever_else_is_heard_an_established_instance_has_its_own_skills_back_at_once(steps: Steps) -> None:
    async def main() -> None:
        async with established_module() as (bus, directory):
            asked: list[str] = []
            bus.subscribe(REQUESTS, lambda _, data: asked.append(decode(ToolStreamRequest, data).kind))
            heard = clock.monotonic()
            for pause, who in steps:
                await asyncio.sleep(pause)
                if clock.monotonic() - heard > FORGOTTEN_S - 0.1:
                    return
                skills = ("other",) if who.startswith("forged") else ()
                state = "{}" if who == "real" else '{"forged": 1}'
                bus.publish(STATUS, beat(who, *skills, state_json=state))
                asked.clear()
                await asyncio.sleep(0.001)
                heard = clock.monotonic() if who == "real" else heard
                view = directory.module("m")
                assert view is not None
                if who == "real":
                    assert (view.instance, view.state, offered(directory)) == ("real", {}, ["drive"])
                    assert asked == []
                if clock.monotonic() - heard < SUPERSEDED_S + ESTABLISHED_S:
                    assert directory.find("drive")[0].name == "m"
                    assert directory.can_run("drive", "m", "real")

    clock.run_virtual(main())


@pytest.mark.virtual_time
async def test_a_restart_that_offers_something_else_is_believed_at_once_when_the_old_one_said_goodbye() -> None:
    async with established_module() as (bus, directory):
        goodbye = ModuleStatus(module="m", instance="real", health=ENDED, skills_version="of real")
        bus.publish(STATUS, encode(goodbye))
        bus.publish(STATUS, beat("next", "fly"))
        await asyncio.sleep(0.01)
        assert offered(directory) == ["fly"]


@pytest.mark.virtual_time
async def test_a_restart_is_asked_what_it_offers_although_its_version_is_that_of_the_one_before() -> None:
    async with established_module() as (bus, directory):
        asked: list[str] = []
        bus.subscribe(REQUESTS, lambda _, data: asked.append(decode(ToolStreamRequest, data).kind))
        await asyncio.sleep(SUPERSEDED_S + 0.01)
        bus.publish(STATUS, beat("next", skills_version="of real"))
        await asyncio.sleep(0.01)
        assert (asked, offered(directory)) == ([DESCRIBE], ["drive"])
        bus.publish(STATUS, beat("next", "fly", skills_version="of real"))
        await asyncio.sleep(ESTABLISHED_S)
        assert offered(directory) == ["fly"]


@pytest.mark.virtual_time
async def test_a_module_that_names_no_version_is_asked_for_its_skills_once_for_each_start() -> None:
    async with established_module() as (bus, directory):
        asked: list[str] = []
        bus.subscribe(REQUESTS, lambda _, data: asked.append(decode(ToolStreamRequest, data).kind))
        for start in ("1", "2"):
            for _ in range(8):
                bus.publish(STATUS, beat(start, module="plain", skills_version=""))
                await asyncio.sleep(0.25)
            assert asked == [DESCRIBE] * int(start)
            bus.publish(STATUS, beat(start, f"fly{start}", module="plain", skills_version=""))
            await asyncio.sleep(SUPERSEDED_S + 0.01)
            assert f"fly{start}" in offered(directory)


@pytest.mark.virtual_time
async def test_modules_without_versions_that_start_together_are_each_asked_for_their_skills() -> None:
    async with established_module() as (bus, directory):
        asked: list[float] = []
        bus.subscribe(REQUESTS, lambda *_: asked.append(clock.monotonic()))
        bus.publish(STATUS, beat("1", module="first", skills_version=""))
        await asyncio.sleep(0.05)
        began = clock.monotonic()
        for _ in range(8):
            bus.publish(STATUS, beat("1", module="second", skills_version=""))
            await asyncio.sleep(0.25)
        assert [at > began for at in asked] == [False, True]
        bus.publish(STATUS, beat("1", module="second", skills_version="", skills_json=fragment(0, "fly")))
        bus.publish(STATUS, beat("1", module="second", skills_version="", skills_json=fragment(1, "land")))
        await asyncio.sleep(0.01)
        assert offered(directory) == ["drive", "fly", "land"]
        introduced = {view.name: view.introduced for view in directory.modules()}
        assert introduced == {"m": True, "first": False, "second": True}


@pytest.mark.virtual_time
async def test_after_a_crash_the_next_one_offers_more_at_once_and_less_when_it_has_stayed() -> None:
    async with established_module() as (bus, directory):
        await asyncio.sleep(SUPERSEDED_S + 0.01)
        for _ in range(int(ESTABLISHED_S / 0.25)):
            bus.publish(STATUS, beat("next", "fly"))
            await asyncio.sleep(0.249)
            assert offered(directory) == ["drive", "fly"]
        await asyncio.sleep(0.02)
        assert offered(directory) == ["fly"]


@pytest.mark.virtual_time
async def test_while_two_offer_a_skill_of_one_name_it_is_there_once() -> None:
    async with established_module() as (bus, directory):
        await asyncio.sleep(SUPERSEDED_S + 0.1)
        bus.publish(STATUS, beat("next", "drive", "turn"))
        await asyncio.sleep(0.01)
        assert offered(directory) == ["drive", "turn"]


@pytest.mark.virtual_time
async def test_of_an_instance_whose_token_is_gone_nothing_is_offered_beside_the_next_one() -> None:
    async with established_module() as (bus, directory):
        await asyncio.sleep(SUPERSEDED_S + 0.1)
        directory._on_token("real", False)
        bus.publish(STATUS, beat("next", "turn"))
        await asyncio.sleep(0.01)
        assert offered(directory) == ["turn"]


@pytest.mark.virtual_time
async def test_a_version_of_the_same_skills_is_not_asked_for() -> None:
    async with established_module() as (bus, directory):
        asked: list[bytes] = []
        bus.subscribe(REQUESTS, lambda channel, data: asked.append(data))
        bus.publish(STATUS, beat("real", "drive", skills_version="2"))
        for _ in range(4):
            await asyncio.sleep(0.25)
            bus.publish(STATUS, beat("real", skills_version="2"))
        await asyncio.sleep(0.01)
        assert (asked, offered(directory)) == ([], ["drive"])


@pytest.mark.virtual_time
async def test_who_drowns_a_modules_heartbeats_does_not_get_its_name() -> None:
    async with established_module() as (bus, directory):
        status = next(each for each in bus.subscriptions() if each.namespaces is None)
        began = clock.monotonic()
        while clock.monotonic() - began < UNHEARD_S - 0.1:
            status.may_miss()
            bus.publish(STATUS, beat("forged", "other"))
            await asyncio.sleep(0.05)
            assert directory.is_active("m", "real")
        await asyncio.sleep(0.2)
        bus.publish(STATUS, beat("forged", "other"))
        await asyncio.sleep(0.01)
        assert directory.is_active("m", "forged")


@pytest.mark.virtual_time
async def test_a_flood_of_names_does_not_make_a_module_forgotten_that_could_not_be_heard_meanwhile() -> None:
    async with established_module() as (bus, directory):
        for wave in range(5):
            for number in range(MAX_MODULES // 2):
                bus.publish(STATUS, encode(ModuleStatus(module=f"forged{wave}-{number}", instance="1")))
            await asyncio.sleep(1.0)
        assert directory.count >= MAX_NEW
        assert offered(directory) == ["drive"]


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_calls_begin_at_every_moment_of_a_flood_of_heartbeats_in_a_modules_name() -> None:
    bus = create_bus("memq://")
    await bus.open()
    bridge = CrashablePart(bus, lambda context: [Bridge({"http": False}, name="bridge", context=context)])
    walker = CrashablePart(bus, lambda context: [Walker(name="walker", context=context)], seed=3)
    await bridge.start()
    await walker.start()
    await asyncio.sleep(3.0)
    walker.bus.faults = Faults(loss=0.8, affects=STATUS.__eq__)
    flood = asyncio.create_task(_flood(bus, "walker"))
    try:
        broker = _broker(bridge)
        taken = 0
        for _ in range(40):
            began = clock.monotonic()
            call_id = await broker.call("walk", {"seconds": 0.1}, caller="test")
            assert await broker.wait(call_id, "answer", 2.0)
            assert clock.monotonic() - began < 1.0
            assert await broker.wait(call_id, "close", 5.0)
            assert (await broker.view(call_id)).outcome is Outcome.COMPLETED
            view = broker.directory.module("walker")
            taken += view is not None and view.instance.startswith("forged")
            await asyncio.sleep(0.13)
        assert taken, "somebody else had the name meanwhile"
    finally:
        flood.cancel()
        for part in (walker, bridge):
            await part.stop()
        await bus.close()


def _broker(part: CrashablePart) -> Broker:
    module = part.module("bridge")
    assert isinstance(module, Bridge)
    return module.broker


async def _flood(bus: Bus, module: str) -> None:
    rng = random.Random(1)
    while True:
        for _ in range(2):
            instance = f"forged{rng.randrange(1000)}"
            bus.publish(STATUS, beat(instance, *rng.choice(((), ("other",))), module=module))
        await asyncio.sleep(0.02)


@pytest.mark.virtual_time
async def test_who_has_just_taken_a_modules_place_runs_its_skills_and_the_one_before_only_its_own() -> None:
    """A module that was started again may run a skill for another before its description is read."""
    async with established_module() as (bus, directory):
        await asyncio.sleep(SUPERSEDED_S)
        bus.publish(STATUS, beat("next", "fly"))
        await until(lambda: directory.is_active("m", "next"))
        can_run = {who: [s for s in ("drive", "fly") if directory.can_run(s, "m", who)] for who in ("next", "real")}
        assert can_run == {"next": ["drive", "fly"], "real": ["drive"]}
        assert not directory.can_run("drive", "m", "unheard")


@pytest.mark.virtual_time
async def test_what_a_passer_by_has_said_is_not_taken_for_what_the_next_one_offers() -> None:
    async with established_module() as (bus, directory):
        for message in (beat("passing", "fly"), beat("next")):
            await asyncio.sleep(SUPERSEDED_S)
            bus.publish(STATUS, message)
            await asyncio.sleep(0.01)
        assert directory.is_active("m", "next")
        assert offered(directory) == ["drive"]
