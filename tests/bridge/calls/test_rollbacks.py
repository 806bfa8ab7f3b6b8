"""Old settings come back only while that is still meant, and nobody waits for whom others wait for in a circle."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from dimos_streams import clock
from dimos_streams.bridge.calls.settings import rollback_file
from dimos_streams.bridge.calls.settings.rollback_file import SUFFIX, Rollback
from dimos_streams.errors import SettingsError, SkillError
from dimos_streams.tool_stream.hosting import settings_change
from tests.bridge.calls.test_live_settings import Kettle
from tests.bridge.scene import Scene, Worker, scene
from tests.helpers import until

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("K4")]


def paces(world: Scene) -> list[float]:
    """The settings of all workers."""
    modules = [module for process in world.processes for module in process.modules.values()]
    return [module.config.pace for module in modules if isinstance(module, Worker)]


@pytest.mark.parametrize(("left_s", "pace"), [(30.0, 7.0), (-1.0, 1.0)])
async def test_a_rollback_whose_time_is_over_is_not_taken_up(left_s: float, pace: float, tmp_path: Path) -> None:
    journal = tmp_path / "journal.sqlite"
    async with scene(journal=journal) as world:
        await world.kill_bridge()
        until_utime = clock.utime() + round(left_s * 1e6)
        left = Rollback(module="worker", settings={"pace": "7"}, caller="you", until_utime=until_utime)
        rollback_file.save(journal.with_suffix(SUFFIX), [left])
        await world.start_bridge()
        await asyncio.sleep(5.0)
        assert paces(world) == [pace]


async def test_changes_of_the_same_modules_in_another_order_come_one_after_the_other() -> None:
    async with scene() as world:
        await world.add(Worker(name="other"))
        await asyncio.sleep(1.0)
        orders = (["worker.pace=2"], ["worker.pace=3", "other.pace=3"], ["other.pace=4", "worker.pace=4"])
        async with asyncio.timeout(10.0):
            await asyncio.gather(*(world.broker.settings.change(order, "you") for order in orders))
        assert paces(world) == [4.0, 4.0]


class Spoiler(Kettle):
    """Has another module fall silent, and refuses."""

    spoil: Callable[[], None]

    def on_settings(self, changed: frozenset[str]) -> None:
        self.spoil()
        raise ValueError("not today")


async def test_a_module_that_falls_silent_before_it_has_its_old_values_is_asked_later() -> None:
    async with scene() as world:
        spoiler = Spoiler(name="spoiler")
        await world.add(spoiler)
        await asyncio.sleep(1.0)
        bus = world.processes[1].bus
        spoiler.spoil = lambda: setattr(bus, "partitioned", True)
        with pytest.raises(SkillError, match="not today; nobody knows whether module 'worker' has changed"):
            await world.broker.settings.change(["worker.pace=2", "spoiler.warm_c=70"], "you")
        assert paces(world) == [2.0]
        bus.partitioned = False
        await until(lambda: paces(world) == [1.0])


async def test_a_module_whose_old_value_shows_a_secret_is_not_asked_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settings_change, "shown_secrets", lambda before, after, paths: {})  # as in another program's
    async with scene() as world:
        kettle = Kettle({"url": "http://ann:pa55word@h/"}, name="kettle")
        await world.add(kettle)
        await asyncio.sleep(1.0)
        with pytest.raises(SettingsError, match=r"^kettle.url: it is or has a secret"):
            await world.broker.settings.change(["kettle.url=http://h/"], "you")
        assert kettle.config.url == "http://ann:pa55word@h/"
