"""An order to stop or to release robots is confirmed only where all of it has come true."""

from __future__ import annotations

from typing import Any

import pytest

from dimos_streams.operator.messages.hold import VelocityGateNotHeld
from dimos_streams.operator.messages.stop import CancelReport, GoingOn, ReleaseReport, StopReport

GOING_ON = GoingOn(call_id="c1", skill="walk", module="legs", since_utime=1, text="walking")


@pytest.mark.parametrize(
    ("more", "confirmed"),
    [
        ({}, True),
        ({"calls": CancelReport(ended=("c1",))}, True),
        ({"calls": CancelReport(going_on=(GOING_ON,))}, False),
        ({"held": ()}, False),
        ({"not_held": (VelocityGateNotHeld(gate="b/gate", problem="deaf", text="deaf"),)}, False),
        ({"released": ("robot1",)}, False),
        ({"unsaved": "the disk is full"}, False),
    ],
)
def test_a_stop(more: dict[str, Any], confirmed: bool) -> None:
    usual: dict[str, Any] = {"robot": "", "held": ("a/gate",)}
    assert StopReport(**(usual | more)).confirmed is confirmed


@pytest.mark.parametrize(
    ("more", "confirmed"),
    [
        ({}, True),
        ({"changed": False}, True),
        ({"still_stopped": ("a/gate",)}, False),
        ({"stopped_again": ("robot1",)}, False),
    ],
)
def test_a_release(more: dict[str, Any], confirmed: bool) -> None:
    usual: dict[str, Any] = {"robot": "", "changed": True}
    assert ReleaseReport(**(usual | more)).confirmed is confirmed
