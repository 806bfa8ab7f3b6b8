"""The protocol of detectors: what one is given, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dimos_streams.common.secrets import redacted
from dimos_streams.errors import DimosStreamsError
from dimos_streams.perception.geometry import Box, Camera, Point


class DetectorError(DimosStreamsError):
    """The error of a detector that could not judge one frame; the next one may well succeed."""

    def __init__(self, message: str) -> None:
        super().__init__(redacted(message))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Frame:
    """The images of one instant. They show the same view, at whatever resolution each has."""

    utime: int
    """The time at which the images were taken, in µs since the epoch."""
    camera: Camera
    """The intrinsics for the colour image, also when that image itself is absent."""
    rgb: NDArray[np.uint8] | None = None
    """The colours: (height, width, 3) uint8."""
    depth: NDArray[np.float32] | None = None
    """The distances along the optical axis, in metres, NaN where unknown."""
    instances: NDArray[np.uint8] | None = None
    """The id of the instance per pixel, uint8, 0 for the background."""
    labels: Mapping[int, str] = field(default_factory=dict)
    """What the instances' ids stand for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """One thing seen in one frame."""

    box: Box
    """The box in pixels of the colour image."""
    label: str
    """What it looks like, the detector's best words."""
    score: float
    """The score, 0 to 1."""
    point: Point | None = None
    """The median point of what is visible of it, base_link, metres; None when depth is unknown."""
    further_labels: tuple[tuple[str, float], ...] = ()
    """Other labels with their scores, best first."""


PICTURES = ("color_image", "instances")
"""The pictures that a detector may look at. The depth image comes with either where it is wired."""


class Detector(Protocol):
    """Finds things in frames. Called from one thread at a time; may keep state between frames.

    A class of your own (``backend: "package.module:Class"``) is made with the settings in ``options``, and may say
    in ``inputs`` which inputs of the module must be wired, the picture first; without it that is the colour image.
    It tells boxes with labels and scores. Where they are in the room, and which was there before, is found here."""

    def detect(self, frame: Frame, wanted: Sequence[str]) -> list[Detection]:
        """The detections in `frame`; detectors that need a prompt look for the descriptions in `wanted`.

        Raises DetectorError when this frame can't be judged, ValueError when it lacks an image it needs."""
        ...

    def close(self) -> None:
        """Free what the detector holds. Closing twice is fine."""
        ...
