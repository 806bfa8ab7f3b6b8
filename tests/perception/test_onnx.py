"""YOLO networks in ONNX files: their layouts, the letterbox, and a network that is built here and run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dimos_streams.errors import UserError
from dimos_streams.perception.backends.letterbox import letterboxed
from dimos_streams.perception.backends.yolo import Layout, decoded, layout_of
from dimos_streams.perception.config import OnnxSettings
from dimos_streams.perception.detector import Frame
from dimos_streams.perception.geometry import Box, Camera, Mount
from dimos_streams.perception.module import PersonDetector
from dimos_streams.robot.simulator import Simulator
from dimos_streams.testing.harness import ModuleHarness

CELLS, CELL = 20, 8
SIDE = CELLS * CELL
HALF_WIDTH, HALF_HEIGHT = 12.0, 32.0

Build = Callable[..., Path]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Builds a network that finds what is red ("person") or green ("plant"): a score for each cell of the picture,
    and a box around its middle. The answer has the layout of YOLOv8's or, as `rows`, of YOLOv5's."""
    pytest.importorskip("onnxruntime", reason="needs the extra `onnx`")
    helper = pytest.importorskip("onnx.helper", reason="needs the package `onnx`, which writes the network")
    onnx = pytest.importorskip("onnx")

    def tensor(name: str, values: NDArray[Any]) -> Any:
        return onnx.numpy_helper.from_array(values, name)

    def write(*, rows: bool = False, names: str = "{0: 'person', 1: 'plant'}", side: int | str = SIDE) -> Path:
        ys, xs = np.mgrid[0:CELLS, 0:CELLS].reshape(2, -1) * CELL + CELL / 2
        boxes = np.stack([xs, ys, np.full_like(xs, 2 * HALF_WIDTH), np.full_like(xs, 2 * HALF_HEIGHT)])
        colours = np.array([[2.0, -2.0, -2.0], [-2.0, 2.0, -2.0]], dtype=np.float32).reshape(2, 3, 1, 1)
        above = np.ones((1, 1, CELLS**2), dtype=np.float32)
        parts = ["boxes", "sure", "scores"] if rows else ["boxes", "scores"]
        nodes = [
            helper.make_node("AveragePool", ["picture"], ["cells"], kernel_shape=[CELL] * 2, strides=[CELL] * 2),
            helper.make_node("Conv", ["cells", "colours"], ["likeness"]),
            helper.make_node("Clip", ["likeness", "zero", "one"], ["clipped"]),
            helper.make_node("Reshape", ["clipped", "shape"], ["scores"]),
            helper.make_node("Concat", parts, ["columns"], axis=1),
            helper.make_node("Transpose", ["columns"], ["answer"], perm=[0, 2, 1] if rows else [0, 1, 2]),
        ]
        constants = [
            tensor("boxes", boxes[None].astype(np.float32)),
            tensor("colours", colours),
            tensor("sure", above),
            tensor("zero", np.array(0.0, dtype=np.float32)),
            tensor("one", np.array(1.0, dtype=np.float32)),
            tensor("shape", np.array([1, 2, CELLS**2])),
        ]
        real = onnx.TensorProto.FLOAT
        picture = helper.make_tensor_value_info("picture", real, [1, 3, side, side])
        answer = helper.make_tensor_value_info("answer", real, None)
        graph = helper.make_graph(nodes, "colours", [picture], [answer], constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        if names:
            helper.set_model_props(model, {"names": names})
        path = tmp_path / "colours.onnx"
        onnx.save(model, path)
        return path

    return write


def camera(width: int, height: int) -> Camera:
    return Camera(
        width=width, height=height, fx=200.0, fy=200.0, cx=width / 2, cy=height / 2, mount=Mount.forward(0, 0, 1)
    )


def red_at(left: int, top: int) -> NDArray[np.uint8]:
    """A grey picture of 320 x 240 with a red thing of 48 x 128 pixels."""
    rgb = np.full((240, 320, 3), 90, dtype=np.uint8)
    rgb[top : top + 128, left : left + 48] = (230, 10, 10)
    return rgb


def test_a_letterbox_keeps_the_shape_and_leads_back() -> None:
    rgb = np.zeros((240, 320, 3), dtype=np.uint8)
    rgb[100:140, 200:260] = (255, 0, 0)
    picture, place = letterboxed(rgb, 640, 640)
    assert picture.shape == (1, 3, 640, 640)
    assert (place.scale, place.left, place.top) == (2.0, 0, 80)
    assert picture[0, :, 0, 0] == pytest.approx([114 / 255] * 3)
    rows, columns = np.nonzero(picture[0, 0, 80:-80] > 0.5)
    back = place.back(Box(columns.min(), rows.min() + 80.0, columns.max() + 1.0, rows.max() + 81.0))
    assert (back.left, back.top, back.right, back.bottom) == pytest.approx((200, 100, 260, 140), abs=0.5)
    small, place = letterboxed(rgb, 64, 128)
    assert (small.shape, place.left, place.top) == ((1, 3, 64, 128), 21, 0)


@pytest.mark.parametrize(
    ("shape", "classes", "expected"),
    [
        ((1, 84, 8400), 80, "columns"),
        ((1, 25200, 85), 80, "rows"),
        ((1, 300, 6), 80, "final"),
        ((1, 300, 6), 2, "final"),
        ((1, 100, 6), 1, "rows"),
        ((1, 5, 8400), 1, "columns"),
        ((1, 84, 8400), 3, None),
        ((2, 84, 8400), 80, None),
        ((1, 1000), 80, None),
    ],
)
def test_the_layout_is_told_by_the_shape(shape: tuple[int, ...], classes: int, expected: str | None) -> None:
    assert layout_of(shape, classes) == expected


@pytest.mark.parametrize("layout", ["columns", "rows", "final"])
def test_all_layouts_say_the_same(layout: Layout) -> None:
    middles = np.array([[50, 50, 20, 40], [52, 51, 20, 40], [52, 51, 20, 40], [90, 50, 20, 40], [9, 9, 2, 2]])
    scores, kinds = np.array([0.9, 0.8, 0.7, 0.6, 0.1]), np.array([0, 0, 1, 0, 0])
    each = np.zeros((5, 2))
    each[np.arange(5), kinds] = scores
    corners = np.concatenate([middles[:, :2] - middles[:, 2:] / 2, middles[:, :2] + middles[:, 2:] / 2], axis=1)
    answer = {
        "columns": np.concatenate([middles, each], axis=1).T,
        "rows": np.concatenate([middles, np.full((5, 1), 1.0), each], axis=1),
        "final": np.concatenate([corners, scores[:, None], kinds[:, None]], axis=1),
    }[str(layout)][None].astype(np.float32)
    found = decoded(answer, layout, threshold=0.25, overlap=0.45)
    assert [(one.kind, round(one.score, 3)) for one in found] == [(0, 0.9), (1, 0.7), (0, 0.6)]
    assert found[0].box == Box(40.0, 30.0, 60.0, 70.0)
    answer[0, 0] = np.nan
    decoded(answer, layout, threshold=0.25, overlap=0.45)  # a network that diverges ends nothing


@pytest.mark.slow
@pytest.mark.feature("K3")
@pytest.mark.parametrize("rows", [False, True])
def test_a_network_finds_what_is_there_where_it_is(build: Build, rows: bool) -> None:
    from dimos_streams.perception.backends.onnx import OnnxDetector

    detector = OnnxDetector(OnnxSettings(model=str(build(rows=rows)), threshold=0.6))
    assert detector.classes == ("person", "plant")
    depth = np.full((120, 160), 3.0, dtype=np.float32)
    for left, top in ((40, 60), (200, 100)):
        frame = Frame(utime=1, camera=camera(320, 240), rgb=red_at(left, top), depth=depth)
        best = detector.detect(frame)[0]
        assert best.box.centre == pytest.approx((left + 24.0, top + 64.0), abs=60)
        assert best.box.centre[0] == pytest.approx(left + 24.0, abs=20)
        assert best.label.startswith("person in a")
        assert "red" in best.label
        assert best.further_labels == (("person", best.score),)
        assert best.point is not None
        assert best.point[0] == pytest.approx(3.0)
    assert detector.detect(Frame(utime=1, camera=camera(320, 240), rgb=np.full((240, 320, 3), 90, np.uint8))) == []
    plain = OnnxDetector(OnnxSettings(model=str(build(rows=rows)), clothes=False, only=("plant",)))
    assert plain.detect(frame) == []


@pytest.mark.slow
@pytest.mark.feature("K3")
@pytest.mark.virtual_time
async def test_the_module_follows_a_person_with_a_network(build: Build) -> None:
    settings = {"model": str(build(names="")), "classes": ["person", "plant"], "only": ["person"], "threshold": 0.5}
    detector = PersonDetector({"backend": "onnx", "onnx": settings}, name="detector")
    events = [{"at_s": 0, "place": "person_red", "x": 0.6, "y": -0.9, "yaw_deg": 180}]
    async with ModuleHarness(detector, unwired=("instances", "instance_labels", "wanted_descriptions")) as harness:
        await harness.add(Simulator({"people": ["person_red"], "events": events, "furniture": []}))
        await asyncio.sleep(2.0)
        messages = harness.sent("detections")
    assert detector.statistics().failed == 0
    seen = [detection for message in messages[-10:] for detection in message.detections]
    assert len(seen) >= 10
    point = seen[-1].results[0].pose.pose.position
    assert (point.x, point.y) == (pytest.approx(2.9, abs=0.3), pytest.approx(0.0, abs=0.3))


@pytest.mark.feature("K3")
def test_what_is_wrong_with_a_file_is_said(build: Build, tmp_path: Path) -> None:
    from dimos_streams.perception.backends.onnx import OnnxDetector

    junk = tmp_path / "junk.onnx"
    junk.write_bytes(b"no network")
    for settings, text in (
        (OnnxSettings(model=str(junk)), "is no ONNX model that can be run"),
        (OnnxSettings(model="none.onnx"), "needs the path of a model's file, not 'none.onnx'"),
        (
            OnnxSettings(model=str(build(names="")), classes=("a",)),
            "answers numbers of shape (1, 6, 400), which with 1",
        ),
        (OnnxSettings(model=str(build(names=""))), "does not tell the names of its classes: set onnx.classes"),
        (OnnxSettings(model=str(build(names="[1"))), "does not tell the names of its classes"),
    ):
        with pytest.raises(UserError) as error:
            OnnxDetector(settings)
        assert text in str(error.value)


@pytest.mark.feature("K3")
def test_a_picture_of_any_size_takes_the_configured_one(build: Build) -> None:
    from dimos_streams.perception.backends.onnx import OnnxDetector

    settings = OnnxSettings(model=str(build(side="side")), size=SIDE, threshold=0.6)
    frame = Frame(utime=1, camera=camera(320, 240), rgb=red_at(40, 60))
    assert OnnxDetector(settings).detect(frame)[0].point is None


@pytest.mark.feature("K3")
def test_rows_of_an_answer_that_are_of_no_class_are_nothing(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    from dimos_streams.perception.backends import onnx

    rows = np.array([[40.0, 40.0, 60.0, 90.0, 0.9, kind] for kind in (-1, 1, 2)], dtype=np.float32)
    detector = onnx.OnnxDetector(OnnxSettings(model=str(build()), layout="final", threshold=0.6))
    monkeypatch.setattr(detector, "_run", lambda picture: rows[None])
    found = detector.detect(Frame(utime=1, camera=camera(320, 240), rgb=red_at(40, 60)))
    assert [one.label for one in found] == ["plant"]
