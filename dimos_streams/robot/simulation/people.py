"""The people of the simulated room, and the way they walk their rounds.

A walker follows a closed, smooth path. It keeps to the path, up to ``MAX_SIDE_STEP`` beside it, so paths laid
out with that much room never meet furniture; it side-steps what is in its way and waits if that does not help.
"""

from __future__ import annotations

import bisect
import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from dimos_streams.robot.simulation.body import BodyAppearance, PartPose, sitting, walking, walking_trunk

MAX_SIDE_STEP = 0.55
BODY_RADIUS = 0.25
LOOK_AHEAD = 1.7
PERSONAL_SPACE = 0.45
SIDE_STEP_SPEED = 0.5
WALK_ACCELERATION = 1.2
STRIDE_PER_HEIGHT = 0.72
FULL_SWING_SPEED = 0.7
"""The speed, in m/s, from which on limbs swing as far as they do."""
_ROUNDINGS = 4
"""The number of times that the corners of a walk are cut off."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A person of the cast. ``description`` is what a detector calls them.

    A walker has a ``path`` (corners of a closed loop, metres) and a ``speed`` (m/s); anyone else stays at ``place``
    (x, y, yaw), on a seat of height ``seat`` if that is given.
    """

    name: str
    description: str
    appearance: BodyAppearance
    path: tuple[Point, ...] = ()
    speed: float = 0.7
    place: tuple[float, float, float] = (0.0, 0.0, 0.0)
    seat: float | None = None


@dataclass(frozen=True, slots=True)
class Stance:
    """A person's pose (world frame) and walking speed in m/s."""

    x: float
    y: float
    yaw: float
    speed: float


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Something round that a walker does not run into."""

    x: float
    y: float
    radius: float


PERSON_RED = Person(
    name="person_red",
    description="person in a red shirt and blue trousers",
    appearance=BodyAppearance(height=1.78, shirt=(206, 40, 40), trousers=(44, 78, 168)),
    path=((-3.6, -2.3), (3.3, -2.3), (3.4, 0.35), (-0.2, 0.5), (-3.6, 0.6)),
    speed=0.7,
)
PERSON_GREEN = Person(
    name="person_green",
    description="person in a green shirt and black trousers",
    appearance=BodyAppearance(
        height=1.68, shirt=(44, 152, 66), trousers=(34, 34, 38), skin=(150, 104, 74), hair=(28, 22, 20)
    ),
    path=((-0.8, 3.0), (0.9, 3.0), (0.9, -1.3), (-1.1, -1.4)),
    speed=0.6,
)
PERSON_YELLOW = Person(
    name="person_yellow",
    description="person in a yellow shirt and grey trousers",
    appearance=BodyAppearance(
        height=1.72, shirt=(236, 196, 48), trousers=(128, 130, 136), hair=(150, 104, 52), shoes=(120, 60, 40)
    ),
    place=(-3.05, 3.42, -math.pi / 2),
    seat=0.44,
)
STOCK_PEOPLE: tuple[Person, ...] = (PERSON_RED, PERSON_GREEN, PERSON_YELLOW)


class Loop:
    """A closed polyline with rounded corners, asked by the length walked along it."""

    def __init__(self, corners: Sequence[Point]) -> None:
        points = list(corners)
        for _ in range(_ROUNDINGS):
            points = _cut_corners(points)
        ends = [*points[1:], points[0]]
        self._edges = [(a, b) for a, b in zip(points, ends, strict=True) if a != b]
        self._starts = [0.0, *itertools.accumulate(math.dist(a, b) for a, b in self._edges)]
        self.length = self._starts.pop()

    def at(self, s: float) -> tuple[float, float, float]:
        """Position and direction (x, y, yaw) after s metres, round and round."""
        s %= self.length
        index = bisect.bisect_right(self._starts, s) - 1
        (ax, ay), (bx, by) = self._edges[index]
        share = (s - self._starts[index]) / math.dist((ax, ay), (bx, by))
        return ax + share * (bx - ax), ay + share * (by - ay), math.atan2(by - ay, bx - ax)


@dataclass(slots=True)
class _Pauses:
    """The pauses of a walker, in metres walked and seconds: drawn from its own generator."""

    generator: random.Random
    next_at: float = 0.0
    remaining: float = 0.0

    def draw(self, walked: float) -> None:
        self.next_at = walked + self.generator.uniform(5.0, 11.0)
        self.remaining = self.generator.uniform(1.0, 2.5)

    def active(self, walked: float, dt: float) -> bool:
        if walked < self.next_at:
            return False
        self.remaining -= dt
        if self.remaining <= 0.0:
            self.draw(walked)
        return True


@dataclass(slots=True)
class Walker:
    """One person in motion. Everything that varies between runs comes from ``generator``."""

    person: Person
    generator: random.Random
    hidden: bool = False
    stance: Stance = field(init=False)
    _loop: Loop | None = field(init=False, default=None)
    _pauses: _Pauses = field(init=False)
    _walked: float = field(init=False, default=0.0)
    _offset: float = field(init=False, default=0.0)
    _speed: float = field(init=False, default=0.0)
    _pace: float = field(init=False, default=0.0)
    _phase: float = field(init=False, default=0.0)
    _held: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self._pauses = _Pauses(self.generator)
        self.stance = Stance(*self.person.place, 0.0)
        if self.person.path:
            self._loop = Loop(self.person.path)
            self._walked = self.generator.uniform(0.0, 0.12) * self._loop.length
            self._phase = self.generator.uniform(0.0, math.tau)
            self._pace = self.person.speed * self.generator.uniform(0.92, 1.08)
            self._pauses.draw(self._walked)
            self.stance = Stance(*self._loop.at(self._walked), 0.0)

    def hold_at(self, x: float, y: float, yaw: float) -> None:
        """Stand there from now on."""
        self._held = True
        self._speed = 0.0
        self.stance = Stance(x, y, yaw, 0.0)

    def resume(self) -> None:
        """Go on walking where the path was left. Someone without a path goes back to their place."""
        self._held = False
        if self._loop is None:
            self.stance = Stance(*self.person.place, 0.0)

    def step(self, dt: float, obstacles: Sequence[Obstacle]) -> None:
        """Walk on for dt seconds, past or up to these obstacles."""
        if self._held or self._loop is None:
            return
        target = 0.0 if self._pauses.active(self._walked, dt) else self._pace
        x, y, yaw = self._loop.at(self._walked)
        views = [view for view in (_seen_from(x, y, yaw, other) for other in obstacles) if view is not None]
        self._side_step(dt, views)
        if any(_in_the_way(view, self._offset) and _gap(view) < PERSONAL_SPACE for view in views):
            target = 0.0
        change = WALK_ACCELERATION * dt * (3.0 if target < self._speed else 1.0)
        self._speed += max(-change, min(change, target - self._speed))
        self._walked += self._speed * dt
        self._phase += math.tau * self._speed * dt / (STRIDE_PER_HEIGHT * self.person.appearance.height)
        x, y, yaw = self._loop.at(self._walked)
        x, y = x - self._offset * math.sin(yaw), y + self._offset * math.cos(yaw)
        self.stance = Stance(x, y, self._turned(yaw, dt), self._speed)

    def limbs(self) -> dict[str, PartPose]:
        """Return the poses of the body's parts, in the person's frame."""
        height, seat = self.person.appearance.height, self._seat
        return walking(height, self._phase, self._swing) if seat is None else sitting(height, seat)

    def trunk(self) -> PartPose:
        """Return the trunk's pose, as in ``limbs``."""
        height, seat = self.person.appearance.height, self._seat
        return walking_trunk(height, self._phase, self._swing) if seat is None else sitting(height, seat)["trunk"]

    @property
    def _seat(self) -> float | None:
        """The height of the seat on which the person sits, in metres, or None if they stand or walk."""
        return None if self._held else self.person.seat

    @property
    def _swing(self) -> float:
        """The swing of the limbs, from 0 to 1."""
        return min(1.0, self._speed / FULL_SWING_SPEED)

    def _side_step(self, dt: float, views: Sequence[_View]) -> None:
        """Move towards the first free of: the path, its right, its left; but not through somebody alongside."""
        for goal in (0.0, -MAX_SIDE_STEP, MAX_SIDE_STEP):
            if not any(_in_the_way(view, goal) or _between(view, self._offset, goal) for view in views):
                change = SIDE_STEP_SPEED * dt
                self._offset += max(-change, min(change, goal - self._offset))
                return

    def _turned(self, yaw: float, dt: float) -> float:
        """Turn towards the path's direction, at most 2.5 rad/s."""
        error = math.remainder(yaw - self.stance.yaw, math.tau)
        return math.remainder(self.stance.yaw + max(-2.5 * dt, min(2.5 * dt, error)), math.tau)


@dataclass(frozen=True, slots=True)
class _View:
    """An obstacle as seen from a point of the path: metres ahead, metres to the left."""

    ahead: float
    left: float
    radius: float


def _seen_from(x: float, y: float, yaw: float, other: Obstacle) -> _View | None:
    """The obstacle relative to the path's direction, or None if it does not matter."""
    dx, dy = other.x - x, other.y - y
    ahead = dx * math.cos(yaw) + dy * math.sin(yaw)
    left = dy * math.cos(yaw) - dx * math.sin(yaw)
    if not -other.radius - BODY_RADIUS < ahead < LOOK_AHEAD + other.radius:
        return None
    return _View(ahead, left, other.radius)


def _in_the_way(view: _View, offset: float) -> bool:
    return abs(view.left - offset) < view.radius + BODY_RADIUS


def _between(view: _View, offset: float, goal: float) -> bool:
    """Return whether a side-step from here to there meets someone who is level with the walker."""
    reach = view.radius + BODY_RADIUS
    return view.ahead < reach and min(offset, goal) - reach < view.left < max(offset, goal) + reach


def _gap(view: _View) -> float:
    """Free metres in front. Someone level with or behind the walker leaves it free to go."""
    return view.ahead - view.radius - BODY_RADIUS if view.ahead > 0.0 else math.inf


def _cut_corners(points: Sequence[Point]) -> list[Point]:
    """One round of Chaikin's corner cutting: the curve stays inside the corners' hull."""
    cut: list[Point] = []
    for (ax, ay), (bx, by) in zip(points, [*points[1:], points[0]], strict=True):
        cut.append((0.75 * ax + 0.25 * bx, 0.75 * ay + 0.25 * by))
        cut.append((0.25 * ax + 0.75 * bx, 0.25 * ay + 0.75 * by))
    return cut
