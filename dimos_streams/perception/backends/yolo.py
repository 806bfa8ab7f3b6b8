"""The answers of YOLO networks as boxes: three layouts of numbers, and the suppression of what is found twice."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dimos_streams.perception.geometry import Box

Layout = Literal["auto", "columns", "rows", "final"]
"""``columns``: (1, 4 + classes, boxes), of YOLOv8, v9, v11, v12. ``rows``: (1, boxes, 5 + classes), of v5 and v7.
``final``: (1, boxes, 6), of v10, v26 and exports with suppression inside."""
MAX_CANDIDATES = 1000
Floats = NDArray[np.float32]


class Found(NamedTuple):
    """A box in the network's picture, the number of its class, and its score."""

    box: Box
    kind: int
    score: float


def layout_of(shape: tuple[int, ...], classes: int) -> Layout | None:
    """The layout of an answer of this shape, or None if it is none of them."""
    if len(shape) != 3 or shape[0] != 1:
        return None
    if shape[2] == 6 and classes != 1:
        return "final"
    if shape[2] == 5 + classes:
        return "rows"
    return "columns" if shape[1] == 4 + classes else None


def decoded(answer: Floats, layout: Layout, threshold: float, overlap: float) -> list[Found]:
    """Return the boxes with at least this score, best first. Of boxes of one class that overlap by more than
    ``overlap``, the best one stays."""
    if layout == "final":
        rows = answer[0][np.isfinite(answer[0]).all(axis=1)]
        corners, scores, kinds = rows[:, :4], rows[:, 4], rows[:, 5].astype(np.intp)
    else:
        rows = answer[0].T if layout == "columns" else answer[0]
        rows = rows[np.isfinite(rows).all(axis=1)]
        of_classes = rows[:, 4:] if layout == "columns" else rows[:, 5:] * rows[:, 4:5]
        kinds = of_classes.argmax(axis=1)
        scores = of_classes[np.arange(len(rows)), kinds]
        middles, halves = rows[:, :2], rows[:, 2:4] / 2
        corners = np.concatenate([middles - halves, middles + halves], axis=1)
    best = np.argsort(-scores, kind="stable")[:MAX_CANDIDATES]
    best = best[scores[best] >= threshold]
    kept = _suppressed(corners[best], kinds[best], overlap)
    return [
        Found(Box(*map(float, corners[i])), int(kinds[i]), min(1.0, max(0.0, float(scores[i])))) for i in best[kept]
    ]


def _suppressed(corners: Floats, kinds: NDArray[np.intp], overlap: float) -> list[int]:
    """Return the indices of the boxes, best first, that no better one of their class covers."""
    areas = (corners[:, 2:] - corners[:, :2]).clip(0.0).prod(axis=1)
    alive = np.ones(len(corners), dtype=bool)
    kept: list[int] = []
    for i in range(len(corners)):
        if not alive[i]:
            continue
        kept.append(i)
        shared = (
            (np.minimum(corners[i, 2:], corners[:, 2:]) - np.maximum(corners[i, :2], corners[:, :2]))
            .clip(0.0)
            .prod(axis=1)
        )
        union = areas[i] + areas - shared
        alive &= ~((kinds == kinds[i]) & (shared > overlap * np.maximum(union, 1e-9)))
    return kept
