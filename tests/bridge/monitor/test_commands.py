"""What the sender of something that is no command is told."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import cast

import pytest

from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.bridge.monitor.commands import Commands
from dimos_streams.bridge.monitor.lanes import Lanes


@pytest.mark.virtual_time
@pytest.mark.parametrize("text", ['{"command": "dance"}', '{"command": 5}', "{}", "[]"])
async def test_who_sends_no_command_is_told_once_which_there_are(text: str) -> None:
    answer = json.loads(await Commands(cast("Broker", SimpleNamespace())).carry_out(text, Lanes()))
    assert {name: answer["text"].count(name) for name in ("resume", "amend")} == {"resume": 1, "amend": 1}
