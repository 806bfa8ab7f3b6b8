"""The cheapest one-to-one assignment, without scipy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def assign(costs: Sequence[Sequence[float]], limit: float) -> list[tuple[int, int]]:
    """Pairs (row, column), by row, that cost less than `limit` each: most savings against `limit` in all.

    Rows and columns without a partner below the limit stay alone. Hungarian algorithm, O(shorter side² · longer
    side); equal costs are decided by order, so the same matrix always gives the same pairs."""
    if not costs or not costs[0]:
        return []
    # Staying alone costs nothing, so a bad pair can't displace a good one.
    losses = np.fmin(0.0, np.array(costs) - limit)
    tall = losses.shape[0] > losses.shape[1]
    columns = _hungarian(losses.T if tall else losses)
    pairs = ((j, i) if tall else (i, j) for i, j in enumerate(columns))
    return sorted(pair for pair in pairs if losses[pair] < 0.0)


def _hungarian(costs: NDArray[np.float64]) -> list[int]:
    """Column of each row in the cheapest matching of all rows, of which there are no more than columns (shortest
    augmenting paths)."""
    rows, size = costs.shape
    row_price, column_price = np.zeros(rows), np.zeros(size + 1)
    row_of = np.full(size + 1, -1)  # the extra column holds the row that is being placed
    for row in range(rows):
        row_of[size] = row
        column = size
        slack, previous, done = np.full(size, np.inf), np.full(size, size), np.zeros(size + 1, dtype=bool)
        while row_of[column] != -1:
            done[column] = True
            here = row_of[column]
            reduced = costs[here] - row_price[here] - column_price[:size]
            better = ~done[:size] & (reduced < slack)
            slack[better], previous[better] = reduced[better], column
            nearest = int(np.where(done[:size], np.inf, slack).argmin())
            step = slack[nearest]
            row_price[row_of[done]] += step
            column_price[done] -= step
            slack[~done[:size]] -= step
            column = nearest
        while column != size:
            row_of[column] = row_of[previous[column]]
            column = int(previous[column])
    columns = [0] * rows
    for column, row in enumerate(row_of[:size].tolist()):
        if row != -1:
            columns[row] = column
    return columns
