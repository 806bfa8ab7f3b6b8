"""What skills take of a detector's frames: what may be somewhere, and what is there in frames in a row."""

from __future__ import annotations

import asyncio
import math

import pytest

from dimos_streams.messages.vision_msgs import BoundingBox2D, Detection2D, Detection2DArray
from dimos_streams.skills.seeing.sighting import sightings_of
from tests.skills.detections import RED, Seen, frame
from tests.skills.test_look_out_for import looking


def test_what_is_nowhere_in_the_picture_is_no_sighting() -> None:
    message = frame(Seen(label=RED, id="1"), Seen(label=RED, id="2"))
    for detection in message.detections:
        detection.results[0].pose.pose.position.x = math.nan
    nowhere: Detection2D = message.detections[1]
    assert isinstance(nowhere.bbox, BoundingBox2D)
    nowhere.bbox.center.position.x = math.nan
    assert isinstance(message, Detection2DArray)
    assert [sighting.id for sighting in sightings_of(message)] == ["1"]


@pytest.mark.virtual_time
async def test_who_is_seen_every_other_frame_is_not_seen_in_a_row() -> None:
    async with looking(confirm_frames=2) as (harness, camera):
        call = await harness.call("look_out_for", descriptions=["man in red"], timeout_s=3.0)
        await call.answer()
        camera.state = "silent"
        for number in range(20):
            harness.feed("detections", frame(*[Seen(label=RED, id="1")] * (number % 2)))
            await asyncio.sleep(0.1)
        assert (await call.result())["matched"] is False


@pytest.mark.virtual_time
async def test_a_call_may_believe_a_detector_that_is_not_sure_at_all() -> None:
    async with looking(Seen(label=RED, id="1", score=0.1)) as (harness, _):
        call = await harness.call("look_out_for", descriptions=["man in red"], timeout_s=3.0, confidence=0.0)
        assert (await call.result())["matched"] is True
