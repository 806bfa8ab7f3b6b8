"""What is an agent's, and what only is called as an agent's skills are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest

from dimos_streams.cli.bridge_client.calls.event_watch import watching
from dimos_streams.cli.bridge_client.declarations import Declarations
from dimos_streams.cli.terminal.call_counts import CallCounts
from dimos_streams.cli.terminal.reporter import create_reporter
from dimos_streams.client.http_gateway import HttpGateway
from dimos_streams.tool_stream.event import EventType, ToolEvent
from dimos_streams.tool_stream.gateway import CallView, JournalEntry, OfferedSkill

pytestmark = pytest.mark.virtual_time


class Bridge:
    """A bridge with an agent, a loudspeaker, and the events of a call of each one's ``say``."""

    def __init__(self) -> None:
        self.asked = 0

    async def skills(self) -> list[OfferedSkill]:
        self.asked += 1
        shape = {"description": "", "parameters": {}, "available": True}
        offered = [
            ("agent", "say", True),
            ("agent", "plans", True),
            ("voice", "say", False),
            ("voice", "plans", False),
        ]
        return [
            OfferedSkill.model_validate({**shape, "module": module, "name": skill, "agent": agent})
            for module, skill, agent in offered
        ]

    async def events(self, **which: object) -> AsyncGenerator[JournalEntry, None]:
        for offset, (module, skill, type) in enumerate(
            [(m, s, t) for m in ("agent", "voice") for s in ("say", "move") for t in ("open", "update", "close")]
        ):
            yield JournalEntry(offset, event_of(module, skill, cast("EventType", type)))
        await asyncio.Event().wait()


def event_of(module: str, skill: str, type: EventType) -> ToolEvent:
    data = {"outcome": "completed"} if type == "close" else {}
    seq = ("open", "update", "close").index(type) + 1
    return ToolEvent(
        utime=1,
        call_id=f"{module}-{skill}",
        seq=seq,
        type=type,
        module=module,
        skill=skill,
        caller="cli",
        text=f"{skill} by {module}",
        data=data,
    )


async def test_a_skill_that_is_called_as_an_agents_is_shown_counted_and_answers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    bridge, reporter, counts = Bridge(), create_reporter(as_json=False), CallCounts()

    def show(event: ToolEvent) -> None:
        reporter.tool_event(event)
        counts.count(event)

    async with watching(cast("HttpGateway", bridge), show, after=0) as watch:
        answered = await watch.wait("voice-say", "answer")
        assert (answered.type, answered.text) == ("update", "say by voice")
        assert (await watch.wait("agent-say", "answer")).type == "close", "of an agent its own text is an answer"
        await watch.wait("voice-move", "close")
    shown = capsys.readouterr().out
    assert ("say by voice" in shown, "say by agent" in shown) == (True, False)
    assert (str(counts), bridge.asked) == ("3 calls: 3 completed", 1)


async def test_calls_by_which_programs_look_at_agents_are_left_out() -> None:
    def view(module: str, skill: str) -> CallView:
        who: dict[str, Any] = {"call_id": "c", "module": module, "skill": skill, "caller": "", "parent": ""}
        return CallView.model_validate({**who, "arguments": {}, "state": "open"})

    looks = [("agent", "approvals"), ("robot1/agent", "robot1_review_call"), ("agent", "plans")]
    calls = [("agent", "decide"), ("agent", "pause"), ("voice", "plans"), ("voice", "say")]
    declared = Declarations(cast("HttpGateway", Bridge()))
    left = await declared.without_looks(view(*each) for each in looks + calls)
    assert [(each.module, each.skill) for each in left] == calls
    assert [await declared.is_talk(view(module, "say")) for module in ("agent", "voice")] == [True, False]
