"""Detections by a YOLO network in an ONNX file, on the processor. Needs the extra `onnx`."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dimos_streams.common.importing import how_to_get
from dimos_streams.common.process.disk import at_home
from dimos_streams.errors import UserError
from dimos_streams.perception.backends.clothing import dressed
from dimos_streams.perception.backends.letterbox import Letterbox, letterboxed
from dimos_streams.perception.backends.yolo import Found, Layout, decoded, layout_of
from dimos_streams.perception.config import OnnxSettings
from dimos_streams.perception.detector import Detection, DetectorError, Frame
from dimos_streams.perception.geometry import box_point

PERSON = "person"


class OnnxDetector:
    """Runs the network on each frame; people get the colours of their clothes as a label.

    Raises UserError when onnxruntime, the file, or the names of its classes are missing, or the file holds something
    else than a detector."""

    def __init__(self, settings: OnnxSettings) -> None:
        self._settings = settings
        self._session = _session(settings)
        self._input = self._session.get_inputs()[0]
        self._type = _TYPES.get(self._input.type)
        if self._type is None or len(self._input.shape) != 4:
            given = f"{self._input.type} of {self._input.shape}"
            raise UserError(
                f"{settings.model!r} takes {given}, not a picture: tensor(float) of [1, 3, height, width]"
            )
        self._height, self._width = (
            side if isinstance(side, int) and side > 0 else settings.size for side in self._input.shape[2:]
        )
        self.classes = settings.classes or self._classes_of_the_file()
        self._layout = self._layout_of_the_file()

    def detect(self, frame: Frame, wanted: Sequence[str] = ()) -> list[Detection]:
        """Return what the network sees, best first. Raises DetectorError when it fails, ValueError for a frame
        without a colour image."""
        if frame.rgb is None:
            raise ValueError("a network needs a frame with a colour image")
        picture, place = letterboxed(frame.rgb, self._height, self._width)
        found = decoded(self._run(picture), self._layout, self._settings.threshold, self._settings.overlap)
        detections = [
            self._detection(frame, frame.rgb, place, one) for one in found if 0 <= one.kind < len(self.classes)
        ]
        only = self._settings.only
        return [
            detection for detection, kind in detections if detection.box.area > 0.0 and (not only or kind in only)
        ]

    def close(self) -> None:
        """Do nothing: the session goes with the detector."""

    def _detection(
        self, frame: Frame, rgb: NDArray[np.uint8], place: Letterbox, found: Found
    ) -> tuple[Detection, str]:
        camera, kind = frame.camera, self.classes[found.kind]
        box = place.back(found.box).clipped(camera.width, camera.height)
        point = None if frame.depth is None or box.area == 0.0 else box_point(camera, frame.depth, box)
        label = dressed(rgb, box) if kind == PERSON and self._settings.clothes and box.area > 0.0 else kind
        further = () if label == kind else ((kind, found.score),)
        return Detection(box=box, label=label, score=found.score, point=point, further_labels=further), kind

    def _run(self, picture: NDArray[np.float32]) -> NDArray[np.float32]:
        try:
            answers = self._session.run(None, {self._input.name: picture.astype(self._type)})
        except Exception as error:  # onnxruntime's errors have no common base
            raise DetectorError(f"{self._settings.model!r} failed: {error}") from error
        answer: NDArray[np.float32] = np.asarray(answers[0], dtype=np.float32)
        return answer

    def _classes_of_the_file(self) -> tuple[str, ...]:
        """The names that YOLO exports have in their metadata: ``{0: 'person', 1: 'bicycle'}``."""
        text = self._session.get_modelmeta().custom_metadata_map.get("names", "")
        try:
            names = ast.literal_eval(text) if text else None
        except (ValueError, SyntaxError):
            names = None
        if isinstance(names, dict) and sorted(names) == list(range(len(names))):
            return tuple(str(names[i]) for i in range(len(names)))
        raise UserError(f"{self._settings.model!r} does not tell the names of its classes: set onnx.classes")

    def _layout_of_the_file(self) -> Layout:
        """The layout of what it answers for a grey picture."""
        try:
            shape = self._run(np.full((1, 3, self._height, self._width), 0.447, dtype=np.float32)).shape
        except DetectorError as error:
            raise UserError(str(error)) from error
        layout = layout_of(shape, len(self.classes))
        if self._settings.layout != "auto":
            return self._settings.layout
        if layout is None:
            n = len(self.classes)
            raise UserError(
                f"{self._settings.model!r} answers numbers of shape {shape}, which with {n} classes is none of "
                f"(1, {4 + n}, boxes), (1, boxes, {5 + n}), (1, boxes, 6): are onnx.classes all of its classes?"
            )
        return layout


_TYPES: dict[str, Any] = {"tensor(float)": np.float32, "tensor(float16)": np.float16}


def _session(settings: OnnxSettings) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise UserError(f"the detector backend 'onnx': {how_to_get('onnxruntime')}") from error
    path = at_home(settings.model)
    if not settings.model or not path.is_file():
        raise UserError(f"the detector backend 'onnx' needs the path of a model's file, not {settings.model!r}")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = settings.threads
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # as above
        raise UserError(f"{settings.model!r} is no ONNX model that can be run: {error}") from error
