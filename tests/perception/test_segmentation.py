"""Detections from an instance image."""

from __future__ import annotations

import numpy as np
import pytest

from dimos_streams.perception.backends.segmentation import SegmentationDetector
from dimos_streams.perception.detector import Frame
from dimos_streams.perception.geometry import Box
from tests.perception.test_geometry import camera

LABELS = {1: "person in a red shirt", 2: "person in a green shirt"}


def frame(*, with_depth: bool = True, depth_shape: tuple[int, int] = (120, 160)) -> Frame:
    """Instance 1 in columns 10..19, rows 30..89 of 160x120, at 3 m; 2 shows 3 pixels; 9 has no label."""
    instances = np.zeros((120, 160), dtype=np.uint8)
    instances[30:90, 10:20] = 1
    instances[50, 100:103] = 2
    instances[60:80, 120:140] = 9
    depth = np.full(depth_shape, 5.0, dtype=np.float32)
    ys, xs = depth_shape[0] / 120, depth_shape[1] / 160
    depth[int(30 * ys) : int(90 * ys), int(10 * xs) : int(20 * xs)] = 3.0
    return Frame(utime=1, camera=camera(), instances=instances, depth=depth if with_depth else None, labels=LABELS)


@pytest.mark.parametrize("depth_shape", [(120, 160), (240, 320)])
def test_box_in_colour_pixels_and_point_in_base_link(depth_shape: tuple[int, int]) -> None:
    (found,) = SegmentationDetector().detect(frame(depth_shape=depth_shape))
    assert found.box == Box(20.0, 60.0, 40.0, 180.0)
    assert (found.label, found.score) == ("person in a red shirt", 1.0)
    assert found.point is not None
    assert found.point == pytest.approx((3.1, (159.5 - 29.5) / 200 * 3.0, 1.0), abs=0.03)


def test_no_depth_no_point() -> None:
    (found,) = SegmentationDetector().detect(frame(with_depth=False))
    assert found.point is None


def test_the_visible_area_decides() -> None:
    found = SegmentationDetector(min_pixels=3).detect(frame())
    assert [(d.label, d.score) for d in found] == [(LABELS[1], 1.0), (LABELS[2], 0.5)]


def test_a_frame_without_instances_is_refused() -> None:
    with pytest.raises(ValueError, match="instance image"):
        SegmentationDetector().detect(Frame(utime=1, camera=camera()))
