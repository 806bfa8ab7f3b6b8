"""Boxes, the camera on its mount, the robot's pose."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dimos_streams.messages.planar import PlanarPose
from dimos_streams.perception.geometry import Box, Camera, Mount, box_point, pixels_of


def camera(mount: Mount | None = None) -> Camera:
    return Camera(
        width=320,
        height=240,
        fx=200.0,
        fy=200.0,
        cx=159.5,
        cy=119.5,
        mount=mount or Mount.forward(0.1, 0.0, 1.0),
    )


def test_iou() -> None:
    assert Box(0, 0, 2, 2).iou(Box(1, 0, 3, 2)) == pytest.approx(1 / 3)
    assert Box(0, 0, 2, 2).iou(Box(2, 2, 3, 3)) == 0.0
    assert Box(0, 0, 0, 0).iou(Box(0, 0, 0, 0)) == 0.0


def test_clipping_leaves_the_part_inside() -> None:
    assert Box(-5, 10, 500, 300).clipped(320, 240) == Box(0, 10, 320, 240)
    assert Box(400, 10, 500, 20).clipped(320, 240).area == 0.0


def test_the_middle_of_a_small_depth_image_lies_straight_ahead() -> None:
    depth = np.full((120, 160), 3.0, dtype=np.float32)
    rows, columns = np.array([59, 60]), np.array([79, 80])
    points = camera().points(depth, rows, columns)
    assert points.mean(axis=0) == pytest.approx([3.1, 0.0, 1.0])


def test_left_in_the_image_is_left_of_the_robot_and_up_is_up() -> None:
    depth = np.full((120, 160), 2.0, dtype=np.float32)
    (x, y, z), *_ = camera().points(depth, np.array([0]), np.array([0]))
    assert x == pytest.approx(2.1)
    assert y > 1.0
    assert z > 2.0


def test_unknown_depth_gives_no_point() -> None:
    depth = np.full((120, 160), np.nan, dtype=np.float32)
    depth[:10] = 0.0
    assert box_point(camera(), depth, Box(0, 0, 320, 240)) is None


def test_a_camera_that_looks_down_sees_the_floor() -> None:
    looking_down = camera(Mount.forward(0.0, 0.0, 1.0, pitch=math.radians(45)))
    depth = np.full((240, 320), math.sqrt(2), dtype=np.float32)
    point = looking_down.median_point(depth, np.array([119, 120]), np.array([159, 160]))
    assert point == pytest.approx((1.0, 0.0, 0.0), abs=0.01)


def test_a_mount_from_tf_is_the_one_that_looks_forward() -> None:
    mount = Mount.of_quaternion((0.1, 0.0, 1.0), -0.5, 0.5, -0.5, 0.5)
    assert mount.rotation == pytest.approx(Mount.forward(0.1, 0.0, 1.0).rotation)
    with pytest.raises(ValueError, match="quaternion"):
        Mount.of_quaternion((0.0, 0.0, 0.0), 0.0, 0.0, 0.0, 0.0)


def test_a_pose_turns_and_moves() -> None:
    assert PlanarPose(1.0, 2.0, math.pi / 2).apply((3.0, 0.0, 0.5)) == pytest.approx((1.0, 5.0, 0.5))


def test_a_thin_box_still_has_a_pixel() -> None:
    rows, columns = pixels_of(Box(319.9, 239.9, 320, 240), (120, 160), 320, 240)
    assert (rows, columns) == (slice(119, 120), slice(159, 160))
