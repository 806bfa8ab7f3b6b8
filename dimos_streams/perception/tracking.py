"""Keeps the identity of what is seen from frame to frame."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dimos_streams.messages.planar import PlanarPose
from dimos_streams.perception.assignment import assign
from dimos_streams.perception.config import TrackerSettings
from dimos_streams.perception.detector import Detection
from dimos_streams.perception.geometry import Box, Floats
from dimos_streams.person_description import match_score

_SMOOTHING = 0.6
_RATE_SMOOTHING = 0.25
_TENTATIVE_MISSES = 2
_MAX_LABELS = 16

MAX_TRACKS = 500
"""The largest number of things that are remembered: the effort for each new thing grows with it."""


@dataclass(frozen=True, slots=True)
class Tracked:
    """A detection with its identity; `label` is what the track was called most often in its life."""

    id: str
    detection: Detection
    label: str


class Tracker:
    """Assigns detections to tracks by distance in space (or overlap in the image), speed and clothes.

    Identities are "1", "2", … in the order of confirmation; the same input gives the same ones."""

    def __init__(self, settings: TrackerSettings | None = None) -> None:
        self._settings = settings or TrackerSettings()
        self._tracks: list[_Track] = []
        self._confirmed = 0
        self._poseless = True

    def update(self, detections: Sequence[Detection], utime: int, pose: PlanarPose | None = None) -> list[Tracked]:
        """The confirmed things among `detections`, in their order, with their identities.

        `pose` is the robot's in a frame that stands still, at `utime` (µs); without it the robot's own
        turning counts as motion of everything else. An instant before an earlier one (a replay that starts
        anew) makes it forget all tracks, but not the count of identities."""
        self._forget(utime, poseless=pose is None)
        pose = pose or PlanarPose()
        seen = [_Sighting(detection, _still_point(detection, pose)) for detection in detections]
        tracked = []
        for sighting, match in zip(seen, self._matches(seen, utime), strict=True):
            track = self._seen(match, sighting, utime)
            if track.id:
                tracked.append(Tracked(track.id, sighting.detection, track.label))
        return tracked

    def _forget(self, utime: int, *, poseless: bool) -> None:
        """Drops tracks that are too old or too many, and what the rest know of positions if their frame changes."""
        if any(utime < track.utime for track in self._tracks):
            self._tracks.clear()
        oldest = utime - self._settings.memory_s * 1e6
        self._tracks = [track for track in self._tracks if track.utime >= oldest]
        if len(self._tracks) > MAX_TRACKS:
            self._tracks = heapq.nlargest(MAX_TRACKS, self._tracks, key=lambda track: track.utime)
        if poseless is not self._poseless:
            self._poseless = poseless
            for track in self._tracks:
                track.point = None

    def _matches(self, seen: Sequence[_Sighting], utime: int) -> list[_Track | None]:
        """Return the track of each sighting, or None for a new thing; drop tracks that missed too often."""
        costs = [self._costs(track, seen, utime) for track in self._tracks]
        track_of = {j: self._tracks[i] for i, j in assign(costs, limit=1.0)}
        matched = {id(track) for track in track_of.values()}
        for track in self._tracks:
            track.misses += id(track) not in matched
        self._tracks = [track for track in self._tracks if track.id or track.misses <= _TENTATIVE_MISSES]
        return [track_of.get(j) for j in range(len(seen))]

    def _seen(self, track: _Track | None, sighting: _Sighting, utime: int) -> _Track:
        if track is None:
            track = _Track(utime, _Motion(_corners(sighting.detection.box)))
            self._tracks.append(track)
        track.add(sighting, utime)
        if not track.id and track.hits >= self._settings.confirm_hits:
            self._confirmed += 1
            track.id = str(self._confirmed)
        return track

    def _costs(self, track: _Track, seen: Sequence[_Sighting], utime: int) -> list[float]:
        """The cost of each sighting for a track: 0 for a perfect fit, 1 and more for one that must not be."""
        elapsed, label = (utime - track.utime) / 1e6, track.label
        place = None if track.point is None else track.point.at(elapsed)[:2]
        box = Box(*track.box.at(elapsed).tolist())
        reach = 0.6 + self._settings.max_speed * elapsed
        costs = []
        for sighting in seen:
            if place is not None and sighting.point is not None:
                misfit = float(np.linalg.norm(place - sighting.point[:2])) / reach
            else:
                misfit = _image_misfit(box, sighting.detection.box, elapsed)
            named = sighting.detection.label
            agreement = max(match_score(label, named), match_score(named, label))
            costs.append(misfit + self._settings.label_weight * (1.0 - agreement))
        return costs


@dataclass(slots=True)
class _Sighting:
    detection: Detection
    point: Floats | None


class _Motion:
    """Constant velocity, estimated by an alpha-beta filter."""

    __slots__ = ("_rate", "_value")

    def __init__(self, value: Floats) -> None:
        self._value = value
        self._rate = np.zeros_like(value)

    def at(self, elapsed: float) -> Floats:
        return self._value + self._rate * elapsed

    def add(self, value: Floats, elapsed: float) -> None:
        predicted = self.at(elapsed)
        self._value = predicted + _SMOOTHING * (value - predicted)
        if elapsed > 0.0:
            self._rate = self._rate + _RATE_SMOOTHING * (value - predicted) / max(elapsed, 0.1)


@dataclass(slots=True)
class _Track:
    utime: int
    box: _Motion
    point: _Motion | None = None
    id: str = ""
    hits: int = 0
    misses: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    """How often it was called what. Of too many the rarest is forgotten: a detector may say another one each time."""

    @property
    def label(self) -> str:
        # Equal counts: the one that was seen first.
        return self.labels.most_common(1)[0][0]

    def add(self, sighting: _Sighting, utime: int) -> None:
        elapsed = (utime - self.utime) / 1e6
        self.box.add(_corners(sighting.detection.box), elapsed)
        if sighting.point is not None:
            if self.point is None:
                self.point = _Motion(sighting.point)
            else:
                self.point.add(sighting.point, elapsed)
        self._call(sighting.detection.label)
        self.hits += 1
        self.misses = 0
        self.utime = utime

    def _call(self, label: str) -> None:
        if label not in self.labels and len(self.labels) >= _MAX_LABELS:
            del self.labels[min(self.labels, key=self.labels.__getitem__)]
        self.labels[label] += 1


def _still_point(detection: Detection, pose: PlanarPose) -> Floats | None:
    return None if detection.point is None else np.array(pose.apply(detection.point))


def _corners(box: Box) -> Floats:
    return np.array([box.left, box.top, box.right, box.bottom])


def _image_misfit(expected: Box, box: Box, elapsed: float) -> float:
    """1 - IoU, or the distance of the centres in box heights, more lenient with time; the lower one."""
    overlap = expected.iou(box)
    (x0, y0), (x1, y1) = expected.centre, box.centre
    apart = float(np.hypot(x1 - x0, y1 - y0)) / max(expected.height, box.height, 1.0)
    return min(1.0 - overlap, apart / (0.3 + elapsed))
