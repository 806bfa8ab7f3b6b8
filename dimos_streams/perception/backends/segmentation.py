"""Detections from an instance segmentation image: exact and deterministic, for simulators."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dimos_streams.perception.detector import Detection, Frame
from dimos_streams.perception.geometry import Box


class SegmentationDetector:
    """Every labelled instance whose visible part covers at least `min_pixels` of the instance image."""

    def __init__(self, min_pixels: int = 12) -> None:
        self._min_pixels = min_pixels

    def detect(self, frame: Frame, wanted: Sequence[str] = ()) -> list[Detection]:
        """One detection per visible, labelled instance, by ascending id.

        The score is 1 for a thing that shows well and falls to 0.5 at the threshold of visibility. Ids
        without a label are left out. Raises ValueError for a frame without an instance image."""
        if frame.instances is None:
            raise ValueError("segmentation needs a frame with an instance image")
        pixels = np.bincount(frame.instances.ravel(), minlength=256)
        visible = (i for i in sorted(frame.labels) if 0 < i < 256 and pixels[i] >= self._min_pixels)
        return [self._detection(frame, frame.instances, i, int(pixels[i])) for i in visible]

    def close(self) -> None:
        """Do nothing: there is nothing to free."""

    def _detection(self, frame: Frame, instances: NDArray[np.uint8], instance: int, pixels: int) -> Detection:
        mask = instances == instance
        rows, columns = np.nonzero(mask)
        small = Box(float(columns.min()), float(rows.min()), columns.max() + 1.0, rows.max() + 1.0)
        camera = frame.camera
        box = small.scaled(camera.width / instances.shape[1], camera.height / instances.shape[0])
        point = None
        if frame.depth is not None:
            if mask.shape != frame.depth.shape:
                rows, columns = np.nonzero(_resized(mask, frame.depth.shape))
            point = camera.median_point(frame.depth, rows, columns)
        score = min(1.0, 0.5 + 0.5 * (pixels - self._min_pixels) / (4.0 * self._min_pixels))
        return Detection(box=box, label=frame.labels[instance], score=score, point=point)


def _resized(mask: NDArray[np.bool_], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """The mask at the resolution of another image of the same view (nearest neighbour)."""
    rows = (np.arange(shape[0]) + 0.5) * mask.shape[0] / shape[0]
    columns = (np.arange(shape[1]) + 0.5) * mask.shape[1] / shape[1]
    return mask[np.ix_(rows.astype(np.intp), columns.astype(np.intp))]
