"""Who holds the robot still, as every reader of ``/hold`` sees it."""

from __future__ import annotations

import logging
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dimos_streams.common.names import MAX_NAME
from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.module import MAX_STATE
from dimos_streams.module.state_text import state_text
from dimos_streams.operator.holding import (
    GATE,
    MAX_SOURCES,
    MAX_VALID_S,
    REMEMBERED_S,
    STOP_ROBOT,
    HoldTable,
    VelocityGateState,
    gate_state,
)
from dimos_streams.operator.messages.stop import ReleaseReport


def hold(seq: int, holding: bool = True, *, source: str = "agent", valid_s: float = 5.0, utime: int = 0) -> Hold:
    return Hold(utime=utime or seq, source=source, seq=seq, hold=holding, valid_s=valid_s)


lives = st.lists(st.lists(st.booleans(), min_size=1, max_size=6), min_size=1, max_size=3)
"""For each start of a source, what it says, in order."""


@pytest.mark.slow
@pytest.mark.feature("B3")
@given(lives, st.randoms(use_true_random=False), st.floats(0.0, 9.0))
@settings(max_examples=200, deadline=None)
def test_in_whatever_order_messages_come_the_newest_counts(
    said: list[list[bool]], order: object, silence_s: float
) -> None:
    messages = [
        hold(seq, holding, utime=1000 * life + seq)
        for life, words in enumerate(said, start=1)
        for seq, holding in enumerate(words, start=1)
    ]
    table, now = HoldTable(), 100.0
    # Each message comes when it is sent; earlier ones, and itself, may come again late.
    for i, message in enumerate(messages):
        now += 0.2
        table.update(message, now)
        late = order.choice(messages[: i + 1])  # type: ignore[attr-defined]
        table.update(late, now + 0.1)
        assert table.held(now + 0.1) is message.hold
    newest = messages[-1]
    later = now + 0.1 + silence_s
    held = newest.hold and later - now <= newest.valid_s
    assert table.held(later) is held
    assert table.sources(later) == (("agent",) if table.held(later) else ())


def test_it_counts_for_as_long_as_it_says_by_the_readers_clock() -> None:
    table = HoldTable()
    table.update(hold(1, valid_s=15.0, utime=10**18), 50.0)
    assert table.held(65.0)
    assert not table.held(65.1)
    table.update(hold(2, valid_s=0.5), 70.0)
    assert table.held(70.5)
    assert not table.held(70.6)


def test_sources_hold_beside_each_other() -> None:
    table = HoldTable()
    table.update(hold(7, source="robot1/agent"), 0.0)
    table.update(hold(1, source="console"), 0.0)
    table.update(hold(8, False, source="robot1/agent"), 1.0)
    assert table.sources(1.0) == ("console",)


def test_a_source_whose_clock_was_put_back_while_it_was_restarted_is_believed_after_a_while() -> None:
    table = HoldTable()
    table.update(hold(100, False, utime=10**9), 0.0)
    table.update(hold(1, utime=10), REMEMBERED_S)
    assert not table.held(REMEMBERED_S), "it may be an old message that comes late"
    table.update(hold(2, utime=20), REMEMBERED_S + 0.1)
    assert table.held(REMEMBERED_S + 0.1)


def test_a_source_whose_clock_was_set_back_is_believed_the_second_time() -> None:
    table = HoldTable()
    table.update(hold(100, False, utime=10**9), 0.0)
    table.update(hold(101, utime=10), 0.1)
    table.update(hold(101, utime=10), 0.2)
    assert not table.held(0.2), "one message may come late, and twice"
    table.update(hold(102, utime=20), 0.3)
    assert table.held(0.3)
    table.update(hold(103, False, utime=30), 0.4)
    assert not table.held(0.4)


def test_a_message_from_a_time_to_come_silences_its_source_for_one_message() -> None:
    table = HoldTable()
    table.update(hold(7, utime=10), 0.0)
    table.update(hold(8, False, utime=10**18), 0.1)
    table.update(hold(9, utime=30), 0.2)
    assert not table.held(0.2)
    table.update(hold(10, utime=40), 0.3)
    assert table.held(0.3)


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (hold(2, False, valid_s=math.nan), "valid_s is nan; more than 0 and at most 60 s are valid"),
        (hold(2, False, valid_s=math.inf), "valid_s is inf"),
        (hold(2, False, valid_s=-1.0), "valid_s is -1.0"),
        (hold(2, valid_s=0.0), "valid_s is 0.0"),
        (hold(2, valid_s=-1e308), "valid_s is -1e+308"),
        (hold(2, valid_s=3_601.0), "valid_s is 3601.0"),
        (hold(2, valid_s=1e308), "valid_s is 1e+308"),
        (hold(2, source=""), "its source is empty"),
        (hold(2, source="x" * 201), "more than 200 bytes"),
        (hold(2, source="a\nb"), "not printable"),
    ],
)
def test_what_is_no_hold_changes_nothing_and_is_logged(
    bad: Hold, why: str, settled_log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dimos_streams.operator.holding._log._last", {})
    table = HoldTable("gate")
    table.update(hold(1), 0.0)
    with settled_log.at_level(logging.WARNING):
        for _ in range(100):
            table.update(bad, 1.0)
    assert table.sources(1.0) == ("agent",)
    assert table.skipped == 100
    (line,) = settled_log.messages
    assert "gate: skipped a hold of" in line
    assert why in line
    assert why in table.note(1.0 + MAX_VALID_S - 0.1)
    assert table.note(1.0 + MAX_VALID_S) == ""


@pytest.mark.feature("B3")
@pytest.mark.parametrize("valid_s", [MAX_VALID_S + 1, 3_600.0])
def test_a_sound_hold_for_too_long_holds_for_the_longest_time_and_is_noted(
    valid_s: float, settled_log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dimos_streams.operator.holding._log._last", {})
    table = HoldTable("gate")
    with settled_log.at_level(logging.WARNING):
        table.update(hold(1, source="console", valid_s=valid_s), 1.0)
    assert table.sources(1.0 + MAX_VALID_S) == ("console",)
    assert not table.held(1.1 + MAX_VALID_S)
    said = f"a hold of 'console' counts for 60 s only: valid_s is {valid_s!r}; at most 60 s are valid"
    assert f"gate: {said}" in settled_log.text
    assert table.note(2.0) == said
    assert table.skipped == 0
    table.update(hold(2, source="console", valid_s=valid_s), 100.0)
    table.update(hold(3, False, source="console", valid_s=0.0), 100.0)
    assert not table.held(100.0), "for how long somebody lets go is no question"


@pytest.mark.feature("K5")
@pytest.mark.parametrize("stop_comes_first", [True, False])
def test_there_is_room_for_a_stop_beside_all_others_who_hold(stop_comes_first: bool) -> None:
    table, others = HoldTable(), [f"agent {number}" for number in range(MAX_SOURCES)]
    for source in [STOP_ROBOT, *others] if stop_comes_first else [*others, STOP_ROBOT]:
        table.update(hold(1, source=source), 0.0)
    assert table.stopped(1.0)
    assert table.sources(1.0) == (*others, STOP_ROBOT)


def test_a_stop_that_is_over_makes_no_room_for_one_more() -> None:
    table = HoldTable()
    table.update(hold(1, False, source=STOP_ROBOT), 0.0)
    for number in range(MAX_SOURCES + 1):
        table.update(hold(1, source=f"agent {number}"), 0.0)
    assert len(table.sources(0.0)) == MAX_SOURCES


@pytest.mark.feature("B3")
def test_a_release_that_comes_late_lets_nobody_go() -> None:
    table = HoldTable()
    for seq, holding in ((1, False), (2, True), (1, False)):
        table.update(hold(seq, holding), 0.1 * seq)
    assert table.held(0.2)


def test_a_hold_that_comes_twice_counts_from_the_first_time() -> None:
    table = HoldTable()
    table.update(hold(1, valid_s=1.0), 0.0)
    table.update(hold(1, valid_s=1.0), 0.9)
    assert not table.held(1.1)


@pytest.mark.feature("B3")
def test_damaged_holds_hold_nothing_however_many_come() -> None:
    table = HoldTable()
    for seq in range(1, 1000):
        for damaged in ({"valid_s": math.nan}, {"valid_s": math.inf}, {"source": "", "valid_s": 1e308}):
            table.update(hold(seq, **damaged), 0.1 * seq)
        assert not table.held(0.1 * seq)


def test_sources_are_bounded_and_no_flood_lets_the_robot_go() -> None:
    table = HoldTable()
    table.update(hold(1, valid_s=60.0), 0.0)
    for number in range(100):
        table.update(hold(1, False, source=f"visitor {number}"), 0.0)
        table.update(hold(2, source=f"visitor {number}", valid_s=1.0), 0.0)
    assert len(table.sources(0.5)) == MAX_SOURCES
    assert "agent" in table.sources(0.5)
    table.update(hold(1, source="late"), 2.0)
    assert table.sources(2.0) == ("agent", "late")


@pytest.mark.parametrize(
    "said",
    [
        None,
        "held",
        [],
        {},
        {"listens": 1, "holds": [], "still": True},
        {"listens": True, "holds": "agent", "still": True},
        {"listens": True, "holds": [3], "still": True},
        {"listens": True, "holds": ["a"] * 1000, "still": True},
    ],
)
def test_a_gate_that_can_not_be_understood_confirms_nothing(said: object) -> None:
    state = gate_state({GATE: said})
    assert state == VelocityGateState(listens=False, holds=(), still=False)


def test_what_a_gate_says_comes_back() -> None:
    state = VelocityGateState(listens=True, holds=("robot1/agent",), still=True)
    assert gate_state({GATE: state.model_dump(mode="json")}) == state
    assert gate_state({"something": 1}) is None


def test_a_gate_says_for_which_reasons_it_holds() -> None:
    table = HoldTable()
    for source, reason in (("agent", ""), ("door", "the door\nis open"), ("long", "x" * 501)):
        table.update(Hold(utime=1, source=source, seq=1, hold=True, valid_s=1.0, reason=reason), 0.0)
    state = VelocityGateState(listens=True, holds=table.sources(0.0), reasons=table.reasons(0.0), still=True)
    assert gate_state({GATE: state.model_dump(mode="json")}) == state
    assert str(state) == f"holds for agent, door (the door\\nis open), long ({'x' * 90}…)"
    assert table.reasons(2.0) == ()


@pytest.mark.parametrize(("robot", "said"), [("", "no robot was stopped"), ("robot1", "robot1 was not stopped")])
def test_a_release_of_what_was_not_stopped_says_so(robot: str, said: str) -> None:
    assert str(ReleaseReport(robot=robot, changed=False)) == said


def test_the_most_that_a_gate_says_of_itself_is_reported() -> None:
    table = HoldTable()
    names = [*(f"{number}{'n' * (MAX_NAME - 1)}" for number in range(MAX_SOURCES)), STOP_ROBOT]
    for name in names:
        table.update(Hold(utime=1, source=name, seq=1, hold=True, valid_s=1.0, reason='"\\' * 10_000), 0.0)
    said = VelocityGateState(
        listens=True, channel="c" * MAX_NAME, holds=table.sources(0.0), reasons=table.reasons(0.0), still=True
    )
    assert len(said.holds) == len(names)
    assert len(state_text("gate", {GATE: said.model_dump(mode="json")}, said.holds).encode()) <= MAX_STATE
