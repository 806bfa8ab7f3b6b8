"""People in real pixels: OpenCV's histogram-of-gradients detector, checked against depth.

Needs the extra `vision` (OpenCV 4; version 5 no longer has this detector).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dimos_streams.errors import UserError
from dimos_streams.perception.backends.clothing import dressed
from dimos_streams.perception.config import HogSettings
from dimos_streams.perception.detector import Detection, Frame
from dimos_streams.perception.geometry import Box, Camera, Point, box_point


class HogDetector:
    """Standing people and the colour of what they wear, from the colour image.

    Raises UserError when OpenCV is missing or too new. Noisy: let the tracker confirm over frames."""

    def __init__(self, settings: HogSettings | None = None) -> None:
        self._settings = settings or HogSettings()
        self._cv2 = _opencv()
        self._hog = self._cv2.HOGDescriptor()
        self._hog.setSVMDetector(self._cv2.HOGDescriptor.getDefaultPeopleDetector())

    def detect(self, frame: Frame, wanted: Sequence[str] = ()) -> list[Detection]:
        """People, best first. Labels read "person in a red shirt and blue trousers", or just "person".

        The score is 0.5 at the threshold and nears 1 with the margin. Without depth nothing is gated and no
        point is given. Raises ValueError for a frame without a colour image."""
        if frame.rgb is None:
            raise ValueError("people can only be found in a frame with a colour image")
        found: list[Detection] = []
        for box, margin in self._candidates(frame.rgb):
            if any(box.iou(better.box) > self._settings.overlap for better in found):
                continue
            detection = self._judged(frame, frame.rgb, box, margin)
            if detection is not None:
                found.append(detection)
        return found

    def close(self) -> None:
        """Do nothing: there is nothing to free."""

    def _candidates(self, rgb: NDArray[np.uint8]) -> list[tuple[Box, float]]:
        """Boxes around the bodies, pixels of the colour image, with their margins, best first."""
        settings, cv2 = self._settings, self._cv2
        large = cv2.resize(rgb, None, fx=settings.upscale, fy=settings.upscale)
        edge = settings.border
        # The descriptor was trained on the colour order BGR, which only matters for ties between channels.
        framed = cv2.copyMakeBorder(large, edge, edge, edge, edge, cv2.BORDER_REPLICATE)
        windows, margins = self._hog.detectMultiScale(
            framed, hitThreshold=settings.threshold, winStride=(8, 8), scale=1.05, groupThreshold=0
        )
        height, width = rgb.shape[:2]
        boxes = []
        for (x, y, w, h), margin in zip(windows, np.ravel(margins), strict=True):
            window = Box(x - edge, y - edge, x - edge + w, y - edge + h)
            body = window.scaled(1 / settings.upscale, 1 / settings.upscale).part(*_BODY)
            boxes.append((body.clipped(width, height), float(margin)))
        return sorted(boxes, key=lambda pair: -pair[1])

    def _judged(self, frame: Frame, rgb: NDArray[np.uint8], box: Box, margin: float) -> Detection | None:
        """The detection, or None when depth shows that no standing person is there."""
        point = None
        if frame.depth is not None:
            point = box_point(frame.camera, frame.depth, box)
            if point is None or not self._stands(frame.camera, box, point):
                return None
        score = 1.0 - 0.5 * float(np.exp(self._settings.threshold - margin))
        return Detection(box=box, label=dressed(rgb, box), score=min(1.0, max(0.0, score)), point=point)

    def _stands(self, camera: Camera, box: Box, point: Point) -> bool:
        """Return whether a box around this point has a person's height and is not on the floor or the ceiling."""
        settings = self._settings
        ahead = (np.array(point) - camera.mount.position) @ camera.mount.rotation
        height = box.height * float(ahead[2]) / camera.fy
        lowest, highest = settings.chest
        return settings.min_height <= height <= settings.max_height and lowest <= point[2] <= highest


_BODY = (0.22, 0.1, 0.78, 0.92)
"""The body's box inside a window, in fractions of it: the detector was trained with a margin around the person."""


def _opencv() -> Any:
    try:
        import cv2
    except ImportError as error:
        raise UserError(
            "the detector backend 'hog' needs OpenCV: install the extra 'vision' "
            "(pip install 'dimos-streams[vision]')"
        ) from error
    if not hasattr(cv2, "HOGDescriptor"):
        raise UserError(
            f"the detector backend 'hog' needs OpenCV 4, but {cv2.__version__!r} is installed, which has no "
            "HOG detector: install the extra 'vision' (pip install 'dimos-streams[vision]')"
        )
    return cv2
