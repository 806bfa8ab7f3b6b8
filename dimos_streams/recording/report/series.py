"""A number over time, kept within a bound: of what is too dense the least and the greatest stay."""

from __future__ import annotations

from collections.abc import Iterator

LARGEST = 1e15
"""The largest value that is drawn: what is computed of a larger one would not be finite."""
_MOST = 4096
_AT_ONCE = 4


class PlottedSeries:
    """Values in the order of time."""

    def __init__(self) -> None:
        self.points: list[tuple[int, float]] = []
        """Times in µs, and values."""

    def add(self, utime: int, value: float) -> None:
        """Add a value; when there are too many, neighbours become one pair."""
        self.points.append((utime, value))
        if len(self.points) > _MOST:
            self.points = list(_extremes(self.points, _AT_ONCE))

    def downsampled(self, most: int) -> list[tuple[int, float]]:
        """Return about ``most`` points at most, for a drawing."""
        points = self.points
        return points if len(points) <= most else list(_extremes(points, 2 * -(-len(points) // most)))


def _extremes(points: list[tuple[int, float]], at_once: int) -> Iterator[tuple[int, float]]:
    """Yield the least and the greatest of every ``at_once`` neighbours, in their order."""
    for start in range(0, len(points), at_once):
        some = points[start : start + at_once]
        least, greatest = min(some, key=_value), max(some, key=_value)
        yield from sorted({least, greatest})


def _value(point: tuple[int, float]) -> float:
    return point[1]
