import itertools
import math
from dataclasses import replace

import pytest

from dimos_streams.errors import UserError
from dimos_streams.messages.planar import PlanarPose
from dimos_streams.robot.simulation.mjcf import BASE_RADIUS, PERSON_RADIUS
from dimos_streams.robot.simulation.people import STOCK_PEOPLE
from dimos_streams.robot.simulation.scene import STOCK_SCENE
from dimos_streams.robot.simulation.world import TICK_S, World, WorldConfig
from dimos_streams.robot.velocity import STILL, Velocity
from tests.robot.topdown import footprints


def empty_room(x: float = 0.0, y: float = 0.0, yaw: float = 0.0) -> World:
    return World(WorldConfig(scene=replace(STOCK_SCENE, people=(), start=PlanarPose(x, y, yaw)))).load()


def run(seed: int) -> str:
    world = World(WorldConfig(seed=seed)).load()
    for step in range(200):
        world.step(0.05, Velocity(0.4, 0.0, 0.5 * math.sin(step / 20)))
    return world.digest()


@pytest.mark.slow
def test_states_are_a_function_of_the_seed() -> None:
    assert run(1) == run(1)
    assert run(1) != run(2)


def test_the_size_of_steps_does_not_matter() -> None:
    fine, coarse = World(WorldConfig()).load(), World(WorldConfig()).load()
    command = Velocity(0.3, 0.0, 0.2)
    for _ in range(300):
        fine.step(0.01, command)
    coarse.step(3.0, command)
    assert fine.time == coarse.time == 3.0
    assert fine.digest() == coarse.digest()


def test_the_base_tracks_a_velocity_in_its_own_frame() -> None:
    world = empty_room(yaw=math.pi / 2)
    world.step(2.0, Velocity(0.6, 0.1, 0.0))
    twist, pose = world.twist(), world.pose()
    assert twist.vx == pytest.approx(0.6, abs=0.02)
    assert twist.vy == pytest.approx(0.1, abs=0.02)
    assert pose.y > 0.9
    assert pose.x < -0.1
    world.step(2.0, Velocity(0.0, 0.0, -0.8))
    assert world.twist().wz == pytest.approx(-0.8, abs=0.02)
    assert math.hypot(world.twist().vx, world.twist().vy) < 0.02


def test_the_base_speeds_up_and_brakes_within_its_limits() -> None:
    world, limits = empty_room(x=-3.0), WorldConfig()
    speeds = [0.0]
    for command in [Velocity(5.0)] * 60 + [STILL] * 60:
        world.step(TICK_S, command)
        speeds.append(world.twist().vx)
    changes = [(b - a) / TICK_S for a, b in itertools.pairwise(speeds)]
    assert max(changes) < 1.3 * limits.acceleration
    assert -min(changes) < 1.3 * limits.braking
    assert max(speeds) == pytest.approx(WorldConfig().max_speed, abs=0.05)
    assert abs(speeds[-1]) < 0.01


def test_the_base_turns_and_goes_aside_within_its_limits() -> None:
    world, limits = empty_room(), WorldConfig()
    turns = [0.0]
    for command in [Velocity(wz=9.0)] * 80 + [Velocity(wz=-9.0)] * 80 + [STILL] * 60:
        world.step(TICK_S, command)
        turns.append(world.twist().wz)
    assert max(turns) == pytest.approx(limits.max_turn, abs=0.05)
    assert min(turns) == pytest.approx(-limits.max_turn, abs=0.05)
    changes = [abs(b - a) / TICK_S for a, b in itertools.pairwise(turns)]
    assert max(changes) == pytest.approx(limits.turn_acceleration, rel=0.3)
    assert abs(turns[-1]) < 0.01
    assert abs(world.pose().yaw) <= math.pi
    world = empty_room(x=-2.0, y=-2.5)
    world.step(2.0, Velocity(3.0, 4.0))
    assert (world.twist().vx, world.twist().vy) == pytest.approx((0.6 * 1.5, 0.8 * 1.5), abs=0.03)


def test_the_base_meets_people_who_are_there_and_nobody_who_has_left() -> None:
    ways = []
    for hidden in (False, True):
        scene = replace(STOCK_SCENE, people=STOCK_PEOPLE[:1], start=PlanarPose(-1.0, -1.0, 0.0))
        world = World(WorldConfig(scene=scene)).load()
        world.place_person("person_red", 0.2, -1.0)
        if hidden:
            world.hide("person_red")
        world.step(3.0, Velocity(0.8))
        ways.append(world.pose().x)
    assert ways[0] == pytest.approx(0.2 - PERSON_RADIUS - BASE_RADIUS, abs=0.03)
    assert ways[1] > 1.0


def test_walls_stop_the_base() -> None:
    world = empty_room(x=3.5, y=-2.2)
    world.step(10.0, Velocity(1.0))
    assert world.pose().x == pytest.approx(STOCK_SCENE.room.length / 2 - BASE_RADIUS, abs=0.03)
    assert abs(world.twist().vx) < 0.02
    world.step(2.0, Velocity(-0.5))
    assert world.pose().x < 4.2


def test_furniture_stops_the_base() -> None:
    world = empty_room(x=-2.6, y=0.5, yaw=math.pi / 2)
    world.step(6.0, Velocity(0.8))
    assert world.pose().y < 1.8


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 2])
def test_people_walk_without_meeting_furniture_or_each_other(seed: int) -> None:
    world = World(WorldConfig(seed=seed)).load()
    walkers = [person.name for person in STOCK_PEOPLE if person.path]
    boxes = footprints(STOCK_SCENE).values()
    walked = dict.fromkeys(walkers, 0.0)
    for _ in range(600):
        before = world.people()
        world.step(0.1)
        now = world.people()
        for name in walkers:
            here = now[name]
            step = math.dist((before[name].x, before[name].y), (here.x, here.y))
            assert step < 0.1
            walked[name] += step
            for x0, x1, y0, y1 in boxes:
                gap = math.hypot(max(x0 - here.x, 0, here.x - x1), max(y0 - here.y, 0, here.y - y1))
                assert gap > 0.25
        red, green = (now[name] for name in walkers)
        assert math.dist((red.x, red.y), (green.x, green.y)) > 0.4
    assert all(0.35 * 60 < distance < 0.9 * 60 for distance in walked.values())


@pytest.mark.slow
def test_a_person_passes_a_robot_that_stands_in_the_way() -> None:
    world = World(WorldConfig(scene=replace(STOCK_SCENE, people=STOCK_PEOPLE[:1]))).load()
    ahead = world.people()["person_red"]
    world.place_robot(ahead.x + 2.0 * math.cos(ahead.yaw), ahead.y + 2.0 * math.sin(ahead.yaw))
    robot, nearest, farthest = world.pose(), math.inf, 0.0
    for _ in range(150):
        world.step(0.1)
        person = world.people()["person_red"]
        distance = math.dist((person.x, person.y), (robot.x, robot.y))
        nearest, farthest = min(nearest, distance), max(farthest, distance)
    assert nearest > 0.45
    assert farthest > 3.0
    assert math.dist((world.pose().x, world.pose().y), (robot.x, robot.y)) < 0.01


def test_people_can_be_hidden_shown_and_placed() -> None:
    world = World(WorldConfig()).load()
    world.hide("person_red")
    assert "person_red" not in world.people()
    assert set(world.labels().values()) == {person.description for person in STOCK_PEOPLE}
    world.show("person_red")
    world.place_person("person_red", 1.0, -1.0, 0.5)
    world.step(5.0)
    stance = world.people()["person_red"]
    assert (stance.x, stance.y, stance.yaw, stance.speed) == (1.0, -1.0, 0.5, 0.0)
    world.release_person("person_red")
    world.step(5.0)
    assert world.people()["person_red"].speed > 0.0


def test_an_unknown_person_is_named_with_the_nearest() -> None:
    world = World(WorldConfig()).load()
    with pytest.raises(UserError, match=r"'person_rde'.*did you mean 'person_red'"):
        world.hide("person_rde")
