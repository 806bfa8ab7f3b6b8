"""A picture in the size that a network takes: enlarged or reduced as a whole, with grey bars beside it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dimos_streams.perception.geometry import Box

GREY = 114.0


@dataclass(frozen=True, slots=True)
class Letterbox:
    """The place of a picture in the network's: its scale, and its distance from the left and upper edge (pixels)."""

    scale: float
    left: int
    top: int

    def back(self, box: Box) -> Box:
        """Return a box of the network's picture as one of the camera's."""
        left, top, scale = self.left, self.top, self.scale
        return Box(
            (box.left - left) / scale, (box.top - top) / scale, (box.right - left) / scale, (box.bottom - top) / scale
        )


def letterboxed(rgb: NDArray[np.uint8], height: int, width: int) -> tuple[NDArray[np.float32], Letterbox]:
    """Return the picture as a network takes it, (1, 3, height, width), 0..1, and its place there."""
    scale = min(height / rgb.shape[0], width / rgb.shape[1])
    rows, columns = max(1, round(rgb.shape[0] * scale)), max(1, round(rgb.shape[1] * scale))
    place = Letterbox(scale, (width - columns) // 2, (height - rows) // 2)
    picture = np.full((height, width, 3), GREY, dtype=np.float32)
    picture[place.top : place.top + rows, place.left : place.left + columns] = _resized(rgb, rows, columns)
    return np.ascontiguousarray(picture.transpose(2, 0, 1)[None]) / np.float32(255.0), place


def _resized(rgb: NDArray[np.uint8], rows: int, columns: int) -> NDArray[np.float32]:
    """Return the picture in another size, bilinear, one axis after the other."""
    picture = rgb.astype(np.float32)
    for axis, wanted in ((0, rows), (1, columns)):
        now = picture.shape[axis]
        if now == wanted:
            continue
        at = np.clip((np.arange(wanted) + 0.5) * now / wanted - 0.5, 0.0, now - 1.0)
        low = at.astype(np.intp)
        share = (at - low).astype(np.float32).reshape((-1, 1, 1) if axis == 0 else (1, -1, 1))
        high = np.minimum(low + 1, now - 1)
        picture = picture.take(low, axis) * (1 - share) + picture.take(high, axis) * share
    return picture
