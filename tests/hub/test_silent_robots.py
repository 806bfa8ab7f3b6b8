"""Robots that say nothing, as a hub shows them."""

from __future__ import annotations

import pytest

from dimos_streams.hub.fleet_view import FleetRobot
from dimos_streams.hub.storage.rows import RobotRow


@pytest.mark.feature("H2")
@pytest.mark.parametrize(
    ("connected", "silent_s", "status", "notes"),
    [
        (True, 59.0, "unknown", ()),
        (True, 75.0, "degraded", ("it holds its connection, but was last heard of 75 s ago: it may hang",)),
        (False, 75.0, "unknown", ()),
    ],
)
def test_a_robot_that_is_connected_and_says_nothing_is_degraded(
    connected: bool, silent_s: float, status: str, notes: tuple[str, ...]
) -> None:
    """The system of one that hangs takes whatever a hub sends, so its connection stands."""
    row = RobotRow(
        name="r1",
        added=0,
        heard=1_000_000,
        connected=connected,
        doubled=False,
        clock_us=None,
        version="",
        report="",
        skills="",
        acknowledged=None,
    )
    view = FleetRobot(row).view(1_000_000 + int(silent_s * 1e6))
    assert (view.status, view.notes, view.heard_s) == (status, notes, silent_s)
