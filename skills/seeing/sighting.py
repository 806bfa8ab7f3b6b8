"""A detector's detections in the form in which skills work with them."""

from __future__ import annotations

import cmath
import math
from dataclasses import dataclass

from dimos_streams.messages.detections import Box, box_of, labels_of, place_of
from dimos_streams.messages.sensor_msgs import CameraInfo
from dimos_streams.messages.vision_msgs import Detection2D, Detection2DArray
from dimos_streams.person_description import MATCH_THRESHOLD, match_score


@dataclass(frozen=True, slots=True)
class Match:
    """The fit of a sighting to a description."""

    fit: float
    """The fit of the label to the description, 0..1."""
    label: str
    score: float
    """The trust of the detector in the label, 0..1."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """One thing in one frame."""

    id: str
    """The id of its track; empty if the detector does not track."""
    labels: tuple[tuple[str, float], ...]
    """The labels that it may have, with the detector's scores; the likeliest first."""
    box: Box
    point: complex | None
    """Its place on the floor, in base_link; None where the message has NaN or all zeros (no depth)."""

    @property
    def label(self) -> str:
        """The likeliest label."""
        return self.labels[0][0]

    def match(self, description: str) -> Match | None:
        """The label that fits a description best, or None if none does."""
        matches = (Match(match_score(description, label), label, score) for label, score in self.labels)
        best = max(matches, key=lambda match: (match.fit, match.score))
        return best if best.fit >= MATCH_THRESHOLD else None

    def contradicts(self, description: str) -> bool:
        """Return whether no label can be of whom a description means; one that says less than it may well be."""
        return all(match_score(description, label) == 0.0 for label, _ in self.labels)

    def bearing(self, lens: Lens) -> float:
        """The direction that it is seen in, radians to the left."""
        return lens.bearing(self.column) if self.point is None else cmath.phase(self.point)

    @property
    def column(self) -> float:
        """The column of the picture in which it is, in pixels; NaN or infinite if its box lies nowhere."""
        return (self.box[0] + self.box[2]) / 2


@dataclass(frozen=True, slots=True)
class Lens:
    """The directions of a picture's columns. The default is the stock robot's camera."""

    focal_length: float = 197.6
    centre: float = 160.0

    @classmethod
    def of(cls, info: CameraInfo | None) -> Lens:
        """The lens that ``camera_info`` gives, the stock one where it gives nothing usable."""
        return cls() if info is None or lens_fault(info) else cls(info.K[0], info.K[2])

    def bearing(self, column: float) -> float:
        """The direction of a column, radians to the left."""
        return math.atan2(self.centre - column, self.focal_length)


def lens_fault(info: CameraInfo) -> str:
    """Return why its ``K`` gives no directions, or nothing if it does; for inputs: ``In(fault=lens_fault)``."""
    if len(info.K) != 9:
        return f"its K has {len(info.K)} numbers, not 9"
    focal_length, centre = info.K[0], info.K[2]
    if not 0.0 < focal_length < math.inf:
        return f"its focal length, K[0], is {focal_length:g}; a camera's is finite and more than 0 pixels"
    if not math.isfinite(centre):
        return f"its centre, K[2], is {centre:g}; a camera's is finite"
    return ""


def sightings_of(message: Detection2DArray) -> list[Sighting]:
    """Return all detections of a frame that say what they saw, and in which direction."""
    seen = (_sighting(detection) for detection in message.detections if detection.results)
    return [sighting for sighting in seen if sighting.point is not None or math.isfinite(sighting.column)]


def _sighting(detection: Detection2D) -> Sighting:
    return Sighting(id=detection.id, labels=labels_of(detection), box=box_of(detection), point=place_of(detection))
