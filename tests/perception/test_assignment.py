"""The cheapest assignment."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dimos_streams.perception import assignment
from dimos_streams.perception.assignment import assign
from dimos_streams.perception.geometry import Floats

MATRICES = st.tuples(st.integers(1, 4), st.integers(1, 4)).flatmap(
    lambda shape: st.lists(
        st.lists(st.floats(0.0, 2.0), min_size=shape[1], max_size=shape[1]),
        min_size=shape[0],
        max_size=shape[0],
    )
)


def test_greedy_would_be_worse() -> None:
    assert assign([[0.1, 0.2], [0.15, 0.9]], limit=1.0) == [(0, 1), (1, 0)]


def test_nothing_to_assign() -> None:
    assert assign([], limit=1.0) == []
    assert assign([[], []], limit=1.0) == []
    assert assign([[1.0, 2.0]], limit=1.0) == []


@pytest.mark.parametrize("costs", [[[0.5, 0.1]] * 30, [[0.5] * 30, [0.1] * 30]])
def test_few_things_are_assigned_fast_to_many_tracks(
    monkeypatch: pytest.MonkeyPatch, costs: list[list[float]]
) -> None:
    """A module that looks for a partner of each of hundreds of tracks answers nobody for seconds."""
    hungarian, placed = assignment._hungarian, []

    def counted(losses: Floats) -> list[int]:
        placed.append(len(losses))
        return hungarian(losses)

    monkeypatch.setattr(assignment, "_hungarian", counted)
    assert len(assign(costs, limit=1.0)) == 2
    assert placed == [2]


def best_saving(costs: list[list[float]], limit: float) -> float:
    """By trying all ways."""
    rows, columns = len(costs), len(costs[0])
    places = [*range(columns), *[None] * rows]
    ways = set(permutations(places, rows))
    savings = [sum(max(0.0, limit - costs[i][j]) for i, j in enumerate(way) if j is not None) for way in ways]
    return float(max(savings))


@given(costs=MATRICES)
def test_no_other_assignment_saves_more(costs: list[list[float]]) -> None:
    pairs = assign(costs, limit=1.0)
    assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == len(pairs)
    assert all(costs[i][j] < 1.0 for i, j in pairs)
    saved = sum(1.0 - costs[i][j] for i, j in pairs)
    assert abs(saved - best_saving(costs, 1.0)) < 1e-9
