"""Settings change while their modules run: on an operator's word only, all of them or none, and it is seen."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field

from dimos_streams import clock
from dimos_streams.bridge.calls.settings import live_settings
from dimos_streams.bridge.calls.settings.pending_changes import PendingChanges, UnknownChangeError
from dimos_streams.bridge.calls.settings.rollback_file import ROLLBACK_WITHIN_S
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.common.secrets import know
from dimos_streams.errors import (
    CallRejectedError,
    SettingsError,
    SkillError,
    SkillUnavailableError,
    UnknownSkillError,
)
from dimos_streams.live_settings import STATE, Live
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import SkillCall
from dimos_streams.module import Module, ModuleConfig, RunContext, Services
from dimos_streams.operator.messages.settings import SettingsReport
from dimos_streams.robot.velocity_gate.module import VelocityGate
from dimos_streams.skill import Call, skill
from dimos_streams.skills.drive import Drive
from dimos_streams.testing import Faults
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.hosting.settings_change import SET
from dimos_streams.tool_stream.protocol.channels import CALLS
from tests.bridge.scene import Scene, SimulatedProcess, closed, collect, event, scene
from tests.helpers import until

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("K4")]


class KettleConfig(ModuleConfig):
    warm_c: Annotated[float, Live] = Field(60.0, ge=0.0, le=100.0)
    label: Annotated[str, Live] = "tea"
    url: Annotated[str, Live] = ""
    extra: Annotated[Mapping[str, Any], Live] = {}
    port: int = 7


class Kettle(Module):
    """Heats, and hears of what is set."""

    config: KettleConfig

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.heard: list[set[str]] = []

    def on_settings(self, changed: frozenset[str]) -> None:
        if self.config.label == "poison":
            raise ValueError("nobody drinks that")
        self.heard.append(set(changed))

    @skill
    async def warm(self) -> float:
        """How warm it heats."""
        return self.config.warm_c

    @skill
    async def cheat(self, call: Call) -> None:
        """Ask for another temperature."""
        await call.skills.run(SET, assignments={"warm_c": "1"})


async def kettles(world: Scene, *names: str) -> list[Kettle]:
    made = [Kettle(name=name, context=RunContext(services=Services(), namespace="")) for name in names]
    for kettle in made:
        await world.add(kettle)
    await until(lambda: all(world.broker.directory.module(name) is not None for name in names))
    await world.offered("warm")
    return made


def process_of(world: Scene, name: str) -> SimulatedProcess:
    return next(each for each in world.processes if name in each.modules)


async def change(world: Scene, *assignments: str, caller: str = "ann") -> SettingsReport:
    return await world.broker.settings.change(assignments, caller)


async def test_a_change_is_heard_shown_and_journalled() -> None:
    async with scene() as world:
        (kettle,) = await kettles(world, "kettle")
        report = await change(world, "kettle.warm_c=80", "kettle.label=123")
        assert str(report) == 'kettle.warm_c: 60.0 → 80.0; kettle.label: "tea" → "123"'
        assert kettle.heard == [{"warm_c", "label"}]
        assert (await closed(world.broker, await world.broker.call("warm", {}, caller="ann"))).result == 80.0
        view = world.broker.directory.module("kettle")
        assert view is not None
        assert view.state == {STATE: {"warm_c": 80.0, "label": "123"}}
        opened, ended = [event for event in await collect(world.broker) if event.skill == SET]
        assert (opened.caller, opened.data["arguments"]) == ("ann", {"assignments": {"warm_c": "80", "label": "123"}})
        assert ended.data["result"]["warm_c"] == {"old": 60.0, "new": 80.0}

        await world.kill_bridge()
        await world.start_bridge()
        assert world.broker.directory.module("kettle") is None
        again = await change(world, "kettle.warm_c=80.0")
        assert str(again) == "nothing has changed: the settings are so already"
        await change(world, "kettle.warm_c=60", "kettle.label=tea")
        assert kettle.heard[1:] == [{"warm_c", "label"}]
        await until(lambda: not _state(world, "kettle"))


SHOWN = "it is or has a secret, and a change is shown: give it by the environment or in the blueprint, and run again"


async def test_what_would_show_a_secret_is_refused_before_anybody_is_asked() -> None:
    know("sk-p1ant3d/key+7")
    async with scene() as world:
        (kettle,) = await kettles(world, "kettle")
        sent: list[bytes] = []
        world.inner.subscribe(CALLS, lambda _, data: sent.append(data))
        given = {
            "kettle.label": "sk-p1ant3d/key+7",
            "kettle.url": "http://ann:pa55word@h/",
            "kettle.token": "t0ken-of-mine",
            "kettle.extra": "{camera: {password: pa55word}}",
            "kettle.credentials.robot1": "pa55word",
            "kettle.sk-p1ant3d/key+7": "1",
        }
        with pytest.raises(SettingsError) as refused:
            await change(world, "kettle.warm_c=80", *(f"{path}={text}" for path, text in given.items()))
        assert refused.value.problems == dict.fromkeys(given, SHOWN)
        assert kettle.heard == []
        assert not any(b"pa55word" in data or b"t0ken" in data or b"p1ant3d" in data for data in sent)
        await change(world, "kettle.url=http://h/", "kettle.extra={camera: {port: 7}}")
        assert kettle.config.url == "http://h/"


async def test_what_has_a_secret_is_not_changed_because_its_old_value_would_be_shown() -> None:
    async with scene() as world:
        context = RunContext(services=Services(), namespace="")
        await world.add(Kettle({"url": "http://ann:pa55word@h/"}, name="kettle", context=context))
        await until(lambda: world.broker.directory.module("kettle") is not None)
        with pytest.raises(SettingsError) as refused:
            await change(world, "kettle.warm_c=80", "kettle.url=http://h/")
        assert refused.value.problems == {"kettle.url": SHOWN}
        assert "pa55word" not in str([event.to_dict() for event in await collect(world.broker)])


async def test_all_that_is_wrong_is_named_and_nothing_changes() -> None:
    async with scene() as world:
        one, two = await kettles(world, "one", "two")
        with pytest.raises(SettingsError) as refused:
            await change(world, "one.warm_c=70", "two.warm_c=300", "two.port=9")
        assert refused.value.problems == {
            "two.port": "it does not change while its module runs, only by `run --set` or in the blueprint"
            " (live: warm_c, label, url, extra)",
            "two.warm_c": "it must be at most 100 (given: 300)",
        }
        with pytest.raises(SettingsError, match=r"^two.warm_c: it must be at most 100 \(given: 300\)$"):
            await change(world, "one.warm_c=70", "two.warm_c=300")
        given = (
            "twoo.warm_c=1",
            "one=1",
            "bare",
            "one.label=a",
            "one.label=b",
            "one.label.x=1",
            "",
            "=1",
            ".warm_c=1",
        )
        with pytest.raises(SettingsError) as refused:
            await change(world, *given, "two.warm_c=300")
        first = {"twoo.warm_c", "one", "bare", "one.label", "assignments.6", "assignments.7", ".warm_c"}
        assert set(refused.value.problems) == first | {"one.label.x", "two.warm_c"}, "what modules find comes with it"
        assert refused.value.problems["one.label"] == "it is given twice"
        formless = "this is not of the form module.setting=value (given: {})"
        assert {name: refused.value.problems[name] for name in ("one", "bare", "assignments.6", "assignments.7")} == {
            "one": formless.format("'one=…'"),
            "bare": formless.format("'bare'"),
            "assignments.6": formless.format("''"),
            "assignments.7": formless.format("'=…'"),
        }
        assert refused.value.problems[".warm_c"] == formless.format("'.warm_c=…'")
        unknown = "no module 'twoo' runs; did you mean 'two'? (modules: bridge, one, two, worker)"
        assert refused.value.problems["twoo.warm_c"] == unknown
        assert (one.config, one.heard, two.config, two.heard) == (
            KettleConfig.model_validate({}),
            [],
            KettleConfig.model_validate({}),
            [],
        )


async def test_what_others_have_taken_is_taken_back_when_one_refuses() -> None:
    async with scene() as world:
        one, two = await kettles(world, "one", "two")
        await change(world, "one.warm_c=70")
        with pytest.raises(SettingsError, match=r"^two: module 'two' refuses: nobody drinks that$"):
            await change(world, "one.warm_c=90", "two.label=poison")
        assert (one.config.warm_c, two.config.label) == (70.0, "tea")
        assert one.heard == [{"warm_c"}] * 3


async def test_a_module_that_is_gone_or_hangs_changes_nothing() -> None:
    async with scene() as world:
        (kettle,) = await kettles(world, "kettle")
        process = process_of(world, "kettle")
        process.bus.partitioned = True
        with pytest.raises(SkillUnavailableError, match=r"did not begin the call within 2 s$"):
            await change(world, "kettle.warm_c=80")
        await until(lambda: not world.broker.directory.module("kettle").alive)  # type: ignore[union-attr]
        with pytest.raises(SettingsError, match=r"^kettle.warm_c: module 'kettle' is gone"):
            await change(world, "kettle.warm_c=80")
        assert kettle.config.warm_c == 60.0


async def test_a_module_that_hears_an_order_late_does_not_carry_it_out() -> None:
    async with scene() as world:
        (kettle,) = await kettles(world, "kettle")
        process = process_of(world, "kettle")
        process.bus.arriving = Faults(delay_s=(3.0, 3.0))
        with pytest.raises(SkillUnavailableError, match=r"^module 'kettle' has not changed its settings: lost"):
            await change(world, "kettle.warm_c=80")
        process.bus.arriving = Faults()
        await asyncio.sleep(4.0)
        assert (kettle.config.warm_c, kettle.heard) == (60.0, [])
        await change(world, "kettle.warm_c=80")
        assert kettle.config.warm_c == 80.0


async def test_nobody_waits_for_what_others_ask_of_a_module_that_hangs() -> None:
    async with scene() as world:
        hung, other = await kettles(world, "hung", "other")
        process_of(world, "hung").bus.partitioned = True
        began = clock.monotonic()
        asked = [asyncio.create_task(change(world, "hung.warm_c=70")) for _ in range(25)]
        both = asyncio.create_task(change(world, "hung.warm_c=70", "other.label=milk"))
        await asyncio.sleep(0)
        await change(world, "other.warm_c=80")
        assert (other.config.warm_c, clock.monotonic() - began < 1) == (80.0, True)
        refusals = [str(each) for each in await asyncio.gather(*asked, both, return_exceptions=True)]
        assert clock.monotonic() - began < 8, "those that were asked before it counted as gone wait for it no longer"
        assert refusals[0].endswith("did not begin the call within 2 s")
        assert all(each.startswith("hung.warm_c: module 'hung' is gone") for each in refusals[5:]), refusals
        assert (hung.config.warm_c, other.config.label) == (60.0, "tea"), "of several modules all or none"


async def test_nobody_waits_for_a_module_that_is_asked_for_its_old_settings() -> None:
    async with scene() as world:
        await kettles(world, "kettle")
        sulker = Sulker(name="sulker", context=RunContext(services=Services(), namespace=""))
        process = await world.add(sulker)
        await until(lambda: world.broker.directory.module("sulker") is not None)
        sulker.silence = lambda: setattr(process.bus, "partitioned", True)
        with pytest.raises(SkillUnavailableError, match=r"^nobody knows whether module 'sulker'"):
            await change(world, "sulker.label=sulk")
        process.bus.partitioned = False
        await until(lambda: world.broker.directory.module("sulker").alive)  # type: ignore[union-attr]
        process.bus.arriving = Faults(delay_s=(1.0, 1.0))
        longest_s = 0.0
        while sulker.config.label == "sulk":
            began = clock.monotonic()
            await change(world, "kettle.warm_c=80")
            longest_s = max(longest_s, clock.monotonic() - began)
            await asyncio.sleep(0.05)
        assert (sulker.config.label, longest_s < 0.5) == ("tea", True)


class Sulker(Kettle):
    """Takes new settings, and is not heard for a while then."""

    silence: Callable[[], None]

    def on_settings(self, changed: frozenset[str]) -> None:
        super().on_settings(changed)
        if "label" in changed and self.config.label == "sulk":
            self.silence()


@pytest.mark.parametrize("decided", [False, True])
async def test_what_nobody_knows_is_said_and_taken_back_when_the_module_is_heard_again(decided: bool) -> None:
    async with scene() as world:
        (kettle,) = await kettles(world, "kettle")
        sulker = Sulker(name="sulker", context=RunContext(services=Services(), namespace=""))
        process = await world.add(sulker)
        await until(lambda: world.broker.directory.module("sulker") is not None)
        sulker.silence = lambda: setattr(process.bus, "partitioned", True)
        with pytest.raises(SkillUnavailableError) as refused:
            await change(world, "kettle.warm_c=70", "sulker.warm_c=70", "sulker.label=sulk")
        said = str(refused.value)
        assert said.startswith("nobody knows whether module 'sulker' has changed its settings: lost, "), said
        assert said.endswith("; it is asked for its old values if it is heard within 60 s"), said
        assert (kettle.config.warm_c, sulker.config.warm_c, sulker.config.label) == (60.0, 70.0, "sulk")
        process.bus.partitioned = False
        if decided:
            await until(lambda: world.broker.directory.module("sulker").alive)  # type: ignore[union-attr]
            await change(world, "sulker.warm_c=90")
        await until(lambda: sulker.config.label == "tea")
        await asyncio.sleep(1.0)
        assert sulker.config.label == "tea"
        assert sulker.config.warm_c == (90.0 if decided else 60.0)


@pytest.mark.slow
@pytest.mark.parametrize(("bridge_is_away_s", "ended"), [(5.0, "killed"), (5.0, "stopped"), (70.0, "stopped")])
async def test_what_is_to_be_taken_back_is_so_by_a_bridge_that_starts_again(
    bridge_is_away_s: float, ended: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal = tmp_path / "journal.sqlite"
    async with scene(journal=journal) as world:
        (kettle,) = await kettles(world, "kettle")
        sulker = Sulker(name="sulker", context=RunContext(services=Services(), namespace=""))
        process = await world.add(sulker)
        await until(lambda: world.broker.directory.module("sulker") is not None)
        sulker.silence = lambda: setattr(process.bus, "partitioned", True)
        with pytest.raises(SkillUnavailableError, match=r"^nobody knows whether module 'sulker'"):
            await change(world, "kettle.warm_c=70", "sulker.warm_c=70", "sulker.label=sulk")
        await change(world, "kettle.warm_c=65")
        assert (tmp_path / "journal.settings.json").exists()
        await (world.kill_bridge() if ended == "killed" else world.processes[0].host.stop())
        await asyncio.sleep(bridge_is_away_s)
        await world.start_bridge()
        await asyncio.sleep(3.0)
        process.bus.partitioned = False
        await asyncio.sleep(10.0)
        in_time = bridge_is_away_s < 60
        assert (sulker.config.warm_c, sulker.config.label) == ((60.0, "tea") if in_time else (70.0, "sulk"))
        assert ("nobody knows the settings of module 'sulker'" in caplog.text) is not in_time
        assert kettle.config.warm_c == 65.0
        assert not (tmp_path / "journal.settings.json").exists()


async def _sulker(world: Scene) -> Sulker:
    sulker = Sulker(name="sulker", context=RunContext(services=Services(), namespace=""))
    await world.add(sulker)
    await until(lambda: world.broker.directory.module("sulker") is not None)
    return sulker


async def test_a_change_that_is_cut_short_is_taken_back(tmp_path: Path) -> None:
    async with scene(journal=tmp_path / "journal.sqlite") as world:
        (kettle,) = await kettles(world, "kettle")
        sulker = await _sulker(world)
        changing = asyncio.create_task(change(world, "sulker.label=sulk", "sulker.warm_c=70", "kettle.warm_c=70"))

        def cut_short() -> None:
            changing.cancel()

        sulker.silence = cut_short
        await asyncio.wait([changing])
        assert (changing.cancelled(), sulker.config.label, sulker.config.warm_c) == (True, "sulk", 70.0)
        await until(lambda: sulker.config.label == "tea")
        assert (sulker.config.warm_c, kettle.config.warm_c, kettle.heard) == (60.0, 60.0, [])
        await until(lambda: not (tmp_path / "journal.settings.json").exists())


@pytest.mark.parametrize("ended", ["killed", "stopped"])
async def test_a_change_during_which_a_bridge_ends_is_taken_back_by_the_next(ended: str, tmp_path: Path) -> None:
    rollbacks = tmp_path / "journal.settings.json"
    async with scene(journal=tmp_path / "journal.sqlite") as world:
        (kettle,) = await kettles(world, "kettle")
        sulker = await _sulker(world)
        await change(world, "sulker.warm_c=65")
        assert not rollbacks.exists()
        bus = process_of(world, "kettle").bus
        sulker.silence = lambda: setattr(bus, "partitioned", True)
        changing = asyncio.create_task(change(world, "sulker.label=sulk", "kettle.warm_c=70"))
        await until(lambda: bus.partitioned)
        await asyncio.sleep(0.2)
        assert rollbacks.exists()
        await (world.kill_bridge() if ended == "killed" else world.processes[0].host.stop())
        bus.partitioned = False
        await world.start_bridge()
        changing.cancel()
        await asyncio.wait([changing])
        assert rollbacks.exists(), "it belongs to the next bridge"
        await until(lambda: sulker.config.label == "tea")
        await until(lambda: not rollbacks.exists())
        assert (sulker.config.warm_c, kettle.config.warm_c) == (65.0, 60.0)


async def test_a_module_of_which_less_is_known_once_more_is_waited_for_as_long_again() -> None:
    asked: list[dict[str, str]] = []
    heard_from = clock.monotonic() + ROLLBACK_WITHIN_S + 20.0

    async def ask(
        name: str, values: Mapping[str, str], caller: str, *, only_check: bool = False
    ) -> dict[str, dict[str, str]]:
        if not only_check:
            asked.append(dict(values))
        return {"a setting": {}}

    changing = defaultdict[str, asyncio.Lock](asyncio.Lock)
    pending = PendingChanges(ask, lambda name: clock.monotonic() >= heard_from, changing, None)
    pending.begin("kettle", {"warm_c": "60"}, "ann")
    pending.roll_back("kettle")
    await asyncio.sleep(50.0)
    pending.begin("kettle", {"warm_c": "70", "label": "tea"}, "ann")
    pending.roll_back("kettle")
    await until(lambda: asked, 40.0)
    assert asked == [{"warm_c": "60", "label": "tea"}], "the values that are known to have held"
    await pending.stop()


@pytest.mark.slow
async def test_a_module_that_is_not_heard_again_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    async with scene() as world:
        sulker = Sulker(name="sulker", context=RunContext(services=Services(), namespace=""))
        process = await world.add(sulker)
        await until(lambda: world.broker.directory.module("sulker") is not None)
        sulker.silence = lambda: setattr(process.bus, "partitioned", True)
        with pytest.raises(SkillUnavailableError, match=r"^nobody knows whether module 'sulker'"):
            await change(world, "sulker.label=sulk")
        await asyncio.sleep(61.0)
        assert "nobody knows the settings of module 'sulker': it is not heard" in caplog.text


async def test_only_operators_change_settings() -> None:
    async with scene() as world:
        (kettle,) = await kettles(world, "kettle")
        for caller in ("mcp/claude", "bridge"):
            with pytest.raises(CallRejectedError):
                await change(world, "kettle.warm_c=80", caller=caller)
        with pytest.raises(UnknownSkillError, match=r"\(offered: [^)]*\)$") as unknown:
            await world.broker.call(SET, {"assignments": {"warm_c": "80"}}, caller="ann")
        assert SET not in str(unknown.value).partition("offered")[2]
        assert SET not in [each.name for each in await world.broker.skills()]
        cheated = await closed(world.broker, await world.broker.call("cheat", {}, caller="ann"))
        assert cheated.outcome is Outcome.FAILED
        forged = SkillCall(
            utime=1, call_id="forged", module="kettle", skill=SET, caller="ann", parent="some-call",
            arguments_json='{"assignments": {"warm_c": "80"}}',
        )  # fmt: skip
        world.inner.publish(CALLS, encode(forged))
        await asyncio.sleep(0.5)
        assert (kettle.config.warm_c, kettle.heard) == (60.0, [])


async def test_a_stopped_robot_s_settings_can_change() -> None:
    async with scene() as world:
        (kettle,) = await kettles(world, "kettle")
        await world.broker.stops.stop_robot("", "")
        await change(world, "kettle.warm_c=80")
        assert kettle.config.warm_c == 80.0


async def test_nobody_is_told_to_drive_faster_than_the_gate_lets_pass_nor_the_gate_to_let_more_pass() -> None:
    async with scene() as world:
        gate = VelocityGate(name="gate")
        await world.add(gate)
        drive = Drive(name="drive", context=RunContext(services=Services(), namespace=""))
        process = await world.add()
        await process.host.start(drive, {"odom": "/odom", "cmd_vel": "/skill_vel"})
        await world.offered("move")
        await asyncio.sleep(1.0)
        with pytest.raises(SettingsError) as refused:
            await change(world, "drive.max_speed=1.2", "drive.max_turn=1.7")
        assert refused.value.problems == {
            "drive.max_speed": "1.2 m/s is more than velocity gate 'gate' lets pass, 1 m/s"
        }
        await change(world, "drive.max_speed=0.9", "gate.max_speed=0.4")
        assert gate.logic.limits.max_speed == 0.4
        await asyncio.sleep(0.2)  # it has said so in a heartbeat
        with pytest.raises(SettingsError, match=r"more than velocity gate 'gate' lets pass, 0.4 m/s$"):
            await change(world, "drive.max_speed=0.5")
        await change(world, "gate.max_speed=1.0")
        with pytest.raises(SettingsError, match=r"^gate.max_speed: more than the blueprint's 1 is not possible"):
            await change(world, "gate.max_speed=1.1")
        assert gate.logic.limits.max_speed == 1.0
        assert (drive.config.max_speed, drive.config.max_turn) == (0.9, 1.2)


async def test_too_much_to_show_is_refused() -> None:
    async with scene() as world:
        await kettles(world, "kettle")
        with pytest.raises(SkillError, match="would have 3012 bytes, 2000 are possible"):
            await change(world, f"kettle.label={'x' * 3000}")


async def test_a_stop_waits_for_one_value_of_an_order_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene() as world:
        await kettles(world, "kettle")
        happened: list[str] = []

        def read(path: str, text: str) -> str:
            happened.append(f"read {path}")
            asyncio.get_running_loop().call_soon(happened.append, f"others after {path}")
            return SHOWN

        monkeypatch.setattr(live_settings, "shown_secret", read)
        with pytest.raises(SettingsError):
            await change(world, "kettle.warm_c=80", "kettle.label=tea", "kettle.url=a")
        assert happened[:5] == [
            *("read warm_c", "others after warm_c"),
            *("read label", "others after label"),
            "read url",
        ]


async def test_settings_for_which_no_call_has_room_are_not_even_read(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene() as world:
        await kettles(world, "kettle")
        monkeypatch.setattr(live_settings, "shown_secret", lambda *_: pytest.fail("it is read"))
        with pytest.raises(SettingsError, match=r"the settings have 56140 bytes, 40000 are possible"):
            await change(world, *(f"kettle.x{n}={'a' * 3999}" for n in range(10, 24)))


def _state(world: Scene, name: str) -> dict[str, Any]:
    view = world.broker.directory.module(name)
    assert view is not None
    return dict(view.state)


_REFUSED = {"outcome": "failed", "error": "SettingsError"}


@pytest.mark.parametrize(
    ("data", "kind", "said"),
    [
        ({"outcome": "completed", "result": "done"}, SkillUnavailableError, "module 'worker' has not changed"),
        ({**_REFUSED, "result": {"a.b": "no", "": "nor this"}}, SettingsError, "worker.a.b: no; worker: nor this"),
        ({**_REFUSED, "result": "no"}, SettingsError, "worker: jammed"),
        ({"outcome": "failed", "result": {"a": "no"}}, SkillUnavailableError, "has not changed its settings: failed"),
        ({"outcome": "timed_out", "error": "SettingsError"}, SkillUnavailableError, "has not changed its settings"),
        ({"outcome": "lost"}, UnknownChangeError, "nobody knows whether module 'worker' has changed"),
    ],
)
async def test_whatever_a_module_answers_it_is_said_what_became_of_the_change(
    data: dict[str, Any], kind: type[SkillError], said: str
) -> None:
    """Modules may be programs of others, which answer as they like."""
    call = CallState.from_event(event(1, "open"))
    call.apply(event(2, "close", text="jammed", data=data))
    with pytest.raises(kind, match=re.escape(said)) as raised:
        live_settings._result_of(call, only_check=False)
    assert type(raised.value) is kind
