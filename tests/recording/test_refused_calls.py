"""A call that a bridge has refused is refused in a replay, too: its module was never asked."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import SkillCall
from dimos_streams.recording.format import LogEvent
from dimos_streams.regression.replay import ReplayOptions, replay
from dimos_streams.tool_stream.event import EventType, ToolEvent
from dimos_streams.tool_stream.protocol.channels import CALLS, EVENTS
from dimos_streams.tool_stream.wire.packing import pack_event
from tests.recording.logs import START, raw, write_log

_MODULES = {"asks": "Asks", "picker": "Picker"}
_ROBOT = Blueprint(
    name="robot",
    modules={name: ModuleSpec(name=name, type=f"tests.recording.modules:{kind}") for name, kind in _MODULES.items()},
)
_WHY = "picker is broken"


def said(type: EventType, seq: int, text: str, **data: object) -> ToolEvent:
    return ToolEvent(
        utime=START, call_id="c", seq=seq, type=type, module="asks", skill="ask", caller="test", text=text, data=data,
        instance="recorded",
    )  # fmt: skip


def events() -> list[LogEvent]:
    """A call whose child is refused by a bridge, which speaks in the name of the instance that asks."""
    child = SkillCall(utime=START, call_id="c~1", skill="pick", caller="test", parent="c", arguments_json="{}")
    opened = said("open", 1, "pick", arguments={}, parent="c", resources=[], refused=True)
    rejected = said("close", 2, _WHY, outcome="rejected")
    of_child = [
        dataclasses.replace(each, call_id="c~1", module="picker", skill="pick") for each in (opened, rejected)
    ]
    call = SkillCall(utime=START, call_id="c", module="asks", skill="ask", caller="test", arguments_json="{}")
    messages = [
        (CALLS, encode(call)),
        (EVENTS, pack_event(said("open", 1, "ask()", arguments={}, parent="", resources=[]))),
        (CALLS, encode(child)),
        *((EVENTS, pack_event(each)) for each in of_child),
        (EVENTS, pack_event(said("close", 2, _WHY, outcome="failed", error="SkillRunError"))),
    ]
    return [LogEvent(number, START, channel, data, 0) for number, (channel, data) in enumerate(messages)]


@pytest.mark.feature("K4")
@pytest.mark.parametrize("modules", [("asks",), ("asks", "picker")])
def test_a_refused_call_is_refused_again(tmp_path: Path, modules: tuple[str, ...]) -> None:
    log = write_log(tmp_path / "a.lcmlog", raw(events()))
    report = replay(log, ReplayOptions(modules=modules, blueprint=_ROBOT))
    assert report.passed, "\n".join(report.lines())
