"""The content of a detection: the place of the thing, its box in the picture, and what it is called."""

from __future__ import annotations

import math

from dimos_streams.messages.planar import FARTHEST
from dimos_streams.messages.vision_msgs import Detection2D

Box = tuple[float, float, float, float]
"""Left, top, right, bottom, in pixels of the colour image."""
MAX_LABEL = 500
"""The number of characters of a label that are read: anybody on the bus may say more, in one frame after another."""


def labels_of(detection: Detection2D) -> tuple[tuple[str, float], ...]:
    """The labels that the thing may have, cut to ``MAX_LABEL``, with the detector's scores; the likeliest first."""
    hypotheses = (result.hypothesis for result in detection.results)
    return tuple((hypothesis.class_id[:MAX_LABEL], hypothesis.score) for hypothesis in hypotheses)


def place_of(detection: Detection2D) -> complex | None:
    """The thing's place on the floor in base_link, in metres as x + iy; None if the message does not say it."""
    if not detection.results:
        return None
    at = detection.results[0].pose.pose.position
    # Robots without depth leave the pose as it is made, all zero, which no thing outside of the robot can have.
    known = math.hypot(at.x, at.y) <= FARTHEST and (at.x, at.y, at.z) != (0.0, 0.0, 0.0)
    return complex(at.x, at.y) if known else None


def box_of(detection: Detection2D) -> Box:
    """The box around the thing, as the message has it: it may lie nowhere, with numbers that are not finite."""
    box, centre = detection.bbox, detection.bbox.center.position
    left, top = centre.x - box.size_x / 2, centre.y - box.size_y / 2
    return left, top, left + box.size_x, top + box.size_y


def title_of(detection: Detection2D) -> str:
    """The id of the thing's track, if it has one, and its likeliest label, or ``?``."""
    label = detection.results[0].hypothesis.class_id if detection.results else "?"
    return f"{detection.id} {label[:MAX_LABEL]}".strip()
