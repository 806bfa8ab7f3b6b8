"""People in the pictures of the simulator's camera."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from dimos_streams.errors import UserError
from dimos_streams.perception.backends.clothing import colour_name
from dimos_streams.perception.backends.hog import HogDetector
from dimos_streams.perception.backends.segmentation import SegmentationDetector
from dimos_streams.perception.config import TrackerSettings
from dimos_streams.perception.detector import Detection, Frame
from dimos_streams.perception.tracking import Tracker
from dimos_streams.person_description import MATCH_THRESHOLD, match_score
from tests.perception.room_frames import Room
from tests.perception.test_geometry import camera

pytestmark = pytest.mark.slow


def test_without_opencv_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(UserError, match=r"dimos-streams\[vision\]"):
        HogDetector()


@pytest.mark.parametrize(
    ("rgb", "name"),
    [
        ((206, 40, 40), "red"),
        ((44, 152, 66), "green"),
        ((236, 196, 48), "yellow"),
        ((44, 78, 168), "blue"),
        ((34, 34, 38), "black"),
        ((128, 130, 136), "grey"),
        ((245, 245, 240), "white"),
        ((110, 70, 40), "brown"),
        ((140, 60, 170), "purple"),
    ],
)
def test_colours_have_names(rgb: tuple[int, int, int], name: str) -> None:
    light = np.linspace(0.9, 1.0, 50)[:, None]
    pixels = np.clip(np.array(rgb) * light, 0, 255).astype(np.uint8)
    assert colour_name(pixels) == (name, 1.0)


def test_no_pixels_no_colour() -> None:
    assert colour_name(np.zeros((0, 3), dtype=np.uint8)) == ("", 0.0)


def test_an_empty_room_has_no_people() -> None:
    pytest.importorskip("cv2", reason="the extra 'vision' is not installed")
    room = np.full((240, 320, 3), 200, dtype=np.uint8)
    assert HogDetector().detect(Frame(utime=0, camera=camera(), rgb=room)) == []


def test_a_frame_without_colour_is_refused() -> None:
    pytest.importorskip("cv2", reason="the extra 'vision' is not installed")
    with pytest.raises(ValueError, match="colour image"):
        HogDetector().detect(Frame(utime=0, camera=camera()))


def whole(detection: Detection) -> bool:
    """Whether all of the person is in the picture."""
    box = detection.box
    return box.left > 1 and box.top > 1 and box.right < 319 and box.bottom < 239 and box.height > 50


def test_people_walking_in_the_simulator_are_found_and_kept_apart() -> None:
    pytest.importorskip("cv2", reason="the extra 'vision' is not installed")
    room, hog, truth = Room(), HogDetector(), SegmentationDetector()
    tracker = Tracker(TrackerSettings(confirm_hits=3, label_weight=0.4))
    present = found = false = 0
    names: dict[str, set[str]] = {}
    for _ in range(40):
        room.world.step(0.1)
        frame = room.frame()
        people = truth.detect(frame)
        seen = hog.detect(frame)
        walking = [person for person in people if whole(person) and "yellow" not in person.label]
        present += len(walking)
        found += sum(any(person.box.iou(box.box) > 0.3 for box in seen) for person in walking)
        for tracked in tracker.update(seen, frame.utime):
            box = tracked.detection.box
            nearest = max(people, key=lambda person: person.box.iou(box), default=None)
            if nearest is None or nearest.box.iou(box) < 0.2:
                false += 1
                continue
            assert match_score(nearest.label, tracked.label) >= MATCH_THRESHOLD
            names.setdefault(tracked.id, set()).add(nearest.label)
            assert tracked.detection.point is not None
            assert nearest.point is not None
            assert np.hypot(*np.subtract(tracked.detection.point, nearest.point)[:2]) < 0.5
    assert present >= 40
    assert found >= 0.7 * present
    assert false <= 2
    assert all(len(labels) == 1 for labels in names.values())
