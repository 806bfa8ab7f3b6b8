"""A restart lasts until calls reach the new module, wherever the run's bridge is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dimos_streams.cli.bridge_client import module_restart
from dimos_streams.cli.bridge_client.answers import MODULES
from dimos_streams.cli.bridge_client.connection import BridgeAddress
from dimos_streams.errors import DimosStreamsError
from dimos_streams.runtime.live.control import ControlReply, Order
from tests.runtime.run_records import living_record

MODULE = {"name": "drive", "health": "ok", "alive": True, "introduced": True, "state": {}}


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("where", "url"),
    [({"port": 9}, "http://127.0.0.1:9"), ({"port": None, "bridge": "http://10.0.0.2:7780"}, "http://10.0.0.2:7780")],
    ids=["here", "on another machine"],
)
async def test_a_restart_waits_until_the_bridge_hears_the_new_module(
    where: dict[str, Any], url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    heard = iter([7, 7, 7, 8])
    reply = ControlReply(text="restarted drive", modules=("drive",))

    async def get(address: BridgeAddress, path: str, shape: object) -> object:
        asked.append(f"{address.url}{path}")
        return MODULES.validate_python([MODULE | {"pid": next(heard)}])

    async def ask(run_dir: Path, order: Order) -> ControlReply:
        asked.append(order.command)
        return reply

    monkeypatch.setattr(BridgeAddress, "get", get)
    monkeypatch.setattr(module_restart, "ask", ask)
    record = living_record(tmp_path).model_copy(update=where)
    assert await module_restart.restart_module(record, "drive") == reply
    assert asked == [f"{url}/modules", "restart", *[f"{url}/modules"] * 3]


@pytest.mark.virtual_time
async def test_a_run_that_is_suspended_gets_no_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_restart, "is_suspended", lambda pid: True)
    record = living_record(tmp_path)
    with pytest.raises(DimosStreamsError, match=rf"is SUSPENDED and restarts nothing: `kill -CONT {record.pid}`"):
        await module_restart.restart_module(record, "drive")
