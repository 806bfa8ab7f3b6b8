"""``observe`` against a camera that the test holds, and on the simulated robot."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from dimos_streams.errors import SkillError
from dimos_streams.messages.geometry_msgs import Pose
from dimos_streams.messages.image import array_from_image, image_from_array
from dimos_streams.messages.sensor_msgs import Image
from dimos_streams.messages.time import header
from dimos_streams.module import RunContext
from dimos_streams.skills.look_out_for import LookOut
from dimos_streams.skills.observe import Observe
from dimos_streams.testing import ModuleHarness
from tests.helpers import run_virtual
from tests.skills.detections import GREEN, RED, Camera, Seen, frame, odometry


@pytest.mark.virtual_time
async def test_describes_as_text_and_as_a_list() -> None:
    async with ModuleHarness(Observe) as harness:
        view = [Seen(label=GREEN, at=None, id="2", column=300.0), Seen(at=(2.0, 0.5), id="1")]
        task = asyncio.create_task(Camera(harness, view).run())
        harness.feed("odom", odometry(1.0, -2.0, 0.5))
        call = await harness.call("observe")
        assert await call.answer() == (
            "I see a person in a red shirt and blue trousers, 2.1 m ahead, 14 deg left and "
            "a person in a green shirt and black trousers, 35 deg right"
        )
        result = await call.result()
        assert result["robot"] == {"x": 1.0, "y": -2.0, "yaw_deg": 28.6}
        assert result["picture"] is None
        assert [thing["track"] for thing in result["things"]] == ["1", "2"]
        assert result["things"][0] == {
            "label": RED,
            "score": 0.9,
            "track": "1",
            "distance_m": 2.06,
            "bearing_deg": 14.0,
            "bbox": [140.0, 60.0, 180.0, 180.0],
        }
        task.cancel()


@pytest.mark.virtual_time
async def test_a_pose_that_is_all_zero_is_an_unknown_place() -> None:
    async with ModuleHarness(Observe, unwired=("odom", "color_image", "camera_info")) as harness:
        message = frame(Seen())
        message.detections[0].results[0].pose.pose = Pose()
        call = await harness.call("observe")
        harness.feed("detections", message)
        assert (await call.result())["things"][0]["distance_m"] is None


@pytest.mark.virtual_time
async def test_what_touches_the_robot_is_the_nearest() -> None:
    async with ModuleHarness(Observe, unwired=("odom", "color_image", "camera_info")) as harness:
        call = await harness.call("observe")
        view = [Seen(at=None, id="1"), Seen(at=(2.0, 0.0), id="2"), Seen(at=(0.0, 0.0), id="3")]
        harness.feed("detections", frame(*view))
        things = (await call.result())["things"]
        assert [(thing["track"], thing["distance_m"]) for thing in things] == [("3", 0.0), ("2", 2.0), ("1", None)]


@pytest.mark.virtual_time
async def test_that_detections_have_no_labels_is_said_once(settled_log: pytest.LogCaptureFixture) -> None:
    async with ModuleHarness(Observe, unwired=("odom", "color_image", "camera_info")) as harness:
        lookout = LookOut(context=harness.module.context)
        await harness.add(lookout)
        for number in range(5):
            message = frame(Seen(), utime=number)
            message.detections[0].results = []
            harness.feed("detections", message)
            await asyncio.sleep(0.1)
        said = (
            "detections on /detections#vision_msgs.Detection2DArray have no labels (results_length is 0): "
            "no description matches them"
        )
        assert [record.getMessage() for record in settled_log.records] == [said]
        assert (harness.module.health, lookout.health) == (said, said)
        harness.feed("detections", frame())
        await asyncio.sleep(0.1)
        assert harness.module.health == said, "of an empty frame nothing can be learned"
        harness.feed("detections", frame(Seen()))
        await asyncio.sleep(0.1)
        assert (harness.module.health, lookout.health) == ("ok", "ok")


@pytest.mark.virtual_time
async def test_an_empty_view() -> None:
    async with ModuleHarness(Observe, unwired=("odom", "color_image", "camera_info")) as harness:
        task = asyncio.create_task(Camera(harness).run())
        call = await harness.call("observe")
        assert await call.answer() == "I see nobody"
        task.cancel()


@pytest.mark.virtual_time
async def test_looks_anew_and_does_not_remember() -> None:
    """What was seen before the call, as from another place, is no answer to it."""
    async with ModuleHarness(Observe) as harness:
        harness.feed("detections", frame(Seen(label=GREEN)))
        await asyncio.sleep(0.2)
        call = await harness.call("observe")
        harness.feed("detections", frame(Seen(label=GREEN), utime=1))
        await asyncio.sleep(0.2)
        harness.feed("detections", frame(Seen(label=RED)))
        assert RED in await call.answer()


@pytest.mark.virtual_time
async def test_a_slow_detector_is_better_than_none() -> None:
    async with ModuleHarness(Observe) as harness:
        call = await harness.call("observe")
        harness.feed("detections", frame(Seen(label=GREEN), utime=1))
        assert GREEN in await call.answer()


@pytest.mark.virtual_time
async def test_a_blind_robot_says_so() -> None:
    async with ModuleHarness(Observe) as harness:
        call = await harness.call("observe")
        with pytest.raises(SkillError, match=r"I can't see: the detector has sent no new frame for 2 s"):
            await call.answer()


@pytest.mark.parametrize("encoding", ["jpeg", "rgb8", "bgr8", "rgba8", "bgra8"])
def test_keeps_the_picture(encoding: str, tmp_path: Path) -> None:
    async def scenario() -> str:
        context = RunContext(run_dir=tmp_path)
        async with ModuleHarness(Observe, name="observe", context=context) as harness:
            task = asyncio.create_task(Camera(harness, [Seen()]).run())
            pixels = np.full((24, 32, 3), 200, dtype=np.uint8)
            call = await harness.call("observe")
            harness.feed("color_image", image_from_array(pixels, encoding, header("camera_optical", 1234567)))
            picture = (await call.result())["picture"]
            task.cancel()
            return str(picture)

    path = Path(run_virtual(scenario()))
    assert path == tmp_path / "pictures" / "observe-1234567.jpg"
    picture = Image(width=32, height=24, encoding="jpeg", data=path.read_bytes())
    assert np.allclose(array_from_image(picture), 200, atol=3)


def test_several_looks_at_once_keep_the_same_picture(tmp_path: Path) -> None:
    async def scenario() -> None:
        context = RunContext(run_dir=tmp_path)
        async with ModuleHarness(Observe, name="observe", context=context) as harness:
            task = asyncio.create_task(Camera(harness, [Seen()]).run())
            calls = [await harness.call("observe") for _ in range(4)]
            pixels = np.zeros((24, 32, 3), dtype=np.uint8)
            harness.feed("color_image", image_from_array(pixels, "rgb8", header("camera_optical", 1234567)))
            path = str(tmp_path / "pictures" / "observe-1234567.jpg")
            assert [(await call.result())["picture"] for call in calls] == [path] * 4
            task.cancel()

    run_virtual(scenario())
