"""What is said to an agent that is paused: who waits for the end of the pause, and who does not."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncGenerator, Mapping
from typing import Any, cast

import pytest

from dimos_streams.cli.bridge_client.calls.paused_agents import may_outwait
from dimos_streams.cli.bridge_client.calls.skill_calls import CallOptions, follow_saying
from dimos_streams.client.http_gateway import Begun, HttpGateway
from dimos_streams.errors import SkillError
from dimos_streams.operator.known_names import BEHIND_PAUSE
from dimos_streams.tool_stream.event import EventType, ToolEvent
from dimos_streams.tool_stream.gateway import JournalEntry
from tests.helpers import until

pytestmark = pytest.mark.virtual_time


class Paused:
    """A bridge whose agent is paused until it is resumed, and then answers at once."""

    def __init__(self) -> None:
        self.resumed = asyncio.Event()
        self.cancelled: list[str] = []
        self._ended = asyncio.Event()

    async def skills(self) -> list[Any]:
        return []

    async def begin(self, skill: str, arguments: Mapping[str, Any], **how: Any) -> Begun:
        return Begun("c1", 0)

    async def cancel(self, call_id: str, reason: str, **which: Any) -> None:
        self.cancelled.append(reason)
        self._ended.set()

    async def events(self, *, after: int, **which: Any) -> AsyncGenerator[JournalEntry, None]:
        yield _entry(1, "open")
        yield _entry(2, "update", entry={"role": "operator", "text": "go"})
        yield _entry(3, "update", entry={"role": "note", "text": f"{BEHIND_PAUSE}: `resume` lets it be heard"})
        waits = {asyncio.ensure_future(event.wait()) for event in (self.resumed, self._ended)}
        _, rest = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for waiting in rest:
            waiting.cancel()
        yield _entry(4, "close", outcome="cancelled" if self.cancelled else "completed")


def _entry(seq: int, type: EventType, **data: Any) -> JournalEntry:
    who = {"call_id": "c1", "module": "agent", "skill": "say", "caller": "cli"}
    return JournalEntry(
        seq, ToolEvent.from_dict({"utime": seq, "seq": seq, "type": type, "text": "", "data": data, **who})
    )


def said(bridge: Paused, *, outwaits: bool, timeout_s: float | None = None) -> asyncio.Task[ToolEvent]:
    options = CallOptions(
        until="answer",
        timeout_s=timeout_s,
        as_json=True,
        bridge_options=" --port 7",
        agent="agent",
        outwaits_pause=outwaits,
    )
    return asyncio.create_task(follow_saying(cast("HttpGateway", bridge), {"text": "go"}, options))


async def test_where_nobody_waits_what_was_said_to_a_paused_agent_is_taken_back() -> None:
    bridge = Paused()
    with pytest.raises(SkillError) as caught:
        await said(bridge, outwaits=False)
    assert bridge.cancelled == ["the agent is paused"]
    assert str(caught.value) == (
        "agent 'agent' is paused, so this is taken back: say it after `dimos-streams resume --port 7`, or wait for"
        " that with --timeout SECONDS"
    )


async def test_who_waits_is_answered_after_the_pause_and_within_the_timeout() -> None:
    for timeout_s in (None, 3600.0):
        bridge = Paused()
        waiting = said(bridge, outwaits=True, timeout_s=timeout_s)
        await asyncio.sleep(600.0)
        assert not waiting.done()
        bridge.resumed.set()
        assert (await waiting).outcome == "completed"
    over = said(bridge := Paused(), outwaits=True, timeout_s=5.0)
    await until(over.done)
    assert (bridge.cancelled, over.result().outcome) == (["the caller waited 5 s"], "cancelled")


class Terminal(io.StringIO):
    """A standard input at which somebody sits."""

    def isatty(self) -> bool:
        return True


async def test_a_terminal_or_a_timeout_outwaits_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert [may_outwait(None), may_outwait(0.0)] == [False, True]
    monkeypatch.setattr("sys.stdin", Terminal())
    assert may_outwait(None)
