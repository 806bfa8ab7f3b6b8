"""A detector of one's own: whoever wears a colour that it was told is one patch of it in the picture."""

from collections.abc import Mapping, Sequence

import numpy as np

from dimos_streams.perception.detector import Detection, Frame
from dimos_streams.perception.geometry import Box


class Blobs:
    """Finds each colour's pixels by the direction of the colour, so that light and shade don't matter."""

    inputs = ("color_image",)

    def __init__(self, colours: Mapping[str, Sequence[float]], least_pixels: int = 40) -> None:
        self._directions = {name: _unit(np.array(colour, dtype=np.float32)) for name, colour in colours.items()}
        self._least_pixels = least_pixels

    def detect(self, frame: Frame, wanted: Sequence[str]) -> list[Detection]:
        assert frame.rgb is not None
        picture = _unit(frame.rgb.astype(np.float32))
        found = []
        for name, direction in self._directions.items():
            rows, columns = np.nonzero(picture @ direction > 0.995)
            if len(rows) < self._least_pixels:
                continue
            left, right = np.percentile(columns, (5, 95))
            top, bottom = np.percentile(rows, (5, 95))
            box = Box(float(left), float(top), float(right) + 1, float(bottom) + 1)
            found.append(Detection(box=box, label=f"person in a {name} shirt", score=0.9))
        return found

    def close(self) -> None:
        """Nothing to let go."""


def _unit(colours: np.ndarray) -> np.ndarray:
    return colours / np.maximum(np.linalg.norm(colours, axis=-1, keepdims=True), 1e-6)
