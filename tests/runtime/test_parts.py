"""The parts of a run on several machines: who they are, who is missing, whose clock shows what."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from dimos_streams import clock
from dimos_streams.blueprint.load import resolve
from dimos_streams.bus import create_bus
from dimos_streams.bus.base import Bus
from dimos_streams.cli.running.other_parts import OtherParts
from dimos_streams.errors import DimosStreamsError, SkillError, UnknownSkillError, UserError
from dimos_streams.messages.dimos_streams import ClockEcho
from dimos_streams.runtime.module_host import ModuleHost
from dimos_streams.runtime.parts.clock_offsets import MAX_MACHINES, ClockOffsets
from dimos_streams.runtime.parts.log_chunks import read_chunk
from dimos_streams.runtime.parts.part import Part
from dimos_streams.runtime.parts.part_host import PartHost
from dimos_streams.runtime.parts.part_module import PartModule
from dimos_streams.tool_stream.liveness.part_state import ClockOffset
from dimos_streams.tool_stream.liveness.parts import MachineClocks

pytestmark = pytest.mark.feature("H1")

SPLIT = resolve("follow-person-split")
ROBOT, BRAIN = (Part.of(SPLIT, machine, "bridge") for machine in ("robot-side", "brain-side"))


async def speak(stack: AsyncExitStack, bus: Bus, part: Part) -> PartHost:
    host, module = ModuleHost(bus), PartModule(part, lambda: None, None)
    await host.start(module, module.topics)
    stack.push_async_callback(host.stop)
    return PartHost(part, module, host.directory)


def on_a_bus(scenario: Callable[[AsyncExitStack, Bus], object]) -> None:
    async def main() -> None:
        bus = create_bus("memq://")
        await bus.open()
        async with AsyncExitStack() as stack:
            stack.push_async_callback(bus.close)
            await scenario(stack, bus)  # type: ignore[misc]

    clock.run_virtual(main(), limit_s=600)


def test_a_part_knows_who_is_missing_starting_there_and_gone() -> None:
    async def scenario(stack: AsyncExitStack, bus: Bus) -> None:
        brain = await speak(stack, bus, BRAIN)
        notes: list[str] = []
        reporting = asyncio.create_task(OtherParts(brain, 60.0).report(notes.append, lambda: None))
        brain.declare_ready()
        await asyncio.sleep(1.0)
        assert brain.module.health == "machine 'robot-side' has not been heard"
        with pytest.raises(
            UnknownSkillError, match=r"'follow_person' .*; machine 'robot-side', which may have it, is not"
        ):
            brain.directory.find("follow_person")
        with pytest.raises(
            DimosStreamsError, match=r"'robot-side' has not been heard \(waited 2 s\).* --machine robot-side"
        ):
            await OtherParts(brain, 2.0).wait()

        async with AsyncExitStack() as there:
            robot = await speak(there, bus, ROBOT)
            await asyncio.sleep(1.0)
            assert brain.trouble() == {"robot-side": "is starting"}
            waiting = asyncio.create_task(OtherParts(brain, 60.0).wait())
            robot.declare_ready()
            await waiting
            assert brain.trouble() == {}
            assert brain.module.health == "ok"
        await asyncio.sleep(3.0)
        assert "has not been heard for 3 s" in brain.trouble()["robot-side"]
        assert notes == [
            "waiting: machine 'robot-side' has not been heard",
            "waiting: machine 'robot-side' is starting",
            "machine 'robot-side' is there",
            *notes[3:],
        ]
        assert "waiting: machine 'robot-side' has not been heard for" in notes[-1]
        reporting.cancel()

    on_a_bus(scenario)


def test_another_blueprint_or_version_is_told_and_not_waited_for() -> None:
    changed = SPLIT.configured({"follow.distance_m": 2.5})

    async def scenario(stack: AsyncExitStack, bus: Bus) -> None:
        brain = await speak(stack, bus, BRAIN)
        for other, why in (
            (
                Part.of(changed, "robot-side", "bridge"),
                r"runs another blueprint: 'follow-person-split'.*give both the same",
            ),
            (replace(ROBOT, version="0.0.9"), r"runs dimos_streams 0\.0\.9, this one"),
        ):
            async with AsyncExitStack() as there:
                await speak(there, bus, other)
                with pytest.raises(UserError, match=why):
                    await OtherParts(brain, 60.0).wait()
                assert "another" in brain.module.health or "0.0.9" in brain.module.health
            await asyncio.sleep(2.0)

    on_a_bus(scenario)


def test_offsets_are_measured_within_their_bounds_and_followed_when_a_clock_is_set() -> None:
    rng = random.Random(14)
    here, there = ClockOffsets("here"), ClockOffsets("there")
    ahead, now = 83_000_000_000, 1_600_000_000_000_000  # nearly a day

    def exchange() -> ClockOffset | None:
        nonlocal now
        for sender, receiver, before, after in ((here, there, 0, ahead), (there, here, ahead, 0)):
            echo = sender.echo(now + before)
            now += rng.choice((200, 900, 40_000))
            receiver.hear(echo, now + after)
            now += rng.randrange(200_000)
        return here.offsets().get("there")

    for _ in range(40):
        exchange()
    for _ in range(2):
        measured = exchange()
        assert measured is not None
        assert abs(measured.ahead_us - ahead) <= measured.within_us + 1
        assert measured.within_us <= 20_000
        assert there.offsets()["here"].ahead_us == pytest.approx(-ahead, abs=40_000)
        ahead -= 7_000_000  # somebody sets it
        for _ in range(12):
            exchange()


def test_machines_that_are_invented_keep_no_real_ones_clock_out() -> None:
    async def scenario(stack: AsyncExitStack, bus: Bus) -> None:
        brain = await speak(stack, bus, BRAIN)
        for number in range(2 * MAX_MACHINES):
            brain.module.own_echo.publish(ClockEcho(utime=clock.utime(), machine=f"invented-{number}"))
        await asyncio.sleep(1.0)
        robot = await speak(stack, bus, ROBOT)
        await asyncio.sleep(5.0)
        assert set(brain.module._clocks) == {"robot-side"}
        assert set(robot.module._clocks) == {"brain-side"}

    on_a_bus(scenario)


def test_clocks_of_two_machines_are_told_to_whoever_asks_as_their_parts_measured_them() -> None:
    async def scenario(stack: AsyncExitStack, bus: Bus) -> None:
        brain, robot = await speak(stack, bus, BRAIN), await speak(stack, bus, ROBOT)
        clocks = MachineClocks(brain.directory)
        assert clocks.ahead_us("robot-side", "brain-side") is None
        await asyncio.sleep(3.0)
        assert clocks.ahead_us("robot-side", "brain-side") == 0
        robot.module._clocks = {"brain-side": ClockOffset(ahead_us=700, within_us=5)}
        brain.module._clocks = {}
        for module in (robot.module, brain.module):
            module.report()
        await asyncio.sleep(0.01)
        clocks = MachineClocks(brain.directory)
        assert clocks.ahead_us("brain-side", "robot-side") == 700
        assert clocks.ahead_us("robot-side", "brain-side") == -700
        assert clocks.ahead_us("robot-side", "") is None

    on_a_bus(scenario)


def test_logs_come_in_pieces_of_whole_lines(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    lines = [f"{number:05} {'x' * 60}\n" for number in range(3000)]
    (tmp_path / "logs" / "skills.log").write_text("".join(lines) + "not whole")
    for begin, expected in ((0, lines), (-1, lines[-len(lines) // 4 :])):
        text, offset, more = "", begin, True
        while more:
            chunk = read_chunk(tmp_path, "skills", offset)
            text, offset, more = text + chunk.text, chunk.next_offset, chunk.more
        assert text.endswith("".join(expected[-500:]))
        assert text.startswith(lines[0] if begin == 0 else "02")
    assert read_chunk(tmp_path, "skills", offset).text == ""
    (tmp_path / "logs" / "skills.log").rename(tmp_path / "logs" / "robot1.skills.log")
    assert read_chunk(tmp_path, "robot1/skills", offset) == read_chunk(tmp_path, "robot1.skills", offset)
    (tmp_path / "logs" / "robot1.skills.log").rename(tmp_path / "logs" / "skills.log")
    with pytest.raises(SkillError, match=r"no process 'skill' has a log.*\(processes: skills\)"):
        read_chunk(tmp_path, "skill", 0)


def test_logs_in_pieces_go_on_over_a_file_that_was_begun_anew(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs" / "skills.log"
    lines = [f"{number:05} {'x' * 60}\n" for number in range(1000)]
    log.write_text("".join(lines[:900]))
    log.rename(log.with_name("skills.log.1"))
    log.write_text("".join(lines[900:]))
    for begin, since in ((300 * 67, 300), (900 * 67, 900)):
        text, at, more = "", begin, True
        while more:
            chunk = read_chunk(tmp_path, "skills", at)
            text, at, more = text + chunk.text, chunk.next_offset, chunk.more
        assert text == "".join(lines[since:])


def test_a_line_without_an_end_before_a_log_is_begun_anew_comes_too(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs" / "skills.log"
    log.with_name("skills.log.1").write_text("one\ncut off")
    log.write_text("a\n")
    rest = read_chunk(tmp_path, "skills", 4)
    assert (rest.text, rest.more) == ("cut off\n", True)
    assert read_chunk(tmp_path, "skills", rest.next_offset).text == "a\n"


def test_each_part_knows_the_agents_of_all() -> None:
    assert ROBOT.agents == BRAIN.agents == {"agent"}
