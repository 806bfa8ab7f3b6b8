"""What models import is imported beside the loop, which may be that of a robot's other modules, too."""

from __future__ import annotations

import asyncio
import importlib
import threading
from types import ModuleType

import pytest

from dimos_streams.agent.models import late_imports
from dimos_streams.agent.module import Agent

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
    assert [(name, here) for name, here in imports if name in late_imports("openai:m")] == [
        (name, False) for name in late_imports("openai:m")
    ]


def test_a_model_without_a_server_needs_nothing_more() -> None:
    assert late_imports("offline") == late_imports("scripted:s.yaml") == ()
