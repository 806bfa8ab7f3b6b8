"""The ports of a run, which it has before anything of it begins."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.common.process.listening import listening_socket
from dimos_streams.errors import UserError
from dimos_streams.runtime.events import RunEvent
from dimos_streams.runtime.live import kept_ports
from dimos_streams.runtime.live.kept_ports import KeptPorts
from dimos_streams.runtime.live.supervisor import Supervisor
from dimos_streams.runtime.options import RunOptions
from dimos_streams.runtime.plan import plan_processes, plan_run

HOST = "127.0.0.1"


def with_bridge(port: int) -> Blueprint:
    bridge = ModuleSpec(name="bridge", type="dimos_streams.bridge.module:Bridge", config={"host": HOST, "port": port})
    return Blueprint(name="served", modules={"bridge": bridge})


@pytest.mark.live
def test_nothing_of_a_run_begins_if_somebody_else_has_a_port_of_it(
    free_port: int, bus_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_ports, "FREE_WITHIN_S", 0.0)
    events: list[RunEvent] = []
    said = re.escape(f"module 'bridge': port {free_port} is taken on '{HOST}'; choose another with --port")

    async def main() -> None:
        supervisor = Supervisor(with_bridge(free_port), RunOptions(bus_url=bus_url, run_dir=tmp_path), events.append)
        with pytest.raises(UserError, match=said):
            await supervisor.start()

    with listening_socket(HOST, free_port):
        asyncio.run(main())
    assert events == []


def test_a_port_is_waited_for_that_a_killed_run_is_just_letting_go(free_port: int) -> None:
    async def main() -> None:
        ports = KeptPorts(plan_processes(plan_run(with_bridge(free_port))))
        with listening_socket(HOST, free_port):
            taking = asyncio.ensure_future(ports.take())
            await asyncio.sleep(0)
        await taking
        assert ports.modules == {"bridge"}
        ports.close()

    asyncio.run(main())
