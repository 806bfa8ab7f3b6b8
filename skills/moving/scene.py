"""A robot's way as maps show it."""

from __future__ import annotations

from collections.abc import Iterable

from dimos_streams.operator.messages.scene import GoalView, SceneView


def way(goal: complex | None, then: Iterable[complex] = ()) -> SceneView:
    """Return a view of the point that a robot goes to now, in the odom frame, and of those that it goes to then."""
    points = tuple((round(point.real, 2), round(point.imag, 2)) for point in then)
    if goal is None:
        return SceneView(path=points)
    at = round(goal.real, 2), round(goal.imag, 2)
    return SceneView(goal=GoalView(x=at[0], y=at[1]), path=(at, *points))
