"""Identities on synthetic walks."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest

from dimos_streams.messages.planar import PlanarPose
from dimos_streams.perception import tracking
from dimos_streams.perception.config import TrackerSettings
from dimos_streams.perception.detector import Detection
from dimos_streams.perception.geometry import Box
from dimos_streams.perception.tracking import Tracker

RED, GREEN = "person in a red shirt", "person in a green shirt"
FRAME_US = 100_000


def seen_at(x: float, y: float, label: str = RED, *, depth: bool = True) -> Detection:
    """A person of 1.75 m as a camera at 1.1 m sees them."""
    scale = 200.0 / x
    u, v = 160.0 - y * scale, 120.0
    box = Box(u - 0.25 * scale, v - 0.65 * scale, u + 0.25 * scale, v + 1.1 * scale)
    return Detection(box=box, label=label, score=1.0, point=(x, y, 1.0) if depth else None)


class Walk:
    """Feeds a tracker frame by frame, 10 Hz."""

    def __init__(self, settings: TrackerSettings | None = None) -> None:
        self.tracker = Tracker(settings)
        self.utime = 0

    def frame(self, *seen: Detection, pose: PlanarPose | None = None) -> dict[str, str]:
        """Id by the label of the track."""
        self.utime += FRAME_US
        return {tracked.label: tracked.id for tracked in self.tracker.update(seen, self.utime, pose)}


@pytest.mark.parametrize("depth", [True, False])
def test_people_who_cross_keep_their_identities(depth: bool) -> None:
    walk = Walk()
    identities: list[Mapping[str, str]] = []
    for step in range(60):
        y = 1.5 - 0.05 * step
        identities.append(walk.frame(seen_at(3.0, y, RED, depth=depth), seen_at(3.4, -y, GREEN, depth=depth)))
    assert identities == [{RED: "1", GREEN: "2"}] * 60


@pytest.mark.parametrize("depth", [True, False])
@pytest.mark.parametrize(("frames_hidden", "kept"), [(5, True), (19, True), (21, False)])
def test_an_identity_outlives_two_seconds_out_of_sight(depth: bool, frames_hidden: int, kept: bool) -> None:
    walk = Walk()
    positions = [1.5 - 0.07 * step for step in range(60)]
    before = [walk.frame(seen_at(3.0, y, depth=depth)) for y in positions[:20]]
    assert before[-1] == {RED: "1"}
    for _ in range(frames_hidden):
        assert walk.frame() == {}
    after = walk.frame(seen_at(3.0, positions[20 + frames_hidden], depth=depth))
    assert after == {RED: "1" if kept else "2"}


def test_someone_else_who_comes_out_instead_is_someone_else() -> None:
    walk = Walk()
    for _ in range(10):
        walk.frame(seen_at(3.0, 0.0))
    for _ in range(5):
        walk.frame()
    assert walk.frame(seen_at(3.0, 0.1, GREEN)) == {GREEN: "2"}


def test_alike_people_are_distinguished_by_where_they_walk() -> None:
    tracker = Tracker()
    for step in range(40):
        y = 1.0 - 0.05 * step
        found = tracker.update([seen_at(2.5, y), seen_at(4.5, -y)], step * FRAME_US)
        assert [tracked.id for tracked in found] == ["1", "2"]


def test_a_robot_that_turns_fast_loses_nobody() -> None:
    walk = Walk()
    for step in range(30):
        yaw = 2.0 * math.sin(step / 8)
        people = {"1": (3.0, 0.4), "2": (3.0, -0.8)}
        seen = []
        for x, y in people.values():
            c, s = math.cos(-yaw), math.sin(-yaw)
            seen.append(
                Detection(box=Box(0, 0, 1, 1), label=RED, score=1.0, point=(c * x - s * y, s * x + c * y, 1.0))
            )
        found = walk.tracker.update(seen, step * FRAME_US, PlanarPose(yaw=yaw))
        assert [tracked.id for tracked in found] == list(people)


def test_odometry_that_starts_late_changes_no_identity() -> None:
    walk = Walk()
    assert walk.frame(seen_at(3.0, 0.0)) == {RED: "1"}
    assert walk.frame(seen_at(3.0, 0.0), pose=PlanarPose(-5.0, 4.0, 1.0)) == {RED: "1"}


def test_noise_gets_no_identity() -> None:
    walk = Walk(TrackerSettings(confirm_hits=3))
    rng = np.random.default_rng(7)
    seen = []
    for step in range(40):
        flash = seen_at(2.0 + 4.0 * float(rng.random()), -2.0 + 4.0 * (step % 2), GREEN)
        person = [seen_at(3.0, 0.02 * step)] if step % 4 else []
        found = walk.frame(*person, *([flash] if step % 5 == 0 else []))
        assert set(found.values()) <= {"1"}
        seen.append(bool(found))
    assert sum(seen) == 28


def test_of_too_many_things_those_are_forgotten_that_nobody_has_seen_for_longest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tracking, "MAX_TRACKS", 2)
    walk = Walk(TrackerSettings(memory_s=60.0))
    for y in (-4.0, 0.0, 4.0):
        walk.frame(seen_at(3.0, y))
    assert walk.frame(seen_at(3.0, 0.0)) == {RED: "2"}
    assert walk.frame(seen_at(3.0, -4.0)) == {RED: "4"}


def test_a_misnamed_colour_now_and_then_changes_nothing() -> None:
    walk = Walk(TrackerSettings(label_weight=0.4))
    for step in range(30):
        label = GREEN if step % 7 == 6 else RED
        assert walk.frame(seen_at(3.0, 0.02 * step, label)) == {RED: "1"}


def test_a_replay_that_starts_anew_gets_new_identities() -> None:
    tracker = Tracker()
    assert [t.id for t in tracker.update([seen_at(3.0, 0.0)], 5_000_000)] == ["1"]
    assert [t.id for t in tracker.update([seen_at(3.0, 0.0)], 1_000_000)] == ["2"]


@pytest.mark.slow
def test_the_same_input_gives_the_same_identities() -> None:
    def run() -> list[str]:
        rng = np.random.default_rng(3)
        tracker = Tracker()
        ids = []
        for step in range(50):
            spots = rng.uniform((2.0, -2.0), (5.0, 2.0), size=(4, 2)).tolist()
            ids += [t.id for t in tracker.update([seen_at(x, y) for x, y in spots], step * FRAME_US)]
        return ids

    assert run() == run()


def test_of_a_track_that_is_called_something_else_each_time_few_labels_are_kept() -> None:
    tracker = Tracker()
    for tick in range(100):
        label = RED if tick % 5 == 0 else f"person in a {tick}x shirt"
        tracked = tracker.update([seen_at(2.0, 0.0, label)], tick * 100_000)
    assert len(tracker._tracks[0].labels) <= 16
    assert tracked[0].label == RED
