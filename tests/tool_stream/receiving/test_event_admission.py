"""Whose events of a call are believed, and what is said of the others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dimos_streams import clock
from dimos_streams.common.json.writing import json_text
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.receiving.event_admission import NOTED_S, EventAdmission
from dimos_streams.tool_stream.receiving.received_call import ReceivedCall, ResumePoint
from dimos_streams.tool_stream.receiving.received_calls import ReceivedCalls
from dimos_streams.tool_stream.receiving.reorder_buffer import PROXY
from dimos_streams.tool_stream.wire.packing import pack_event
from tests.bridge.scene import event

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("A5", "F6")]
OURS, OTHERS = "ours", "somebody else's"


def admission(*, proxy: str = "") -> EventAdmission:
    return EventAdmission(lambda event: False, lambda: proxy)


def received(instance: str = "", *, closed: bool = False, unsolicited: bool = False) -> ReceivedCall:
    known = ResumePoint(delivered=1, closed=closed, instance=instance, unsolicited=unsolicited)
    return ReceivedCalls().make("c1", known)


def of(instance: str, seq: int = 1) -> ToolEvent:
    return replace(event(seq), instance=instance)


async def test_an_event_that_names_no_instance_is_of_no_proxy_where_there_is_none() -> None:
    asked = admission()
    assert asked.admitted(received(OURS), of("")) is None
    assert asked.admitted(received(), of("")) is None
    assert asked.refused == 2


async def test_what_a_proxy_says_makes_no_call_its_own() -> None:
    said = admission(proxy="the bridge").admitted(received(OURS), of("the bridge"))
    assert said is not None
    assert said.instance == PROXY


@pytest.mark.parametrize("closed", [False, True])
async def test_of_a_call_that_is_over_whatever_comes_is_taken_so_that_it_is_not_sent_again(closed: bool) -> None:
    assert (admission().admitted(received(closed=closed), of(OTHERS)) is not None) is closed


async def test_who_was_refused_while_nobody_knew_whose_call_it_is_is_named_once_that_is_known() -> None:
    asked = admission()
    for instance in (OURS, OTHERS):
        asked.admitted(received(), of(instance))
    assert asked.note() == ""
    asked.assigned("c1", OURS)
    said = f"call c1 is of instance {OURS!r}; events of instance {OTHERS!r} in it are not believed"
    assert asked.note() == said


async def test_of_its_own_instance_nothing_is_said_and_what_was_said_is_not_said_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = admission()
    asked.admitted(received(), of(OURS))
    asked.assigned("c1", OURS)
    assert asked.note() == ""
    asked.admitted(received(), of(OTHERS))
    asked.assigned("c1", OURS)
    before = clock.monotonic()
    monkeypatch.setattr(clock, "monotonic", lambda: before + NOTED_S + 1.0)
    asked.assigned("c1", OURS)
    assert asked.note() == "", "it was said a minute ago, and nothing new has come"


async def test_of_many_that_were_refused_the_first_few_are_remembered(caplog: pytest.LogCaptureFixture) -> None:
    asked = admission()
    for number in range(6):
        asked.admitted(received(), of(f"number {number}"))
    asked.assigned("c1", OURS)
    assert "'number 3'" in asked.note()


async def test_events_that_can_not_be_of_their_call_are_not_even_read_if_they_are_many() -> None:
    asked, forged = admission(), pack_event(of(OTHERS))
    read = sum(asked.may_read(received(OURS), forged) for _ in range(100))
    assert (read, asked.refused) == (20, 80)
    assert all(asked.may_read(received(OURS), pack_event(of(OURS))) for _ in range(100))


@pytest.mark.parametrize(("instance", "few"), [("", True), (OURS, False)])
async def test_of_calls_that_nobody_has_begun_so_many_are_read_until_it_is_known_whose_they_are(
    instance: str, few: bool
) -> None:
    asked, call = admission(), received(instance, unsolicited=True)
    given = pack_event(replace(of(instance or OTHERS), data={"text": json_text("x" * 10_000)}))
    assert all(asked.may_read(call, given) for _ in range(1000)) is not few
