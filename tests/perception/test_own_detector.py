"""A detector of somebody else's behind `backend: "package.module:Class"`."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from dimos_streams.blueprint import blueprint, include
from dimos_streams.blueprint.check import check
from dimos_streams.errors import UserError
from dimos_streams.messages.image import image_from_array
from dimos_streams.messages.sensor_msgs import CameraInfo
from dimos_streams.messages.time import header
from dimos_streams.perception.detector import Detection, Frame
from dimos_streams.perception.geometry import Box
from dimos_streams.perception.module import PersonDetector
from dimos_streams.robot.simulator import Simulator
from dimos_streams.testing.harness import ModuleHarness
from tests.helpers import until

INFO = CameraInfo(width=320, height=240, K=[200.0, 0, 159.5, 0, 200.0, 119.5, 0, 0, 1])
RED = f"{__name__}:RedThings"
ODD = f"{__name__}:Odd"


class RedThings:
    """One box around all that is red."""

    def __init__(self, least: int = 120, label: str = "person in a red shirt") -> None:
        self._least, self._label = least, label
        self.closed = 0

    def detect(self, frame: Frame, wanted: Sequence[str]) -> list[Detection]:
        assert frame.rgb is not None
        red, green, blue = frame.rgb.astype(int).transpose(2, 0, 1)
        rows, columns = np.nonzero((red > self._least) & (green < 80) & (blue < 80))
        if len(rows) < 30:
            return []
        box = Box(float(columns.min()), float(rows.min()), float(columns.max() + 1), float(rows.max() + 1))
        return [Detection(box=box, label=self._label, score=0.8)]

    def close(self) -> None:
        self.closed += 1


class Odd:
    """Answers whatever it is told to."""

    inputs = ("color_image", "wanted_descriptions")

    def __init__(self, answer: object = None, fails: bool = False) -> None:
        if fails:
            raise RuntimeError("no weights")
        self._answer = answer

    def detect(self, frame: Frame, wanted: Sequence[str]) -> object:
        return ANSWERS[str(self._answer)]

    def close(self) -> None: ...


class Inputless(RedThings):
    inputs = ("colour_image",)


class Blind:
    def detect(self, frame: Frame, wanted: Sequence[str]) -> list[Detection]:
        return []


def odd_detection(**changed: object) -> Detection:
    values = {"box": Box(1.0, 1.0, 9.0, 9.0), "label": "x", "score": 0.5} | changed
    return Detection(**values)  # type: ignore[arg-type]


ANSWERS: dict[str, object] = {
    "nothing": None,
    "texts": ["person"],
    "score": [odd_detection(score=7.0)],
    "box": [odd_detection(box=Box(math.nan, 0, 1, 1))],
    "huge": [odd_detection(box=Box(-500.0, -500.0, 5000.0, 5000.0))],
    "tuple": [odd_detection(box=(1, 2, 3, 4))],
    "label": [odd_detection(label="")],
    "point": [odd_detection(point=(1.0, math.inf, 0.0))],
    "many": [odd_detection(label="x" * 10_000, score=0.5 + each / 5000) for each in range(1000)],
    "outside": [odd_detection(box=Box(400.0, 10.0, 500.0, 20.0)), odd_detection(box=Box(-50.0, 10.0, 50.0, 20.0))],
}


@pytest.mark.slow
@pytest.mark.feature("K3")
@pytest.mark.virtual_time
async def test_a_class_of_ones_own_sees_and_its_boxes_get_places_and_identities() -> None:
    detector = PersonDetector({"backend": RED, "options": {"least": 110}}, name="detector")
    events = [{"at_s": 0, "place": "person_red", "x": 0.0, "y": -0.9, "yaw_deg": 180}]
    async with ModuleHarness(detector, unwired=("instances", "instance_labels", "wanted_descriptions")) as harness:
        room = {"height": 2.7}  # nothing hangs on the walls of another room than the stock one
        await harness.add(Simulator({"people": ["person_red"], "events": events, "furniture": [], "room": room}))
        await asyncio.sleep(3.0)
        messages = harness.sent("detections")
    seen = [detection for message in messages for detection in message.detections]
    assert len(seen) > 20
    assert {detection.id for detection in seen} == {"1"}
    assert {detection.results[0].hypothesis.class_id for detection in seen} == {"person in a red shirt"}
    point = seen[-1].results[0].pose.pose.position
    assert (point.x, point.y) == (pytest.approx(2.3, abs=0.2), pytest.approx(0.0, abs=0.1))
    assert 0.9 < point.z < 1.6
    assert detector.statistics().failed == 0


@pytest.mark.feature("K3")
@pytest.mark.virtual_time
async def test_of_a_crowd_those_of_the_best_scores_are_kept() -> None:
    """To find the tracks of all would hold up the process for many seconds."""
    config = {"backend": ODD, "options": {"answer": "many"}, "tracking": {"confirm_hits": 1}}
    detector = PersonDetector(config, name="detector")
    async with ModuleHarness(detector, unwired=("instances", "instance_labels", "depth_image")) as harness:
        harness.feed("camera_info", INFO)
        picture = np.zeros((240, 320, 3), dtype=np.uint8)
        harness.feed("color_image", image_from_array(picture, "rgb8", header("camera_optical", 1_000_000)))
        await asyncio.sleep(0.1)
        [message] = harness.sent("detections")
    scores = [detection.results[0].hypothesis.score for detection in message.detections]
    assert (len(scores), min(scores)) == (100, pytest.approx(0.5 + 900 / 5000))
    assert {len(detection.results[0].hypothesis.class_id) for detection in message.detections} == {500}


@pytest.mark.virtual_time
async def test_a_detector_that_is_slow_or_hangs_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    detector = PersonDetector({"backend": ODD, "options": {"answer": "many"}}, name="detector")
    takes = iter((0.5, 3.0, 1000.0))

    async def run_slowly(function: Callable[..., object], *args: object) -> object:
        await asyncio.sleep(next(takes))
        return function(*args)

    monkeypatch.setattr(detector, "run_blocking", run_slowly)
    async with ModuleHarness(detector, unwired=("instances", "instance_labels", "depth_image")) as harness:
        harness.feed("camera_info", INFO)
        sent = harness.sent("detections")

        def show() -> None:
            picture = np.zeros((240, 320, 3), dtype=np.uint8)
            stamp = header("camera_optical", 1_000_000 * (1 + len(sent)))
            harness.feed("color_image", image_from_array(picture, "rgb8", stamp))

        show()
        await until(lambda: len(sent) == 1)
        assert detector.health == "ok"
        show()
        await until(lambda: len(sent) == 2)
        assert detector.health == "the detector takes 3.0 s a picture"
        show()
        await until(lambda: detector.health == "the detector has been at one picture for 12 s", 20.0)


@pytest.mark.feature("K3")
@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("nothing", "answered NoneType, not a list"),
        ("texts", "answered person: that is no Detection"),
        ("score", "its score is not between 0 and 1"),
        ("box", "its box is no Box of finite pixels"),
        ("huge", "its box is 5500x5500 pixels large, and the picture 320x240"),
        ("tuple", "its box is no Box of finite pixels"),
        ("label", "its label is no text"),
        ("point", "its point is not three finite numbers"),
        ("outside", ""),
    ],
)
async def test_an_odd_answer_costs_the_frame_and_is_told(answer: str, expected: str) -> None:
    detector = PersonDetector({"backend": ODD, "options": {"answer": answer}}, name="detector")
    async with ModuleHarness(detector, unwired=("instances", "instance_labels", "depth_image")) as harness:
        harness.feed("camera_info", INFO)
        for frame in range(4):
            picture = np.zeros((240, 320, 3), dtype=np.uint8)
            stamp = header("camera_optical", 1_000_000 + 100_000 * frame)
            harness.feed("color_image", image_from_array(picture, "rgb8", stamp))
            await asyncio.sleep(0.1)
        sent = harness.sent("detections")
    if expected:
        assert expected in detector.health
        assert (sent, detector.statistics().failed) == ([], 4)
    else:
        assert detector.statistics().failed == 0
        [box] = [detection.bbox for detection in sent[-1].detections]
        assert (box.size_x, box.center.position.x) == (50.0, 25.0)


@pytest.mark.feature("K3")
@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"backend": "hgo"}, "no backend 'hgo'; did you mean 'hog'? (use segmentation, hog, onnx, vlm, or"),
        ({"backend": f"{__name__}:RedThngs"}, "has no 'RedThngs'; did you mean 'RedThings'?"),
        ({"backend": "no_such:Thing"}, "there is no Python module 'no_such'"),
        ({"backend": f"{__name__}:INFO"}, "is not a class but CameraInfo"),
        ({"backend": f"{__name__}:Blind"}, "is no detector: it lacks close()"),
        ({"backend": f"{__name__}:Inputless"}, "has inputs = ('colour_image',); it must be a tuple that begins with"),
        ({"backend": RED, "options": {"lest": 3}}, "can't take options {'lest': 3}: got an unexpected keyword"),
        (
            {"backend": "hog", "options": {"least": 3}},
            "options are for a detector class of your own; settings of 'hog' are in `hog`",
        ),
        ({"backend": "vlm"}, "the backend 'vlm' needs the name of a model: set vlm.model"),
        ({"backend": "onnx", "onnx": {"model": "no.onnx"}}, "as onnx.model, and there is no file 'no.onnx'"),
        ({"backend": "onnx"}, "as onnx.model, and there is no file none"),
    ],
)
def test_check_tells_what_is_wrong_with_a_backend(config: dict[str, object], expected: str) -> None:
    settings = {f"detector.{key}": value for key, value in config.items()}
    found = blueprint("x", include("base-robot", remap={"detector.color_image": "color_image"}, set=settings))
    problems = [problem for problem in check(found) if "onnxruntime" not in problem.text]
    assert any(expected in problem.text for problem in problems), problems


@pytest.mark.feature("K3")
def test_a_backend_that_there_is_not_is_one_error_and_does_not_blame_the_module() -> None:
    """The inputs that it needs are not known then, which is no fault of their own."""
    found = blueprint("x", include("base-robot", set={"detector.backend": f"{__name__}:RedThngs"}))
    [problem] = check(found)
    assert "has no 'RedThngs'" in problem.text


@pytest.mark.feature("K3")
def test_check_sees_that_a_backend_lacks_its_picture() -> None:
    found = blueprint("x", include("base-robot", set={"detector.backend": RED}))
    [problem] = check(found)
    needs = "module 'detector' requires its input 'color_image', it can't be left unwired"
    assert problem.text == f"{needs}: remap detector.color_image to a topic"


@pytest.mark.virtual_time
async def test_a_constructor_that_fails_is_an_error_at_the_start() -> None:
    detector = PersonDetector({"backend": ODD, "options": {"fails": True}}, name="detector")
    with pytest.raises(UserError, match=r"can't be made with options \{'fails': True\}: RuntimeError: no weights"):
        async with ModuleHarness(detector):
            pass
