"""Boxes in the image, the pinhole camera on its mount, and the planar pose of the robot."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dimos_streams.messages.planar import unit_quaternion

Point = tuple[float, float, float]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Box:
    """Axis-aligned box in pixels of the colour image, left/top inclusive, right/bottom exclusive."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        return max(0.0, self.right - self.left)

    @property
    def height(self) -> float:
        return max(0.0, self.bottom - self.top)

    @property
    def area(self) -> float:
        return self.width * self.height

    @property
    def centre(self) -> tuple[float, float]:
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    def scaled(self, x: float, y: float) -> Box:
        """The box in an image that is `x` times as wide and `y` times as high."""
        return Box(self.left * x, self.top * y, self.right * x, self.bottom * y)

    def clipped(self, width: float, height: float) -> Box:
        """The part of the box inside an image; its area is 0 when none is."""
        return Box(
            min(max(self.left, 0.0), width),
            min(max(self.top, 0.0), height),
            min(max(self.right, 0.0), width),
            min(max(self.bottom, 0.0), height),
        )

    def part(self, left: float, top: float, right: float, bottom: float) -> Box:
        """The inner box given in fractions of this one's width and height."""
        return Box(
            self.left + left * self.width,
            self.top + top * self.height,
            self.left + right * self.width,
            self.top + bottom * self.height,
        )

    def iou(self, other: Box) -> float:
        """Intersection over union, 0 for boxes without area."""
        shared = Box(
            max(self.left, other.left),
            max(self.top, other.top),
            min(self.right, other.right),
            min(self.bottom, other.bottom),
        ).area
        union = self.area + other.area - shared
        return shared / union if union > 0.0 else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Mount:
    """The camera's place: its centre in base_link (metres) and the rotation optical → base_link."""

    position: Floats
    rotation: Floats

    @classmethod
    def of_quaternion(cls, position: Point, x: float, y: float, z: float, w: float) -> Mount:
        """Return the mount for a transform base_link → optical frame, as tf carries it; its quaternion need not have
        length 1.

        Raises ValueError for a quaternion that is zero or not finite.
        """
        unit = unit_quaternion(x, y, z, w)
        if unit is None:
            raise ValueError(f"a rotation needs a finite, non-zero quaternion, not {(x, y, z, w)!r}")
        x, y, z, w = unit
        rotation = [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
        return cls(np.array(position, dtype=np.float64), np.array(rotation, dtype=np.float64))

    @classmethod
    def forward(cls, x: float, y: float, z: float, pitch: float = 0.0) -> Mount:
        """A camera that looks along the robot's x axis; positive `pitch` (radians) looks down."""
        c, s = math.cos(pitch), math.sin(pitch)
        rotation = [[0.0, -s, c], [-1.0, 0.0, 0.0], [0.0, -c, -s]]
        return cls(np.array([x, y, z], dtype=np.float64), np.array(rotation, dtype=np.float64))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Camera:
    """Pinhole intrinsics of the colour image (pixel centres at whole numbers) and the camera's mount."""

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float
    mount: Mount

    def points(self, depth: NDArray[np.float32], rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Floats:
        """Points in base_link, (n, 3) metres, seen by the given pixels of a depth image.

        `depth` is metres along the optical axis and may be smaller than the colour image; both show the
        same view. Pixels without depth (NaN, not positive) are left out."""
        z = depth[rows, columns].astype(np.float64)
        known = np.isfinite(z) & (z > 0.0)
        z, rows, columns = z[known], rows[known], columns[known]
        u = (columns + 0.5) * (self.width / depth.shape[1]) - 0.5
        v = (rows + 0.5) * (self.height / depth.shape[0]) - 0.5
        optical = np.stack([(u - self.cx) / self.fx * z, (v - self.cy) / self.fy * z, z], axis=1)
        return optical @ self.mount.rotation.T + self.mount.position

    def median_point(
        self, depth: NDArray[np.float32], rows: NDArray[np.intp], columns: NDArray[np.intp]
    ) -> Point | None:
        """The median per axis of what `points` gives, or None when no pixel has depth."""
        points = self.points(depth, rows, columns)
        if not len(points):
            return None
        x, y, z = np.median(points, axis=0)
        return float(x), float(y), float(z)


def pixels_of(box: Box, shape: tuple[int, int], width: int, height: int) -> tuple[slice, slice]:
    """Rows and columns of an image of `shape` that lie in a box given for a `width` by `height` image.

    At least one pixel, even for a thin box, as long as the box touches the image."""
    small = box.clipped(width, height).scaled(shape[1] / width, shape[0] / height)
    top, left = min(int(small.top), shape[0] - 1), min(int(small.left), shape[1] - 1)
    bottom, right = max(math.ceil(small.bottom), top + 1), max(math.ceil(small.right), left + 1)
    return slice(top, bottom), slice(left, right)


def box_point(camera: Camera, depth: NDArray[np.float32], box: Box) -> Point | None:
    """The point in base_link of what stands in the middle of a box, or None without depth there."""
    rows, columns = pixels_of(box.part(0.3, 0.2, 0.7, 0.6), depth.shape, camera.width, camera.height)
    grid = np.mgrid[rows, columns].reshape(2, -1)
    return camera.median_point(depth, grid[0], grid[1])
