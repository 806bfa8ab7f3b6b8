"""Polygons of the floor."""

from __future__ import annotations

from dimos_streams.common.polygon import centre_of


def test_the_centre_is_the_mean_of_the_corners() -> None:
    assert centre_of(((0.0, 0.0), (2.0, 0.0), (2.0, 4.0), (0.0, 4.0))) == (1.0, 2.0)
    assert centre_of(()) == (0.0, 0.0)
