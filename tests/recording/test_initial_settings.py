"""What an operator had set before a log begins is read from the first that is said of it, and from nothing later."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dimos_streams.live_settings import STATE
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.regression.settings.initial_settings import initial_settings
from dimos_streams.tool_stream.hosting.settings_change import SET
from dimos_streams.tool_stream.protocol.channels import EVENTS, STATUS
from dimos_streams.tool_stream.wire.packing import pack_event
from tests.bridge.scene import event
from tests.recording.logs import START, Raw, read_log, write_log


def beat(speed: float, *, module: str = "drive", skills: str = "") -> Raw:
    state = json.dumps({STATE: {"max_speed": speed}})
    status = ModuleStatus(module=module, instance="i", state_json=state, skills_json=skills)
    return START, STATUS, encode(status)


CHANGE: Raw = START, EVENTS, pack_event(replace(event(1, "open"), module="drive", skill=SET))


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([beat(0.3), beat(0.5)], {"drive": {"max_speed": "0.3"}}),
        ([beat(0.3), CHANGE, beat(0.5)], {"drive": {"max_speed": "0.3"}}),
        ([CHANGE, beat(0.5)], {}),
        ([beat(0.4, skills="[]"), beat(0.3)], {"drive": {"max_speed": "0.3"}}),
        ([beat(0.4, module="patrol"), (START, STATUS, b"no heartbeat"), beat(0.3)], {"drive": {"max_speed": "0.3"}}),
    ],
    ids=["the first", "before the change", "after the change", "not with skills", "among others"],
)
def test_the_first_heartbeat_before_any_change_says_it(
    rows: list[Raw], found: dict[str, dict[str, str]], tmp_path: Path
) -> None:
    assert initial_settings(read_log(write_log(tmp_path / "a.lcmlog", rows)), {"drive", "gate"}) == found
