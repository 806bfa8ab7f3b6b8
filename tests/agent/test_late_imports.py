"""What models import is imported beside the loop, which may be that of a robot's other modules, too."""

from __future__ import annotations

import asyncio
import importlib
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest

from dimos_streams.agent.models import late_imports
from dimos_streams.agent.module import Agent
from dimos_streams.module import RunContext

_SCOUT = {"description": "looks", "prompt": "Look.", "model": "openai:m"}


@pytest.fixture
def imports(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """What is imported by name from now on, and whether the loop's thread does that."""
    seen: list[tuple[str, bool]] = []
    real = importlib.import_module

    def note(name: str, package: str | None = None) -> ModuleType:
        seen.append((name, threading.current_thread() is threading.main_thread()))
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", note)
    return seen


@pytest.mark.parametrize("config", [{"model": "openai:m"}, {"agents": {"scout": _SCOUT}}])
def test_an_agent_loads_what_its_models_need_beside_its_loop(
    config: dict[str, object], imports: list[tuple[str, bool]]
) -> None:
    async def start_and_stop() -> None:
        agent = Agent({**config, "base_url": "http://127.0.0.1:9/v1"}, name="agent")
        await agent.start()
        await agent.stop()

    asyncio.run(start_and_stop())
    loaded = [(name, here) for name, here in imports if name in late_imports("openai:m")]
    assert loaded
    assert loaded == [(name, False) for name in late_imports("openai:m")]


_LATE = """
import asyncio, importlib, sys
from dimos_streams.agent.models import create_model, late_imports
from dimos_streams.agent.models.protocol import ModelRequest, UserMessage
from dimos_streams.testing.model_server import ModelServer, Reply

async def main():
    async with ModelServer([Reply.say("Moved."), Reply(status=400)]) as server:
        for name in late_imports("openai:m"):
            importlib.import_module(name)
        before = set(sys.modules)
        model = create_model("openai:m", base_url=server.url)
        for _ in range(2):
            try:
                async for delta in model.stream(ModelRequest((UserMessage("move"),))):
                    pass
            except Exception as error:
                print("refused", type(error).__name__)
        await model.close()
        of_models = ("openai", "httpx2", "httpcore2", "dimos_streams")
        print(sorted(name for name in set(sys.modules) - before if name.partition(".")[0] in of_models))

asyncio.run(main())
"""


@pytest.mark.slow
def test_a_model_whose_imports_are_loaded_imports_nothing_when_it_is_made_or_asked() -> None:
    done = subprocess.run([sys.executable, "-c", _LATE], capture_output=True, text=True, timeout=50, check=False)
    assert (done.stdout, done.returncode) == ("refused ModelError\n[]\n", 0), done.stderr


def test_a_model_that_an_operator_chose_before_a_restart_is_loaded_too(
    tmp_path: Path, imports: list[tuple[str, bool]]
) -> None:
    async def start_and_stop(chosen: str) -> None:
        agent = Agent({"base_url": "http://127.0.0.1:9/v1"}, name="agent", context=RunContext(run_dir=tmp_path))
        await agent.start()
        if chosen:
            agent.core.model_switch.use(chosen)
        await agent.stop()

    asyncio.run(start_and_stop("openai:m"))
    imports.clear()
    asyncio.run(start_and_stop(""))
    loaded = [(name, here) for name, here in imports if name in late_imports("openai:m")]
    assert loaded == [(name, False) for name in late_imports("openai:m")]


def test_a_model_without_a_server_needs_nothing_more() -> None:
    assert late_imports("offline") == late_imports("scripted:s.yaml") == ()
