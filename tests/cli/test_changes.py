"""A run goes on while its settings and its code change: `set`, `restart` and `run --reload`, on real processes."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.cli.machine import Machine, Result
from tests.helpers import until

pytestmark = [pytest.mark.live, pytest.mark.feature("K4"), pytest.mark.timeout(120)]

KETTLE = '''
import asyncio
from typing import Annotated

from dimos_streams.live_settings import Live
from dimos_streams.messages.std_msgs import String
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.skill import Call, skill
from dimos_streams.streams import In


class KettleConfig(ModuleConfig):
    warm_c: Annotated[float, Live] = 60.0
    litres: int = 1


class Kettle(Module):
    config: KettleConfig

    @skill
    async def taste(self) -> str:
        """How it is."""
        return f"tea at {self.config.warm_c:g}"

    @skill
    async def boil(self, call: Call) -> None:
        """Boil for ever."""
        await call.update("boiling")
        await asyncio.Event().wait()
'''
KITCHEN = """
name: kitchen
modules:
  bridge: {type: "dimos_streams.bridge.module:Bridge"}
  listener: {type: "tests.runtime.modules:Talker"}
  kettle: {type: "kettle_that_changes:Kettle"}
"""


class Kitchen:
    """A package of one's own, and a run of it."""

    def __init__(self, folder: Path) -> None:
        self.source, self.blueprint = folder / "kettle_that_changes.py", folder / "kitchen.yaml"
        self.source.write_text(KETTLE)
        self.blueprint.write_text(KITCHEN)
        self.machine = Machine(folder / "state")

    def __call__(self, *arguments: str) -> Result:
        return self.machine(*arguments)

    def run(self, *options: str) -> Result:
        return self.importing("run", str(self.blueprint), "--daemon", "--port", str(self.machine.port), *options)

    def importing(self, *arguments: str) -> Result:
        """A command that finds the package."""
        path = os.pathsep.join([str(self.source.parent), os.environ.get("PYTHONPATH", "")])
        return self.machine(*arguments, PYTHONPATH=path)

    def edit(self, old: str, new: str) -> None:
        text = self.source.read_text()
        assert old in text
        self.source.write_text(text.replace(old, new))

    def pids(self) -> dict[str, int]:
        (state,) = self("status", "--json").json
        return {process["label"]: process["pid"] for process in state["processes"]}

    def taste(self) -> Any:
        said = self("call", "taste", "--json")
        return said.json_lines[-1]["data"].get("result") if said.out else said.err


@pytest.fixture
def kitchen(tmp_path: Path) -> Iterator[Kitchen]:
    made = Kitchen(tmp_path)
    yield made
    made("stop")
    assert made.machine.leaves_nothing()


def test_settings_and_code_change_and_all_else_goes_on(kitchen: Kitchen) -> None:
    started = kitchen.run("--set", "kettle.litres=3")
    assert started.code == 0, started
    before = kitchen.pids()

    changed = kitchen("set", "kettle.warm_c=80")
    assert (changed.code, changed.out) == (0, "kettle.warm_c: 60.0 → 80.0\n"), changed
    refused = kitchen("set", "kettle.warm_c=90", "kettle.litres=2")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("error: kettle.litres: it does not change while its module runs")
    assert kitchen.taste() == "tea at 80"
    assert "  SET kettle.warm_c=80.0\n" in kitchen("status").out

    shown = {f"{row['module']}.{row['field']}": row for row in kitchen("config", "--run", "kitchen", "--json").json}
    warm, litres, port = (shown[name] for name in ("kettle.warm_c", "kettle.litres", "bridge.port"))
    assert (warm["value"], warm["source"], warm["live"]) == (80.0, "set while it runs", True)
    assert (litres["value"], litres["source"], litres["live"]) == (3, "command line", False)
    assert (port["value"], port["source"]) == (kitchen.machine.port, "command line")
    assert shown["bridge.host"]["source"] == "default"

    assert kitchen("call", "boil", "--wait", "answer").code == 0
    kitchen.edit("tea", "mud")
    assert kitchen("restart", "kettle") == Result(0, "restarted: kettle\n", "")
    heard = requests.get(f"http://127.0.0.1:{kitchen.machine.port}/modules", timeout=10).json()
    assert {module["name"]: module["pid"] for module in heard}["kettle"] == kitchen.pids()["kettle"]
    assert kitchen.taste() == "mud at 80"
    boiled = next(call for call in kitchen("calls", "--json").json if call["skill"] == "boil")
    assert (boiled["outcome"], boiled["text"]) == ("cancelled", "an operator restarts module 'kettle'")
    after = kitchen.pids()
    assert {name for name in before if before[name] != after[name]} == {"kettle"}

    kitchen.edit("class Kettle(Module):", "class Kettle(Module) is")
    broken = kitchen("restart", "kettle")
    assert (broken.code, f"{kitchen.source}:17)" in broken.err) == (2, True), broken
    unknown = kitchen("restart", "kettl")
    assert (unknown.code, "did you mean 'kettle'? (modules: bridge, listener, kettle)" in unknown.err) == (2, True)
    assert (kitchen.taste(), kitchen.pids()) == ("mud at 80", after)

    kitchen.edit("class Kettle(Module) is", "class Kettle(Module):")
    kitchen.edit("    config: KettleConfig\n", "    config: KettleConfig\n    lamp: In[String]\n")
    unfed = kitchen("restart", "kettle")
    assert (unfed.code, "kitchen.yaml:6: module 'kettle' requires its input 'lamp', but" in unfed.err) == (2, True)
    assert (kitchen.taste(), kitchen.pids()) == ("mud at 80", after)

    kitchen.edit("    lamp: In[String]\n", "")
    os.kill(after["kettle"], signal.SIGKILL)
    asyncio.run(until(lambda: kitchen.taste() == "mud at 80"))


def test_an_edit_is_live_by_itself_and_broken_code_keeps_the_old_process(kitchen: Kitchen) -> None:
    pytest.importorskip("watchfiles")
    started = kitchen.run("--reload")
    assert started.code == 0, started
    before = kitchen.pids()
    kitchen.edit("tea", "mud")
    asyncio.run(until(lambda: kitchen.taste() == "mud at 60"))
    after = kitchen.pids()
    assert {name for name in before if before[name] != after[name]} == {"kettle"}

    kitchen.edit("class Kettle(Module):", "class Kettle(Module) is")
    asyncio.run(until(lambda: "kept: the old code goes on" in kitchen("logs", "--process", "run").out))
    assert f"{kitchen.source}:17)" in kitchen("logs", "--process", "run").out
    assert (kitchen.taste(), kitchen.pids()) == ("mud at 60", after)


def test_a_run_in_one_process_says_why_it_can_t(kitchen: Kitchen) -> None:
    started = kitchen.run("--in-process")
    assert started.code == 0, started
    refused = kitchen("restart", "kettle")
    assert refused.code == 2
    assert "has all modules in one process: `stop` it and `run` it again" in refused.err
    assert kitchen("set", "kettle.warm_c=80").code == 0
    assert kitchen.taste() == "tea at 80"
    reload = kitchen("run", str(kitchen.blueprint), "--in-process", "--reload")
    assert (reload.code, "with --in-process there is one: leave out either" in reload.err) == (2, True), reload
