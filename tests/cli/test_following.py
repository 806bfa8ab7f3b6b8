"""Following a call that began before, as far as its events are kept, and beginning one while somebody leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import cast

import pytest

from dimos_streams import clock
from dimos_streams.cli.bridge_client.calls.beginning import begin_in_turn
from dimos_streams.cli.bridge_client.calls.skill_calls import CallOptions, follow_call
from dimos_streams.client.http_gateway import Begun, HttpGateway
from dimos_streams.errors import CallRejectedError, SkillError
from dimos_streams.tool_stream.event import EventType, Outcome, ToolEvent
from dimos_streams.tool_stream.gateway import CallView, JournalEntry
from tests.helpers import until

pytestmark = pytest.mark.virtual_time

OPTIONS = CallOptions(until="answer", timeout_s=None, as_json=False)
LOST = "some events are lost: the events of offsets 1 to 6 are not kept any more"


class Journal:
    """A bridge of whose journal the beginning is gone, with what is left of a closed call."""

    def __init__(self, *left: EventType) -> None:
        self._left = left

    async def calls(self, **which: bool) -> list[CallView]:
        state = {"state": "closed", "outcome": Outcome.FAILED, "text": "the wheel is off", "last_seq": 3}
        who = {"call_id": "c1", "module": "drive", "skill": "drive", "caller": "cli", "parent": "", "arguments": {}}
        return [CallView.model_validate({**who, **state})]

    async def events(self, **which: object) -> AsyncGenerator[JournalEntry, None]:
        texts = {"open": "", "update": "Driving", "close": "the wheel is off"}
        for offset, type in enumerate(self._left, 7):
            data = {"outcome": "failed"} if type == "close" else {}
            yield _entry(offset, type, texts.get(type, LOST.partition(": ")[2]), data)
        await asyncio.Event().wait()


def _entry(offset: int, type: EventType, text: str, data: dict[str, str]) -> JournalEntry:
    who = {"module": "drive", "skill": "drive", "caller": "cli", "call_id": "" if type == "gap" else "c1"}
    utime = clock.utime() if type == "gap" else offset * 1_000_000
    fields = {"utime": utime, "seq": 0 if type == "gap" else offset, "type": type, "text": text, "data": data}
    return JournalEntry(offset, ToolEvent.from_dict({**who, **fields}))


async def followed(*left: EventType) -> ToolEvent:
    return await follow_call(cast("HttpGateway", Journal(*left)), "c1", OPTIONS)


async def test_what_is_left_of_a_closed_call_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    for left, lost in ((("gap", "open", "update", "close"), False), (("gap", "update", "close"), True)):
        close = await followed(*cast("tuple[EventType, ...]", left))
        assert (close.type, close.outcome) == ("close", "failed")
        shown = capsys.readouterr()
        assert (LOST in shown.out, shown.err) == (lost, ""), "what is gone may be of other calls"
        assert shown.out.splitlines()[-1].split()[0] == f"{len(left) - 2}.00", "since the first that is left"
        assert [line.split("  ")[-1].strip() for line in shown.out.splitlines()[-2:]] == [
            "Driving",
            "failed: the wheel is off",
        ]


async def test_a_call_that_goes_on_is_named_as_one_word_to_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    forged = "c1; $(touch x)"

    async def goes_on(journal: Journal, **which: bool) -> list[CallView]:
        (view,) = await whole(journal)
        return [view.model_copy(update={"call_id": forged, "state": "open", "outcome": None})]

    whole = Journal.calls
    monkeypatch.setattr(Journal, "calls", goes_on)
    with pytest.raises(SkillError, match=r"after 1 s call .* goes on: `dimos-streams cancel 'c1; \$\(touch x\)'`"):
        await follow_call(cast("HttpGateway", Journal()), forged, replace(OPTIONS, timeout_s=1.0))


async def test_what_a_bridge_remembers_stands_for_a_close_that_is_gone(capsys: pytest.CaptureFixture[str]) -> None:
    close = await followed("gap")
    assert (close.outcome, close.seq) == ("failed", 3)
    out, err = capsys.readouterr()
    assert [line.split("  ")[-1].strip() for line in out.splitlines()] == [LOST, "failed: the wheel is off"]
    assert err == "the last events of call c1 are not kept any more; this is how it ended\n"


class Asked:
    """A bridge that is asked for a call, and begins it when it is let."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self.free = asyncio.Event()
        self.cancelled: list[str] = []

    async def ask(self, wait_s: float) -> Begun:
        self.waits.append(wait_s)
        await self.free.wait()
        return Begun("c1", 0)

    async def refuse(self, wait_s: float) -> Begun:
        self.waits.append(wait_s)
        await asyncio.sleep(wait_s)
        raise CallRejectedError("busy", holder="c0", resource="arm" if len(self.waits) < 9 else "")

    async def cancel(self, call_id: str) -> None:
        self.cancelled.append(call_id)


async def test_a_call_that_begins_while_its_caller_leaves_is_cancelled(capsys: pytest.CaptureFixture[str]) -> None:
    bridge = Asked()
    beginning = asyncio.create_task(begin_in_turn(bridge.ask, bridge.cancel, 60.0))
    await until(lambda: bridge.waits == [0.0])
    beginning.cancel()
    await asyncio.sleep(1.0)
    assert bridge.cancelled == []
    bridge.free.set()
    with pytest.raises(asyncio.CancelledError):
        await beginning
    assert bridge.cancelled == ["c1"]
    assert capsys.readouterr().err == "call c1 has begun meanwhile, and is cancelled\n"


async def test_who_leaves_a_bridge_that_says_nothing_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    bridge = Asked()
    beginning = asyncio.create_task(begin_in_turn(bridge.ask, bridge.cancel, 0.0))
    await until(lambda: bridge.waits == [0.0])
    beginning.cancel()
    with pytest.raises(asyncio.CancelledError):
        await beginning
    assert "the bridge has not said whether the call begins" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("lease_wait_s", "waits"), [(0.0, [0.0]), (2.5, [0.0, 1.0, 1.0, 0.5]), (60.0, [0.0] + [1.0] * 8)]
)
async def test_a_call_waits_as_long_as_it_may_and_for_no_duplicate(lease_wait_s: float, waits: list[float]) -> None:
    bridge = Asked()
    with pytest.raises(CallRejectedError):
        await begin_in_turn(bridge.refuse, bridge.cancel, lease_wait_s)
    assert bridge.waits == pytest.approx(waits)
