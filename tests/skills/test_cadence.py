"""Reports at a steady rate, however the loop that asks jitters."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dimos_streams.skills.moving.cadence import Cadence


def reports(turns: list[float], begin: float = 0.0) -> list[float]:
    cadence = Cadence(0.5, begin)
    return [now for now in turns if cadence.is_due(now)]


@pytest.mark.parametrize("seed", range(5))
def test_a_loop_that_jitters_by_a_millisecond_reports_as_often_as_one_that_does_not(seed: int) -> None:
    rng = random.Random(seed)
    jittered = [turn * 0.1 + 0.04 + rng.uniform(-0.001, 0.001) for turn in range(600)]
    assert len(reports(jittered)) == len(reports([turn * 0.1 + 0.04 for turn in range(600)])) == 120
    assert all(abs(now - period * 0.5) < 0.1 for period, now in enumerate(reports(jittered)))


def test_periods_that_were_missed_count_as_one() -> None:
    assert reports([100.0, 100.1, 103.7, 103.9, 104.0, 104.2], begin=100.0) == [100.0, 103.7, 104.0]


@given(st.lists(st.floats(0.0, 1e4), min_size=1, max_size=50).map(sorted))
def test_at_most_one_report_a_period_and_none_is_put_off_beyond_the_next_turn(turns: list[float]) -> None:
    found = reports(turns)
    assert found[0] == turns[0]
    periods = [now // 0.5 for now in found]
    assert sorted(set(periods)) == periods
    for now in turns:
        assert any(0 <= now - report <= 0.5 + 1e-6 for report in found if report <= now)
