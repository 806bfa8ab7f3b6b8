"""The calls of a run that ends are cancelled, and those of dead processes are closed by its bridge."""

from __future__ import annotations

import asyncio
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import pytest

from dimos_streams import clock
from dimos_streams.cli.bridge_client.calls.event_watch import EventWatch
from dimos_streams.cli.bridge_client.connection import BridgeUnreachableError
from dimos_streams.cli.running.run_link import RunLink
from dimos_streams.tool_stream.event import ToolEvent


def _link(**modules: str) -> RunLink:
    """A link to a run with an open call of each id, of the module that is given."""
    watch = EventWatch(Mock())
    for call_id, module in modules.items():
        watch.receive(_event(call_id, module, "open"))
    return RunLink(watch, Mock(), AsyncMock())


def _event(call_id: str, module: str, type: Any) -> ToolEvent:
    return ToolEvent(call_id=call_id, seq=1, type=type, utime=1, module=module, skill="go", text="", caller="me")


@pytest.mark.virtual_time
async def test_a_run_that_fails_waits_for_a_skill_that_ignores_its_cancel_no_longer_than_a_stop() -> None:
    link, began = _link(stubborn="stubborn", lost="dead"), clock.monotonic()
    missed = asyncio.get_running_loop().call_later(4.0, link.watch.receive, _event("lost", "dead", "close"))
    await link.end_calls("the run has failed", 1.0, down={"dead"})
    assert clock.monotonic() - began == pytest.approx(4.0)
    assert missed.when() <= asyncio.get_running_loop().time(), "what ran in the dead process has its close"
    assert {call.args for call in cast(AsyncMock, link.cancel).await_args_list} == {
        ("stubborn", "the run has failed"),
        ("lost", "the run has failed"),
    }
    began = clock.monotonic()
    await link.end_calls("the run has failed", 1.0, down={"dead"})
    assert clock.monotonic() - began == pytest.approx(1.0)


@pytest.mark.virtual_time
async def test_a_bridge_that_says_no_more_is_not_waited_for() -> None:
    link, began = _link(lost="dead"), clock.monotonic()
    link.watch.fail(BridgeUnreachableError("http://127.0.0.1:9", "it is gone"))
    await link.end_calls("the run has failed", 1.0, down={"dead"})
    assert clock.monotonic() == began
