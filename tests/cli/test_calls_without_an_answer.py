"""What a person is told who waits for the answer of a call that only reports progress."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import AsyncGenerator, Mapping
from typing import Any, cast

import pytest

from dimos_streams import clock
from dimos_streams.cli.bridge_client.calls.event_watch import Milestone
from dimos_streams.cli.bridge_client.calls.skill_calls import CallOptions, follow_new_call
from dimos_streams.cli.terminal import output
from dimos_streams.client.http_gateway import Begun, HttpGateway
from dimos_streams.errors import OutputError, SkillError
from dimos_streams.tool_stream.event import EventType, ToolEvent
from dimos_streams.tool_stream.gateway import JournalEntry

pytestmark = pytest.mark.virtual_time


class Patient:
    """A bridge with a call that makes progress each second, and completes after ``seconds``."""

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds

    async def begin(self, skill: str, arguments: Mapping[str, Any], **how: Any) -> Begun:
        return Begun("c1", 0)

    async def events(self, *, after: int, **which: Any) -> AsyncGenerator[JournalEntry, None]:
        for second in range(self._seconds):
            await asyncio.sleep(1.0)
            yield _entry(second + 1, "progress")
        yield _entry(self._seconds + 1, "close", outcome="completed")


def _entry(seq: int, type: EventType, **data: Any) -> JournalEntry:
    who = {"call_id": "c1", "module": "drive", "skill": "drive", "caller": "cli"}
    fields = {"utime": seq, "seq": seq, "type": type, "text": f"part {seq}", "data": data, **who}
    return JournalEntry(seq, ToolEvent.from_dict(fields))


async def told(seconds: int, until: Milestone, capsys: pytest.CaptureFixture[str]) -> str:
    options = CallOptions(until=until, timeout_s=None, as_json=True)
    close = await follow_new_call(cast("HttpGateway", Patient(seconds)), "drive", {}, options, only=True)
    assert close.outcome == "completed"
    return capsys.readouterr().err


async def test_who_waits_for_an_answer_is_told_once_that_progress_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    said = "call c1 has not answered for 10 s: progress does not answer, an update or the end does\n"
    assert await told(60, "answer", capsys) == said
    assert await told(5, "answer", capsys) == ""
    assert await told(60, "close", capsys) == ""


class Deaf(Patient):
    """A bridge with a call that does not end when it is asked to."""

    def __init__(self, seconds: int) -> None:
        super().__init__(seconds)
        self.cancelled: list[str] = []

    async def cancel(self, call_id: str, reason: str, **which: Any) -> None:
        self.cancelled.append(reason)


async def test_nobody_waits_for_a_call_that_goes_on_though_its_time_is_up_and_it_was_asked_to_end() -> None:
    bridge, began = Deaf(1000), clock.monotonic()
    options = CallOptions(until="close", timeout_s=5.0, as_json=True)
    with pytest.raises(
        SkillError, match=r"^call c1 was asked to end but goes on; `dimos-streams restart drive` ends what"
    ):
        await follow_new_call(cast("HttpGateway", bridge), "drive", {}, options, only=True)
    assert bridge.cancelled == ["the caller waited 5 s"]
    assert clock.monotonic() - began < 10.0


async def test_a_call_of_which_nothing_can_be_shown_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk under `call follow_person >log` leaves no robot that follows on unseen."""

    def fail(text: str) -> None:
        output.lose(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))

    monkeypatch.setattr(output, "_print", fail)
    bridge, options = Deaf(1000), CallOptions(until="close", timeout_s=None, as_json=True)
    with pytest.raises(OutputError, match="No space left on device"):
        await follow_new_call(cast("HttpGateway", bridge), "drive", {}, options, only=True)
    assert bridge.cancelled == ["the caller left"]


async def test_the_wait_for_what_another_call_holds_counts() -> None:
    class Held(Deaf):
        async def begin(self, skill: str, arguments: Mapping[str, Any], **how: Any) -> Begun:
            await asyncio.sleep(4.0)
            return await super().begin(skill, arguments, **how)

    began = clock.monotonic()
    options = CallOptions(until="close", timeout_s=5.0, as_json=True, lease_wait_s=5.0)
    with pytest.raises(SkillError, match="asked to end"):
        await follow_new_call(cast("HttpGateway", Held(1000)), "drive", {}, options, only=True)
    assert 5.0 <= clock.monotonic() - began < 9.0
