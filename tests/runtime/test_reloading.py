"""What is restarted when sources are written: no more than has changed, and as often as it has."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dimos_streams.cli.running.plan_checks import watch_sources
from dimos_streams.errors import ModuleFailedError, UserError
from dimos_streams.runtime.events import RunEvent
from dimos_streams.runtime.live.reloading import Reloader, check_watching
from tests.helpers import until

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("K4")]


class Kitchen:
    """A run of two processes that share one file, and what is written meanwhile."""

    def __init__(self, tmp_path: Path) -> None:
        self.files = {name: tmp_path / f"{name}.py" for name in ("kettle", "oven", "shared", "new")}
        self.stamp = 1_000_000_000
        for name in ("kettle", "oven", "shared"):
            self.write(name)
        self.loaded = {module: {self.files[module], self.files["shared"]} for module in ("kettle", "oven")}
        self.restarted: list[str] = []
        self.imports: str | None = None
        """The module whose code is being imported."""
        self.outdated: list[str] = []
        self.broken: Exception | None = None
        self.events: list[RunEvent] = []
        self.groups: asyncio.Queue[set[Path]] = asyncio.Queue()
        self.watched: list[frozenset[Path]] = []

    def write(self, *names: str) -> set[Path]:
        self.stamp += 1
        for name in names:
            self.files[name].parent.mkdir(exist_ok=True)
            self.files[name].touch()
            os.utime(self.files[name], ns=(self.stamp, self.stamp))
        return {self.files[name] for name in names}

    def sources(self) -> dict[str, frozenset[Path]]:
        return {module: frozenset(files) for module, files in self.loaded.items()}

    def process_of(self, module: str) -> str:
        return f"{module}-and-sink"

    async def restart(self, module: str, reason: str) -> tuple[str, ...]:
        self.restarted.append(f"{module}: {reason}")
        await asyncio.sleep(1.0)
        if self.broken is not None:
            raise self.broken
        return (module,)

    def outdate(self, module: str) -> bool:
        self.outdated += [module] if module == self.imports else []
        return module == self.imports

    async def changes(self, directories: frozenset[Path], stop: asyncio.Event) -> AsyncIterator[set[Path]]:
        self.watched.append(directories)
        while not stop.is_set():
            try:
                async with asyncio.timeout(0.1):
                    yield await self.groups.get()
            except TimeoutError:
                continue

    async def __aenter__(self) -> Kitchen:
        self.task = asyncio.create_task(Reloader(self, self.events.append, self.changes).run())
        await until(lambda: bool(self.watched))
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def saved(self, *names: str) -> list[str]:
        """What is restarted for files that are written."""
        self.restarted.clear()
        self.groups.put_nowait(self.write(*names))
        await asyncio.sleep(2.5)
        return list(self.restarted)


async def test_who_has_loaded_what_is_written_is_restarted_and_nobody_else(tmp_path: Path) -> None:
    async with Kitchen(tmp_path) as kitchen:
        assert await kitchen.saved("kettle") == ["kettle: kettle.py changed"]
        assert await kitchen.saved("shared", "oven") == [
            "kettle: shared.py changed",
            "oven: oven.py, shared.py changed",
        ]
        assert await kitchen.saved("new") == []
        kitchen.restarted.clear()
        kitchen.groups.put_nowait({kitchen.files["oven"]})
        await asyncio.sleep(2.0)
        assert kitchen.restarted == [], "it was looked at, not written"
        assert kitchen.events == []


async def test_what_is_written_during_a_restart_is_another_one_reason(tmp_path: Path) -> None:
    async with Kitchen(tmp_path) as kitchen:
        kitchen.groups.put_nowait(kitchen.write("kettle"))
        await asyncio.sleep(0.3)
        for name in ("kettle", "shared", "kettle"):
            kitchen.groups.put_nowait(kitchen.write(name))
        await asyncio.sleep(4.0)
        assert [each for each in kitchen.restarted if each.startswith("kettle")] == [
            "kettle: kettle.py changed",
            "kettle: kettle.py, shared.py changed",
        ]


async def test_what_is_written_while_code_is_imported_is_imported_instead(tmp_path: Path) -> None:
    async with Kitchen(tmp_path) as kitchen:
        kitchen.groups.put_nowait(kitchen.write("kettle"))
        await until(lambda: bool(kitchen.restarted))
        kitchen.imports = "kettle"
        kitchen.groups.put_nowait(kitchen.write("shared"))
        await asyncio.sleep(4.0)
        assert kitchen.restarted == ["kettle: kettle.py changed", "oven: shared.py changed"]
        assert kitchen.outdated == ["kettle"]
        kitchen.imports = "oven"  # by an operator's restart, which takes the newer code as well
        assert await kitchen.saved("oven") == ["oven: oven.py changed"]
        assert kitchen.outdated == ["kettle", "oven"]


async def test_broken_code_is_shown_once_and_tried_again_with_every_file(tmp_path: Path) -> None:
    async with Kitchen(tmp_path) as kitchen:
        kitchen.broken = UserError("kettle.py:3: no good\nsecond line")
        for _ in range(2):
            assert await kitchen.saved("kettle") == ["kettle: kettle.py changed"]
        (event,) = kitchen.events
        assert (event.kind, event.process) == ("kept", "kettle-and-sink")
        assert event.text == "the old code goes on: kettle.py:3: no good; second line"
        kitchen.broken = ModuleFailedError("it did not start")
        assert await kitchen.saved("new") == ["kettle: new.py changed"], "what it lacks may be in there"
        kitchen.broken = None
        assert await kitchen.saved("new") == ["kettle: new.py changed"]
        assert await kitchen.saved("new") == []
        assert len(kitchen.events) == 1, "the supervisor shows what does not start"


async def test_what_is_loaded_later_is_watched_and_what_was_written_in_between_is_seen(tmp_path: Path) -> None:
    async with Kitchen(tmp_path) as kitchen:
        assert kitchen.watched == [frozenset({tmp_path})]
        kitchen.files["new"] = tmp_path / "pantry" / "new.py"
        kitchen.write("new")
        kitchen.loaded["oven"].add(kitchen.files["new"])
        await until(lambda: len(kitchen.watched) == 2)
        assert kitchen.watched[-1] == frozenset({tmp_path, tmp_path / "pantry"})
        assert await kitchen.saved("new") == ["oven: new.py changed"]


async def test_what_was_written_while_the_watching_began_is_seen(tmp_path: Path) -> None:
    async with Kitchen(tmp_path) as kitchen:
        kitchen.write("oven")
        await asyncio.sleep(2.5)
        assert kitchen.restarted == ["oven: oven.py changed"]


async def test_a_run_that_has_loaded_nothing_of_its_own_watches_nothing_until_it_has(tmp_path: Path) -> None:
    kitchen = Kitchen(tmp_path)
    loaded, kitchen.loaded = kitchen.loaded, {"kettle": set(), "oven": set()}
    task = asyncio.create_task(Reloader(kitchen, kitchen.events.append, kitchen.changes).run())
    await asyncio.sleep(1.0)
    assert kitchen.watched == []
    kitchen.loaded = loaded
    await until(lambda: bool(kitchen.watched))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_without_watchfiles_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError) as missing:
        check_watching()
    wanted = "--reload can't watch the sources: 'watchfiles' is not installed: pip install 'dimos-streams[reload]'"
    assert str(missing.value) == wanted


def test_what_has_one_process_can_t_reload() -> None:
    with pytest.raises(UserError, match=r"^--reload restarts processes, and with --virtual-time there is one"):
        watch_sources("virtual")
