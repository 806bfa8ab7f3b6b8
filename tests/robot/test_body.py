"""The simulated people's bodies hold together, and walk as people do."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dimos_streams.robot.simulation.body import SHIN, SOLE, PartPose, sitting, walking
from dimos_streams.robot.simulation.people import PERSON_YELLOW, STOCK_PEOPLE, Walker

heights = st.floats(1.4, 2.1)
phases = st.floats(0.0, 2 * math.tau)
vigours = st.floats(0.0, 1.0)


def end_of(part: PartPose, length: float) -> tuple[float, float]:
    """Forward and up: where what hangs from a joint ends."""
    return part.x - length * math.sin(part.pitch), part.z - length * math.cos(part.pitch)


@pytest.mark.slow
@given(heights, phases, vigours)
def test_who_walks_has_one_foot_on_the_floor_and_bends_knees_and_elbows_the_right_way(
    height: float, phase: float, vigour: float
) -> None:
    poses, scale = walking(height, phase, vigour), height / 1.75
    ankles = [end_of(poses[f"shin_{side}"], SHIN * scale)[1] for side in ("left", "right")]
    assert min(ankles) == pytest.approx(SOLE * scale, abs=1e-9)
    assert max(ankles) < 0.3 * height, "nobody kicks that high"
    for side, sign in (("left", 1.0), ("right", -1.0)):
        assert 0.11 * vigour <= poses[f"shin_{side}"].pitch - poses[f"thigh_{side}"].pitch < 0.95
        assert -0.5 < poses[f"forearm_{side}"].pitch - poses[f"upper_arm_{side}"].pitch < 0.0
        assert abs(poses[f"thigh_{side}"].pitch) < 0.5
        parts = [pose for name, pose in poses.items() if name.endswith(side)]
        assert all(0.05 * height < sign * pose.y < 0.13 * height for pose in parts)
    for name in ("thigh", "upper_arm"):
        assert poses[f"{name}_left"].pitch == pytest.approx(-poses[f"{name}_right"].pitch)
    assert poses["thigh_left"].pitch * poses["upper_arm_left"].pitch <= 0.0, "arms swing against legs"


@pytest.mark.slow
@given(heights, phases, vigours)
def test_half_a_turn_of_the_phase_is_the_other_foot(height: float, phase: float, vigour: float) -> None:
    one, other = walking(height, phase, vigour), walking(height, phase + math.pi, vigour)
    for part in ("thigh", "shin", "upper_arm", "forearm"):
        left, right = one[f"{part}_left"], other[f"{part}_right"]
        mirrored = (right.x, -right.y, right.z, right.pitch)
        assert (left.x, left.y, left.z, left.pitch) == pytest.approx(mirrored, abs=1e-9)


@given(heights, st.floats(0.0, math.tau))
def test_a_stride_grows_with_the_vigour(height: float, phase: float) -> None:
    def reach(vigour: float) -> float:
        poses = walking(height, phase, vigour)
        return abs(poses["thigh_left"].pitch - poses["thigh_right"].pitch)

    assert reach(0.0) == 0.0
    assert reach(1.0) == pytest.approx(2 * reach(0.5))
    assert max(reach(1.0), 0.9) == pytest.approx(0.9, abs=0.03), "at most about a right angle's half to each side"


def test_who_sits_has_the_feet_at_the_floor_and_the_hands_at_the_knees() -> None:
    seat, height = 0.44, 1.72
    poses, scale = sitting(height, seat), height / 1.75
    for side in ("left", "right"):
        assert seat < poses[f"thigh_{side}"].z < seat + 0.12
        assert end_of(poses[f"shin_{side}"], (SHIN + SOLE) * scale)[1] == pytest.approx(0.0, abs=0.1)
        knee = poses[f"shin_{side}"]
        assert knee.x == pytest.approx(0.42, abs=0.03), "the knees are ahead of the hips"
        assert math.dist(end_of(poses[f"forearm_{side}"], 0.28 * scale), (knee.x, knee.z)) < 0.25


def test_who_sits_stands_while_placed_elsewhere_and_goes_back() -> None:
    import random

    walker = Walker(PERSON_YELLOW, random.Random(1))
    at_home, seated = walker.stance, walker.limbs()
    walker.hold_at(1.0, 2.0, 0.5)
    assert walker.limbs()["trunk"].z > 0.85
    walker.resume()
    assert (walker.stance, walker.limbs()) == (at_home, seated)


@pytest.mark.slow
def test_walkers_pause_now_and_then_and_turn_no_faster_than_people_do() -> None:
    import random

    for seed in range(3):
        for person in STOCK_PEOPLE[:2]:
            walker = Walker(person, random.Random(seed))
            walked, pauses, began, yaw = [0.0], [], 0.0, walker.stance.yaw
            for tick in range(40 * 120):
                walker.step(0.025, [])
                speed = walker.stance.speed
                turned = math.remainder(walker.stance.yaw - yaw, math.tau)
                assert abs(turned) <= 2.5 * 0.025 + 1e-9
                yaw = walker.stance.yaw
                assert 0.0 <= speed <= 1.08 * person.speed + 1e-9
                if speed == 0.0 and not began:
                    began = tick * 0.025
                    walked.append(0.0)
                elif speed > 0.0 and began:
                    pauses.append(tick * 0.025 - began)
                    began = 0.0
                walked[-1] += speed * 0.025
            assert all(4.9 < way < 11.5 for way in walked[1:-1]), "from one pause to the next"
            assert all(0.5 < pause < 3.0 for pause in pauses)
            assert len(pauses) >= 4
