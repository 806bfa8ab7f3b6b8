import math
from dataclasses import replace

import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray

from dimos_streams.errors import UserError
from dimos_streams.messages.planar import PlanarPose
from dimos_streams.robot.rendering.camera import MOUNT, CameraModel, RayCamera, RenderedFrame
from dimos_streams.robot.rendering.camera_gl import GlCamera
from dimos_streams.robot.simulation.scene import STOCK_SCENE
from dimos_streams.robot.simulation.world import World, WorldConfig

PLACES = [(-2.4, -0.9, 0.0), (3.6, 0.5, 2.9), (0.0, -3.0, 1.2), (-1.0, 0.8, 2.2), (4.0, -2.8, -2.0)]
PLACES += [(1.8, -3.2, 0.0), (1.8, -3.2, math.pi)]  # beside a shelf that reaches behind the camera


@pytest.fixture
def world() -> World:
    world = World(WorldConfig(scene=replace(STOCK_SCENE, start=PlanarPose(-2.5, 0.0, 0.0)))).load()
    world.place_person("person_red", 0.0, 0.5, math.pi)
    world.place_person("person_green", 0.0, -0.5, math.pi)
    return world


def directions(model: CameraModel, yaw: float) -> NDArray[np.float64]:
    (cx, cy), f = model.centre, model.focal_length
    u = np.float32((np.arange(model.width) - cx) / f).astype(float)
    v = np.float32((np.arange(model.height) - cy) / f).astype(float)
    left, up = np.meshgrid(-u, -v)
    cos, sin = math.cos(yaw), math.sin(yaw)
    return np.stack([cos - sin * left, sin + cos * left, up], axis=-1)


def ids_of(world: World, frame: RenderedFrame) -> set[str]:
    seen = {int(value) for value in np.unique(frame.instances)} - {0}
    return {world.labels()[value] for value in seen}


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_rays_hit_what_mujoco_says(world: World, place: tuple[float, float, float]) -> None:
    model = CameraModel(160, 120)
    world.step(1.0)
    world.place_robot(*place)
    frame = RayCamera(world, model).render()
    rays = directions(model, place[2])[::2, ::2]
    count = rays.shape[0] * rays.shape[1]
    lengths = np.linalg.norm(rays, axis=-1)
    geoms, ranges = np.empty(count, dtype=np.int32), np.empty(count)
    ahead = np.array([math.cos(place[2]), math.sin(place[2]), 0.0])
    eye = np.array([place[0], place[1], MOUNT[2]]) + MOUNT[0] * ahead
    unit = (rays / lengths[..., None]).reshape(-1)
    groups = np.array([1, 1, 1, 1, 0, 0], dtype=np.uint8)
    mujoco.mj_multiRay(
        world.model, world.data, eye, unit, groups, True, world.base_body, geoms, ranges, None, count, 1e3
    )
    depth = (ranges.reshape(lengths.shape) / lengths).astype(np.float32)
    same = np.abs(frame.depth - depth) < 0.002
    assert same.mean() > 0.999
    instances = world.instance_of_geom[geoms].reshape(lengths.shape)
    assert (frame.instances == instances).mean() > 0.999


def test_people_are_seen_with_their_own_ids_and_clothes(world: World) -> None:
    frame = RayCamera(world).render()
    assert frame.colour is not None
    assert frame.colour.shape == (240, 320, 3)
    assert frame.colour.dtype == np.uint8
    assert frame.depth.shape == frame.instances.shape == (120, 160)
    assert {"person in a red shirt and blue trousers", "person in a green shirt and black trousers"} <= ids_of(
        world, frame
    )
    for instance, (name, channel) in enumerate([("red", 0), ("green", 1)], start=1):
        rows, columns = np.nonzero(frame.instances == instance)
        assert len(rows) > 300
        chest = rows < np.quantile(rows, 0.45)
        colours = frame.colour[2 * rows[chest], 2 * columns[chest]].mean(axis=0)
        assert colours.argmax() == channel, name
    red, green = (np.nonzero(frame.instances == i)[1].mean() for i in (1, 2))
    assert red < green


def test_depth_is_the_distance_to_a_person(world: World) -> None:
    for distance in (1.2, 2.0, 4.0):
        world.place_person("person_red", -2.5 + MOUNT[0] + distance, 0.0, math.pi)
        world.hide("person_green")
        frame = RayCamera(world).render()
        body = frame.depth[frame.instances == 1]
        assert np.median(body) == pytest.approx(distance - 0.11, abs=0.05)
        rows = np.nonzero(frame.instances == 1)[0]
        assert rows.min() < 50, "the head is in the picture"


def test_a_hidden_person_is_not_seen(world: World) -> None:
    world.hide("person_red")
    assert "person in a red shirt and blue trousers" not in ids_of(world, RayCamera(world).render())


def test_without_colour_depth_and_instances_are_the_same(world: World) -> None:
    camera = RayCamera(world)
    full, sparse = camera.render(), camera.render(colour=False)
    assert sparse.colour is None
    assert np.array_equal(full.depth, sparse.depth)
    assert np.array_equal(full.instances, sparse.instances)


def test_pictures_one_after_another_are_as_those_of_a_new_camera(world: World) -> None:
    camera = RayCamera(world, CameraModel(64, 48))
    for robot_x in (-2.5, -2.5, -2.5, -2.0, -2.0):
        world.place_robot(robot_x, 0.0)
        world.step(0.5)
        seen, anew = (each.render(colour=False) for each in (camera, RayCamera(world, camera.model)))
        assert np.array_equal(seen.depth, anew.depth)
        assert np.array_equal(seen.instances, anew.instances)


def test_a_camera_that_stays_sees_the_colours_that_one_sees_which_has_just_come(world: World) -> None:
    staying, coming = (RayCamera(world, CameraModel(64, 48)) for _ in range(2))
    for place in ((-2.5, 0.0), (-2.2, 0.1)):
        for y in (0.5, 0.2, -0.4):
            world.place_person("person_red", -0.9, y, math.pi)
            world.place_robot(-2.0, 0.0)
            coming.render()
            world.place_robot(*place)
            seen, anew = staying.render().colour, coming.render().colour
            assert seen is not None
            assert anew is not None
            assert np.array_equal(seen, anew)


def test_without_opengl_the_gl_camera_says_what_to_install(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object) -> None:
        raise RuntimeError("no display")

    monkeypatch.setattr(mujoco, "Renderer", broken)
    with pytest.raises(UserError, match=r"no display.*apt install.*render 'rays'"):
        GlCamera(world)


class Renderer:
    """MuJoCo's renderer as far as a camera uses it: one picture at a time, of the kind that is switched on."""

    def __init__(self, model: object, height: int, width: int) -> None:
        self._shape, self._kind, self.closed = (height, width), "colour", False

    def update_scene(self, data: object, camera: str) -> None:
        assert camera == "head"

    def enable_depth_rendering(self) -> None:
        self._kind = "depth"

    def enable_segmentation_rendering(self) -> None:
        self._kind = "geoms"

    def disable_depth_rendering(self) -> None:
        self._kind = "colour"

    disable_segmentation_rendering = disable_depth_rendering

    def render(self) -> NDArray[np.generic]:
        rows, columns = np.indices(self._shape)
        if self._kind == "depth":
            return np.asarray(rows * 0.01 + columns * 0.001)
        if self._kind == "geoms":
            return np.stack([rows % 7, columns % 3], axis=-1)
        return np.stack([rows, columns, columns], axis=-1).astype(np.uint8)

    def close(self) -> None:
        self.closed = True


def test_the_gl_camera_takes_depth_and_geoms_of_every_second_pixel(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mujoco, "Renderer", Renderer)
    camera = GlCamera(world, CameraModel(64, 48, math.radians(90.0)))
    assert world.model.camera("head").fovy[0] == pytest.approx(2 * math.degrees(math.atan(0.75)))
    for _ in range(2):
        frame = camera.render()
        assert frame.colour is not None
        assert frame.colour.shape == (48, 64, 3)
        assert tuple(frame.colour[3, 5]) == (3, 5, 5)
        assert frame.depth.shape == frame.instances.shape == (24, 32)
        assert frame.depth[3, 5] == pytest.approx(0.07)
        assert np.array_equal(frame.instances, world.instance_of_geom[np.indices((48, 64))[0][::2, ::2] % 7])
        assert camera.render(colour=False).colour is None
    camera.close()
    assert camera._renderer.closed
