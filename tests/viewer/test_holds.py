"""The holds of a recording: who holds at a moment of it is who the robot's gate listened to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.operator.holding import GATE, MAX_SOURCES, STOP_ROBOT, VelocityGateState
from dimos_streams.tool_stream.liveness.module_view import ModuleView
from dimos_streams.viewer.state.holds import _MAX_ROBOTS, Holds
from tests.recording.logs import START

CHANNEL = "/robot1/hold#dimos_streams.Hold"
SECOND = 1_000_000


def hold(source: str, seq: int = 1, *, valid_s: float = 1.0, holds: bool = True, reason: str = "") -> Hold:
    return Hold(source=source, hold=holds, valid_s=valid_s, seq=seq, utime=START + seq, reason=reason)


def sources(holds: Holds, utime: int) -> list[str]:
    return list(holds.views(utime, []))


@pytest.mark.feature("I3")
def test_an_operators_stop_is_shown_however_many_others_have_held_and_since_when() -> None:
    holds = Holds()
    for number in range(300):
        holds.take(START, CHANNEL, hold(f"agent{number}", valid_s=60.0))
    for number in range(3):
        holds.take(START + number * SECOND, CHANNEL, hold(STOP_ROBOT, number, reason="a child"))
    assert len(sources(holds, START)) == MAX_SOURCES + 1
    (stop,) = holds.stopped(START + 3 * SECOND, []).stops
    assert (stop.robot, stop.utime, stop.reason) == ("robot1", START, "a child")
    assert holds.stopped(START + 3 * SECOND + 1, []).stops == ()
    holds.take(START + 9 * SECOND, CHANNEL, hold(STOP_ROBOT, 9))
    assert [stop.utime for stop in holds.stopped(START + 9 * SECOND, []).stops] == [START + 9 * SECOND]


@pytest.mark.feature("I3")
def test_damaged_holds_do_not_count_and_a_late_release_ends_none() -> None:
    holds = Holds()
    holds.take(START, CHANNEL, hold("agent", valid_s=65_536.0))
    assert sources(holds, START) == []
    holds.take(START, CHANNEL, hold("agent", 5))
    holds.take(START + 1, CHANNEL, hold("agent", 4, holds=False))
    assert sources(holds, START + 2) == ["agent"]
    holds.take(START + 3, CHANNEL, hold("agent", 6, holds=False))
    assert sources(holds, START + 4) == []


def test_a_copy_is_of_its_moment_and_robots_without_end_are_bounded() -> None:
    holds = Holds()
    for number in range(_MAX_ROBOTS + 1):
        holds.take(START, f"/r{number}/hold#dimos_streams.Hold", hold(STOP_ROBOT))
    copy = holds.copy()
    holds.take(START, "/r9/hold#dimos_streams.Hold", hold(STOP_ROBOT, 2, holds=False))
    counts = [len(each.stopped(START, []).stops) for each in (holds, copy)]
    assert counts == [_MAX_ROBOTS - 1, _MAX_ROBOTS]


@pytest.mark.feature("I3")
def test_a_gate_that_is_gone_holds_nobody_whatever_it_said_last() -> None:
    holds = Holds()
    holds.take(START, CHANNEL, hold("agent"))
    said = {GATE: VelocityGateState(listens=True, holds=("agent",), still=True).model_dump(mode="json")}
    alive = ModuleView("gate", "i", 1, "ok", 0.1, (), said)
    gone = replace(alive, health="gone: silent for 5.0 s", age_s=5.0)
    views = [holds.views(START, [gate])["agent"] for gate in (alive, gone)]
    assert [(view.held, [each.problem for each in view.not_held]) for view in views] == [
        (("gate",), []),
        ((), ["silent"]),
    ]


@pytest.mark.feature("I3")
@pytest.mark.parametrize(
    ("said", "problem", "text"),
    [
        (VelocityGateState(listens=False, holds=("agent",), still=True), "deaf", "it does not listen to /hold"),
        (
            VelocityGateState(listens=True, holds=("other",), still=True),
            "not_holding",
            "it does not hold for agent, only for other",
        ),
    ],
)
def test_a_gate_is_shown_as_it_was_to_who_held_then(said: VelocityGateState, problem: str, text: str) -> None:
    holds = Holds()
    holds.take(START, CHANNEL, hold("agent"))
    gate = ModuleView("gate", "i", 1, "ok", 0.1, (), {GATE: said.model_dump(mode="json")})
    view = holds.views(START, [gate])["agent"]
    assert view.held == ()
    assert [(each.problem, each.text) for each in view.not_held] == [(problem, text)]
