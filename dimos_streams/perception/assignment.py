"""The cheapest one-to-one assignment, without scipy."""

from __future__ import annotations

import math
from collections.abc import Sequence


def assign(costs: Sequence[Sequence[float]], limit: float) -> list[tuple[int, int]]:
    """Pairs (row, column), by row, that cost less than `limit` each: most savings against `limit` in all.

    Rows and columns without a partner below the limit stay alone. Hungarian algorithm, O(n³); equal costs are
    decided by order, so the same matrix always gives the same pairs."""
    if not costs or not costs[0]:
        return []
    size = max(len(costs), len(costs[0]))
    square = [[0.0] * size for _ in range(size)]
    for i, row in enumerate(costs):
        for j, cost in enumerate(row):
            square[i][j] = min(
                0.0, cost - limit
            )  # staying alone costs nothing, so a bad pair can't displace a good one
    return [(i, j) for i, j in enumerate(_hungarian(square)) if square[i][j] < 0.0]


def _hungarian(costs: list[list[float]]) -> list[int]:
    """Column of each row in the cheapest perfect matching of a square matrix (shortest augmenting paths)."""
    size = len(costs)
    row_price, column_price = [0.0] * size, [0.0] * (size + 1)
    row_of = [-1] * (size + 1)  # the extra column holds the row that is being placed
    for row in range(size):
        row_of[size] = row
        column = size
        slack, previous, done = [math.inf] * size, [size] * size, [False] * (size + 1)
        while row_of[column] != -1:
            done[column] = True
            here = row_of[column]
            for j in range(size):
                reduced = costs[here][j] - row_price[here] - column_price[j]
                if not done[j] and reduced < slack[j]:
                    slack[j], previous[j] = reduced, column
            nearest = min((j for j in range(size) if not done[j]), key=slack.__getitem__)
            step = slack[nearest]
            for j in range(size + 1):
                if done[j]:
                    row_price[row_of[j]] += step
                    column_price[j] -= step
                elif j < size:
                    slack[j] -= step
            column = nearest
        while column != size:
            row_of[column] = row_of[previous[column]]
            column = previous[column]
    columns = [0] * size
    for column, row in enumerate(row_of[:size]):
        columns[row] = column
    return columns
