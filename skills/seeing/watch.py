"""Keeps an eye on one person among all that a detector sees. Free of I/O."""

from __future__ import annotations

from dimos_streams.skills.moving.planar import Pose
from dimos_streams.skills.moving.pose_history import PoseHistory
from dimos_streams.skills.moving.pursuit import FASTEST, Target
from dimos_streams.skills.seeing.frames import DetectionFrame
from dimos_streams.skills.seeing.sighting import Sighting, sightings_of

REACH = 1.0
"""Metres from where the person is expected, within which another track of fitting looks is the same person."""
CONTINUOUS_S = 0.7
"""Seconds without a sighting, up to which a track's id surely means the same: no detector restarts that fast."""


class PersonWatch:
    """Finds the person who matches a description in one frame after another.

    Once found, the person is known by the track's id, also while the label is wrong for a while. A detector that was
    restarted may give the id to somebody else: it counts for nothing where the person can't be by now, nor, after a
    gap, with a label that contradicts the description. Another track that matches takes over if it is where the
    person should be, or anywhere after ``let_go``. Times are the loop's, in seconds, but for those of the target:
    they are the detector's instants.
    """

    def __init__(self, description: str, poses: PoseHistory, now: float) -> None:
        self.sighting: Sighting | None = None
        """The latest sighting of the person."""
        self._target: Target | None = None
        self._target_frame = 0
        """The still frame in which the target is, as ``PoseHistory`` numbers them."""
        self._seen_at = now
        self._awaited_from = now
        """The beginning of the time in which the person could have been seen and was not."""
        self.fresh_at = now
        """The time at which the last frame came."""
        self.others: list[str] = []
        """The labels of whatever else the latest frame shows."""
        self._description, self._poses = description, poses
        self._anybody = True
        self._frame: DetectionFrame | None = None
        self._sighted_at = 0
        """The instant of the latest sighting, µs."""

    @property
    def target(self) -> Target | None:
        """The person's place and velocity, or None while depth has never been known since odometry last jumped."""
        return self._target if self._target_frame == self._poses.frames else None

    def unseen_s(self, now: float) -> float:
        """Return the seconds for which the person, or anybody who matches, has not been seen."""
        return now - self._seen_at

    def awaited_s(self, now: float) -> float:
        """Return the seconds for which the person, or anybody who matches, has not been seen, without those in which
        the robot could not look for them."""
        return now - self._awaited_from

    def let_go(self) -> None:
        """Take anybody who matches from now on: the person is lost."""
        self._anybody = True

    def blind_s(self, now: float) -> float:
        """Return the seconds since the last new frame came."""
        return now - self.fresh_at

    def target_time(self, now: float) -> float:
        """The time of the target: the newest frame's and what has passed since it was taken."""
        if self._frame is None:
            return 0.0
        age_us = self._poses.age_us(self._frame.stamp, self._frame.arrived) or 0
        return (self._frame.instant + age_us + round((now - self._frame.arrived) * 1e6)) / 1e6

    def grant_time(self, now: float) -> None:
        """Begin to wait for the person anew, after a time in which nothing could be seen."""
        self._awaited_from = now

    def pass_over(self, seconds: float) -> None:
        """Leave the last seconds out of the time for which the person is awaited."""
        self._awaited_from += seconds

    def see(self, frame: DetectionFrame, now: float) -> bool:
        """Look at a frame, which must be newer than those before, and return whether it shows the person. In one from
        before the poses that are known nobody is recognised."""
        self._frame, self.fresh_at = frame, now
        pose = self._poses.at(frame.stamp, frame.arrived)
        seen = sightings_of(frame.message)
        chosen = None if pose is None else self._choose(frame, seen, pose)
        self.others = [sighting.label for sighting in seen if sighting is not chosen]
        if chosen is None or pose is None:
            return False
        self._follow_up(frame, chosen, pose, now)
        return True

    def _choose(self, frame: DetectionFrame, seen: list[Sighting], pose: Pose) -> Sighting | None:
        expected = self._expected(frame, pose)
        for sighting in seen:
            if self._is_known(frame, sighting, expected):
                return sighting
        matches = [(sighting, sighting.match(self._description)) for sighting in seen]
        fitting = [
            (-match.fit, _apart(sighting, expected or 0j), -match.score, sighting)
            for sighting, match in matches
            if match is not None and (expected is None or _apart(sighting, expected) <= REACH)
        ]
        return min(fitting, key=lambda candidate: candidate[:3])[3] if fitting else None

    def _is_known(self, frame: DetectionFrame, sighting: Sighting, expected: complex | None) -> bool:
        """Return whether a sighting has the person's track, and may be the person."""
        if self.sighting is None or not sighting.id or sighting.id != self.sighting.id:
            return False
        if frame.instant - self._sighted_at > CONTINUOUS_S * 1e6 and sighting.contradicts(self._description):
            return False
        if self.target is None or expected is None:
            return True
        reach = REACH + FASTEST * (frame.instant / 1e6 - self.target.seen_at)
        return _apart(sighting, expected) <= reach

    def _expected(self, frame: DetectionFrame, pose: Pose) -> complex | None:
        """Return the point of base_link where another track must be to be the same person, or None for any point."""
        if self.target is None or self._anybody:
            return None
        return pose.to_base(self.target.expected(frame.instant / 1e6))

    def _follow_up(self, frame: DetectionFrame, sighting: Sighting, pose: Pose, now: float) -> None:
        if sighting.point is not None:
            point = pose.from_base(sighting.point)
            if self.target is None or self._anybody:
                self._target, self._target_frame = Target(point, frame.instant / 1e6), self._poses.frames
            else:
                self.target.add(point, frame.instant / 1e6)
        self.sighting, self._anybody = sighting, False
        self._seen_at = self._awaited_from = now
        self._sighted_at = frame.instant


def _apart(sighting: Sighting, point: complex) -> float:
    """Return the metres between them, or 0 where depth is unknown."""
    return 0.0 if sighting.point is None else abs(sighting.point - point)
