"""Scenes of one's own: from a YAML file, from Python, and from the simulator's settings."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path

import numpy as np
import pytest

from dimos_streams.documents.problem import BlueprintError
from dimos_streams.errors import UserError
from dimos_streams.messages.image import array_from_image
from dimos_streams.robot.simulation.furniture import KINDS, made
from dimos_streams.robot.simulation.scene import STOCK_SCENE, Scene
from dimos_streams.robot.simulation.scene_file import load_scene
from dimos_streams.robot.simulation.settings import FurnitureSettings
from dimos_streams.robot.simulation.world import World, WorldConfig
from dimos_streams.robot.simulator import Simulator
from dimos_streams.testing.harness import ModuleHarness
from tests.blueprint.checked import check_reference
from tests.robot.topdown import TopDown, footprints

WORKSHOP = """\
room: {length: 6, width: 5}
start: {x: -2, y: -1.5, yaw_deg: 45}
furniture:
  - {name: bench, kind: table, x: 1.5, y: 1.5, size: [1.4, 0.7, 0.9], colour: brown}
  - {kind: plant, x: -2.5, y: 2}
  - name: pillar
    x: 2.5
    y: -2
    parts: [{shape: cylinder, size: [0.4, 0.4, 2.6], at: [0, 0, 1.3], colour: [10, 20, 30]}]
people:
  - {name: anna, shirt: blue, trousers: black, path: [[-1, -1], [1, -1]], speed: 0.5}
  - {name: ben, description: man in a white coat, shirt: white, place: {x: 0.5, y: 1.5, yaw_deg: -90}}
  - person_red
events:
  - {at_s: 1, hide: ben}
"""

MINE = "modules:\n  robot:\n    type: dimos_streams.robot.simulator:Simulator\n    config:\n"

FROM_PYTHON = Scene(people=STOCK_SCENE.people[:1])
A_FILE = Path("workshop.yaml")
NOT_A_SCENE = 7


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with the workshop in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "workshop.yaml").write_text(WORKSHOP)
    return tmp_path


@pytest.mark.feature("K3")
@pytest.mark.usefixtures("folder")
def test_a_scene_file_is_what_is_simulated() -> None:
    scene = load_scene("workshop.yaml")
    assert [person.name for person in scene.people] == ["anna", "ben", "person_red"]
    assert [person.description for person in scene.people][:2] == [
        "person in a blue shirt and black trousers",
        "man in a white coat",
    ]
    assert (scene.start.x, scene.start.y, scene.start.yaw) == (-2.0, -1.5, math.radians(45))
    assert set(footprints(scene)) == {"bench", "plant_1", "pillar"}
    x0, x1, y0, y1 = footprints(scene)["bench"]
    assert (x0, x1, y0, y1) == pytest.approx((0.8, 2.2, 1.15, 1.85))
    assert (scene.room.length, scene.room.width, scene.room.height) == (6.0, 5.0, 2.6)
    world = World(WorldConfig(scene=scene)).load()
    world.step(2.0)
    assert set(world.people()) == {"anna", "ben", "person_red"}
    assert math.dist((world.people()["ben"].x, world.people()["ben"].y), (0.5, 1.5)) == 0
    drawn = TopDown(scene, pixels_per_metre=10.0).picture()
    assert drawn.shape == (52, 62, 3) or drawn.shape[1] < 65


@pytest.mark.slow
@pytest.mark.feature("K3")
def test_there_and_back_is_a_path() -> None:
    world = World(WorldConfig(scene=load_scene(__name__ + ":THERE_AND_BACK"))).load()
    places = []
    for _ in range(400):
        world.step(0.1)
        places.append(world.people()["anna"])
    assert max(place.x for place in places) > 0.4
    assert min(place.x for place in places) < -0.4
    assert all(abs(place.y + 1.0) < 0.7 for place in places)


@pytest.mark.slow
@pytest.mark.feature("K3")
@pytest.mark.virtual_time
async def test_the_simulator_shows_a_scene_of_ones_own_and_its_events(folder: Path) -> None:
    config = {"scene": "workshop.yaml", "events": [{"at_s": 2.0, "show": "ben"}]}
    async with ModuleHarness(Simulator, config, name="robot") as harness:
        seen = []
        for seconds in (0.5, 1.0, 1.0):
            await asyncio.sleep(seconds)
            truth = harness.sent("ground_truth")[-1].transforms
            seen.append("ben" in {transform.child_frame_id for transform in truth})
        labels = json.loads(harness.sent("instance_labels")[-1].data)
        instances = array_from_image(harness.sent("instances")[-1])
    assert seen == [True, False, True]
    assert list(labels.values())[1] == "man in a white coat"
    assert np.isin(instances, list(map(int, ["0", *labels]))).all()


@pytest.mark.feature("K3")
@pytest.mark.virtual_time
async def test_settings_change_a_part_of_a_scene(folder: Path) -> None:
    config = {
        "scene": "workshop.yaml",
        "people": ["anna", {"name": "cleo", "shirt": "orange", "place": {"x": 1, "y": 0}}],
        "furniture": ["bench", {"kind": "crate", "x": 0, "y": -2, "z": 0.5}],
        "start_x": -1.0,
        "events": [{"at_s": 0, "hide": "anna"}],
    }
    with pytest.raises(UserError, match=r"people: the scene's event at 1 s is about 'ben'"):
        async with ModuleHarness(Simulator, config, name="robot"):
            pass
    (folder / "workshop.yaml").write_text(WORKSHOP.partition("events:")[0])
    simulator = Simulator(config, name="robot")
    async with ModuleHarness(simulator):
        await asyncio.sleep(0.1)
        scene = simulator.world.scene
    assert [person.description for person in scene.people][1] == "person in an orange shirt and grey trousers"
    assert [item.name for item in scene.furniture] == ["bench", "crate_1"]
    assert min(part.at[2] for part in scene.furniture[1].parts) > 0.5
    assert (scene.start.x, scene.start.y) == (-1.0, -1.5)
    assert scene.room.length == 6.0


def test_scenes_come_from_python_too(folder: Path) -> None:
    assert load_scene(f"{__name__}:FROM_PYTHON") is FROM_PYTHON
    assert load_scene(f"{__name__}:A_FILE").room.length == 6.0
    assert load_scene("") is STOCK_SCENE
    for reference, text in {
        f"{__name__}:NOT_A_SCENE": "is neither a Scene nor the Path of a file but int",
        "nowhere.yaml": "there is no scene file 'nowhere.yaml'",
        f"{__name__}:FROM_PYTHN": "did you mean 'FROM_PYTHON'",
    }.items():
        with pytest.raises(UserError, match=text):
            load_scene(reference)


@pytest.mark.feature("K3")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("{name: dora, plac: {}}", "14: unknown key 'plac' in person number 4; did you mean 'place'?"),
        ("{place: {}}", "14: person number 4 needs the key 'name'"),
        ("{name: Dora, place: {}}", "14: people.3.name: it must match pattern"),
        ("{name: dora, shirt: rde, place: {}}", "14: people.3.shirt: no colour 'rde'; did you mean 'red'?"),
        ("{name: dora, speed: fast, place: {}}", "14: people.3.speed: it must be a number"),
        ("{name: dora}", "14: people.3: a person has either a path or a place"),
        ("{name: dora, path: [[1, 1], [1, 1]]}", "14: people.3: a path needs at least two corners that differ"),
        ("{name: dora, path: [[1, 1], [9, 1]]}", "14: people.3.path.1: (9, 1) is outside of the room"),
        ("{name: anna, place: {}}", "10: people: two people are called 'anna'"),
        ("{name: odom, place: {}}", "14: people.3.name: 'odom' is the name of a frame"),
        ("person_rde", "14: people.3: no person 'person_rde', there are"),
        ("7", "14: people.3: it must be an object, names with their values"),
    ],
)
def test_what_is_wrong_with_a_file_has_its_line(folder: Path, line: str, expected: str) -> None:
    text = WORKSHOP.replace("events:", f"  - {line}\nevents:")
    (folder / "workshop.yaml").write_text(text)
    with pytest.raises(BlueprintError) as error:
        load_scene("workshop.yaml")
    assert str(error.value).startswith(f"workshop.yaml:{expected}")


@pytest.mark.feature("K3")
def test_an_event_about_a_person_without_a_name_is_wrong(folder: Path) -> None:
    (folder / "workshop.yaml").write_text(WORKSHOP.replace("hide: ben", 'hide: ""'))
    with pytest.raises(BlueprintError, match="event at 1 s: no person '', there are"):
        load_scene("workshop.yaml")


@pytest.mark.feature("K3")
def test_check_tells_all_of_it_before_anything_starts(folder: Path) -> None:
    text = WORKSHOP.replace("kind: plant", "kind: plnt").replace("speed: 0.5", "speed: 99")
    (folder / "workshop.yaml").write_text(text)
    (folder / "mine.yaml").write_text(f"{MINE}      scene: workshop.yaml\n")
    lines = [str(problem) for problem in check_reference("mine.yaml")[1]]
    assert [line[:59] for line in lines] == [
        "mine.yaml:5: module 'robot': workshop.yaml:5: furniture.1.k",
        "mine.yaml:5: module 'robot': workshop.yaml:11: people.0.spe",
    ]
    (folder / "workshop.yaml").write_text(WORKSHOP.replace("x: -2, y: -1.5", "x: 1.5, y: 1.5"))
    [line] = [str(problem) for problem in check_reference("mine.yaml")[1]]
    assert line.endswith("workshop.yaml:2: start: the robot would begin at (1.5, 1.5), within 'bench'")


@pytest.mark.feature("K3")
def test_settings_that_are_wrong_have_the_blueprints_line(folder: Path) -> None:
    text = f"{MINE}      people:\n        - person_red\n        - {{name: eve, pth: []}}\n"
    (folder / "mine.yaml").write_text(text)
    assert [str(problem) for problem in check_reference("mine.yaml")[1]] == [
        "mine.yaml:7: module 'robot' has no setting 'people.1.pth'; did you mean 'path'?"
    ]
    (folder / "mine.yaml").write_text(text.replace("{name: eve, pth: []}", "person_gren"))
    [line] = [str(problem) for problem in check_reference("mine.yaml")[1]]
    assert line.startswith("mine.yaml:7: module 'robot': people.1: no person 'person_gren'")
    assert line.endswith("did you mean 'person_green'?")


THERE_AND_BACK = Path(__file__).with_name("there_and_back.yaml")


def test_each_kind_of_furniture_can_be_made_and_asked_for() -> None:
    kind = FurnitureSettings.model_json_schema()["properties"]["kind"]["anyOf"][0]
    assert (tuple(kind["enum"]), [kind for kind in KINDS if not made(kind, None, None)]) == (KINDS, [])
