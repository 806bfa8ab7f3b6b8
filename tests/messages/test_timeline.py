"""The time of a source by its stamps: late, early, repeated and set ones."""

from __future__ import annotations

import logging
from itertools import pairwise

import pytest

from dimos_streams.messages.timeline import CONFIRMING, History, Timeline

HOUR = 3_600_000_000
DAY = 24 * HOUR
STEP = 100_000


def fed(timeline: Timeline, stamps: list[int], period_s: float = 0.1) -> list[int | None]:
    """The instants of stamps that arrive one after another."""
    return [timeline.take(stamp, number * period_s) for number, stamp in enumerate(stamps)]


@pytest.mark.parametrize("start", [STEP, 1_600_000_000_000_000, -DAY])
def test_instants_are_the_stamps_of_a_clock_that_is_never_set(start: int) -> None:
    stamps = [start + number * STEP for number in range(20)]
    timeline = Timeline("camera")
    assert fed(timeline, stamps) == stamps
    assert timeline.now(1.9 + 0.05) == stamps[-1] + 50_000
    assert timeline.ignored == 0


def test_a_repeated_stamp_is_nothing_new_and_not_wrong() -> None:
    timeline = Timeline("camera")
    assert fed(timeline, [5, 5, 5, 6]) == [5, None, None, 6]
    assert timeline.ignored == 0


@pytest.mark.parametrize("off", [10_000_000, HOUR, 400 * DAY, -5_000_000, -HOUR, -400 * DAY])
def test_single_stamps_that_cannot_be_are_ignored_and_counted(off: int) -> None:
    stamps = [DAY + number * STEP for number in range(20)]
    wrong = [stamp + off * (number in (5, 9)) for number, stamp in enumerate(stamps)]
    timeline = Timeline("camera")
    expected = [None if number in (5, 9) else stamp for number, stamp in enumerate(stamps)]
    assert fed(timeline, wrong) == expected
    assert timeline.ignored == 2


@pytest.mark.parametrize("off", [10_000_000, HOUR, 400 * DAY, -500_000, -HOUR, -400 * DAY])
def test_a_clock_that_was_set_is_believed_after_three_and_its_instants_go_on(off: int) -> None:
    stamps = [DAY + number * STEP + off * (number >= 10) for number in range(20)]
    timeline = Timeline("camera")
    instants = fed(timeline, stamps)
    assert instants[10 : 10 + CONFIRMING - 1] == [None] * (CONFIRMING - 1)
    taken = [instant for instant in instants if instant is not None]
    assert len(taken) == 20 - (CONFIRMING - 1)
    assert [later - earlier for earlier, later in pairwise(taken)] == [STEP] * 9 + [3 * STEP] + [STEP] * 7


def test_stamps_that_do_not_agree_with_each_other_are_never_believed() -> None:
    good = [DAY + number * STEP for number in range(60)]
    wrong = [stamp if number % 4 == 0 else number * number * HOUR for number, stamp in enumerate(good)]
    timeline = Timeline("camera")
    assert [instant for instant in fed(timeline, wrong) if instant is not None] == good[::4]


def test_a_slow_source_may_be_late_by_its_own_period() -> None:
    """A model that takes one to three seconds for each picture."""
    arrivals = [(0, 1.0), (1_000_000, 4.0), (4_000_000, 5.0), (5_000_000, 8.0), (8_000_000, 9.0)]
    timeline = Timeline("detections")
    assert all(timeline.take(stamp + DAY, at) is not None for stamp, at in arrivals)


def test_what_was_measured_a_moment_ago_is_placed_by_its_stamp_and_with_another_clock_by_its_arrival() -> None:
    history: History[int] = History("odometry")
    for number in range(20):
        history.add(DAY + number * STEP, number * 0.1, number)
    assert history.at(DAY + 12 * STEP, 1.9) == 12
    assert history.age_us(DAY + 12 * STEP, 1.9) == 7 * STEP
    for off in (-HOUR, HOUR):
        assert history.at(DAY + 12 * STEP + off, 1.9) == 19
        assert history.at(DAY + 12 * STEP + off, 1.2) == 12
        assert history.age_us(DAY + 12 * STEP + off, 1.9) is None


@pytest.mark.feature("H1")
def test_what_another_machine_stamped_is_placed_by_the_measured_difference_of_the_clocks() -> None:
    """Within the seconds by which a slow detector may be late nobody can tell from the stamps alone."""
    for ahead in (-20_000_000, -800_000, 0, 800_000, 86_400_000_000):
        measured: list[int | None] = [None]

        def other_ahead(known: list[int | None] = measured) -> int | None:
            return known[0]

        history: History[int] = History("odometry", other_ahead=other_ahead)
        for number in range(20):
            history.add(DAY + number * STEP, number * 0.1, number)
        stamp = DAY + 12 * STEP + ahead
        assert history.age_us(stamp, 1.9) is None
        assert history.at(stamp, 1.9) == 19, "by its arrival, as long as nobody knows better"
        measured[0] = ahead
        assert history.at(stamp, 1.9) == 12
        assert history.age_us(stamp, 1.9) == 7 * STEP


def test_a_source_without_stamps_has_a_newest_value() -> None:
    history: History[int] = History("odometry")
    assert history.latest is None
    assert history.at(5, 0.0) is None
    for number in range(3):
        history.add(0, number * 0.1, number)
    assert history.latest == 2
    assert history.at(DAY, 0.2) == 2


@pytest.mark.feature("H1")
@pytest.mark.parametrize("rate_hz", [1, 20, 60, 100, 500])
def test_what_a_slow_detector_saw_is_placed_at_any_rate_of_odometry(rate_hz: int) -> None:
    history: History[float] = History("odometry")
    for number in range(12 * rate_hz + 1):
        history.add(DAY + number * 1_000_000 // rate_hz, number / rate_hz, number / rate_hz)
    assert history.latest == 12.0
    for age_s in (0.0, 0.2, 1.5, 9.5):
        placed = history.at(DAY + round((12.0 - age_s) * 1e6), 12.0)
        assert placed == pytest.approx(12.0 - age_s, abs=max(0.02, 0.5 / rate_hz) + 1e-6)
    assert history.at(DAY, 12.0) is None, "nobody knows any more"


@pytest.mark.parametrize(
    ("asked", "value"), [(-1, 0), (0, 0), (1, 0), (STEP // 2, 0), (STEP // 2 + 1, 1), (STEP, 1), (9 * STEP, 2)]
)
def test_the_nearest_value_is_found_and_of_two_that_are_as_near_the_older_one(asked: int, value: int) -> None:
    history: History[int] = History("odometry")
    for number in range(3):
        history.add(DAY + number * STEP, number * STEP / 1e6, number)
    arrived = (2 * STEP + max(0, asked - 2 * STEP)) / 1e6
    assert history.at(DAY + asked, arrived) == value


@pytest.mark.parametrize("step_us", [1, 100, STEP, 900_000])
def test_few_values_are_kept_whatever_their_stamps(step_us: int) -> None:
    history: History[int] = History("odometry")
    for number in range(3000):
        history.add(DAY + number * step_us, number * 0.001, number)
    assert len(history._values) <= 502
    assert history.latest == 2999


def test_before_the_first_value_there_is_none() -> None:
    history: History[int] = History("odometry")
    history.add(DAY, 0.0, 0)
    assert history.at(DAY - STEP, 0.0) is None
    history.add(DAY + STEP, 0.1, 1)
    assert history.at(DAY - STEP // 2, 0.1) == 0, "as near as any is"
    assert history.at(DAY - 2 * STEP, 0.1) is None


def test_whether_a_clock_was_set_or_messages_came_late_is_not_claimed(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that stood still for a while sees the same as one whose source's clock was set back."""
    monkeypatch.setattr("dimos_streams.messages.timeline._log", logging.getLogger(__name__))
    fed(Timeline("the odometer"), [number * STEP - DAY * (number >= 10) for number in range(20)])
    said = (
        "the odometer: from now on its stamps are taken as -86400.0 s off: its clock was set, or messages came late"
    )
    assert said in caplog.messages
