"""Of changes that are neither kept nor taken back yet, each ends: as an operator has decided, or as it was before."""

from __future__ import annotations

import asyncio
import errno
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.bridge.calls.settings import rollback_file
from dimos_streams.bridge.calls.settings.pending_changes import PendingChanges
from dimos_streams.bridge.calls.settings.rollback_file import ROLLBACK_WITHIN_S, SUFFIX, Rollback
from dimos_streams.common import boot_time
from dimos_streams.common.secrets import know
from dimos_streams.errors import SkillUnavailableError
from tests.bridge.scene import scene
from tests.helpers import until

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("K4")]


class Asked:
    """Modules that take what they are asked to, after a moment."""

    def __init__(self, *, differs: bool = True, failures: Sequence[Exception] = ()) -> None:
        """``differs`` is whether they say that the old values are none that they have; the first orders fail."""
        self.orders: list[dict[str, str]] = []
        self.differs, self.failures = differs, list(failures)
        self.changing = defaultdict[str, asyncio.Lock](asyncio.Lock)

    def pending(self, path: Path | None = None, *, alive: bool = True) -> PendingChanges:
        return PendingChanges(self._ask, lambda name: alive, self.changing, path)

    async def _ask(
        self, name: str, values: Mapping[str, str], caller: str, *, only_check: bool = False
    ) -> dict[str, Any]:
        await asyncio.sleep(0.1)
        if not only_check:
            if self.failures:
                raise self.failures.pop()
            self.orders.append(dict(values))
        return {"label": {}} if self.differs else {}


async def test_what_an_operator_decides_while_a_module_is_asked_for_old_values_stays() -> None:
    asked = Asked()
    pending = asked.pending()
    pending.begin("kettle", {"label": "tea"}, "ann")
    pending.roll_back("kettle")
    await asyncio.sleep(0.05)
    async with asked.changing["kettle"]:
        asked.orders.append({"label": "milk"})
        pending.commit({"kettle": {"label"}})
    await asyncio.sleep(1.0)
    assert asked.orders == [{"label": "tea"}, {"label": "milk"}]
    await pending.stop()


@pytest.mark.parametrize(
    ("decided", "said"),
    [
        ({"label", "warm_c"}, "keeps the settings on which an operator has decided meanwhile"),
        ({"label"}, "has those that it had before"),
    ],
)
async def test_only_a_module_that_gets_old_values_back_is_said_to_have_them(
    decided: set[str], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    asked = Asked()
    pending = asked.pending()
    async with asked.changing["kettle"]:
        pending.begin("kettle", {"label": "tea", "warm_c": "60"}, "ann")
        pending.roll_back("kettle")
        pending.commit({"kettle": decided})
    await until(lambda: caplog.messages)
    (line,) = caplog.messages
    assert line.endswith(said)
    assert asked.orders == [{"warm_c": "60"}] * (decided == {"label"})
    await pending.stop()


async def test_a_module_is_asked_once_for_what_two_changes_are_to_be_taken_back_to(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked = Asked()
    pending = asked.pending()
    for settings in ({"label": "tea"}, {"label": "milk", "warm_c": "60"}):
        pending.begin("kettle", settings, "ann")
        pending.roll_back("kettle")
    await asyncio.sleep(2.0)
    assert asked.orders == [{"label": "tea", "warm_c": "60"}]
    assert [each.message for each in caplog.records if each.levelname == "ERROR"] == []
    await pending.stop()


async def test_a_module_that_has_its_old_values_is_not_asked_for_them() -> None:
    asked = Asked(differs=False)
    pending = asked.pending()
    pending.begin("kettle", {"label": "tea"}, "ann")
    pending.roll_back("kettle")
    await asyncio.sleep(1.0)
    assert asked.orders == []
    await pending.stop()


async def test_after_a_defect_in_the_midst_of_it_the_next_change_can_be_taken_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked = Asked(failures=[ValueError("a defect")])
    pending = asked.pending()
    for label in ("tea", "milk"):
        pending.begin("kettle", {"label": label}, "ann")
        pending.roll_back("kettle")
        await asyncio.sleep(1.0)
    assert asked.orders == [{"label": "milk"}]
    assert "module 'kettle' may have new settings that were to be taken back" in caplog.text
    await pending.stop()


async def test_a_module_that_was_not_heard_when_it_was_asked_is_asked_again() -> None:
    asked = Asked(failures=[SkillUnavailableError("it has not answered")])
    pending = asked.pending()
    pending.begin("kettle", {"label": "tea"}, "ann")
    pending.roll_back("kettle")
    await until(lambda: asked.orders == [{"label": "tea"}])
    await pending.stop()


async def test_what_an_operator_has_decided_is_not_taken_back_by_the_next_bridge_either(tmp_path: Path) -> None:
    path = tmp_path / "rollbacks.json"
    pending = Asked().pending(path, alive=False)
    pending.begin("kettle", {"label": "tea", "warm_c": "60"}, "ann")
    pending.roll_back("kettle")
    pending.begin("kettle", {}, "bob")
    pending.commit({"kettle": {"label"}})
    await pending.stop()
    assert [each.settings for each in rollback_file.load(path)] == [{"warm_c": "60"}]


@pytest.mark.parametrize("has_room_again", [False, True])
async def test_on_a_full_disk_what_an_operator_has_decided_is_not_taken_back_by_the_next_bridge(
    has_room_again: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The file has the old value beside another one, and can't be written without it."""

    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "rollbacks.json"
    pending = Asked().pending(path, alive=False)
    pending.begin("kettle", {"label": "tea", "warm_c": "60"}, "ann")
    pending.roll_back("kettle")
    with monkeypatch.context() as full:
        full.setattr(rollback_file, "replace_text", refuse)
        pending.begin("gate", {"max_speed": "1.0"}, "bob")
        assert len(rollback_file.load(path)) == 1, "what was written before it is still to be taken back"
        pending.commit({"gate": {"max_speed"}, "kettle": {"label"}})
        assert rollback_file.load(path) == ()
        assert "it is out of date, because what came later could not be written" in caplog.text
    if has_room_again:
        pending.begin("gate", {"max_speed": "1.0"}, "bob")
        assert {each.module: each.settings for each in rollback_file.load(path)} == {
            "kettle": {"warm_c": "60"},
            "gate": {"max_speed": "1.0"},
        }
    await pending.stop()


async def test_nothing_is_waited_for_where_an_operator_has_decided_on_all_of_it(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    path = tmp_path / "rollbacks.json"
    pending = Asked().pending(path, alive=False)
    pending.begin("kettle", {"label": "tea"}, "ann")
    pending.roll_back("kettle")
    pending.commit({"kettle": {"label"}})
    await until(lambda: not path.exists())
    await asyncio.sleep(2 * ROLLBACK_WITHIN_S)
    assert "nobody knows the settings" not in caplog.text
    await pending.stop()


async def test_a_clock_that_was_set_back_makes_no_bridge_wait_for_longer(tmp_path: Path) -> None:
    journal = tmp_path / "journal.sqlite"
    path = journal.with_suffix(SUFFIX)
    async with scene(journal=journal) as world:
        await world.kill_bridge()
        of_another_day = clock.utime() + 86_400_000_000
        rollback_file.save(
            path, [Rollback(module="gone", settings={"pace": "7"}, caller="you", until_utime=of_another_day)]
        )
        await world.start_bridge()
        await until(lambda: not path.exists(), ROLLBACK_WITHIN_S + 5.0)


@pytest.mark.parametrize(("boot", "taken_back"), [("one", [{"label": "tea"}]), ("another", [])])
async def test_a_clock_that_is_set_while_no_bridge_runs_forgets_no_old_values(
    boot: str, taken_back: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(clock, "is_virtual", lambda: False)
    monkeypatch.setattr(boot_time, "boot_id", lambda: "one")
    path, utime = tmp_path / "rollbacks.json", clock.utime
    killed = Asked().pending(path)
    killed.begin("kettle", {"label": "tea"}, "ann")
    monkeypatch.setattr(boot_time, "boot_id", lambda: boot)
    monkeypatch.setattr(clock, "utime", lambda: utime() + 86_400_000_000)
    asked = Asked()
    successor = asked.pending(path)
    successor.start()
    await until(lambda: not path.exists())
    assert asked.orders == taken_back
    await successor.stop()


async def test_the_file_of_what_is_to_be_taken_back_has_no_secrets(tmp_path: Path) -> None:
    know("sk-p1ant3d/key+8")
    path = tmp_path / "rollbacks.json"
    settings = {"url": "http://h/?key=sk-p1ant3d/key+8", "label": "tea"}
    rollback_file.save(path, [Rollback(module="kettle", settings=settings, caller="ann", until_utime=clock.utime())])
    assert [each.settings for each in rollback_file.load(path)] == [{"label": "tea"}]
