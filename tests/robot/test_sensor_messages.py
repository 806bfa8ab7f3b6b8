"""The simulator's messages fit together: frames, intrinsics, rays and pictures."""

from __future__ import annotations

import asyncio
import json
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from dimos_streams.messages.geometry_msgs import Transform
from dimos_streams.messages.image import array_from_image
from dimos_streams.robot.simulator import Simulator
from dimos_streams.testing.harness import ModuleHarness

Floats = NDArray[np.float64]


def turn_of(transform: Transform) -> Floats:
    """The rotation matrix of a transform."""
    q = transform.rotation
    x, y, z, w = q.x, q.y, q.z, q.w
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def inverse(transform: Transform, point: Floats) -> Floats:
    """A point of the parent's frame, in the child's."""
    at = np.array([transform.translation.x, transform.translation.y, transform.translation.z])
    return np.asarray(turn_of(transform).T @ (point - at))


@pytest.mark.virtual_time
@pytest.mark.parametrize(("yaw", "aside"), [(0.0, 0.5), (100.0, -0.7), (-140.0, 0.1)])
async def test_a_person_is_where_the_frames_the_camera_s_numbers_and_the_lidar_say(yaw: float, aside: float) -> None:
    """As a program would find them that knows no more than the messages: ground truth through tf into the picture."""
    heading = math.radians(yaw)
    x, y = (2.0 * math.cos(heading) - aside * math.sin(heading), 2.0 * math.sin(heading) + aside * math.cos(heading))
    config = {
        "people": ["person_red"],
        "events": [{"at_s": 0, "place": "person_red", "x": x, "y": y - 1.0, "yaw_deg": 30}],
        "start_x": 0.0,
        "start_y": -1.0,
        "start_yaw_deg": yaw,
        "camera_hz": 2.0,
    }
    async with ModuleHarness(Simulator, config, name="robot") as harness:
        await asyncio.sleep(1.01)
        info, scan, odom = (harness.sent(name)[-1] for name in ("camera_info", "scan", "odom"))
        frames = {each.child_frame_id: each.transform for each in harness.sent("tf")[-1].transforms}
        truth = {each.child_frame_id: each.transform for each in harness.sent("ground_truth")[-1].transforms}
        seen = array_from_image(harness.sent("instances")[-1])
        (instance,) = map(int, json.loads(harness.sent("instance_labels")[-1].data))
    base, person = truth["base_link"], truth["person_red"].translation
    assert (person.x, person.y) == pytest.approx((x, y - 1.0))
    assert turn_of(truth["person_red"])[1, 0] == pytest.approx(math.sin(math.radians(30)))
    assert turn_of(frames["base_link"]) == pytest.approx(turn_of(base))
    assert odom.pose.pose.orientation == frames["base_link"].rotation
    chest = np.array([person.x, person.y, 1.2])
    for frame in ("odom", "base_link", "camera_optical"):
        chest = inverse(frames[frame], chest)
    projection = np.array(info.P).reshape(3, 4)
    assert projection[:, :3] == pytest.approx(np.array(info.K).reshape(3, 3) @ np.array(info.R).reshape(3, 3))
    u, v, depth = projection @ np.append(chest, 1.0)
    assert depth == pytest.approx(2.0 - 0.06)
    rows, columns = np.nonzero(seen == instance)
    top = np.searchsorted(np.sort(rows), round(v / depth / 2))
    assert 0 < top < len(rows)
    at_chest = columns[rows == round(v / depth / 2)]
    assert (at_chest.min() + at_chest.max()) == pytest.approx(u / depth, abs=8.0)
    bearing = math.atan2(aside, 2.0)
    ray = round((bearing - scan.angle_min) / scan.angle_increment)
    assert min(scan.ranges[ray - 4 : ray + 5]) == pytest.approx(math.hypot(2.0, aside), abs=0.25)
    assert scan.angle_min + (len(scan.ranges) - 1) * scan.angle_increment == pytest.approx(scan.angle_max)
    assert (scan.scan_time, scan.range_min, scan.range_max) == pytest.approx((0.1, 0.05, 12.0))


@pytest.mark.virtual_time
async def test_the_picture_s_numbers_are_those_of_a_pinhole_in_its_middle() -> None:
    config = {"camera_width": 200, "camera_height": 100, "camera_fov_deg": 90.0, "people": []}
    async with ModuleHarness(Simulator, config) as harness:
        await asyncio.sleep(0.51)
        info, picture = harness.sent("camera_info")[-1], harness.sent("color_image")[-1]
    assert array_from_image(picture).shape == (100, 200, 3)
    assert (info.width, info.height, info.header) == (200, 100, picture.header)
    assert list(info.K) == pytest.approx([100.0, 0.0, 99.5, 0.0, 100.0, 49.5, 0.0, 0.0, 1.0])
    assert list(info.R) == [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
    assert list(info.P[3::4]) == [0.0, 0.0, 0.0]
    assert (info.distortion_model, list(info.D)) == ("plumb_bob", [0.0] * 5)
