"""The body of a simulated person: the look of its limbs, and their poses while it walks.

Frame of a person: origin on the floor below the hips, x forward, y left, z up. Metres, radians.
"""

import functools
import math
from dataclasses import dataclass
from typing import Literal

Colour = tuple[int, int, int]

PARTS = (
    "trunk",
    "upper_arm_left",
    "forearm_left",
    "upper_arm_right",
    "forearm_right",
    "thigh_left",
    "shin_left",
    "thigh_right",
    "shin_right",
)
TRUNK = ("trunk",)

BUILD_HEIGHT = 1.75
HIP, SHOULDER, THIGH, SHIN, UPPER_ARM = 0.92, 1.42, 0.43, 0.44, 0.28
HIP_HALF, SHOULDER_HALF = 0.09, 0.2
SOLE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyAppearance:
    """A person's look. `height` in metres, colours as RGB 0..255."""

    height: float
    shirt: Colour
    trousers: Colour
    skin: Colour = (226, 178, 146)
    hair: Colour = (62, 42, 30)
    shoes: Colour = (44, 40, 40)


@dataclass(frozen=True, slots=True)
class Limb:
    """One geom of a part, in the part's frame: `at` is a centre, or both ends of a capsule."""

    shape: Literal["capsule", "ellipsoid", "sphere"]
    size: tuple[float, ...]
    at: tuple[float, ...]
    colour: Colour


@dataclass(frozen=True, slots=True)
class PartPose:
    """The pose of a part's frame: position in the person's frame, and its turn about the y axis."""

    x: float
    y: float
    z: float
    pitch: float


def limbs(look: BodyAppearance) -> dict[str, tuple[Limb, ...]]:
    """Geoms of each part. Arms and legs hang down (-z) from their joint; the trunk's origin is the hips."""
    s = look.height / BUILD_HEIGHT

    def hanging(radius: float, length: float, colour: Colour) -> Limb:
        return Limb("capsule", (radius * s,), (0.0, 0.0, 0.0, 0.0, 0.0, -length * s), colour)

    hand = Limb("sphere", (0.047 * s,), (0.0, 0.0, -0.28 * s), look.skin)
    forearm = (hanging(0.042, 0.23, look.skin), hand)
    shoe = Limb("ellipsoid", (0.13 * s, 0.05 * s, 0.05 * s), (0.05 * s, 0.0, -SHIN * s), look.shoes)
    upper_arm, thigh, shin = (
        (hanging(0.055, UPPER_ARM, look.shirt),),
        (hanging(0.083, THIGH, look.trousers),),
        (hanging(0.06, SHIN - 0.05, look.trousers), shoe),
    )
    return {
        "trunk": _trunk(look, s),
        "upper_arm_left": upper_arm,
        "forearm_left": forearm,
        "upper_arm_right": upper_arm,
        "forearm_right": forearm,
        "thigh_left": thigh,
        "shin_left": shin,
        "thigh_right": thigh,
        "shin_right": shin,
    }


def _trunk(look: BodyAppearance, s: float) -> tuple[Limb, ...]:
    """Hips, chest, shoulders, neck and head, scaled by ``s``."""

    def ellipsoid(size: tuple[float, float, float], z: float, colour: Colour, x: float = 0.0) -> Limb:
        return Limb("ellipsoid", (size[0] * s, size[1] * s, size[2] * s), (x * s, 0.0, z * s), colour)

    shoulders = (0.0, -0.15 * s, 0.485 * s, 0.0, 0.15 * s, 0.485 * s)
    return (
        ellipsoid((0.12, 0.175, 0.13), 0.02, look.trousers),
        ellipsoid((0.115, 0.165, 0.27), 0.2, look.shirt),
        ellipsoid((0.12, 0.185, 0.2), 0.37, look.shirt),
        Limb("capsule", (0.064 * s,), shoulders, look.shirt),
        Limb("capsule", (0.05 * s,), (0.0, 0.0, 0.5 * s, 0.01, 0.0, 0.64 * s), look.skin),
        ellipsoid((0.095, 0.08, 0.12), 0.71, look.skin, x=0.015),
        ellipsoid((0.102, 0.088, 0.085), 0.755, look.hair, x=-0.014),
        *(Limb("sphere", (0.013 * s,), (0.1 * s, y * s, 0.715 * s), look.hair) for y in (-0.032, 0.032)),
    )


def walking(height: float, phase: float, vigour: float) -> dict[str, PartPose]:
    """Poses of all parts at this phase (radians, one turn is two steps); vigour 0 stands, 1 strides."""
    legs = _striding(phase, vigour)
    left = -legs["left"][0]
    arms = {"left": (0.75 * left, -0.12 - 0.3 * vigour), "right": (-0.75 * left, -0.12 - 0.3 * vigour)}
    return _assemble(height, legs, arms, _hip(height, legs))


def walking_trunk(height: float, phase: float, vigour: float) -> PartPose:
    """The pose of the trunk alone."""
    return PartPose(0.0, 0.0, _hip(height, _striding(phase, vigour)), 0.0)


@functools.cache
def sitting(height: float, seat: float) -> dict[str, PartPose]:
    """Poses of all parts of a person who sits on a seat of this height, hands on the knees."""
    legs = {"left": (-1.5, 1.5), "right": (-1.5, 1.5)}
    arms = {"left": (-0.45, -0.75), "right": (-0.45, -0.75)}
    return _assemble(height, legs, arms, seat + 0.09)


def _striding(phase: float, vigour: float) -> dict[str, tuple[float, float]]:
    """Pitch of each thigh, and bend of its knee."""
    left = 0.46 * vigour * math.sin(phase)
    return {
        "left": (-left, vigour * _knee(phase)),
        "right": (left, vigour * _knee(phase + math.pi)),
    }


def _hip(height: float, legs: dict[str, tuple[float, float]]) -> float:
    """The height of the hips if the lower foot touches the floor."""
    s = height / BUILD_HEIGHT
    return max(s * (THIGH * math.cos(t) + SHIN * math.cos(t + k) + SOLE) for t, k in legs.values())


def _knee(phase: float) -> float:
    """Bend of the knee: most while the leg swings forward, little while it carries."""
    lift = max(0.0, math.cos(phase + 0.35))
    return 0.12 + 0.78 * lift * math.sqrt(lift)


def _assemble(
    height: float,
    legs: dict[str, tuple[float, float]],
    arms: dict[str, tuple[float, float]],
    hip: float,
) -> dict[str, PartPose]:
    """Chain the joints, from the height of the hips on."""
    s = height / BUILD_HEIGHT
    poses = {"trunk": PartPose(0.0, 0.0, hip, 0.0)}
    for side, y in (("left", 1.0), ("right", -1.0)):
        thigh, knee = legs[side]
        poses[f"thigh_{side}"] = PartPose(0.0, y * HIP_HALF * s, hip, thigh)
        poses[f"shin_{side}"] = _below(poses[f"thigh_{side}"], THIGH * s, knee)
        shoulder, elbow = arms[side]
        top = hip + (SHOULDER - HIP) * s
        poses[f"upper_arm_{side}"] = PartPose(0.0, y * SHOULDER_HALF * s, top, shoulder)
        poses[f"forearm_{side}"] = _below(poses[f"upper_arm_{side}"], UPPER_ARM * s, elbow)
    return poses


def _below(joint: PartPose, length: float, bend: float) -> PartPose:
    """The part that hangs from the end of another one, turned against it by ``bend`` radians."""
    return PartPose(
        joint.x - length * math.sin(joint.pitch),
        joint.y,
        joint.z - length * math.cos(joint.pitch),
        joint.pitch + bend,
    )
