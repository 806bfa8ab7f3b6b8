"""The end of a live run says what its recording has lost."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.blueprint.load import resolve
from dimos_streams.cli.bridge_client.answers import ModuleAnswer
from dimos_streams.cli.bridge_client.connection import BridgeAddress, BridgeUnreachableError
from dimos_streams.cli.option_groups.run_request import RunRequest
from dimos_streams.cli.running.record_plan import RecordPlan
from dimos_streams.cli.running.run_link import recording_losses
from dimos_streams.cli.running.run_plan import RunPlan

MISSING = "273 messages are missing: No space left on device"


def _said(plan: RunPlan) -> list[str]:
    return asyncio.run(recording_losses(BridgeAddress("http://127.0.0.1:9"), plan.recorders))


def test_the_losses_of_the_recorder_are_those_that_status_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    healths = {"recorder": MISSING, "robot": "its camera is dark"}

    async def get(address: BridgeAddress, path: str, shape: object) -> list[ModuleAnswer]:
        if not healths:
            raise BridgeUnreachableError(address.url, "it is gone")
        assert path == "/modules"
        common: dict[str, Any] = {"pid": 1, "alive": True, "introduced": True, "state": {}}
        return [ModuleAnswer(name=name, health=health, **common) for name, health in healths.items()]

    monkeypatch.setattr(BridgeAddress, "get", get)
    plan = RunPlan(
        request=RunRequest(reference="follow-person"),
        blueprint=resolve("follow-person"),
        record=RecordPlan(path=tmp_path / "a.lcmlog"),
    )
    assert _said(plan) == [f"recording: {MISSING}"]
    assert _said(replace(plan, record=None)) == []
    healths["recorder"] = "ok"
    assert _said(plan) == []
    healths.clear()
    assert _said(plan) == []
