"""A detector of somebody else's, by the name of its class, behind a check of what it answers."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Mapping, Sequence
from typing import Any

from dimos_streams.common.importing import import_attribute, kind_of
from dimos_streams.errors import UserError
from dimos_streams.perception.detector import PICTURES, Detection, Detector, DetectorError, Frame
from dimos_streams.perception.geometry import Box, box_point

_INPUTS = {"color_image", "instances", "instance_labels", "depth_image", "wanted_descriptions"}


class OwnDetector:
    """Makes the detector that a reference names, and gives what it answers its place in the room.

    Raises UserError when there is no such class, it is no detector, or it can't be made with these options."""

    def __init__(self, reference: str, options: Mapping[str, Any]) -> None:
        self._reference = reference
        cls = load_class(reference)
        try:
            self._detector: Detector = cls(**options)
        except UserError:
            raise
        except Exception as error:  # somebody's constructor may raise anything
            why = f"{type(error).__name__}: {error}"
            raise UserError(f"{reference!r} can't be made with options {dict(options)!r}: {why}") from error

    def detect(self, frame: Frame, wanted: Sequence[str] = ()) -> list[Detection]:
        """Return what the detector sees, with boxes cut to the image. Where it tells no point and there is depth, the
        point is what stands in the middle of the box. Raises DetectorError when it answers something else than
        detections."""
        found = self._detector.detect(frame, wanted)
        if not isinstance(found, list | tuple):
            raise DetectorError(f"{self._reference!r} answered {type(found).__name__}, not a list")
        placed = (self._placed(frame, item) for item in found)
        return [detection for detection in placed if detection.box.area > 0.0]

    def close(self) -> None:
        """Close the detector."""
        self._detector.close()

    def _placed(self, frame: Frame, item: object) -> Detection:
        fault = _fault(item)
        if fault or not isinstance(item, Detection):
            raise DetectorError(f"{self._reference!r} answered {str(item)[:200]}: {fault}")
        camera = frame.camera
        box = item.box
        if box.width > 2 * camera.width or box.height > 2 * camera.height:
            sizes = f"{box.width:.0f}x{box.height:.0f} pixels large, and the picture {camera.width}x{camera.height}"
            raise DetectorError(f"{self._reference!r} answered {str(item)[:200]}: its box is {sizes}")
        box = box.clipped(camera.width, camera.height)
        point = item.point
        if point is None and frame.depth is not None and box.area > 0.0:
            point = box_point(camera, frame.depth, box)
        return dataclasses.replace(item, box=box, score=float(item.score), point=point)


def load_class(reference: str) -> type[Any]:
    """Return the class that a reference names. Raises UserError if there is none, or it lacks what a Detector has."""
    found = import_attribute(reference)
    if not isinstance(found, type):
        raise UserError(f"{reference!r} is not a class but {kind_of(found)}")
    missing = [name for name in ("detect", "close") if not callable(getattr(found, name, None))]
    if missing:
        raise UserError(f"{reference!r} is no detector: it lacks {' and '.join(f'{name}()' for name in missing)}")
    return found


def inputs_of(cls: type[Any], reference: str) -> tuple[str, ...]:
    """Return the inputs that must be wired: a class's `inputs`, else the colour image. Raises UserError."""
    inputs = getattr(cls, "inputs", ("color_image",))
    if not isinstance(inputs, tuple | list) or not inputs or inputs[0] not in PICTURES or not set(inputs) <= _INPUTS:
        raise UserError(
            f"{reference!r} has inputs = {inputs!r}; it must be a tuple that begins with one of "
            f"{', '.join(PICTURES)}, of {', '.join(sorted(_INPUTS))}"
        )
    return tuple(inputs)


def fault_of_options(reference: str, options: Mapping[str, Any]) -> str:
    """Return why a class can't take these options; empty if it can."""
    signature = inspect.signature(load_class(reference))
    try:
        signature.bind(**options)
    except TypeError as error:
        return f"{reference!r} can't take options {dict(options)!r}: {error}; it has {signature}"
    return ""


def _fault(item: object) -> str:
    """Return what is wrong with a detection; empty if nothing is."""
    if not isinstance(item, Detection):
        return "that is no Detection"
    if not isinstance(item.box, Box) or not all(map(_finite, dataclasses.astuple(item.box))):
        return "its box is no Box of finite pixels"
    if not isinstance(item.label, str) or not item.label:
        return "its label is no text"
    if not (_finite(item.score) and 0.0 <= item.score <= 1.0):
        return "its score is not between 0 and 1"
    if item.point is not None and not (len(item.point) == 3 and all(map(_finite, item.point))):
        return "its point is not three finite numbers, in metres"
    return ""


def _finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except TypeError:
        return False
