"""A velocity gate that was killed together with who held it holds on when it is back."""

from __future__ import annotations

import asyncio
import contextlib
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dimos_streams import clock
from dimos_streams.bus import create_bus
from dimos_streams.common.secrets import know
from dimos_streams.messages.codec import channel_name, decode, encode
from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.messages.geometry_msgs import Twist, Vector3
from dimos_streams.module import RunContext
from dimos_streams.operator.holding import MAX_VALID_S, STOP_ROBOT
from dimos_streams.robot.velocity_gate.hold_file import HoldFile
from dimos_streams.robot.velocity_gate.module import VelocityGate
from dimos_streams.testing import CrashablePart

GATE = "robot1/gate"
TOPICS = {"skill_vel": "/skill_vel", "teleop_vel": "/teleop_vel", "hold": "/hold", "cmd_vel": "/cmd_vel"}


class Driven:
    """A gate whose robot skills, or a joystick, want to drive all the time."""

    def __init__(self, run_dir: Path, commands: str) -> None:
        self.bus = create_bus("memq://")
        context = RunContext(run_dir=run_dir)
        self.gate = CrashablePart(
            self.bus, lambda context: [VelocityGate(name=GATE, context=context)], topics=TOPICS, context=context
        )
        self.moved: list[float] = []
        self._channel = channel_name(f"/{commands}", Twist)

    def say(self, source: str, valid_s: float, *, hold: bool = True) -> None:
        message = Hold(utime=clock.utime(), source=source, hold=hold, valid_s=valid_s)
        self.bus.publish(channel_name("/hold", Hold), encode(message))

    async def killed(self) -> float:
        """The gate dies and is back; when."""
        self.gate.crash()
        self.moved.clear()
        await self.gate.start()
        return clock.monotonic()

    @property
    def health(self) -> str:
        return self.gate.module(GATE).health

    async def drive(self) -> None:
        while True:
            self.bus.publish(self._channel, encode(Twist(linear=Vector3(x=0.5))))
            await asyncio.sleep(0.05)

    def on_velocity(self, channel: str, data: bytes) -> None:
        if decode(Twist, data, channel=channel).linear.x:
            self.moved.append(clock.monotonic())


@contextlib.asynccontextmanager
async def driven(run_dir: Path, commands: str = "skill_vel") -> AsyncIterator[Driven]:
    robot = Driven(run_dir, commands)
    await robot.bus.open()
    robot.bus.subscribe(channel_name("/cmd_vel", Twist), robot.on_velocity)
    await robot.gate.start()
    driving = asyncio.create_task(robot.drive())
    try:
        await asyncio.sleep(1.0)
        assert robot.moved
        yield robot
    finally:
        driving.cancel()
        await robot.gate.stop()
        await robot.bus.close()


@pytest.mark.slow
@pytest.mark.virtual_time
@pytest.mark.feature("B3", "K5")
@pytest.mark.parametrize(
    ("source", "valid_s", "commands"), [(STOP_ROBOT, MAX_VALID_S, "teleop_vel"), ("agent", 15.0, "skill_vel")]
)
async def test_a_gate_killed_with_who_holds_goes_on_holding(
    source: str, valid_s: float, commands: str, tmp_path: Path
) -> None:
    async with driven(tmp_path, commands) as robot:
        robot.say(source, valid_s)
        await asyncio.sleep(1.0)
        back = await robot.killed()
        await asyncio.sleep(1.0)
        assert not robot.moved
        back = await robot.killed()
        await asyncio.sleep(valid_s + 1.0)
        assert robot.moved[0] - back == pytest.approx(valid_s, abs=0.2), "as if it had just been said"
        back = await robot.killed()
        await asyncio.sleep(1.0)
        assert robot.moved, "what has lapsed is not taken up again"


@pytest.mark.virtual_time
@pytest.mark.feature("B3")
async def test_who_lets_go_is_believed_by_the_next_gate_and_other_runs_never_know(tmp_path: Path) -> None:
    async with driven(tmp_path) as robot:
        robot.say("agent", 15.0)
        await asyncio.sleep(1.0)
        await robot.killed()
        robot.say("agent", 0.0, hold=False)
        await asyncio.sleep(1.0)
        assert robot.moved
        robot.say("agent", 15.0)
        await asyncio.sleep(1.0)
    (tmp_path / "other").mkdir()
    async with driven(tmp_path / "other"):
        pass


@pytest.mark.virtual_time
@pytest.mark.feature("B3", "K5")
@pytest.mark.parametrize(
    "content", ["", "{", '{"holds": [{"source": "agent", "utime": 1, "seq": 1, "valid_s": 1e9}]}']
)
async def test_with_a_damaged_file_nothing_moves_for_a_while(content: str, tmp_path: Path) -> None:
    async with driven(tmp_path, "teleop_vel") as robot:
        path = HoldFile(tmp_path, GATE).path
        path.write_text(content)
        await robot.killed()
        await asyncio.sleep(1.0)
        back = await robot.killed()
        assert f"{path} can't be read" in robot.health
        await asyncio.sleep(MAX_VALID_S + 1.0)
        assert robot.moved[0] - back == pytest.approx(MAX_VALID_S, abs=0.2)
        assert robot.health == "ok"
        await robot.killed()
        await asyncio.sleep(1.0)
        assert robot.moved


@pytest.mark.virtual_time
@pytest.mark.feature("B3")
async def test_a_full_disk_shows_in_the_health_and_the_next_gate_knows_that_it_knows_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, text: str, **how: object) -> int:
        raise OSError(28, "No space left on device")

    async with driven(tmp_path) as robot:
        with monkeypatch.context() as disk:
            disk.setattr(Path, "write_text", full)
            robot.say("agent", 15.0)
            await asyncio.sleep(0.5)
            robot.moved.clear()
            await asyncio.sleep(2.0)
            assert "can't be written" in robot.health
            assert "No space left on device" in robot.health
            await robot.killed()
            await asyncio.sleep(3.0)
            assert not robot.moved
        robot.say("agent", MAX_VALID_S)
        await asyncio.sleep(MAX_VALID_S - 2.0)
        assert robot.health == "ok"
        assert "agent" in HoldFile(tmp_path, GATE).path.read_text()


def test_a_hold_that_was_saved_outlasts_a_write_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, text: str, **how: object) -> int:
        raise OSError(28, "No space left on device")

    def hold(source: str) -> Hold:
        return Hold(utime=1, seq=1, source=source, hold=True, valid_s=15.0)

    saved, newer = hold("agent"), hold(STOP_ROBOT)
    file = HoldFile(tmp_path, "gate")
    file.save((saved,), 0.0)
    with monkeypatch.context() as disk:
        disk.setattr(Path, "write_text", full)
        for _ in range(2):
            file.save((saved, newer), 0.0)
        for _ in range(2):
            after = HoldFile(tmp_path, "gate")
            assert after.load(0.0) == (saved,), "however often it is tried"
            assert not after.complete
            assert "could not be written" in after.trouble
            assert not after.is_due((), MAX_VALID_S - 1.0), "it stays for as long as anything may hold"
    file.save((saved, newer), 0.0)
    again = HoldFile(tmp_path, "gate")
    assert (again.load(0.0), again.complete, again.trouble) == ((saved, newer), True, "")
    assert list(tmp_path.iterdir()) == [file.path]


def test_a_hold_for_longer_than_any_counts_is_written_for_as_long_as_it_counts(tmp_path: Path) -> None:
    HoldFile(tmp_path, GATE).save([Hold(source="agent", seq=1, hold=True, valid_s=2 * MAX_VALID_S)], 0.0)
    (held,) = HoldFile(tmp_path, GATE).load(0.0)
    assert (held.source, held.valid_s) == ("agent", MAX_VALID_S)


def test_it_is_private_and_written_only_when_what_is_asked_changes(tmp_path: Path) -> None:
    def hold(seq: int, valid_s: float = 15.0) -> Hold:
        return Hold(utime=seq, seq=seq, source="agent", hold=True, valid_s=valid_s)

    file = HoldFile(tmp_path, "gate")
    assert not file.is_due((), 0.0)
    assert file.is_due((hold(1),), 0.0)
    file.begin()
    assert not file.is_due((hold(2, 5.0),), 0.0), "one at a time"
    file.save((hold(1),), 0.0)
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file.path]
    assert not file.is_due((hold(2),), 0.0)
    assert file.is_due((hold(2, 5.0),), 0.0)
    assert file.is_due((), 0.0)
    again = HoldFile(tmp_path, "gate")
    assert again.load(0.0) == (hold(1),)
    assert not again.is_due((hold(7),), 0.0)


def test_what_was_written_before_a_write_that_failed_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = HoldFile(tmp_path, GATE)
    with monkeypatch.context() as disk:
        disk.setattr("dimos_streams.robot.velocity_gate.hold_file.save_state", _full)
        file.save([Hold(source="agent", hold=True, valid_s=15.0)], 0.0)
    assert file.trouble
    assert file.is_due([], 3600.0), "else the next gate would hold for what nobody asks any more"
    file.save([], 3600.0)
    assert file.trouble == ""


@pytest.mark.virtual_time
async def test_for_want_of_a_thread_a_gate_holds_all_the_same_and_writes_it_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_: object) -> None:
        raise OSError(11, "no more threads")

    hold, file = Hold(source="agent", hold=True, valid_s=15.0), HoldFile(tmp_path, GATE)
    monkeypatch.setattr("dimos_streams.robot.velocity_gate.module.in_own_thread", refused)
    file.begin()
    await VelocityGate(name=GATE)._save(file, [hold])
    assert "no more threads" in file.trouble
    assert file.is_due([hold], clock.monotonic() + 3600.0)


def _full(path: Path, text: str) -> None:
    raise OSError(28, "No space left on device")


def test_a_reason_outlasts_the_gate_without_any_of_a_secret(tmp_path: Path) -> None:
    know("h0ld-s3cret")
    hold = Hold(source="door", seq=1, hold=True, valid_s=1.0, reason=f"the door\nis open{'.' * 70}h0ld-s3cret")
    HoldFile(tmp_path, GATE).save([hold], 0.0)
    (back,) = HoldFile(tmp_path, GATE).load(0.0)
    assert back.reason.startswith("the door\\nis open...")
    assert "h0ld" not in back.reason
